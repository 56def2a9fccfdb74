"""Hit rate: how often a true class is among the best predictions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import (
    against_chance,
    ends_of,
    excluded_of,
    group_values,
    part,
    replicates_text,
    sizes,
)
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.gaps import compared_rows, gaps, too_few
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import POINTS, WILSON, MetricSpec, make_estimate, register
from equipoise.stats.intervals import ClosedForm, simultaneous_gap, wilson
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]

_NO_CHANCE = "the hit rate itself compares no groups; its gap in `by` has a chance level"
_HIT, _MISS = "hit", "miss"


def hit_rate(
    y_true_sets: Any,
    top_predictions: Any,
    groups: Any,
    *,
    k: int = 5,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Share of images of which any true class is among the k best predictions.

    Parameters
    ----------
    y_true_sets : sequence of length n
        True classes of each image: a collection of labels, or one label. Missing where there is
        none.
    top_predictions : array-like, shape (n, m) with m >= k
        Predicted labels, best first; of shape (n,) for k = 1. Cells after a missing one may
        stay empty; a row without any prediction is missing.
    groups, units
        See `equipoise.metrics.counts.count`.
    k : int
        How many of the predictions count.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        The hit rate of all rows, in [0, 1], lower is worse; Wilson interval, or bootstrap over
        units; no chance level. `.by` has two parts: "hit_rate", with every group's hit rate,
        and "hit_rate_gap", their largest difference, in [0, 1], higher is worse, with chance
        level and p-value of groups that are exchangeable over all rows.

    Raises
    ------
    InputError
        When k is below 1 or above the number of predictions, shapes do not fit or no row is
        complete.

    References
    ----------
    Hall et al. 2023, section 4 (hit-rate@5).
    """
    return measure(
        hits(y_true_sets, top_predictions, groups, k=k, units=units), [HitRate(k)], resampling, rng
    )[0]


def hits(
    y_true_sets: Any, top_predictions: Any, groups: Any, *, k: int = 5, units: Any = None
) -> Counts:
    """Count hits and misses by group, in the form that `HitRate` measures.

    Parameters
    ----------
    y_true_sets, top_predictions, groups, k, units
        See `hit_rate`.

    Raises
    ------
    InputError
        As `hit_rate`.
    """
    top = np.asarray(top_predictions, dtype=object)
    top = top[:, None] if top.ndim == 1 else top
    if top.ndim != 2 or not 1 <= k <= top.shape[1]:
        raise InputError(
            f"k={k}: expected 1 to the number of predictions per row; "
            f"top_predictions has shape {np.shape(top_predictions)}"
        )
    truths = [_labels(labels) for labels in y_true_sets]
    if len(truths) != len(top):
        raise InputError(
            f"top_predictions: {len(top)} rows; expected {len(truths)}, as in y_true_sets"
        )
    outcome = [
        _outcome(truth, _labels(row))
        for truth, row in zip(truths, top[:, :k].tolist(), strict=True)
    ]
    present = [_HIT if truth else None for truth in truths]
    return count(
        np.array(present, dtype=object), np.array(outcome, dtype=object), groups, units=units
    )


def _labels(labels: Any) -> frozenset[str]:
    """Return the labels of one image; None, NaN and "" are none."""
    several = isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
    return frozenset(str(one) for one in (labels if several else (labels,)) if not _missing(one))


def _missing(label: object) -> bool:
    if isinstance(label, float):
        return math.isnan(label)
    return label is None or str(label) in ("", "<NA>", "NaT")


def _outcome(truth: frozenset[str], top: frozenset[str]) -> str | None:
    if not top:
        return None
    return _HIT if truth & top else _MISS


@dataclass(frozen=True)
class HitRate:
    """The measure behind `hit_rate`, of counts that `hits` makes.

    Attributes
    ----------
    k : int
        How many predictions counted.
    """

    k: int = 5
    null: Literal["rows"] = "rows"

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return hit rate, gap, and each group's hit rate, shape (r, 2 + groups)."""
        right, total = _right_and_total(counts, tables)
        with np.errstate(invalid="ignore", divide="ignore"):
            rates = right / total
            overall = right.sum(axis=1) / total.sum(axis=1)
        gap = gaps(rates, counts.groups.usable)
        return np.concatenate([overall[:, None], gap[:, None], rates], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        right, total = (values[0] for values in _right_and_total(counts, counts.table[None]))
        usable = counts.groups.usable
        ends = _ends(counts, draws, 0, ClosedForm(wilson, (right.sum(), total.sum())))
        gap_ends = _ends(
            counts, draws, 1, ClosedForm(simultaneous_gap, (right[usable], total[usable]))
        )
        return make_estimate(
            metric="hit_rate",
            value=float(draws.observed[0]),
            n=sizes(counts.groups),
            method=_method(counts, draws),
            params={"k": self.k, "null": self.null},
            no_chance=_NO_CHANCE,
            by=parts_to_table(_parts(counts, draws, ends, gap_ends)),
            excluded=excluded_of(counts.groups, dict(counts.excluded)),
            unit=counts.unit,
            ends=ends,
        )


def _right_and_total(counts: Counts, tables: Floats) -> tuple[Floats, Floats]:
    """Return weights of hits and of all rows, each (r, groups)."""
    return tables[:, counts.truth == counts.prediction].sum(axis=1), tables.sum(axis=1)


def _ends(counts: Counts, draws: Draws, index: int, closed: Ends) -> Ends:
    return ends_of(draws.boot, index, closed if counts.independent else no_ends)


def _method(counts: Counts, draws: Draws) -> str:
    if draws.boot is not None:
        return replicates_text(draws.boot, f"{counts.unit}s")
    return (
        "Wilson interval; pairwise Newcombe intervals for the gap, simultaneous over groups"
        if counts.independent
        else "none: rows are not independent; use Bootstrap()"
    )


def _parts(counts: Counts, draws: Draws, ends: Ends, gap_ends: Ends) -> tuple[Part, Part]:
    right, total = (values[0] for values in _right_and_total(counts, counts.table[None]))
    boot = None if draws.boot is None else draws.boot[:, 2:]
    by_group = group_values(counts.groups, right, total, draws.level, boot=boot)
    rate = part(
        "hit_rate",
        "",
        draws,
        0,
        ends=ends,
        n=round(float(total.sum())),
        by_group=by_group,
    )
    gap = part(
        "hit_rate_gap",
        "",
        draws,
        1,
        ends=gap_ends,
        held=against_chance(draws, 1, "higher"),
        n=int(compared_rows(counts.groups, total).sum()),
        by_group=by_group,
        reason=too_few(draws.observed[1], "rows enough"),
    )
    return rate, gap


register(
    MetricSpec(
        name="hit_rate",
        title="Hit rate at k",
        kinds=("predictions", "concepts"),
        unit="share",
        rate=True,
        harm="lower",
        group_label="hit rate",
        threshold=0.05,
        threshold_reason=POINTS,
        definition="Share of images with a true class among the k best predictions.",
        direction="Lower: fewer images are hit.",
        interval=WILSON,
        chance="none for the rate itself; its gap between groups has one",
        null="groups are exchangeable over all rows",
        parameters={"k": "predictions that count: 5"},
        reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
    )
)
