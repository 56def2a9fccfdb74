"""Every confusion rate by class and group, and the gaps between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import ndtr

from equipoise.core.estimate import Ends, Estimate
from equipoise.metrics.building import GroupColumns, PartColumns, against_each
from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    RATES,
    TRUE_POSITIVE_RATE,
    Confusion,
    Rate,
    comparable,
    enough,
)
from equipoise.metrics.counts import Counts, Null, count
from equipoise.metrics.gaps import (
    Family,
    compared,
    compared_rows,
    family_table,
    gap_estimate,
    gap_method,
    gaps,
    largest,
    needed,
    replicated_ends,
    replicates_shares,
    simultaneous_largest_gap,
    spread_level,
    too_few,
    without_rows,
)
from equipoise.metrics.hybrid import Scored
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm, percentile, studentized_range
from equipoise.stats.resampling import Resampling

Floats = npt.NDArray[np.float64]

NAME = "average_odds"
_BOTH = (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE)
_BASE = "rows of the class and of other classes"


def average_odds(cells: Confusion) -> Floats:
    """Return the mean of true and false positive rate, (r, classes, groups); NaN without one."""
    hit, alarm = (cells.shares(rate) for rate in _BOTH)
    return 0.5 * (hit + alarm)


def comparable_odds(counts: Counts, values: Floats) -> Floats:
    """Return average odds, NaN where one of both observed denominators is too small."""
    for rate in _BOTH:
        values = comparable(counts, rate, values)
    return values


def scored_average_odds(cells: Confusion, level: float) -> Scored:
    """Return average odds of the first table with hybrid intervals, (classes, groups)."""
    hit, alarm = (Scored.of(*rate.counts(cells), level) for rate in _BOTH)
    both = hit.plus(alarm).scaled(0.5)
    return Scored(both.value[0], both.low[0], both.high[0])


def average_odds_table(
    counts: Counts, draws: Draws, place: int, share_place: int | None
) -> pa.Table:
    """Return one part per class: the gap of average odds, and every group.

    Parameters
    ----------
    counts : Counts
    draws : Draws
    place, share_place : int, int or None
        Where the gap of the first class and its first group stand in the draws.
    """
    cells = Confusion.of(counts, counts.observed)
    scored = scored_average_odds(cells, draws.level)
    # As the denominators of a rate are: the smaller of both where it is too small.
    fewest = np.minimum(cells.truth[0], cells.others[0])
    known = np.where(enough(fewest, counts.groups) & (fewest > 0), cells.total[0], fewest)
    low, high = _ends(counts, draws, cells, place)
    many = len(counts.classes)
    value = draws.observed[place : place + many]
    return PartColumns(
        metric=NAME,
        subject=counts.classes,
        value=value,
        low=low,
        high=high,
        **against_each(draws, range(place, place + many), "higher"),
        n=compared_rows(counts.groups, known),
        by_group=_group_columns(counts, draws, cells, scored, share_place),
        excluded=without_rows(counts.groups, known, _BASE),
        reason=[too_few(one, needed(counts.groups, _BASE)) for one in value.tolist()],
    ).table()


def _ends(counts: Counts, draws: Draws, cells: Confusion, place: int) -> tuple[Floats, Floats]:
    classes = len(counts.classes)
    if not draws.intervals:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    if draws.boot is not None:
        return percentile(draws.boot[:, place : place + classes], draws.level)[:2]
    usable = counts.groups.usable
    if not counts.independent or usable.sum() < 2:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    taking = enough(cells.truth[0], counts.groups) & enough(cells.others[0], counts.groups)
    return gap_ends(cells, usable, taking, draws.level)


def gap_ends(
    cells: Confusion,
    usable: npt.NDArray[np.bool_],
    taking: npt.NDArray[np.bool_],
    level: float,
) -> tuple[Floats, Floats]:
    """Return ends of the gap of average odds per class, as `simultaneous_gap` has them.

    Of the usable groups, those of `taking` (classes, groups) take part in a class.
    """
    critical = studentized_range(level, int(usable.sum()))
    wide = scored_average_odds(cells, 1.0 - 2.0 * float(ndtr(-critical))).known(taking)
    narrow = scored_average_odds(cells, level).known(taking)
    wide, narrow = wide.where(usable), narrow.where(usable)
    lows, highs = [np.zeros(len(cells.both[0]))], [np.zeros(len(cells.both[0]))]
    for group in range(int(usable.sum())):
        lows.append(np.fmax.reduce(_against_others(wide, group).low, axis=-1))
        highs.append(np.fmax.reduce(_against_others(narrow, group).high, axis=-1))
    several = (~np.isnan(narrow.value)).sum(axis=-1) >= 2
    low, high = np.fmax.reduce(lows), np.fmin(np.fmax.reduce(highs), 1.0)
    return np.where(several, low, np.nan), np.where(several, high, np.nan)


def _against_others(scored: Scored, group: int) -> Scored:
    others = np.arange(scored.value.shape[-1]) != group
    return scored.where(~others).minus(scored.where(others))


def _group_columns(
    counts: Counts, draws: Draws, cells: Confusion, scored: Scored, share_place: int | None
) -> GroupColumns:
    groups, positives, negatives = counts.groups, cells.truth[0], cells.others[0]
    low, high = replicated_ends(counts, draws, share_place) or (scored.low, scored.high)
    large = groups.usable & enough(positives, groups) & enough(negatives, groups)
    note = np.select([positives == 0, negatives == 0, ~large], [1, 2, 3], 0)
    notes = (
        "",
        *(f"no {rate.base}" for rate in _BOTH),
        f"fewer than {groups.min_size} rows",
    )
    return GroupColumns(groups, positives + negatives, scored.value, low, high, note, notes)


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
