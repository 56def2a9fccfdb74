"""All confusion rates together, demographic parity and equalized odds: gaps between groups.

A class stands against the rest. Each number is a gap: the largest minus the smallest rate over
groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from equipoise.core import (
    Aggregate,
    Booleans,
    Estimate,
    Fields,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    NullHypothesis,
    Span,
)
from equipoise.metrics.building import (
    parts_table,
    spread_level,
)
from equipoise.metrics.labels.confusion_rates import (
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from equipoise.metrics.labels.rate import Family, Rate, RateGaps, largest
from equipoise.metrics.labels.rate_metric import RateMetric, count_rows
from equipoise.metrics.labels.table import (
    Counts,
    Null,
)
from equipoise.metrics.measure import (
    DEFAULT,
    ExtremeRate,
    Measure,
    Topic,
    measure,
    measure_rows,
    measured,
)
from equipoise.metrics.registry import metric, metric_of, metrics_of
from equipoise.metrics.spec import PAIRWISE, POINTS, SPECS, MetricSpec
from equipoise.stats.intervals import (
    Pair,
)
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Seed

Combination = Literal["max", "mean"]
SELECTION_RATE = selection_rate.rate


def rates_of_classes() -> dict[str, Rate]:
    """Return the rates of true classes and predictions by name, also of plugins."""
    rates = {name: rate_named(name) for name in metrics_of(RateMetric, "predictions")}
    return {name: rate for name, rate in rates.items() if rate is not None}


def rate_named(name: str) -> Rate | None:
    """Return a rate of true classes and predictions; None where the metric is none."""
    rate = metric_of(RateMetric, name, "predictions")
    return None if rate is None or rate.count is not count_rows else rate.rate


_gap = partial(
    MetricSpec,
    aggregate=Aggregate.DIFFERENCE,
    kinds=("predictions",),
    unit="points",
    threshold=0.05,
    threshold_reason=POINTS,
    chance="above 0",
    interval=PAIRWISE,
)


@metric(
    _gap(
        name="rates",
        title="All confusion rates",
        of_class=True,
        reference=(
            "Hardt, Price & Srebro 2016 (rates given the truth); Chouldechova 2017 (predictive)"
        ),
        threshold=None,
        threshold_reason="",
        definition=(
            "Largest gap between groups over classes and rates. The parts are the gap of each rate "
            "of each class."
        ),
        direction="Higher: groups differ more in some rate.",
        chance="none for the summary; each part has its own",
        null="each part has its own",
    )
)
def rates(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Gaps between groups in every confusion rate, one class against the rest.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        The largest gap (max − min over groups) over classes and rates, in [0, 1], higher is
        worse. It has no chance level. `.by` has the gap of every rate and class with interval,
        chance level and p-value, and the rate of every group: true and false positive and negative
        rate, precision, negative_predictive_value and average_odds (groups permuted within each
        true class), selection_rate and accuracy (over all rows). Precision is at equal prevalence:
        π TPR / (π TPR + (1 − π) FPR), π of all compared rows. A rate without rows is NaN.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    See Also
    --------
    equipoise.metrics.rate_comparisons : differences and ratios to other groups.

    References
    ----------
    Hardt, Price & Srebro 2016; Chouldechova 2017; Bellamy et al. 2019 (average odds).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> estimate = m.rates(true, pred, gender)
    >>> print(estimate.table().rows[0])
    ('chef true_positive_rate difference', '0.667', '[0.455, 0.808]', '[0.000, 0.267]', '60')
    """
    estimates = measure_rows(
        [Rates("class"), Rates("rows")], y_true, y_pred, groups, weights=weights, units=units,
        resampling=resampling, rng=rng,
    )  # fmt: skip
    values = np.array([estimate.value for estimate in estimates])

    def ends(level: float) -> Span:
        joint_level = spread_level(level, len(estimates))
        low = largest(np.array([estimate.ends(joint_level)[0] for estimate in estimates]))
        high = largest(np.array([estimate.ends(level)[1] for estimate in estimates]))
        return float(low), float(high)

    return replace(
        estimates[0],
        value=float(largest(values)),
        params={},
        chance=None,
        no_chance="rates have different nulls: each part in `by` has its own chance level",
        p_value=None,
        null=NullHypothesis.NONE,
        null_drawn="",
        by=pa.concat_tables([estimate.by for estimate in estimates]),
        reason="" if np.isfinite(values).any() else estimates[0].reason,
        ends=ends,
    )


@dataclass(frozen=True)
class Rates(RateGaps):
    """The measure behind `rates`: the gaps of all rates that share a null hypothesis.

    Attributes
    ----------
    null : "class" or "rows"
        The null hypothesis, which chooses the rates.
    """

    null: Null
    name = "rates"
    over = "rates, classes"
    whole = False

    @cached_property
    def rates(self) -> tuple[Rate, ...]:  # type: ignore[override]
        """The rates of the null hypothesis, also of plugins."""
        return tuple(rate for rate in rates_of_classes().values() if rate.null == self.null)


class LeadingRates(Rates):
    """Rates of a null hypothesis that don't repeat another metric."""

    @cached_property
    def rates(self) -> tuple[Rate, ...]:  # type: ignore[override]
        """The rates, fewer than of `Rates`."""
        return tuple(rate for rate in super().rates if not SPECS[rate.name].fold)


MOST_FOLDED = 100
"""Beyond so many classes, findings are left out that state the fact of another of the class, or
that can't be estimated."""


@measured("rates", Topic.RATES)
def _rates(counts: Counts) -> list[Measure]:
    rates = LeadingRates if len(counts.classes) > MOST_FOLDED else Rates
    return [rates("class"), rates("rows")]


@metric(
    _gap(
        name="demographic_parity",
        aliases=(
            "dp",
            "statistical parity",
            "demographic parity difference",
            "statistical parity difference",
        ),
        of_base_rates=True,
        of_labels=True,
        rest_metric="selection_rate",
        mirror="demographic_parity",
        of_class=True,
        title="Demographic parity difference",
        symbol="DP",
        definition=(
            "Largest minus smallest share of rows predicted as a class, over groups. Summary: the "
            "largest over classes."
        ),
        group_label="share of predictions",
        clause="{model} predicts {subject} for {groups}",
        direction="Higher: one group receives the label more often than another.",
        null="groups are exchangeable over all rows",
        reference="Calders et al. 2009; Albuquerque et al. 2024, eq. 5",
        errata=(
            "Table 1 of Albuquerque et al. exchanges its first two class columns in the rows of "
            "classes 0 and 1: the removed class's difference must be the sum of the others'."
        ),
    )
)
def demographic_parity(
    y_true: Labels | None,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted.

    For class c, DP(c) = max over groups a of P(prediction = c | a) minus the min over groups;
    the value is the largest DP(c).

    Parameters
    ----------
    y_true : array-like, shape (n,), or None
        True classes: their own parity, and how far that of the predictions exceeds it, stand
        among the parameters. Rows without one are not counted.
    y_pred : array-like, shape (n,)
        Predicted labels. None, NaN and "" are missing.
    groups, units
        See `equipoise.metrics.count`.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: the maximum when groups are exchangeable over all
        rows. Interval: pairwise Newcombe, simultaneous over classes and groups. `.by` has DP(c)
        and selection rates by class. NaN when fewer than two groups are large enough.

    Raises
    ------
    InputError
        When `y_pred` is not one label per row, shapes do not fit, or no row is complete.

    References
    ----------
    Calders, Kamiran & Pechenizkiy 2009; Albuquerque et al. 2024, "SkewSize", eq. 5.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> parity = m.demographic_parity(true, pred, gender)
    >>> round(parity.value, 3), round(parity.chance.mean, 3), parity.p_value < 0.01
    (0.333, 0.067, True)
    """
    counts = count_rows(y_true, y_pred, groups, units=units)
    estimate = measure(counts, [DemographicParity()], resampling, rng)[0]
    if y_true is None:
        return estimate
    labels = demographic_parity(None, y_true, groups, resampling=None).value
    label_params = {"labels": labels, "beyond_labels": estimate.value - labels}
    return replace(estimate, params={**estimate.params, **label_params})


@measured("demographic_parity", Topic.GAPS)
@dataclass(frozen=True)
class DemographicParity(RateGaps):
    """The measure behind `demographic_parity`."""

    null: Null = "rows"
    name = "demographic_parity"
    rates = (replace(SELECTION_RATE, name="demographic_parity"),)
    extreme = ExtremeRate(("selection_rate",), "gap", label=None)


@metric(
    _gap(
        name="equalized_odds",
        aliases=("eo", "eqodds", "equalised odds", "equalized odds difference"),
        combines=("true_positive_rate", "false_positive_rate"),
        within_class="two classes",
        mirror="equalized_odds",
        title="Equalized odds difference",
        symbol="EO",
        definition=(
            "Difference between groups in the share of rows predicted as a class, among rows of "
            "the class and among all others; the larger of both. Summary: the largest over classes."
        ),
        direction=(
            "Higher: at the same truth, one group receives the label more often than another."
        ),
        null="groups are exchangeable within each true class",
        reference=(
            "Hardt, Price & Srebro 2016; Albuquerque et al. 2024, eq. 6, one condition at a time"
        ),
        errata=(
            "Eq. 6 as printed takes max minus min over groups and conditions together, which is "
            "near 1 for every good classifier. Its Table 1 is reproduced by the mean over "
            "conditions."
        ),
    )
)
def equalized_odds(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels,
    *,
    aggregate: Combination = "max",
    weights: ArrayLike | None = None,
    units: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in how often a label is predicted, given the truth.

    D_k = max − min over groups a of P(prediction = c | a, k), for a class c against the rest and
    k in {truth = c, truth ≠ c}. EO(c) aggregates both D_k. The value is the largest EO(c).

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.count`.
    aggregate : "max" or "mean"
        How the two D_k make EO(c). `mean` reproduces the tables of the SkewSize paper.
    resampling, rng
        See `equipoise.metrics`.

    Returns
    -------
    Estimate
        In [0, 1], higher is worse. Chance: groups permuted within each true class. Interval:
        pairwise Newcombe intervals, simultaneous over classes, conditions and groups. `.by` has
        EO(c) of each class, with the groups' rates in the condition of the larger D_k. A class
        with fewer than two groups large enough in a condition is not estimable.

    Raises
    ------
    InputError
        When `aggregate` is unknown, shapes do not fit or no row is complete.

    References
    ----------
    Hardt, Price & Srebro 2016; Albuquerque et al. 2024, eq. 6 (erratum in
    docs/audits/predictions.md).

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse"] * 30
    >>> pred = ["nurse", "chef", "nurse", "nurse"] * 20 + true[:40]
    >>> m.equalized_odds(true, pred, gender)
    <equalized_odds difference 0.667 [0.382, 0.808]; chance 0.096, p ≤ 0.001, n = 120 in 2 groups>
    """
    return measure_rows(
        [EqualizedOdds(aggregate)], y_true, y_pred, groups, weights=weights, units=units,
        resampling=resampling, rng=rng,
    )[0]  # fmt: skip


@measured("equalized_odds", Topic.GAPS)
@dataclass(frozen=True)
class EqualizedOdds(RateGaps):
    """The measure behind `equalized_odds`.

    Attributes
    ----------
    aggregate : "max" or "mean"
        How the gaps of the two conditions are combined.
    """

    aggregate: Combination = "max"
    null: Null = "class"
    name = "equalized_odds"
    over = "classes, true-class conditions"
    rates = (true_positive_rate.rate, false_positive_rate.rate)

    @property
    def params(self) -> Fields:
        """The parameters that decide the numbers."""
        return {"aggregate": self.aggregate, "null": self.null}

    def __post_init__(self) -> None:
        if self.aggregate not in get_args(Combination):
            raise InputError(f"aggregate={self.aggregate!r}: expected 'max' or 'mean'")

    @property
    def extreme(self) -> ExtremeRate:
        """The rates of both conditions."""
        return ExtremeRate(
            ("true_positive_rate", "false_positive_rate"), "gap", mean=self.aggregate == "mean",
            label=None, group_metric="true_positive_rate",
        )  # fmt: skip

    def reads_classes_apart(self, counts: Counts) -> bool:
        """Of two classes, the false positive rate of one is about the other class alone."""
        return len(counts.targets) <= 2

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest EO, then EO, and D of both conditions."""
        conditions = self.gaps(counts, tables)
        odds = conditions.max(axis=1) if self.aggregate == "max" else conditions.mean(axis=1)
        flat = conditions.reshape(len(tables), -1)
        return np.concatenate([largest(odds)[:, None], odds, flat], axis=1)

    def tested_numbers(self, observed: Floats) -> Booleans:
        """Return a mask of tested numbers, without single conditions."""
        return super().tested_numbers(observed) & (np.arange(len(observed)) <= len(observed) // 3)

    def ends(self, families: Sequence[Family], level: float) -> Pair:
        """Return ends of the largest EO; low ends hold for all classes together (Bonferroni)."""
        classes = np.isfinite([family.value for family in families]).all(axis=0).sum()
        low, high = self._ends(families, level, int(classes))
        return largest(low), largest(high)

    def _ends(self, families: Sequence[Family], level: float, classes: int = 1) -> Pair:
        """Return ends per class.

        Low ends hold for all conditions and `classes` classes together (Bonferroni), on top of the
        pairs of groups. A high end of a maximum needs no correction: it is too low only when that
        of the truly largest gap is. The high end of a mean holds for all conditions.
        """
        n_conditions = len(families)
        low_level = spread_level(level, n_conditions * classes)
        low = [family.ends(low_level)[0] for family in families]
        if self.aggregate == "max":
            high = [family.ends(level)[1] for family in families]
            return np.max(low, axis=0), np.max(high, axis=0)
        high_level = spread_level(level, n_conditions)
        high = [family.ends(high_level)[1] for family in families]
        return np.mean(low, axis=0), np.mean(high, axis=0)

    def table(self, families: Sequence[Family]) -> pa.Table:
        """Return EO of each class with the groups' rates in the condition of the larger gap."""
        counts, draws = families[0].counts, families[0].draws
        places = np.arange(len(counts.classes))
        conditions = np.stack([family.value for family in families])
        deciding = np.argmax(np.where(np.isnan(conditions), np.inf, conditions), axis=0)
        first, second = (family.columns() for family in families)
        by_group = pa.concat_arrays([first["by_group"], second["by_group"]])
        return parts_table(
            self.name,
            counts.classes,
            draws,
            1,
            self._ends(families, draws.level),
            by_group=by_group.take(pa.array(deciding * len(places) + places)),
            n=first["n"] + second["n"],
            excluded=first["excluded"] | second["excluded"],
            reason=[
                "; ".join(filter(None, pair))
                for pair in zip(first["reason"], second["reason"], strict=True)
            ],
            shows=[self.rates[place].name for place in deciding.tolist()],
        )
