"""What people say of all images: the share of each answer, and how right values of groups are."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import ConfigError, Estimate, Objects
from equipoise.core.files import read_table, table_bytes
from equipoise.evidence import LABELS, keep_labels
from equipoise.metrics import labelled_share
from equipoise.report import read
from equipoise.review.forms import SAME
from equipoise.review.labels import look_up_values
from equipoise.review.questions import Question
from equipoise.review.sampling import RunImages

Row = dict[str, Any]
SCORES = ("precision", "recall", "f1")
"""Scores of each value of an attribute, with their ends columns of a table."""
ANSWERS, VALUES = "labelled_answers", "labelled_values"
"""Tables that a run has of the labels, beside those of its audit."""
SCHEMAS = {
    ANSWERS: pl.Schema({
        "question": pl.String(), "answer": pl.String(), "groups": pl.String(),
        "group": pl.String(), "labelled": pl.Int64(), "share": pl.Float64(),
        "low": pl.Float64(), "high": pl.Float64(),
    }),
    VALUES: pl.Schema({
        "question": pl.String(), "attribute": pl.String(), "value": pl.String(),
        "by": pl.String(), "support": pl.Int64(),
        **{
            f"{name}{end}": pl.Float64()
            for name in SCORES
            for end in ("", "_low", "_high")
        },
    }),
}  # fmt: skip
OF_RUN, OF_FILTER = "groups of the run", "{} shown"
"""Who says which value an image has: the run, or a filter of the images that it made."""


def share_answers(
    images: RunImages, agreed: pl.DataFrame, question: Question, strata: list[str | None], seed: int
) -> Iterator[Row]:
    """Yield the share of each answer, of all images and of each group."""
    codes = images.groups.codes
    everyone = ("", np.ones(len(codes), dtype=bool))
    groups = [(name, codes == place) for place, name in enumerate(images.groups.names)]
    for answer in question.answers:
        outcome = images.outcome(agreed, answer)
        for group, members in (everyone, *groups):
            of_group = np.where(members, outcome, np.nan)
            kept = [name if inside else None for name, inside in zip(strata, members, strict=True)]
            share = labelled_share(of_group, kept, rng=seed)
            interval = share.interval()
            yield {
                "question": question.name, "answer": answer, "groups": images.groups.name,
                "group": group, "labelled": sum(share.n.values()), "share": share.value,
                "low": interval.low, "high": interval.high,
            }  # fmt: skip


def compare_values(
    run: Path,
    images: RunImages,
    agreed: pl.DataFrame,
    question: Question,
    strata: list[str | None],
    seed: int,
) -> Iterator[Row]:
    """Yield precision, recall and F1 of each value of an attribute, with people as the truth.

    Raises
    ------
    ConfigError
        When the groups don't have the attribute that the answers are about.
    """
    answers = look_up_values(images.ids.tolist(), agreed["image_id"], agreed["answer"])
    answered, tables = answers.is_not_null().to_numpy(), read(run).tables
    for attribute, sees in question.sees.items():
        named = _named_values(images, pl.DataFrame(tables["group_sizes"]), attribute)
        seen = np.array([sees.get(answer) for answer in answers], dtype=object)
        seen = np.where(seen == SAME, named, seen)
        # An image of no value, such as one that shows nobody, is counted nowhere.
        has_value = seen != None  # noqa: E711 - by element
        for by, machine in _machines(images, tables, attribute, named).items():
            for value in sorted({*filter(None, machine)}):
                people, says = seen == value, has_value & (machine == value)
                known = answered & (machine != None)  # noqa: E711 - by element
                precision, recall, jaccard = (
                    _ends(_conditional(strata, outcome, condition, known, seed))
                    for outcome, condition in (
                        (people, says), (says, people), (people & says, people | says),
                    )
                )  # fmt: skip
                # F1 is 2 J / (1 + J) of the Jaccard index J, which is a share.
                scores = precision, recall, {end: 2 * x / (1 + x) for end, x in jaccard.items()}
                yield {
                    "question": question.name, "attribute": attribute, "value": value, "by": by,
                    "support": int((people & known).sum()),
                    **{
                        f"{name}{end}": x
                        for name, ends in zip(SCORES, scores, strict=True)
                        for end, x in ends.items()
                    },
                }  # fmt: skip


def _conditional(
    strata: list[str | None], outcome: Any, condition: Any, known: Any, seed: int
) -> Estimate:
    """Return the share of an outcome among images of a condition, from those that are known."""
    outcomes, conditions = (
        np.where(known, mask.astype(np.float64), np.nan) for mask in (outcome, condition)
    )
    return labelled_share(outcomes, strata, condition=conditions, rng=seed)


def _ends(share: Estimate) -> dict[str, float]:
    interval = share.interval()
    return {"": share.value, "_low": interval.low, "_high": interval.high}


def _named_values(images: RunImages, sizes: pl.DataFrame, attribute: str) -> Objects:
    """Return the value of each image in the groups of the run, None if missing."""
    groups = images.groups
    attributes = groups.name.split(" × ")
    if attribute not in attributes:
        raise ConfigError(
            f"sees.{attribute}: the groups are {groups.name}. To do: choose groups of {attribute} "
            "with --groups"
        )
    place = attributes.index(attribute)
    levels = dict(sizes.filter(pl.col("groups") == groups.name)["group", "levels"].iter_rows())
    values = np.array([*(levels[name][place] for name in groups.names), None], dtype=object)
    return np.asarray(values[groups.codes], dtype=object)


def _machines(
    images: RunImages, tables: Mapping[str, pa.Table], attribute: str, named: Objects
) -> Mapping[str, Objects]:
    """Return the value of each image by the run and by a filter of two values."""
    machines = {OF_RUN: named}
    table, check = tables.get("filter_images"), OF_FILTER.format(attribute)
    values = sorted({*filter(None, named)})
    if table is None or len(values) != len(("one", "other")):
        return machines
    checks = pl.DataFrame(table).filter(pl.col("check") == check)
    if checks.is_empty():
        return machines
    passed = look_up_values(images.ids.tolist(), checks["image_id"], checks["passed"]).to_list()
    other = dict(zip(values, values[::-1], strict=True))
    machines[check] = np.array(
        [
            None if value is None or shows is None else value if shows else other[value]
            for value, shows in zip(named, passed, strict=True)
        ],
        dtype=object,
    )
    return machines


def keep_results(run: Path, question: str, tables: Mapping[str, list[Row]]) -> None:
    """Write a question's tables into the run's folder of labels.

    Raises
    ------
    RunError
        When they can't be written.
    """

    def change() -> dict[str, bytes]:
        files = {}
        for name, schema in SCHEMAS.items():
            path = run / LABELS / f"{name}.parquet"
            parts = [pl.DataFrame(tables.get(name, []), schema)]
            if path.exists():
                parts.append(pl.DataFrame(read_table(path)).filter(pl.col("question") != question))
            rows = pl.concat([part.select(*schema).cast(schema) for part in parts])
            files[path.name] = table_bytes(rows.sort("question", maintain_order=True).to_arrow())
        return files

    keep_labels(run, change)
