"""Codes that people assign to images: reasons for failures, and remedies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

import polars as pl

from equipoise.core import ConfigError
from equipoise.review.labels import SCHEMA
from equipoise.stats.intervals import wilson

CODES: Mapping[str, str] = MappingProxyType(
    {
        "low imageability": "Drop the class, or name things that a picture can show.",
        "indiscernible": (
            "Ask in the guidelines for objects that are large and clear enough; crop images or "
            "raise their resolution."
        ),
        "ambiguous definition": "Define the class more clearly, or split it into its meanings.",
        "incorrect label": "Correct the labels, and check the labelling guidelines.",
    }
)
"""The codes of Hall et al. 2023, section 6, with what helps against each."""
OWN_REMEDY = "Your own code."
NONE = "none"
_QUESTION = "cause: "
_JOIN = " + "


def check_codes(codes: Sequence[str]) -> tuple[str, ...]:
    """Return the user's own codes, checked.

    Raises
    ------
    ConfigError
        If a code repeats, is empty, or reads like several codes.
    """
    for place, code in enumerate(codes):
        if not code.strip() or code in (*CODES, NONE, *codes[:place]) or _JOIN in code:
            raise ConfigError(
                f"--code {code!r}: expected a new name, without {_JOIN!r}, other than {NONE!r} and "
                f"{', '.join(CODES)}"
            )
    return tuple(codes)


def question_of(subject: str) -> str:
    """Return the question that stores the codes of a class or concept."""
    return f"{_QUESTION}{subject}"


def subject_of(question: str) -> str | None:
    """Return the class or concept that a question codes; None of other questions."""
    return question.removeprefix(_QUESTION) if question.startswith(_QUESTION) else None


def answer_of(codes: Sequence[str]) -> str:
    """Return the answer of an image with some codes."""
    return _JOIN.join(codes) or NONE


def codes_in(answer: str) -> list[str]:
    """Return the codes of an answer."""
    return [] if answer == NONE else answer.split(_JOIN)


def answered(image_id: str, question: str, answer: str, labeller: str) -> pl.DataFrame:
    """Return one answer as a table of labels with the current time."""
    now = datetime.now(UTC)
    row = dict(zip(SCHEMA, (image_id, question, answer, labeller, now), strict=True))
    return pl.DataFrame([row], schema=SCHEMA)


def code_table(labels: pl.DataFrame, subject: str) -> pl.DataFrame:
    """Return whether each coded image of a class or concept has each code.

    Parameters
    ----------
    labels : polars.DataFrame
        Of a run, see `read_labels`.
    subject : str

    Returns
    -------
    polars.DataFrame
        `image_id`, and a boolean column for each code: an image has the codes that more than half
        of its coders gave.
    """
    answers = labels.filter(question=question_of(subject))
    coded = answers.select(
        "image_id", codes=pl.col("answer").map_elements(codes_in, pl.List(pl.String))
    )
    names = dict.fromkeys((*CODES, *sorted({*coded["codes"].explode().drop_nulls()})))
    return (
        coded.group_by("image_id")
        .agg((pl.col("codes").list.contains(name).mean() > 0.5).alias(name) for name in names)
        .sort("image_id")
    )


@dataclass(frozen=True)
class CodeCount:
    """Count and share of a group's images with a code.

    Attributes
    ----------
    code, group : str
    images, coded : int
        Images with the code, and all that were coded.
    share, low, high : float
        With Wilson's interval.
    remedy : str
    """

    code: str
    group: str
    images: int
    coded: int
    share: float
    low: float
    high: float
    remedy: str

    @classmethod
    def of(cls, code: str, group: str, images: int, coded: int, level: float = 0.95) -> CodeCount:
        """Return a count with its interval and remedy."""
        low, high = wilson(images, coded, level)
        share, remedy = images / coded, CODES.get(code, OWN_REMEDY)
        return cls(code, group, images, coded, share, float(low), float(high), remedy)


def count_codes(
    labels: pl.DataFrame, subject: str, groups: pl.DataFrame, *, level: float = 0.95
) -> Iterator[CodeCount]:
    """Yield the counts of each code by group.

    Parameters
    ----------
    labels : polars.DataFrame
        Of a run.
    subject : str
        Class or concept.
    groups : polars.DataFrame
        `image_id` and `group`.
    level : float
    """
    table = code_table(labels, subject).join(groups.drop_nulls("group"), on="image_id")
    for name in table.columns:
        if name in groups.columns:
            continue
        counts = table.group_by("group").agg(pl.col(name).sum(), pl.len().alias("of"))
        for group, images, coded in counts.sort("group").iter_rows():
            yield CodeCount.of(name, str(group), images, coded, level)


def total_counts(counts: Iterable[CodeCount]) -> list[CodeCount]:
    """Add the counts of several classes or concepts."""
    totals: dict[tuple[str, str], list[int]] = {}
    for count in counts:
        total = totals.setdefault((count.code, count.group), [0, 0])
        total[0] += count.images
        total[1] += count.coded
    return [CodeCount.of(*names, *total) for names, total in totals.items()]
