"""How effect sizes go with other numbers of the classes, and how often a label is mistaken."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from equipoise.core import (
    Estimate,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    NullHypothesis,
    encode,
    floats,
    nans,
    record,
)
from equipoise.core.arguments import check_lengths
from equipoise.core.labels import Encoded
from equipoise.metrics.documenting import Form
from equipoise.metrics.labels.answer_rates import share_in_state
from equipoise.metrics.labels.effect_sizes import EffectSizes, Formulation, Statistic
from equipoise.metrics.labels.rate_metric import RateMetric
from equipoise.metrics.labels.rates import DemographicParity, EqualizedOdds
from equipoise.metrics.labels.table import Counts, count, fill_labels
from equipoise.metrics.measure import Measure
from equipoise.metrics.rankings.subjects import correlation
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import WILSON, MetricSpec
from equipoise.stats.intervals import divide


@record
class EffectCorrelation(Form):
    """The correlation of effect sizes with another number of the classes, as a metric.

    Attributes
    ----------
    name : str
    numbers : callable
        From counts to a number of each class.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> gender = ["women", "men"] * 60
    >>> true = ["chef", "chef", "nurse", "nurse", "pilot", "pilot"] * 20
    >>> pred = ["nurse", *true[1:30], "pilot", *true[31:50], "chef", *true[51:70], "nurse"]
    >>> m.effect_accuracy_correlation(true, pred + true[71:], gender, min_expected=0).estimable
    True
    """

    name: str
    numbers: Callable[[Counts], Floats]

    def __call__(
        self,
        y_true: Labels,
        y_pred: Labels,
        groups: GroupLabels,
        *,
        statistic: Statistic = "cramers_v",
        min_expected: float = 5.0,
        yates: bool = False,
        formulation: Formulation = "separation",
        level: float = 0.95,
    ) -> Estimate:
        """Return Pearson's correlation over the classes that occur; see `effect_sizes`."""
        counts = count(y_true, y_pred, groups)
        effects = EffectSizes(statistic, min_expected, yates, formulation)
        chi_squares, sizes = effects.chi_square(counts, counts.observed), nans(len(counts.classes))
        sizes[chi_squares.layout.subject] = chi_squares.effect_sizes(statistic)[0]
        of_classes = counts.targets
        pearson = correlation(sizes[of_classes], self.numbers(counts)[of_classes], level=level)
        return replace(pearson, metric=self.name, params=effects.params)


_correlation = partial(
    MetricSpec,
    kinds=("predictions",),
    range=(-1.0, 1.0),
    harm="either",
    null_kind=NullHypothesis.NORMAL,
    null="classes are independent and both numbers normal",
    chance="none drawn: p, among the parameters, from the t distribution with n − 2 degrees",
    interval="Fisher's z",
    reference="Albuquerque et al. 2024, SkewSize, Figure 5; Fisher 1921",
    symbol="r",
    direction="Either: near 0 the effect size says something else. Descriptive.",
)


def _accuracies(counts: Counts) -> Floats:
    hits, totals = counts.hits(counts.observed)[0], counts.by_truth(counts.observed)[0]
    return divide(hits.sum(axis=1), totals.sum(axis=1))


def _accuracy_gaps(counts: Counts) -> Floats:
    hits, totals = counts.hits(counts.observed)[0], counts.by_truth(counts.observed)[0]
    return floats(_accuracies(counts) - np.fmin.reduce(divide(hits, totals), axis=1))


def _gaps(measure: Measure, counts: Counts) -> Floats:
    return measure(counts, counts.observed)[0, 1 : 1 + len(counts.classes)]


def _correlation_with(
    name: str, words: str, numbers: Callable[[Counts], Floats]
) -> EffectCorrelation:
    """Register the correlation of effect sizes with a number of the classes."""
    spec = _correlation(
        name=name,
        title=f"Correlation of effect size and {words}",
        definition=f"Pearson's correlation of the effect size with {words}, over classes.",
    )
    return metric(spec)(EffectCorrelation(name, numbers))


def count_mistakes(
    y_true: Labels,
    y_pred: Labels,
    groups: GroupLabels | None = None,
    *,
    of: str,
    label: str,
    units: Labels | None = None,
) -> Counts:
    """Count the rows of a class that get a label, and those that get another.

    Raises
    ------
    InputError
        When lengths differ, or the class has no row with a prediction.
    """
    true_codes, classes = encode(y_true, subject="y_true")
    codes, labels = encode(y_pred, subject="y_pred")
    check_lengths({"y_true": len(true_codes), "y_pred": len(codes)})
    of_class = np.zeros(len(codes), dtype=bool)
    if of in classes:
        of_class = true_codes == [*classes].index(of)
    if not (of_class & (codes >= 0)).any():
        raise InputError(f"of={of!r}: no row of this class has a prediction")
    wanted = np.full(len(codes), label, dtype=object)
    wanted[~of_class] = None
    all_groups = fill_labels(None, len(codes)) if groups is None else groups
    counts = count(wanted, Encoded(codes, labels), all_groups, units=units)
    return replace(counts, excluded={"rows of other classes": int((~of_class).sum())})


mistake_rate = metric(
    MetricSpec(
        name="mistake_rate",
        kinds=("predictions",),
        unit="share",
        harm=None,
        group_label="share of images with the wrong label",
        definition="Share of the images of a class that get a particular wrong label.",
        direction="Neither: it says which label a group gets. Descriptive.",
        chance="none: descriptive, of the class's most frequent wrong labels",
        interval=WILSON,
        reference="Albuquerque et al. 2024, SkewSize, Figure 3",
    ),
    form=partial(RateMetric.of, bases=("rows",), of_all=True, count=count_mistakes),
)(share_in_state)
effect_accuracy_correlation = _correlation_with(
    "effect_accuracy_correlation", "accuracy", _accuracies
)
effect_odds_correlation = _correlation_with(
    "effect_odds_correlation", "equalized odds", partial(_gaps, EqualizedOdds())
)
effect_gap_correlation = _correlation_with(
    "effect_gap_correlation", "the accuracy gap", _accuracy_gaps
)
effect_parity_correlation = _correlation_with(
    "effect_parity_correlation", "demographic parity", partial(_gaps, DemographicParity())
)
CORRELATES: Mapping[str, str] = {
    "accuracy": effect_accuracy_correlation.name,
    "equalized_odds": effect_odds_correlation.name,
    "gap": effect_gap_correlation.name,
    "demographic_parity": effect_parity_correlation.name,
}
"""Metric of the correlation of effect sizes with another number of the classes."""
