"""The tables about the quality of counterfactual sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from equipoise.audits.counterfactuals.quality import Found
from equipoise.core.estimate import Estimate
from equipoise.core.parts import Part

Row = dict[str, Any]

_DETECTOR = ("detector_precision", "detector_recall")
_PEOPLE = pa.schema(
    [(name, pa.string()) for name in ("groups", "metric", "error", "group")]
    + [(name, pa.float64()) for name in ("value", "low", "high")]
    + [("n", pa.int64())]
)
_SUBJECTS = pa.schema(
    [(name, pa.string()) for name in ("model", "subject")]
    + [(name, pa.float64()) for name in ("accuracy", "low", "high")]
    + [("n", pa.int64()), ("taken_for", pa.string()), ("told_apart", pa.bool_())]
    + [("nearest", pa.string()), ("cosine", pa.float64())]
)


def quality_tables(found: Found) -> Mapping[str, pa.Table]:
    """Return the tables by name, see docs/audits/counterfactuals.md; none without quality."""
    rows = {
        "people": ([row for _, groups, one in found.estimates for row in _people(groups, one)],
                   _PEOPLE),
        "subjects_told_apart": ([*_subjects(found)], _SUBJECTS),
    }  # fmt: skip
    return {name: pa.Table.from_pylist(held, schema) for name, (held, schema) in rows.items()
            if held}  # fmt: skip


def _people(groups: str, estimate: Estimate) -> Iterator[Row]:
    """Yield error rates of all images and of each group, and shares of the detector."""
    if estimate.metric in _DETECTOR:
        low, high = estimate.ends(0.95)
        yield _row(groups, estimate.metric, "", "", estimate.value, low, high,
                   sum(estimate.n.values()))  # fmt: skip
        for one in estimate.parts:
            yield _row(groups, one.metric, "", one.subject, one.value, one.low, one.high, one.n)
    elif estimate.metric == "label_error_gap":
        for one in estimate.parts:
            if one.metric == "label_error_rate":
                yield _row(groups, one.metric, one.subject, "", one.value, one.low, one.high, one.n)
            else:
                for held in one.by_group:
                    yield _row(groups, "label_error_rate", one.subject, held.group, held.value,
                               held.low, held.high, held.n)  # fmt: skip


def _row(groups: str, metric: str, error: str, group: str, *numbers: Any) -> Row:
    return {"groups": groups, "metric": metric, "error": error, "group": group} | dict(
        zip(("value", "low", "high", "n"), numbers, strict=True)
    )


def _subjects(found: Found) -> Iterator[Row]:
    """Yield every subject of each model: what its images are taken for, whose text is nearest."""
    closest = {
        model: _nearest(one)
        for model, _, one in found.estimates
        if one.metric == "confusable_subjects"
    }
    for model, _, one in found.estimates:
        if one.metric != "subject_accuracy":
            continue
        unclear = {*one.params["not_told_apart"]}
        for part in one.parts:
            nearest, cosine = closest.get(model, {}).get(part.subject, ("", math.nan))
            yield {
                "model": model,
                "subject": part.subject,
                "accuracy": part.value,
                "low": part.low,
                "high": part.high,
                "n": part.n,
                "taken_for": part.shows.removeprefix("taken for ").removesuffix(" most"),
                "told_apart": part.subject not in unclear and not nearest,
                "nearest": nearest,
                "cosine": cosine,
            }


def _nearest(estimate: Estimate) -> dict[str, tuple[str, float]]:
    """Return for each subject that has one at the threshold or above the nearest other text."""
    found: dict[str, tuple[str, float]] = {}
    for part in estimate.parts:
        for one, other in _both(part):
            found.setdefault(one, (other, part.value))
    return found


def _both(part: Part) -> tuple[tuple[str, str], tuple[str, str]]:
    first, second = part.subject.split(" | ", 1)
    return (first, second), (second, first)
