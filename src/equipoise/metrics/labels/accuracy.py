"""Accuracy, its differences between groups, the worst group's accuracy, the hit rate at k."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    ComparedTo,
    Estimate,
    Fact,
    Floats,
    GroupLabels,
    InputError,
    Labels,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.labels import Cell, shape_of
from equipoise.metrics.labels.confusion_rates import accuracy
from equipoise.metrics.labels.group_rates import GroupRate, GroupRates
from equipoise.metrics.labels.rate import Cells
from equipoise.metrics.labels.rate_metric import RateMetric
from equipoise.metrics.labels.table import Counts, Null, count
from equipoise.metrics.measure import (
    DEFAULT,
    Draws,
    Extreme,
    ExtremeRate,
    Measure,
    Topic,
    measured,
)
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import PAIRWISE, POINTS, WILSON, MetricSpec
from equipoise.stats.intervals import Pair
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

_record = partial(
    MetricSpec,
    kinds=("predictions", "answers", "questions"),
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


_EXTREMES: Mapping[tuple[Aggregate, ComparedTo], Extreme] = {
    (Aggregate.WORST_GROUP, ""): "worst",
    (Aggregate.DIFFERENCE, "overall"): "shortfall",
    (Aggregate.DIFFERENCE, ""): "gap",
}


@dataclass(frozen=True)
class Accuracy(GroupRates):
    """The measure of the share of right predictions of all classes; see `GroupRates`."""

    aggregate: Aggregate
    null: Null | None
    compared_to: ComparedTo = ""
    rate = accuracy.rate
    subject = ""
    no_chance = "accuracy itself has no chance level: it compares no groups"

    @property
    def extreme(self) -> ExtremeRate | None:
        """Accuracy of the groups, unless it is of all rows."""
        extreme = _EXTREMES.get((self.aggregate, self.compared_to))
        return ExtremeRate(("accuracy",), extreme, group_metric="accuracy") if extreme else None

    def facts(self, counts: Counts) -> list[Fact]:  # noqa: ARG002 - the form of all measures
        """Return the fact of accuracy; groups exchanged within true classes repeat it."""
        within = self.null == "class"
        return [] if within else [Fact(self.rate.name, self.aggregate, "", self.compared_to)]


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


@metric(
    _record(
        name="accuracy",
        aliases=("worst-group accuracy", "minimum group accuracy"),
        aggregate=Aggregate.WORST_GROUP,
        profile="worst_group_accuracy",
        neutral=None,
        fold="accuracy",
        title="Worst-group accuracy",
        kinds=("predictions",),
        unit="share",
        harm="lower",
        definition="Lowest accuracy of the groups that have enough rows.",
        direction="Lower: the worst group is predicted wrongly more often.",
        chance="below accuracy, more so for small groups",
        interval=("simultaneous Wilson over groups, units by their design effect"),
    )
)
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
    <accuracy worst group 0.667 [0.541, 0.783]; chance 0.806, p ≤ 0.001, n = 120 in 2 groups>
    """
    return accuracy.worst_group(
        y_true, y_pred, groups, null=null, weights=weights, units=units, resampling=resampling,
        rng=rng,
    )  # fmt: skip


metric(
    _record(
        name="accuracy",
        aggregate=Aggregate.DIFFERENCE,
        title="Accuracy difference",
        definition="Highest minus lowest accuracy of the groups that have enough rows.",
        direction="Higher: the worst group falls further behind the best.",
        chance="above 0, more so for small groups",
        interval=PAIRWISE,
    )
)(accuracy.difference)


@metric(
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
)
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
    <accuracy difference 0.167 [0.101, 0.230]; chance 0.027, p ≤ 0.001, n = 120 in 2 groups>
    >>> m.accuracy_gap(true, pred, gender).plot()
    <Plot: accuracy difference by group, 2 values>
    """
    if versus not in ("overall", "best"):
        raise InputError(f"versus={versus!r}: expected 'overall' or 'best'")
    return accuracy.difference(
        y_true, y_pred, groups, null=null, weights=weights, units=units, resampling=resampling,
        rng=rng, compared_to="overall" if versus == "overall" else "",
    )  # fmt: skip


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
    if not np.ndim(np.asarray(y_true_sets, dtype=object)):
        raise InputError("y_true_sets: expected the labels of each row")
    truths = [_labels(labels) for labels in y_true_sets]
    check_lengths({"y_true_sets": len(truths), "top_predictions": len(top)})
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


@metric(
    _record(
        name="hit_rate",
        aliases=("top-k accuracy",),
        rest_metric="hit_rate",
        title="Hit rate at k",
        kinds=("predictions", "concepts"),
        unit="share",
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
    form=partial(RateMetric.of, bases=("rows",), count=hits, of_all=True),
)
def hit_rate(cells: Cells) -> Pair:
    """Share of images with a true class among the k best predictions."""
    return cells["right"], cells["total"]


@dataclass(frozen=True)
class HitRate(Measure):
    """The measure of the hit rate with its gap between groups, of counts that `hits` makes.

    Attributes
    ----------
    k : int
        How many predictions counted.
    """

    k: int = 5
    null: Null = "rows"
    compares = False

    @property
    def _level_and_gap(self) -> tuple[GroupRate, GroupRate]:
        return (
            GroupRate(hit_rate.rate, "", Aggregate.VALUE, None),
            GroupRate(hit_rate.rate, "", Aggregate.DIFFERENCE, self.null),
        )

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return hit rate, gap, and each group's hit rate, shape (r, 2 + groups)."""
        level, gap = (rates(counts, tables) for rates in self._level_and_gap)
        return np.insert(level, 1, gap[:, 0], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        level, gap = self._level_and_gap
        rate = level.estimate(counts, replace(draws.without(1), nulls=()))
        difference = gap.estimate(counts, draws.without(0))
        return replace(
            rate,
            method=f"{rate.method}; pairwise Newcombe for the gap",
            no_chance="the hit rate itself compares no groups; its gap in `by` has a chance level",
            params={"k": self.k, "null": self.null},
            by=[*rate.parts, *difference.parts],
        )
