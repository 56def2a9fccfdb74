"""Accuracy, its differences between groups, the worst group's accuracy, the hit rate at k."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    ComparedTo,
    Ends,
    Estimate,
    Fact,
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
    UNTESTED,
    clustered_method,
    compare_with_chance,
    count_estimate,
    gaps,
    group_values,
    part,
    share_interval,
)
from equipoise.metrics.labels.rates import too_few
from equipoise.metrics.labels.table import Counts, Null, accuracy_design, check_lengths, count
from equipoise.metrics.measure import (
    DEFAULT,
    Draws,
    Extreme,
    ExtremeRate,
    Measure,
    Topic,
    measure,
    measure_rows,
    measured,
)
from equipoise.metrics.spec import PAIRWISE, POINTS, WILSON, MetricSpec, register, spec_for
from equipoise.stats.intervals import (
    ClosedForm,
    Pair,
    divide,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
)
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

_NO_CHANCE = "accuracy itself has no chance level: it compares no groups"
_Comparison = tuple[Aggregate, ComparedTo]
_METHODS: Mapping[_Comparison, str] = {
    (Aggregate.WORST_GROUP, ""): "simultaneous Wilson intervals of all groups",
    (Aggregate.DIFFERENCE, ""): "pairwise Newcombe intervals, simultaneous over groups",
    (Aggregate.DIFFERENCE, "overall"): (
        "simultaneous Newcombe intervals of each group against the rest"
    ),
}


def accuracy(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of rows that are predicted correctly.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse; Wilson interval, or bootstrap over units, exact in units where
        all rows or none are right. No chance level.
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
    return measure_rows(
        [Accuracy(Aggregate.VALUE, None)],
        y_true,
        y_pred,
        groups,
        weights=weights,
        units=units,
        resampling=resampling,
        rng=rng,
    )[0]


def worst_group_accuracy(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    null: Null = "rows",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Lowest accuracy over groups.

    Parameters
    ----------
    y_true, y_pred, groups
        See `equipoise.metrics.count`; groups may be intersections of attributes.
    null : "rows" or "class"
        Whether chance permutes groups over all rows or within each true class.
    weights, units, resampling, rng
        As in `accuracy`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse. Interval: simultaneous Wilson intervals of all groups.
        Chance: the minimum of permuted groups. NaN below two groups of the minimum size.

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
    <accuracy worst group 0.667 [0.541, 0.783]; chance 0.806, p = 0.001, n = 120 in 2 groups>
    """
    return measure_rows(
        [Accuracy(Aggregate.WORST_GROUP, null)],
        y_true,
        y_pred,
        groups,
        weights=weights,
        units=units,
        resampling=resampling,
        rng=rng,
    )[0]


def accuracy_gap(  # noqa: PLR0913 - one keyword for each choice
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    versus: Literal["overall", "best"] = "overall",
    null: Null = "rows",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Accuracy over the rows of the groups compared minus the worst group's accuracy (GAP).

    Parameters
    ----------
    y_true, y_pred, groups, null, weights, units, resampling, rng
        As in `worst_group_accuracy`.
    versus : "overall" or "best"
        In place of the accuracy over all rows, that of the best group.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Interval: simultaneous Newcombe intervals of each group
        against the rest, or of all pairs of groups.

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
    if versus not in ("overall", "best"):
        raise InputError(f"versus={versus!r}: expected 'overall' or 'best'")
    return measure_rows(
        [Accuracy(Aggregate.DIFFERENCE, null, "overall" if versus == "overall" else "")],
        y_true,
        y_pred,
        groups,
        weights=weights,
        units=units,
        resampling=resampling,
        rng=rng,
    )[0]


def _right_and_total(counts: Counts, tables: Floats) -> Pair:
    """Return weights of right predictions and of all rows, each (r, groups)."""
    return tables[:, counts.right].sum(axis=1), counts.totals(tables)


def _by_group(counts: Counts, draws: Draws) -> tuple[Floats, Floats, Floats, Any]:
    """Return hits, rows, design effects and group values."""
    right, total = (values[0] for values in _right_and_total(counts, counts.observed))
    design = accuracy_design(counts)
    by_group = group_values(counts.groups, right, total, draws.level, design)
    return right, total, design, by_group


_EXTREMES: Mapping[_Comparison, Extreme] = {
    (Aggregate.WORST_GROUP, ""): "worst",
    (Aggregate.DIFFERENCE, "overall"): "shortfall",
    (Aggregate.DIFFERENCE, ""): "gap",
}


@dataclass(frozen=True)
class Accuracy(Measure):
    """The measure behind `accuracy`, `worst_group_accuracy` and `accuracy_gap`.

    Attributes
    ----------
    aggregate : Aggregate
        Accuracy itself, that of the worst group, or how far that is below another.
    null : "rows", "class" or None
        What chance exchanges; None for accuracy itself.
    compared_to : "" or "overall"
        Whether a difference is from the best group, or from all rows.
    """

    aggregate: Aggregate
    null: Null | None
    compared_to: ComparedTo = ""

    @property
    def compares(self) -> bool:  # type: ignore[override]
        """Accuracy itself is of all rows."""
        return self.aggregate is not Aggregate.VALUE

    @property
    def extreme(self) -> ExtremeRate | None:
        """Accuracy of the groups, unless it is of all rows."""
        extreme = _EXTREMES.get((self.aggregate, self.compared_to))
        return ExtremeRate(("accuracy",), extreme, group_metric="accuracy") if extreme else None

    def facts(self, counts: Counts) -> list[Fact]:  # noqa: ARG002 - the form of all measures
        """Return the fact of accuracy; groups exchanged within true classes repeat it."""
        within = self.null == "class"
        return [] if within else [Fact("accuracy", self.aggregate, "", self.compared_to)]

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
            if self.aggregate is Aggregate.WORST_GROUP:
                number = worst
            elif self.compared_to:
                number = number - worst
            else:
                number = np.fmax.reduce(shares[:, usable], axis=1, initial=np.nan) - worst
            number = number if usable.sum() >= 2 else nans(len(tables))
        return np.concatenate([number[:, None], shares], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the number into the estimate."""
        right, total, design, by_group = _by_group(counts, draws)
        usable, comparison = counts.groups.usable, (self.aggregate, self.compared_to)
        pooled = share_interval(counts, draws, 0, right.sum(), total.sum())
        compared = (right / design)[usable], (total / design)[usable]
        closed: dict[_Comparison, Ends] = {
            (Aggregate.VALUE, ""): pooled.ends,
            (Aggregate.WORST_GROUP, ""): ClosedForm(simultaneous_minimum, compared),
            (Aggregate.DIFFERENCE, ""): ClosedForm(simultaneous_gap, compared),
            (Aggregate.DIFFERENCE, "overall"): ClosedForm(
                partial(simultaneous_shortfall, design=design[usable]),
                (right[usable], total[usable]),
            ),
        }
        ends, method = closed[comparison], _METHODS.get(comparison, pooled.method)
        if self.compares:
            method = clustered_method(counts, method)
            ends = ends if usable.sum() >= 2 else no_ends
        spec = spec_for("accuracy", *comparison)
        chance_test = compare_with_chance(draws, 0, spec.value_harm)
        accuracy_part = part(
            spec.name, "", draws, 0, ends=ends, chance_test=chance_test, n=round(total.sum()),
            by_group=by_group, aggregate=self.aggregate,
        )  # fmt: skip
        return count_estimate(
            spec.name,
            counts,
            draws,
            spec=spec,
            interval_kind=IntervalKind.SIMULTANEOUS if self.compares else pooled.kind,
            method=method,
            ends=ends,
            chance_test=chance_test,
            no_chance=_NO_CHANCE if self.null is None else "",
            params={} if self.null is None else {"null": self.null},
            by=[accuracy_part],
            reason=too_few(draws.observed[0], "enough rows"),
        )


def _accuracies(
    counts: Counts, aggregate: Aggregate, compared_to: ComparedTo = ""
) -> Iterator[Measure]:
    """Yield a comparison of groups over all rows, and within classes that have several."""
    yield Accuracy(aggregate, "rows", compared_to)
    if not counts.determines_target:
        yield Accuracy(aggregate, "class", compared_to)


_comparison = partial(measured, topic=Topic.ACCURACY)
_comparison("worst_group_accuracy")(partial(_accuracies, aggregate=Aggregate.WORST_GROUP))
_comparison("accuracy_gap")(
    partial(_accuracies, aggregate=Aggregate.DIFFERENCE, compared_to="overall")
)
_comparison("accuracy")(partial(_accuracies, aggregate=Aggregate.DIFFERENCE))


def hit_rate(
    y_true_sets: Iterable[Cell | Iterable[Cell]],
    top_predictions: Labels,
    groups: GroupLabels,
    *,
    k: int = 5,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Share of images with a true class among the k best predictions.

    Parameters
    ----------
    y_true_sets : sequence of length n
        True classes of each image: a collection of labels, or one label. May be missing.
    top_predictions : array-like, shape (n, m) with m >= k
        Predicted labels, best first; (n,) for k = 1. The last cells of a row may be empty.
    groups, units
        See `equipoise.metrics.count`.
    k : int
        How many of the predictions count.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], lower is worse; Wilson interval, or bootstrap over units; no chance level.
        `.by` has "hit_rate" with every group's hit rate, and "hit_rate_gap", their largest
        difference, with chance level and p-value of groups permuted over all rows.

    Raises
    ------
    InputError
        When k is not 1 to the number of predictions, shapes differ or no row is complete.

    References
    ----------
    Hall et al. 2023, section 4 (hit-rate@5).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> top = [[label, "pilot"] for label in pred]
    >>> m.hit_rate(true, top, gender, k=2)
    <hit_rate 0.833 [0.757, 0.889]; n = 120 in 2 groups>
    """
    counts = hits(y_true_sets, top_predictions, groups, k=k, units=units)
    return measure(counts, [HitRate(k)], resampling, rng)[0]


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
    best_labels = map(_labels, top[:, :k].tolist())
    outcome = [_outcome(truth, best) for truth, best in zip(truths, best_labels, strict=True)]
    present = np.array(["hit" if truth else None for truth in truths], dtype=object)
    return count(present, np.array(outcome, dtype=object), groups, units=units)


def _outcome(truth: frozenset[str], best: frozenset[str]) -> str | None:
    """Return "hit" or "miss"; None without predictions."""
    if not best:
        return None
    return "hit" if truth & best else "miss"


def _labels(labels: Cell | Iterable[Cell]) -> frozenset[str]:
    """Return the labels of one image; None, NaN and "" are none."""
    cells: Iterable[Cell | bytes]
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        cells = [labels]
    else:
        cells = labels
    texts = {"" if isinstance(cell, float) and math.isnan(cell) else str(cell) for cell in cells}
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
        pooled = share_interval(counts, draws, 0, right.sum(), total.sum())
        rate = part(
            "hit_rate", "", draws, 0, ends=pooled.ends, n=round(total.sum()), by_group=by_group
        )
        gap = part(
            "hit_rate",
            "",
            draws,
            1,
            aggregate=Aggregate.DIFFERENCE,
            ends=ClosedForm(simultaneous_gap, compared),
            chance_test=compare_with_chance(draws, 1, "higher"),
            n=round(total[usable].sum()),
            by_group=by_group,
            reason=too_few(draws.observed[1], "enough rows"),
        )
        return count_estimate(
            "hit_rate",
            counts,
            draws,
            method=f"{pooled.method}; pairwise Newcombe for the gap",
            ends=pooled.ends,
            interval_kind=pooled.kind,
            chance_test=UNTESTED,
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
    errors="rest",
    state="right",
    of_answered=True,
    error_clause="{model} is wrong{about}",
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
        profile="accuracy",
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
        profile="worst_group_accuracy",
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
        title="Accuracy difference",
        definition="Highest minus lowest accuracy of the groups that have enough rows.",
        direction="Higher: the worst group falls further behind the best.",
        chance="above 0, more so for small groups",
        interval=PAIRWISE,
    ),
    _record(
        name="accuracy",
        aggregate=Aggregate.DIFFERENCE,
        compared_to="overall",
        profile="accuracy_gap",
        rest_metric="accuracy",
        title="Accuracy gap to all rows",
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
        rest_metric="hit_rate",
        title="Hit rate at k",
        kinds=("predictions", "concepts"),
        unit="share",
        rate=True,
        harm="lower",
        group_label="hit rate",
        clause="{model} has the true class among its best predictions for {groups}",
        errors="",
        state="",
        error_clause="",
        definition="Share of images with a true class among the k best predictions.",
        direction="Lower: fewer images are hit.",
        interval=WILSON,
        chance="none for the rate itself; its gap between groups has one",
        null="groups are exchangeable over all rows",
        reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
    ),
)
