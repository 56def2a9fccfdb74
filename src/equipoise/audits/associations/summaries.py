"""Mean and spread of a score over targets, by category and direction."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from equipoise.audits.associations.pieces import Piece, Row, Told, at, drafted
from equipoise.audits.findings import Place
from equipoise.core.finding import Family
from equipoise.metrics.associations.summary import score_summary

_SIDES = {"a": "first", "b": "second"}


def summaries(
    values: Mapping[str, float], categories: Mapping[str, str], place: Place, of: str
) -> Iterator[Piece]:
    """Summarise the scores of targets that have categories.

    Parameters
    ----------
    values : mapping of target to number
    categories : mapping of target to str
        "" where there are none.
    place : Place
    of : str
        Metric of the values.
    """
    if not any(categories.values()) or not any(map(math.isfinite, values.values())):
        return
    found = score_summary(values, categories)
    yield drafted(found, place, Family.DESCRIPTIVE, Told(f"all targets, {of}"))
    for mean, spread in zip(found.parts[::2], found.parts[1::2], strict=True):
        category, _, side = mean.subject.rpartition(", ")
        whole = side not in _SIDES
        yield Row(
            "score_summaries",
            {
                **at(place),
                "metric": of, "category": mean.subject if whole else category,
                "direction": "both" if whole else _SIDES[side],
                "targets": mean.n, "mean": mean.value, "sd": spread.value,
            },
        )  # fmt: skip
