"""Every confusion rate by class and group, and the gaps between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.estimate import Ends, Estimate
from equipoise.metrics.average_odds import average_odds, average_odds_table, comparable_odds
from equipoise.metrics.confusion import RATES, Confusion, Rate, comparable
from equipoise.metrics.counts import Counts, Null, count
from equipoise.metrics.gaps import (
    Family,
    compared,
    family_table,
    gap_estimate,
    gap_method,
    gaps,
    largest,
    replicates_shares,
    simultaneous_largest_gap,
    spread_level,
)
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]

_NO_CHANCE = "rates have different nulls: each gap in `by` has its own chance level and p-value"
# The first two rates under each null; the others are their complements or means.
_DISTINCT = 2
_NULLS: tuple[Null, ...] = ("class", "prediction", "rows")


def rates(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Gaps between groups in every confusion rate, one class against the rest.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the values alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        The largest gap (max − min over groups) over classes and rates, in [0, 1], higher is
        worse; without a chance level, since rates have different nulls. `.by` has one part per
        rate and class: the gap with interval, chance level and p-value, and in `by_group` the
        rate of every group with its Wilson interval. Metrics of the parts: true_positive_rate,
        false_positive_rate, true_negative_rate, false_negative_rate (groups exchangeable within
        each true class), precision, negative_predictive_value (within each predicted label),
        selection_rate, accuracy (over all rows), and average_odds, the mean of true and false
        positive rate, whose gap is the largest average odds difference (within each true
        class). A rate without rows in its denominator is NaN with a note, never 0.

    Raises
    ------
    InputError
        When shapes do not fit or no row is complete.

    See Also
    --------
    equipoise.metrics.comparisons.rate_comparisons : differences and ratios to other groups.

    References
    ----------
    Hardt, Price & Srebro 2016; Chouldechova 2017; Bellamy et al. 2019 (average odds).
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return together(measure(counts, [Rates(null) for null in _NULLS], resampling, rng))


def together(found: Sequence[Estimate]) -> Estimate:
    """Join the estimates of `Rates` under several nulls into the one of all rates."""
    values = np.array([one.value for one in found])
    return replace(
        found[0],
        value=float(largest(values)),
        params={},
        chance=None,
        no_chance=_NO_CHANCE,
        p_value=None,
        null="",
        by=pa.concat_tables([one.by for one in found]),
        reason="" if np.isfinite(values).any() else found[0].reason,
        ends=LargestEnds(tuple(one.ends for one in found)),
    )


@dataclass(frozen=True, eq=False)
class LargestEnds:
    """Ends of the largest of several values, each with ends of its own.

    The low end is corrected for their number, the high end needs no correction, see
    `equipoise.metrics.gaps.simultaneous_largest_gap`.
    """

    members: tuple[Ends, ...]

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        each = spread_level(level, len(self.members))
        low = largest(np.array([ends(each)[0] for ends in self.members]))
        high = largest(np.array([ends(level)[1] for ends in self.members]))
        return float(low), float(high)


@dataclass(frozen=True)
class Rates:
    """The measure behind `rates`: the gaps of all rates that share a null hypothesis.

    Attributes
    ----------
    null : "class", "prediction" or "rows"
        The null hypothesis, which chooses the rates.
    """

    null: Null

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest gap, gaps by rate and class, and shares where replicated."""
        cells = Confusion.of(counts, tables)
        every = [cells.shares(rate) for rate in self._rates]
        taking = [
            comparable(counts, rate, one) for rate, one in zip(self._rates, every, strict=True)
        ]
        if self.null == "class":
            every.append(average_odds(cells))
            taking.append(comparable_odds(counts, every[-1]))
        by_rate = [gaps(one, counts.groups.usable) for one in taking]
        numbers = [largest(np.concatenate(by_rate[:_DISTINCT], axis=1))[:, None], *by_rate]
        if replicates_shares(counts, self._width):
            numbers += [one.reshape(len(tables), -1) for one in every]
        return np.concatenate(numbers, axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        families = self._families(counts)
        tables = [family_table(counts, draws, family) for family in families]
        if self.null == "class":
            tables.append(average_odds_table(counts, draws, *self._places(counts, len(families))))
        distinct = [compared(counts, family) for family in families[:_DISTINCT]]
        successes, totals = (np.concatenate(ones) for ones in zip(*distinct, strict=True))
        return gap_estimate(
            "rates",
            counts,
            draws,
            ends=ClosedForm(simultaneous_largest_gap, (successes, totals)),
            method=gap_method(counts, draws, "rates, classes", rates=self._width),
            base="rows enough for any rate",
            params={"null": self.null},
            by=pa.concat_tables(tables).combine_chunks(),
        )

    @property
    def _rates(self) -> tuple[Rate, ...]:
        return tuple(rate for rate in RATES if rate.null == self.null)

    @property
    def _width(self) -> int:
        return len(self._rates) + (self.null == "class")

    def _places(self, counts: Counts, index: int) -> tuple[int, int | None]:
        """Places in the draws of the gaps and the shares of rate `index`."""
        classes = len(counts.classes)
        start = 1 + (self._width + index * len(counts.groups)) * classes
        return 1 + index * classes, start if replicates_shares(counts, self._width) else None

    def _families(self, counts: Counts) -> list[Family]:
        cells = Confusion.of(counts, counts.observed)
        found = []
        for index, rate in enumerate(self._rates):
            successes, totals = rate.counts(cells)
            places = self._places(counts, index)
            found.append(Family(rate.name, rate.base, successes[0], totals[0], *places))
        return found


_rate = partial(
    MetricSpec,
    kinds=("predictions",),
    unit="points",
    rate=True,
    of_class=True,
    harm="lower",
    threshold=0.05,
    threshold_reason=POINTS,
    chance="above 0 for the gap between groups",
    interval=PAIRWISE,
    null="groups are exchangeable within each true class",
    reference="Hardt, Price & Srebro 2016 (rates given the truth); Chouldechova 2017 (predictive)",
)
register(
    _rate(
        name="rates",
        title="All confusion rates",
        rate=False,
        harm="higher",
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
register(
    _rate(
        name="true_positive_rate",
        kinds=("predictions", "concepts"),
        title="True positive rate",
        symbol="TPR",
        group_label="true positive rate",
        definition="Share of rows of a class that are predicted as it.",
        direction="Lower: more members of the class are missed.",
    )
)
register(
    _rate(
        name="false_positive_rate",
        kinds=("predictions", "concepts"),
        title="False positive rate",
        symbol="FPR",
        harm="higher",
        group_label="false positive rate",
        definition="Share of rows of other classes that are predicted as the class.",
        direction="Higher: the label is given wrongly more often.",
    )
)
register(
    _rate(
        name="true_negative_rate",
        title="True negative rate",
        symbol="TNR",
        group_label="true negative rate",
        definition="1 minus the false positive rate.",
        direction="Lower: the label is given wrongly more often.",
    )
)
register(
    _rate(
        name="false_negative_rate",
        title="False negative rate",
        symbol="FNR",
        harm="higher",
        group_label="false negative rate",
        definition="1 minus the true positive rate.",
        direction="Higher: more members of the class are missed.",
    )
)
register(
    _rate(
        name="precision",
        kinds=("predictions", "concepts"),
        title="Precision",
        symbol="PPV",
        group_label="precision",
        definition="Share of rows predicted as a class that are of it.",
        direction="Lower: the label is wrong more often.",
        null="groups are exchangeable within each predicted label",
    )
)
register(
    _rate(
        name="negative_predictive_value",
        title="Negative predictive value",
        symbol="NPV",
        group_label="negative predictive value",
        definition="Share of rows not predicted as a class that are not of it.",
        direction="Lower: the absence of the label is wrong more often.",
        null="groups are exchangeable within each predicted label",
    )
)
register(
    _rate(
        name="selection_rate",
        title="Selection rate",
        group_label="selection rate",
        definition="Share of rows predicted as a class.",
        direction=(
            "Lower: the group receives the label less often; whether that harms depends on the "
            "label."
        ),
        null="groups are exchangeable over all rows",
    )
)
register(
    _rate(
        name="average_odds",
        title="Average odds",
        definition="Mean of true and false positive rate of a class.",
        direction="Lower: at the same truth, the group receives the label less often.",
        interval="pairwise hybrid score, simultaneous over groups",
    )
)
