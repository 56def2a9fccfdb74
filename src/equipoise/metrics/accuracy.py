"""Accuracy, the worst group's accuracy and the gap between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import (
    Against,
    against_chance,
    ends_of,
    excluded_of,
    group_values,
    part,
    replicates_text,
    sizes,
)
from equipoise.metrics.counts import Counts, Null, count
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import POINTS, SPECS, WILSON, MetricSpec, make_estimate, register
from equipoise.stats.intervals import (
    ClosedForm,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]
Kind = Literal["accuracy", "worst_group_accuracy", "accuracy_gap"]

_NO_CHANCE = "accuracy itself has no chance level: it compares no groups"


def accuracy(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Share of rows whose prediction is the true class.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse; Wilson interval, or bootstrap over units. No chance level.
        `.by` has one row whose `by_group` are the groups' accuracies.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return measure(counts, [Accuracy("accuracy", None)], resampling, rng)[0]


def worst_group_accuracy(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    null: Null = "rows",
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Lowest accuracy over groups.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`; groups may be intersections of attributes.
    null : "rows" or "class"
        Whether chance permutes groups over all rows or within each true class.
    resampling, rng
        As in `accuracy`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse. Interval: simultaneous Wilson intervals of all groups, or
        bootstrap over units. Chance: the same minimum when groups are exchangeable.
        NaN when fewer than two groups have rows enough.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    References
    ----------
    Sagawa et al. 2020, "Distributionally Robust Neural Networks".
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return measure(counts, [Accuracy("worst_group_accuracy", null)], resampling, rng)[0]


def accuracy_gap(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    null: Null = "rows",
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Accuracy over the rows of the groups compared minus the worst group's accuracy (GAP).

    Parameters
    ----------
    y_true, y_pred, groups, null, weights, units, resampling, rng
        As in `worst_group_accuracy`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous Newcombe intervals of each group
        against the rest, or bootstrap over units.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", section 4.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return measure(counts, [Accuracy("accuracy_gap", null)], resampling, rng)[0]


@dataclass(frozen=True)
class Accuracy:
    """The measure behind `accuracy`, `worst_group_accuracy` and `accuracy_gap`.

    Attributes
    ----------
    kind : str
        Public name of the metric.
    null : "rows", "class" or None
        What chance exchanges; None for accuracy itself.
    """

    kind: Kind
    null: Null | None

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, then each group's accuracy, shape (r, 1 + groups)."""
        right, total = _right_and_total(counts, tables)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = right / total
            number = self._number(counts.groups.usable, right, total, shares)
        return np.concatenate([number[:, None], shares], axis=1)

    def _number(
        self, usable: npt.NDArray[np.bool_], right: Floats, total: Floats, shares: Floats
    ) -> Floats:
        compared = np.ones_like(usable) if self.kind == "accuracy" else usable
        overall: Floats = right[:, compared].sum(axis=1) / total[:, compared].sum(axis=1)
        if self.kind == "accuracy":
            return overall
        if usable.sum() < 2:
            return np.full(len(shares), np.nan)
        # A replicate may leave a small group empty; the others still have a minimum.
        worst: Floats = np.fmin.reduce(shares[:, usable], axis=1)
        return worst if self.kind == "worst_group_accuracy" else overall - worst

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the number into the estimate."""
        value = float(draws.observed[0])
        held = against_chance(draws, 0, SPECS[self.kind].value_harm)
        ends = ends_of(draws.boot, 0, self._closed_form(counts))
        return make_estimate(
            metric=self.kind,
            value=value,
            n=sizes(counts.groups),
            method=_method(counts, self.kind, draws),
            params={} if self.null is None else {"null": self.null},
            **held.fields(_NO_CHANCE if self.null is None else ""),
            by=parts_to_table([_part(self.kind, counts, draws, ends, held)]),
            excluded=excluded_of(counts.groups, dict(counts.excluded)),
            unit=counts.unit,
            reason="fewer than two groups have rows enough" if math.isnan(value) else "",
            ends=ends,
        )

    def _closed_form(self, counts: Counts) -> Ends:
        if not counts.independent:
            return no_ends
        right, total = (values[0] for values in _right_and_total(counts, counts.table[None]))
        if self.kind == "accuracy":
            return ClosedForm(wilson, (right.sum(), total.sum()))
        if counts.groups.usable.sum() < 2:
            return no_ends
        usable = counts.groups.usable
        worst = self.kind == "worst_group_accuracy"
        function = simultaneous_minimum if worst else simultaneous_shortfall
        return ClosedForm(function, (right[usable], total[usable]))


def _right_and_total(counts: Counts, tables: Floats) -> tuple[Floats, Floats]:
    """Return weights of right predictions and of all rows, each (r, groups)."""
    right = counts.truth == counts.prediction
    return tables[:, right].sum(axis=1), tables.sum(axis=1)


def _method(counts: Counts, kind: Kind, draws: Draws) -> str:
    if draws.boot is not None:
        return replicates_text(draws.boot, f"{counts.unit}s")
    if not counts.independent:
        return "none: rows are not independent; use Bootstrap()"
    return {
        "accuracy": "Wilson interval",
        "worst_group_accuracy": "simultaneous Wilson intervals of all groups",
        "accuracy_gap": "simultaneous Newcombe intervals of each group against the rest",
    }[kind]


def _part(kind: Kind, counts: Counts, draws: Draws, ends: Ends, held: Against) -> Part:
    right, total = (values[0] for values in _right_and_total(counts, counts.table[None]))
    boot = None if draws.boot is None else draws.boot[:, 1:]
    return part(
        kind,
        "",
        draws,
        0,
        ends=ends,
        held=held,
        n=round(total.sum()),
        by_group=group_values(counts.groups, right, total, draws.level, boot=boot),
    )


_NULL = {"null": "rows or class: what chance keeps fixed"}
_record = partial(
    MetricSpec,
    kinds=("predictions", "answers"),
    reference="Sagawa et al. 2020 (worst group); Albuquerque et al. 2024, section 4 (GAP)",
    unit="points",
    group_label="accuracy",
    threshold=0.05,
    threshold_reason=POINTS,
    null=(
        "groups are exchangeable over all rows; within each true class too, unless groups "
        "determine it"
    ),
)
register(
    _record(
        name="accuracy",
        title="Accuracy",
        unit="share",
        rate=True,
        harm="lower",
        interval=WILSON,
        definition=(
            "Share of rows whose prediction is the true class; for a class, of its one-vs-rest "
            "decisions."
        ),
        direction="Lower: more rows are predicted wrongly.",
        chance="none for accuracy itself; its gap between groups has one",
    )
)
register(
    _record(
        name="worst_group_accuracy",
        parameters=_NULL,
        title="Worst-group accuracy",
        kinds=("predictions",),
        unit="share",
        harm="lower",
        definition="Lowest accuracy of the groups that have enough rows.",
        direction="Lower: the worst group is predicted wrongly more often.",
        chance="below accuracy, more so for small groups",
        interval=(
            "simultaneous Wilson over groups; percentile bootstrap over units of repeated rows"
        ),
    )
)
register(
    _record(
        name="accuracy_gap",
        parameters=_NULL,
        title="Accuracy gap",
        symbol="GAP",
        definition="Accuracy minus worst-group accuracy.",
        direction="Higher: the worst group falls further behind.",
        chance="above 0, more so for small groups",
        interval=(
            "simultaneous Newcombe of each group against the rest; percentile bootstrap over units "
            "of repeated rows"
        ),
    )
)
