"""Every confusion rate by class and group, the gaps between groups, and their comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate
from equipoise.metrics.building import count_estimate, drawn_ends, spread_level
from equipoise.metrics.counts.confusion import (
    AVERAGE_ODDS,
    RATES,
    Confusion,
    Rate,
    Scored,
    divide,
    families,
    gap_method,
    gaps_and_shares,
    largest,
    simultaneous_largest_gap,
    too_few,
)
from equipoise.metrics.counts.table import Counts, Null, count
from equipoise.metrics.measure import DEFAULT, Draws, measure
from equipoise.metrics.spec import PAIRWISE, POINTS, MetricSpec, register
from equipoise.stats.intervals import ClosedForm, percentile
from equipoise.stats.resampling import Bootstrap, Resampling

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_NO_CHANCE = "rates have different nulls: each gap in `by` has its own chance level and p-value"
# The first two rates under each null; the others are their complements or means.
_DISTINCT = 2
_NULLS: tuple[Null, ...] = ("class", "prediction", "rows")
_EVERY = (*RATES, AVERAGE_ODDS)


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
    equipoise.metrics.rate_comparisons : differences and ratios to other groups.

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
    `equipoise.metrics.counts.confusion.simultaneous_largest_gap`.
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

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The rates of the null hypothesis."""
        return tuple(rate for rate in _EVERY if rate.null == self.null)

    def replicated(self, counts: Counts) -> bool:
        """Independent rows have closed-form intervals."""
        return not counts.independent

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the largest gap, gaps by rate and class, and shares where replicated."""
        found, shares = gaps_and_shares(counts, tables, self.rates)
        flat = found.reshape(len(tables), -1)
        most = largest(flat[:, : _DISTINCT * found.shape[2]])
        return np.concatenate([most[:, None], flat, *shares], axis=1)

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        every = families(counts, draws, self.rates, 1)
        distinct = zip(*(one.compared for one in every[:_DISTINCT]), strict=True)
        closed = ClosedForm(simultaneous_largest_gap, tuple(map(np.concatenate, distinct)))
        return count_estimate(
            "rates",
            counts,
            draws,
            method=gap_method(counts, draws, "rates, classes", rates=len(every)),
            ends=drawn_ends(counts, draws, 0, closed),
            params={"null": self.null},
            by=pa.concat_tables([one.table() for one in every]).combine_chunks(),
            reason=too_few(draws.observed[0], "rows enough for any rate"),
        )


_KEPT_CELLS = 20_000_000
_NAMES = ("metric", "subject", "group", "versus", "versus_group")
_NUMBERS = ("difference", "low", "high", "ratio", "ratio_low", "ratio_high")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in _NAMES),
        *((name, pa.float64()) for name in _NUMBERS),
        ("n", pa.int64()),
        ("reason", pa.string()),
    ]
)


def rate_comparisons(
    y_true: Any,
    y_pred: Any,
    groups: Any,
    *,
    reference: str | None = None,
    weights: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> pa.Table:
    """Differences and ratios of every group's rates to other groups.

    Parameters
    ----------
    y_true, y_pred, groups, weights, units
        See `equipoise.metrics.counts.count`.
    reference : str, optional
        Display name of the reference group, such as "White, Male".
    resampling : Bootstrap, Permutation, Exact or None
        Gives the level of the intervals; Bootstrap also resamples units where rows are not
        independent. None leaves the intervals NaN.
    rng : int
        Seed.

    Returns
    -------
    pyarrow.Table
        One row per metric, class (`subject`), group and `versus`. `difference` = rate of the
        group − rate of `versus_group`, in [-1, 1]; `ratio` their quotient, NaN where the
        latter is 0. `n` counts the group's rows in the rate's denominator. Metrics are those of
        `rates`: the difference of selection_rate is the statistical parity difference, that of
        true_positive_rate the equal opportunity difference, that of average_odds the average
        odds difference. "best" is the highest rate ("lowest" for false positive and false
        negative rate) of the groups large enough, "worst" the opposite; "overall" is the rate
        of all rows.

        Intervals of independent rows: Newcombe's for differences and the hybrid score interval
        of Donner & Zou for ratios, both from Wilson intervals, so that shares of 0 and 1 need
        no correction (Katz' interval of the logarithm has no value there). Against "best" and
        "worst", which the data choose, they hold for all pairs of groups together (Bonferroni).
        Against "overall", which contains the group, the interval against all other groups is
        rescaled with the group's share held fixed. Other rows: percentile bootstrap over units.

    Raises
    ------
    InputError
        When `reference` names no group, shapes do not fit or no row is complete.

    References
    ----------
    Newcombe 1998, Statistics in Medicine 17, 873-890; Donner & Zou 2012, Statistical Methods in
    Medical Research 21, 347-359; Bellamy et al. 2019 (average odds difference).
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    names = counts.groups.names
    if reference is not None and reference not in names:
        expected = ", ".join(map(repr, names))
        raise InputError(f"reference={reference!r}: no such group; expected one of {expected}")
    blocks = _blocks(counts, resampling, rng)
    return pa.concat_tables(
        one.table(resampling, blocks)
        for rate in _EVERY
        for one in _comparisons(counts, rate, reference)
    )


@dataclass(frozen=True, eq=False)
class _Comparison:
    """One rate of all classes and groups against one group per class, or against all rows.

    Attributes
    ----------
    counts : Counts
    rate : Rate
    versus : "best", "worst", "reference" or "overall"
    partner : ndarray of int64, shape (classes,), or None
        The group compared with, -1 where there is none; None: all rows.
    """

    counts: Counts
    rate: Rate
    versus: str
    partner: Indices | None

    def differences(self, tables: Floats) -> tuple[Floats, Floats]:
        """Return differences and ratios of tables (r, outcomes, groups)."""
        values = self.rate.shares(Confusion.of(self.counts, tables))
        other = self.other(values, tables)
        with np.errstate(invalid="ignore", divide="ignore"):
            single = (other > 0) & (len(self.rate.terms) == 1)
            return values - other, np.where(single, values / other, np.nan)

    def other(self, values: Floats, tables: Floats) -> Floats:
        """Return what the groups' values are compared with, (r, classes, 1)."""
        if self.partner is None:
            together = tables.sum(axis=2, keepdims=True)
            return self.rate.shares(Confusion.of(self.counts, together))
        picked = np.take_along_axis(values, np.maximum(self.partner, 0)[None, :, None], axis=2)
        return np.where(self.partner[:, None] >= 0, picked, np.nan)

    def _level(self, level: float) -> float:
        """Return the level of each interval; a group that the data choose costs all pairs."""
        usable = int(self.counts.groups.usable.sum())
        chosen = self.versus in ("best", "worst")
        return spread_level(level, usable * (usable - 1) // 2) if chosen else level

    def _closed(self, level: float) -> tuple[Scored, Scored]:
        """Return difference and ratio with closed-form intervals, (classes, groups)."""
        cells = Confusion.of(self.counts, self.counts.observed)
        if self.partner is None:
            pairs = self.rate.counts(cells)
            both = [_with_rest(some[0], every[0], level) for some, every in pairs]
            difference = reduce(Scored.plus, (one for one, _ in both)).scaled(1.0 / len(both))
            return difference, both[0][1]
        own = self.rate.scored(cells, level)
        place = np.maximum(self.partner, 0)[:, None]
        other = Scored(*(np.take_along_axis(one, place, axis=1) for one in own.arrays))
        return own.minus(other), own.over(other)

    def _intervals(self, resampling: Resampling | None, blocks: Blocks) -> Sequence[Floats]:
        """Return low and high ends of the differences, then of the ratios."""
        if resampling is not None and self.counts.independent:
            difference, ratio = self._closed(self._level(resampling.level))
            return difference.low, difference.high, ratio.low, ratio.high
        if not isinstance(resampling, Bootstrap):
            return [np.full((len(self.counts.classes), len(self.counts.groups)), np.nan)] * 4
        drawn = zip(*(self.differences(tables) for tables in blocks()), strict=True)
        level = self._level(resampling.level)
        ends = [percentile(np.concatenate(some), level)[:2] for some in drawn]
        return [*ends[0], *ends[1]]

    def table(self, resampling: Resampling | None, blocks: Blocks) -> pa.Table:
        """Return one row per class and group."""
        counts, classes = self.counts, np.arange(len(self.counts.classes))
        difference, ratio = (values[0] for values in self.differences(counts.observed))
        low, high, ratio_low, ratio_high = self._intervals(resampling, blocks)
        numbers = [difference, low, high, ratio, ratio_low, ratio_high]
        for place in (1, 2, 4, 5):
            value = ratio if place > 3 else difference
            numbers[place] = np.where(np.isnan(value), np.nan, numbers[place])
        groups = np.arange(len(counts.groups))
        partner = np.full(len(classes), -1) if self.partner is None else self.partner
        # A group is not compared with itself.
        kept = np.flatnonzero((groups != partner[:, None]).ravel())
        subject, group = np.divmod(kept, len(groups))
        n = self.rate.totals(Confusion.of(counts, counts.observed))[0].ravel()[kept]
        names = pa.array([*counts.groups.names, ""])
        return pa.Table.from_arrays(
            [
                pa.repeat(self.rate.name, len(kept)),
                pa.array(counts.classes).take(pa.array(subject)),
                names.take(pa.array(group)),
                pa.repeat(self.versus, len(kept)),
                names.take(pa.array(np.where(partner < 0, len(groups), partner)[subject])),
                *(pa.array(column.ravel()[kept]) for column in numbers),
                pa.array(np.rint(n).astype(np.int64)),
                pa.array(self._reasons(difference, ratio).ravel()[kept]),
            ],
            schema=SCHEMA,
        )

    def _reasons(self, difference: Floats, ratio: Floats) -> npt.NDArray[Any]:
        cells = Confusion.of(self.counts, self.counts.observed)
        values = self.rate.shares(cells)
        other = np.broadcast_to(self.other(values, self.counts.observed)[0], difference.shape)
        bases = [base for *_, base in self.rate.terms]
        undefined = "ratio: the rate compared with is 0"
        if len(bases) > 1:
            undefined = "ratio: average odds are compared by their difference only"
        reason = np.where(np.isnan(ratio), undefined, "").astype(object)
        if self.partner is None:
            totals = self.rate.totals(cells)[0]
            alone = totals == totals.sum(axis=1, keepdims=True)
            reason[alone] = f"no other group has {' and '.join(bases)}"
        reason[np.isnan(other)] = f"what it is compared with has no {' or no '.join(bases)}"
        reason[np.isnan(values[0])] = f"the group has no {' or no '.join(bases)}"
        return reason


def _with_rest(successes: Floats, totals: Floats, level: float) -> tuple[Scored, Scored]:
    """Return difference and ratio of each group to all rows, its share of them held fixed."""
    every = totals.sum(axis=1, keepdims=True)
    rest = np.maximum(successes.sum(axis=1, keepdims=True) - successes, 0.0)
    own, others = Scored.of(successes, totals, level), Scored.of(rest, every - totals, level)
    share, ratio = divide(totals, every), own.over(others)
    with np.errstate(divide="ignore"):
        ratios = Scored(*(1.0 / (share + (1.0 - share) / one) for one in ratio.arrays))
    return own.minus(others).scaled(1.0 - share), ratios


def _comparisons(counts: Counts, rate: Rate, reference: str | None) -> Iterator[_Comparison]:
    values = rate.shares(Confusion.of(counts, counts.observed))[0]
    taking = np.where(counts.groups.usable, values, np.nan)
    none = np.isnan(taking).all(axis=1)
    towards = 1.0 if rate.worse == "lower" else -1.0
    for versus, sign in (("best", towards), ("worst", -towards)):
        score = np.where(np.isnan(taking), -np.inf, sign * taking)
        yield _Comparison(counts, rate, versus, np.where(none, -1, score.argmax(axis=1)))
    if reference is not None:
        place = counts.groups.names.index(reference)
        yield _Comparison(counts, rate, "reference", np.full(len(values), place))
    yield _Comparison(counts, rate, "overall", None)


Blocks = Callable[[], Iterable[Floats]]


def _blocks(counts: Counts, resampling: Resampling | None, rng: int) -> Blocks:
    """Return replicates for every comparison, drawn once where they fit the memory."""
    if counts.independent or not isinstance(resampling, Bootstrap):
        return tuple
    replicates = resampling.replicates
    if replicates * counts.table.size > _KEPT_CELLS:
        return lambda: counts.sampler.bootstrap(replicates, rng)
    kept = tuple(counts.sampler.bootstrap(replicates, rng))
    return lambda: kept


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
