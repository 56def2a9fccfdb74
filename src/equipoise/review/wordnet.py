"""Meanings of classes and concepts from WordNet's files."""

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from equipoise.core import DataError, InputError
from equipoise.core.files import read_regular
from equipoise.data import synset_text

SCHEMA = pl.Schema({
    "subject": pl.String(), "sense": pl.Int64(), "synonyms": pl.List(pl.String()),
    "definition": pl.String(),
})  # fmt: skip
UNCLEAR = "any of its meanings, or none"
_OFFSET = re.compile(r"n(\d{8})")


def read_senses(folder: Path, subjects: Iterable[str]) -> pl.DataFrame:
    """Return the meanings of nouns, the most frequent first.

    Parameters
    ----------
    folder : Path
        With `index.noun` and `data.noun` as Princeton publishes them.
    subjects : iterable of str
        Nouns, synsets such as "hot_dog.n.01", or ids of ImageNet such as "n02797692".

    Returns
    -------
    polars.DataFrame
        `subject`, `sense` (from 1), `synonyms` and `definition`; no row for an unknown noun.

    Raises
    ------
    DataError
        If a file isn't there or has another layout.
    """
    try:
        index, data = read_regular(folder / "index.noun"), read_regular(folder / "data.noun")
        offsets = dict[str, list[bytes]]()
        for line in index.splitlines():
            if not line.startswith(b" "):
                lemma, *fields = line.split()
                offsets[lemma.decode()] = fields[-int(fields[1]) :]
        rows = []
        for subject in subjects:
            for place, offset in enumerate(_find_offsets(subject, offsets), start=1):
                rows.append((subject, place, *_read_synset(data, int(offset))))
    except (OSError, ValueError, IndexError) as error:
        raise DataError(
            f"WordNet's files cannot be read: {error}", file=str(folder),
            expected="index.noun and data.noun of one release, as published",
            fix="name the folder that has both, such as WordNet-3.0/dict",
        ) from None  # fmt: skip
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _find_offsets(subject: str, offsets: dict[str, list[bytes]]) -> list[bytes]:
    if number := _OFFSET.fullmatch(subject):
        return [number[1].encode()]
    try:
        word = synset_text(subject)
    except InputError:
        word = subject
    return offsets.get(word.lower().replace(" ", "_"), [])


def _read_synset(data: bytes, offset: int) -> tuple[list[str], str]:
    """Return the words and the definition of the synset at a byte of the file."""
    fields = data[offset : data.index(b"\n", offset)].decode().split(" ")
    if fields[0] != f"{offset:08d}":
        raise ValueError(f"no synset begins at byte {offset} of data.noun")
    words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
    gloss = " ".join(fields[fields.index("|") + 1 :]).strip()
    return [word.replace("_", " ") for word in words], gloss.partition('; "')[0]


def meanings(names: pl.Series, senses: pl.DataFrame) -> pl.Series:
    """Return the meaning of a class that each variant of its name has.

    Parameters
    ----------
    names : polars.Series of str
        Variants, null where unknown: "foundation" and "bag" are variants of "base".
    senses : polars.DataFrame
        Of the class, see `read_senses`.

    Returns
    -------
    polars.Series of str
        The most frequent of them; `UNCLEAR` of the class's own name and of other words.
    """
    words = senses.explode("synonyms").select(
        pl.col("synonyms").str.to_lowercase(), meaning=pl.format("{}: {}", "sense", "definition")
    )
    # The name of the class has all of its meanings.
    clear = words.filter(pl.len().over("synonyms") < max(senses.height, 2))
    name_table = names.str.replace_all("_", " ").str.to_lowercase().alias("synonyms").to_frame()
    joined = name_table.join(
        clear.unique("synonyms", keep="first", maintain_order=True),
        on="synonyms",
        how="left",
        maintain_order="left",
    )
    unclear = pl.when(pl.col("synonyms").is_not_null()).then(pl.lit(UNCLEAR))
    return joined.select(pl.coalesce("meaning", unclear)).to_series()
