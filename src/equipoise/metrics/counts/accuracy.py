"""Accuracy, the worst group's accuracy, the gap between them, and the hit rate at k."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np

from equipoise.core import (
    Aggregate,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    InputError,
    IntervalKind,
    Labels,
    nans,
    no_ends,
)
from equipoise.core.labels import Cell, shape_of
from equipoise.metrics.building import (
    NOTHING,
    against_chance,
    clustered_method,
    count_estimate,
    drawn_ends,
    gaps,
    group_values,
    interval_method,
    part,
)
from equipoise.metrics.counts.rates import too_few
from equipoise.metrics.counts.table import Counts, Null, accuracy_design, check_lengths, count
from equipoise.metrics.measure import Drawing, Draws, Measure, Rows, measure, measured
from equipoise.metrics.spec import POINTS, WILSON, MetricSpec, register, spec_for
from equipoise.stats.intervals import (
    ClosedForm,
    Pair,
    divide,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)

_NO_CHANCE = "accuracy itself has no chance level: it compares no groups"
_METHODS: Mapping[Aggregate, str] = {
    Aggregate.VALUE: "Wilson interval",
    Aggregate.WORST_GROUP: "simultaneous Wilson intervals of all groups",
    Aggregate.DIFFERENCE: "simultaneous Newcombe intervals of each group against the rest",
}


def accuracy(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    **rows: Unpack[Rows],
) -> Estimate:
    """Share of rows whose prediction is the true class.

    Parameters
    ----------
    y_true, y_pred, groups
        See `equipoise.metrics.counts.count`.
    rows
        weights, units, resampling and rng, see `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse; Wilson interval, or bootstrap over units. No chance level.
        `.by` has one row whose `by_group` are the groups' accuracies.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.accuracy(true, pred, gender)
    <accuracy 0.833 [0.757, 0.889]; n = 120 in 2 groups>
    """
    return measured([Accuracy(Aggregate.VALUE, None)], y_true, y_pred, groups, **rows)[0]


def worst_group_accuracy(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    null: Null = "rows",
    **rows: Unpack[Rows],
) -> Estimate:
    """Lowest accuracy over groups.

    Parameters
    ----------
    y_true, y_pred, groups
        See `equipoise.metrics.counts.count`; groups may be intersections of attributes.
    null : "rows" or "class"
        Whether chance permutes groups over all rows or within each true class.
    rows
        As in `accuracy`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse. Interval: simultaneous Wilson intervals of all groups.
        Chance: the same minimum when groups are exchangeable.
        NaN when fewer than two groups have rows enough.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    References
    ----------
    Sagawa et al. 2020, "Distributionally Robust Neural Networks".

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.worst_group_accuracy(true, pred, gender)
    <worst_group_accuracy 0.667 [0.541, 0.783]; chance 0.806, p = 0.001, n = 120 in 2 groups>
    """
    return measured([Accuracy(Aggregate.WORST_GROUP, null)], y_true, y_pred, groups, **rows)[0]


def accuracy_gap(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    null: Null = "rows",
    **rows: Unpack[Rows],
) -> Estimate:
    """Accuracy over the rows of the groups compared minus the worst group's accuracy (GAP).

    Parameters
    ----------
    y_true, y_pred, groups, null, rows
        As in `worst_group_accuracy`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous Newcombe intervals of each group
        against the rest.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    References
    ----------
    Albuquerque et al. 2024, "SkewSize", section 4.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.accuracy_gap(true, pred, gender)
    <accuracy difference 0.167 [0.101, 0.230]; chance 0.027, p = 0.001, n = 120 in 2 groups>
    >>> m.accuracy_gap(true, pred, gender).plot()
    <Plot: accuracy difference by group, 2 values>
    """
    return measured([Accuracy(Aggregate.DIFFERENCE, null)], y_true, y_pred, groups, **rows)[0]


def _right_and_total(counts: Counts, tables: Floats) -> Pair:
    """Return weights of right predictions and of all rows, each (r, groups)."""
    return tables[:, counts.right].sum(axis=1), counts.totals(tables)


def _by_group(counts: Counts, draws: Draws) -> tuple[Floats, Floats, Floats, Any]:
    """Return what is right, all rows, design effects, and group values."""
    right, total = (values[0] for values in _right_and_total(counts, counts.observed))
    design = accuracy_design(counts)
    by_group = group_values(counts.groups, right, total, draws.level, design)
    return right, total, design, by_group


@dataclass(frozen=True)
class Accuracy(Measure):
    """The measure behind `accuracy`, `worst_group_accuracy` and `accuracy_gap`.

    Attributes
    ----------
    aggregate : Aggregate
        Accuracy itself, that of the worst group, or the difference of both.
    null : "rows", "class" or None
        What chance exchanges; None for accuracy itself.
    """

    aggregate: Aggregate
    null: Null | None

    @property
    def compares(self) -> bool:  # type: ignore[override]
        """Accuracy itself is of all rows."""
        return self.aggregate is not Aggregate.VALUE

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, then each group's accuracy, shape (r, 1 + groups)."""
        right, total = counts.once(tables, _right_and_total)
        usable = counts.groups.usable
        compared = usable if self.compares else np.ones_like(usable)
        shares = divide(right, total)
        number = divide(right[:, compared].sum(axis=1), total[:, compared].sum(axis=1))
        if self.compares:
            # A replicate may leave a small group empty; the others still have a minimum.
            worst = np.fmin.reduce(shares[:, usable], axis=1, initial=np.nan)
            number = worst if self.aggregate is Aggregate.WORST_GROUP else number - worst
            number = number if usable.sum() >= 2 else nans(len(tables))
        return np.concatenate([number[:, None], shares], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the number into the estimate."""
        right, total, design, by_group = _by_group(counts, draws)
        usable, method = counts.groups.usable, _METHODS[self.aggregate]
        closed: dict[Aggregate, Ends] = {
            Aggregate.VALUE: drawn_ends(
                counts, draws, 0, ClosedForm(wilson, (right.sum(), total.sum()))
            ),
            Aggregate.WORST_GROUP: ClosedForm(
                simultaneous_minimum, ((right / design)[usable], (total / design)[usable])
            ),
            Aggregate.DIFFERENCE: ClosedForm(
                partial(simultaneous_shortfall, design=design[usable]),
                (right[usable], total[usable]),
            ),
        }
        ends = closed[self.aggregate]
        if self.compares:
            method = clustered_method(counts, method)
            ends = ends if usable.sum() >= 2 else no_ends
        else:
            method = interval_method(counts, draws, method)
        overall = self.aggregate is Aggregate.DIFFERENCE
        spec = spec_for("accuracy", self.aggregate, "overall" if overall else "")
        held, n = against_chance(draws, 0, spec.value_harm), round(total.sum())
        whole = part(
            spec.name, "", draws, 0, ends=ends, held=held, n=n, by_group=by_group,
            aggregate=self.aggregate,
        )  # fmt: skip
        return count_estimate(
            spec.name,
            counts,
            draws,
            spec=spec,
            interval_kind=(
                IntervalKind.SIMULTANEOUS
                if self.compares
                else IntervalKind.CONFIDENCE
                if draws.boot is None
                else IntervalKind.PERCENTILE
            ),
            method=method,
            ends=ends,
            held=held,
            no_chance=_NO_CHANCE if self.null is None else "",
            params={} if self.null is None else {"null": self.null},
            by=[whole],
            reason=too_few(draws.observed[0], "enough rows"),
        )


def hit_rate(
    y_true_sets: Iterable[Cell | Iterable[Cell]],
    top_predictions: Labels,
    groups: GroupLabels,
    *,
    k: int = 5,
    units: Labels | None = None,
    **drawing: Unpack[Drawing],
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
    drawing
        resampling and rng, see `equipoise.metrics`.

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

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> top = [[one, "pilot"] for one in pred]
    >>> m.hit_rate([[one] for one in true], top, gender, k=2)
    <hit_rate 0.833 [0.757, 0.889]; n = 120 in 2 groups>
    """
    counts = hits(y_true_sets, top_predictions, groups, k=k, units=units)
    return measure(counts, [HitRate(k)], **drawing)[0]


def hits(
    y_true_sets: Iterable[Cell | Iterable[Cell]],
    top_predictions: Labels,
    groups: GroupLabels,
    *,
    k: int = 5,
    units: Labels | None = None,
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
            f"top_predictions has shape {shape_of(top_predictions)}"
        )
    truths = [_labels(labels) for labels in y_true_sets]
    check_lengths(len(truths), top_predictions=len(top))
    outcome = [
        ("hit" if truth & best else "miss") if best else None
        for truth, best in zip(truths, map(_labels, top[:, :k].tolist()), strict=True)
    ]
    present = np.array(["hit" if truth else None for truth in truths], dtype=object)
    return count(present, np.array(outcome, dtype=object), groups, units=units)


def _labels(labels: Cell | Iterable[Cell]) -> frozenset[str]:
    """Return the labels of one image; None, NaN and "" are none."""
    every: Iterable[Cell | bytes]
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        every = [labels]
    else:
        every = labels
    texts = {"" if isinstance(one, float) and math.isnan(one) else str(one) for one in every}
    return frozenset(texts - {"", "None", "<NA>", "NaT"})


@dataclass(frozen=True)
class HitRate(Measure):
    """The measure behind `hit_rate`, of counts that `hits` makes.

    Attributes
    ----------
    k : int
        How many predictions counted.
    """

    k: int = 5
    null: Null = "rows"
    compares = False

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return hit rate, gap, and each group's hit rate, shape (r, 2 + groups)."""
        rates = Accuracy(Aggregate.VALUE, None)(counts, tables)
        return np.insert(rates, 1, gaps(rates[:, 1:], counts.groups.usable), axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        right, total, design, by_group = _by_group(counts, draws)
        usable = counts.groups.usable
        compared = (right / design)[usable], (total / design)[usable]
        rates = ClosedForm(wilson, (right.sum(), total.sum()))
        ends = drawn_ends(counts, draws, 0, rates)
        rate = part("hit_rate", "", draws, 0, ends=ends, n=round(total.sum()), by_group=by_group)
        gap = part(
            "hit_rate",
            "",
            draws,
            1,
            aggregate=Aggregate.DIFFERENCE,
            ends=ClosedForm(simultaneous_gap, compared),
            held=against_chance(draws, 1, "higher"),
            n=round(total[usable].sum()),
            by_group=by_group,
            reason=too_few(draws.observed[1], "enough rows"),
        )
        return count_estimate(
            "hit_rate",
            counts,
            draws,
            method=interval_method(counts, draws, "Wilson interval; pairwise Newcombe for the gap"),
            ends=ends,
            held=NOTHING,
            no_chance="the hit rate itself compares no groups; its gap in `by` has a chance level",
            params={"k": self.k, "null": self.null},
            by=[rate, gap],
        )


_record = partial(
    MetricSpec,
    kinds=("predictions", "answers"),
    reference="Sagawa et al. 2020 (worst group); Albuquerque et al. 2024, section 4 (GAP)",
    unit="points",
    group_label="accuracy",
    clause="{model} is right{about} for {groups}",
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
    ),
    _record(
        name="accuracy",
        aggregate=Aggregate.WORST_GROUP,
        fold="accuracy",
        title="Worst-group accuracy",
        kinds=("predictions",),
        unit="share",
        harm="lower",
        definition="Lowest accuracy of the groups that have enough rows.",
        direction="Lower: the worst group is predicted wrongly more often.",
        chance="below accuracy, more so for small groups",
        interval=("simultaneous Wilson over groups, units by their design effect"),
    ),
    _record(
        name="accuracy",
        aggregate=Aggregate.DIFFERENCE,
        compared_to="overall",
        rest="accuracy",
        title="Accuracy gap",
        symbol="GAP",
        definition="Accuracy minus worst-group accuracy.",
        direction="Higher: the worst group falls further behind.",
        chance="above 0, more so for small groups",
        interval=(
            "simultaneous Newcombe of each group against the rest, units by their design effect"
        ),
    ),
    _record(
        name="hit_rate",
        rest="hit_rate",
        title="Hit rate at k",
        kinds=("predictions", "concepts"),
        unit="share",
        rate=True,
        harm="lower",
        group_label="hit rate",
        clause="{model} has the true class among its best predictions for {groups}",
        definition="Share of images with a true class among the k best predictions.",
        direction="Lower: fewer images are hit.",
        interval=WILSON,
        chance="none for the rate itself; its gap between groups has one",
        null="groups are exchangeable over all rows",
        reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
    ),
)
