"""Co-occurrence of concepts and groups in the captions of a training set."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from equipoise.core import DataError
from equipoise.data.files import parse_json, read_text
from equipoise.data.tables import read_table

_COCO = "COCO's captions: `annotations`, each with a `caption`"


def count_captions(
    source: str | Path | pl.DataFrame,
    concepts: Mapping[str, Sequence[str]],
    groups: Mapping[str, Sequence[str]],
    *,
    caption: str = "caption",
) -> pl.DataFrame:
    """Count captions that name a concept, a group, or both.

    Parameters
    ----------
    source : path or data frame
        A table with a column of captions (Parquet, CSV or JSON lines), as LAION's; or captions in
        COCO's JSON.
    concepts : mapping of str to sequence of str
        Words and phrases of each concept: whole words in any case, such as "doctor", "doctors".
    groups : mapping of str to sequence of str
        Words and phrases of each group. A caption that names several groups counts for none.
    caption : str
        Column of the captions.

    Returns
    -------
    polars.DataFrame
        One row per concept and group: `concept`, `group`, `count` (captions with both), `n`
        (captions with the concept and one group), and `share`, count / n; NaN where n is 0.

    Raises
    ------
    DataError
        If the file cannot be read, has no captions, or a concept or group has no words.
    """
    texts = _captions(source, caption).to_frame("caption").lazy()
    named = [pl.col("caption").str.contains(_pattern(words)) for words in groups.values()]
    if not named or not concepts:
        raise DataError("no concepts or no groups", expected="words of at least one of each")
    single_group = pl.sum_horizontal(named) == 1
    counts = texts.select(
        (pl.col("caption").str.contains(_pattern(words)) & single_group & group)
        .sum()
        .cast(pl.Int64)
        .alias(f"{place}/{other}")
        for place, words in enumerate(concepts.values())
        for other, group in enumerate(named)
    ).collect()
    rows = []
    for place, concept in enumerate(concepts):
        group_counts = [int(counts[f"{place}/{other}"].item()) for other in range(len(groups))]
        n = sum(group_counts)
        for group, count in zip(groups, group_counts, strict=True):
            rows.append((concept, group, count, n, count / n if n else float("nan")))
    return pl.DataFrame(rows, ["concept", "group", "count", "n", "share"], orient="row")


def _captions(source: str | Path | pl.DataFrame, column: str) -> pl.Series:
    if isinstance(source, str | Path) and Path(source).suffix == ".json":
        text, _ = read_text(source, ".json", _COCO)
        try:
            annotations = parse_json(text)["annotations"]
            texts = [str(annotation["caption"]) for annotation in annotations]
        except (KeyError, TypeError, ValueError):
            raise DataError(
                "no captions",
                file=str(source),
                expected=_COCO,
                fix="name a JSON file of captions as COCO publishes it, or a table",
            ) from None
        return pl.Series(column, texts, pl.String)
    return read_table(source, texts=[column], role="captions").texts[column].fill_null("")


def _pattern(words: Sequence[str]) -> str:
    if not words or isinstance(words, str) or not all(map(str.strip, words)):
        raise DataError(f"words {words!r}", expected="a list of at least one word")
    # Longer phrases first: the engine takes the first that fits.
    ordered = sorted((word.strip() for word in words), key=len, reverse=True)
    return rf"(?i)(?:^|\W)(?:{'|'.join(map(re.escape, ordered))})(?:\W|$)"
