"""Confusion rates of every class and group, one class against the rest, and their gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.special import ndtr

from equipoise.core.finding import Excluded
from equipoise.core.groups import Groups
from equipoise.metrics.building import (
    GroupColumns,
    gaps,
    interval_method,
    parts_table,
    spread_level,
    too_small,
)
from equipoise.metrics.counts.table import Counts, Null
from equipoise.metrics.measure import Draws
from equipoise.stats.intervals import percentile, simultaneous_gap, studentized_range, wilson

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Pair = tuple[Floats, Floats]

# A difference of sums of soft counts below this share of the larger sum is rounding.
_ROUNDING = 1e-9
# Replicates of more shares than this would fill the memory: classes × groups × rates.
MAX_REPLICATED_SHARES = 25_000


@dataclass(frozen=True, eq=False)
class Confusion:
    """Weights of one-vs-all outcomes, each of shape (r, classes, groups).

    Attributes
    ----------
    both : ndarray
        Rows of the class that are predicted as it.
    truth, prediction : ndarray
        Rows of the class; rows predicted as it.
    total : ndarray
        All rows of the group, the same for every class.
    """

    both: Floats
    truth: Floats
    prediction: Floats
    total: Floats

    @classmethod
    def of(cls, counts: Counts, tables: Floats) -> Confusion:
        """Sum tables (r, outcomes, groups), once for all measures of the same draws."""
        return counts.once(tables, cls._sum)

    @classmethod
    def _sum(cls, counts: Counts, tables: Floats) -> Confusion:
        truth = counts.by_truth(tables)
        total = np.broadcast_to(tables.sum(axis=1)[:, None], truth.shape)
        return cls(counts.hits(tables), truth, counts.by_prediction(tables), total)

    @cached_property
    def missed(self) -> Floats:
        """Rows of the class that are predicted as another."""
        return _rest(self.truth, self.both)

    @cached_property
    def wrong(self) -> Floats:
        """Rows of other classes that are predicted as this one."""
        return _rest(self.prediction, self.both)

    @cached_property
    def others(self) -> Floats:
        """Rows of other classes."""
        return _rest(self.total, self.truth)

    @cached_property
    def unsaid(self) -> Floats:
        """Rows predicted as another class."""
        return _rest(self.total, self.prediction)

    @cached_property
    def neither(self) -> Floats:
        """Rows of other classes that are predicted as other classes."""
        return _rest(self.others, self.wrong)

    @cached_property
    def right(self) -> Floats:
        """Rows whose decision on the class is right."""
        return self.both + self.neither

    @cached_property
    def shares(self) -> dict[Rate, Floats]:
        """Rates that were computed, see `Rate.shares`."""
        return {}


def _rest(whole: Floats, part: Floats) -> Floats:
    rest = whole - part
    return np.where(rest > _ROUNDING * whole, rest, 0.0)


@dataclass(frozen=True)
class Rate:
    """A share of rows, or the mean of two shares of separate rows, per class and group.

    Attributes
    ----------
    name : str
        Public name of the metric.
    null : "rows", "class" or "prediction"
        What its chance level exchanges.
    worse : "lower" or "higher"
        Which side harms a group; for the selection rate, by the convention that being selected
        is favourable.
    base : str
        What the denominators count, in words.
    terms : tuple of (str, str, str)
        Of each share: the attributes of `Confusion` that are its numerator and its denominator,
        and what the latter counts.
    """

    name: str
    null: Null
    worse: Literal["lower", "higher"]
    base: str
    terms: tuple[tuple[str, str, str], ...]

    def counts(self, cells: Confusion) -> list[Pair]:
        """Return numerator and denominator of each share, each (r, classes, groups)."""
        return [(getattr(cells, some), getattr(cells, every)) for some, every, _ in self.terms]

    def shares(self, cells: Confusion) -> Floats:
        """Return the rate of every class and group, (r, classes, groups); NaN without rows."""
        if self not in cells.shares:
            every = [divide(*pair) for pair in self.counts(cells)]
            cells.shares[self] = np.asarray(sum(every) / len(every))
        return cells.shares[self]

    def totals(self, cells: Confusion) -> Floats:
        """Return the rows behind the rate, (r, classes, groups)."""
        return np.asarray(sum(totals for _, totals in self.counts(cells)))

    def fewest(self, cells: Confusion) -> Floats:
        """Return the smaller of the denominators, (r, classes, groups)."""
        return reduce(np.minimum, [totals for _, totals in self.counts(cells)])

    def comparable(self, counts: Counts, tables: Floats) -> Floats:
        """Return the rate, NaN where an observed denominator is too small.

        A rate of a handful of rows is 0 or 1 by chance, and would be the largest or smallest of
        all groups; draws leave out what the observed table leaves out.
        """
        values = self.shares(Confusion.of(counts, tables))
        if counts.groups.min_size <= 1:
            return values
        fewest = self.fewest(Confusion.of(counts, counts.observed))[0]
        return np.where(enough(fewest, counts.groups), values, np.nan)

    def scored(self, cells: Confusion, level: float) -> Scored:
        """Return the rate of the first table with hybrid intervals, (classes, groups)."""
        each = [Scored.of(some[0], every[0], level) for some, every in self.counts(cells)]
        return reduce(Scored.plus, each).scaled(1.0 / len(each))


_CLASS, _OTHERS = "rows of the class", "rows of other classes"
_SAID, _UNSAID = "predictions of the class", "predictions of other classes"


def _share(
    name: str, null: Null, worse: Literal["lower", "higher"], term: tuple[str, str, str]
) -> Rate:
    return Rate(name, null, worse, term[2], (term,))


RATES = (
    _share("true_positive_rate", "class", "lower", ("both", "truth", _CLASS)),
    _share("false_positive_rate", "class", "higher", ("wrong", "others", _OTHERS)),
    _share("true_negative_rate", "class", "lower", ("neither", "others", _OTHERS)),
    _share("false_negative_rate", "class", "higher", ("missed", "truth", _CLASS)),
    _share("precision", "prediction", "lower", ("both", "prediction", _SAID)),
    _share("negative_predictive_value", "prediction", "lower", ("neither", "unsaid", _UNSAID)),
    _share("selection_rate", "rows", "lower", ("prediction", "total", "rows")),
    _share("accuracy", "rows", "lower", ("right", "total", "rows")),
)
TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE, SELECTION_RATE = RATES[0], RATES[1], RATES[6]
AVERAGE_ODDS = Rate(
    "average_odds",
    "class",
    "lower",
    "rows of the class and of other classes",
    (*TRUE_POSITIVE_RATE.terms, *FALSE_POSITIVE_RATE.terms),
)


def enough(totals: Floats, groups: Groups) -> Mask:
    """Whether each denominator has the minimum size of groups, as rounded where it is shown."""
    if groups.min_size <= 1:
        return np.ones(totals.shape, dtype=bool)
    return np.asarray(np.rint(totals) >= groups.min_size)


def divide(successes: Floats, totals: Floats) -> Floats:
    """Divide, NaN where the total is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(totals > 0, successes / totals, np.nan)


@dataclass(frozen=True, eq=False)
class Scored:
    """Values with the ends of their intervals, three arrays of one shape; NaN where unknown.

    Variance estimates are recovered from the ends of each proportion's own interval (MOVER), so
    that a share of 0 or 1 needs no correction. For two Wilson intervals the difference is
    Newcombe's.
    """

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, successes: Floats, totals: Floats, level: float) -> Scored:
        """Return shares with their Wilson intervals."""
        return cls(divide(successes, totals), *wilson(successes, totals, level))

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """The value, the low end and the high end."""
        return self.value, self.low, self.high

    def where(self, index: Any) -> Scored:
        """Return the values at an index or mask of the last axis."""
        return Scored(*(one[..., index] for one in self.arrays))

    def known(self, kept: Mask) -> Scored:
        """Return the values with NaN where they are not kept."""
        return Scored(*(np.where(kept, one, np.nan) for one in self.arrays))

    def scaled(self, factor: Floats | float) -> Scored:
        """Return the values times a number of at least 0."""
        return Scored(*(factor * one for one in self.arrays))

    def minus(self, other: Scored) -> Scored:
        """Return the difference to independent values (Newcombe 1998)."""
        return self.plus(Scored(-other.value, -other.high, -other.low))

    def plus(self, other: Scored) -> Scored:
        """Return the sum with independent values (Zou & Donner 2008)."""
        value = self.value + other.value
        below = np.hypot(self.value - self.low, other.value - other.low)
        above = np.hypot(self.high - self.value, other.high - other.value)
        return Scored(value, value - below, value + above)

    def over(self, other: Scored) -> Scored:
        """Return the ratio to independent values; NaN, but with ends, where those are 0.

        The ends solve the quadratic equations of Donner & Zou 2012, section 3, in the form that
        keeps its precision. The high end is infinite where the other value may be 0.
        """
        product = self.value * other.value
        small, large = (end * (2.0 * self.value - end) for end in (self.low, self.high))
        other_small, other_large = (
            end * (2.0 * other.value - end) for end in (other.low, other.high)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(other.value > 0, self.value / other.value, np.nan)
            low = small / (product + _root(product * product - small * other_large))
            high = (product + _root(product * product - large * other_small)) / other_small
        known = ~np.isnan(product)
        low = np.where(known & (self.low == 0), 0.0, low)
        return Scored(value, low, np.where(known & (other.low == 0), np.inf, high))


def _root(square: Floats) -> Floats:
    # Rounding must not make a number that is 0 by definition negative.
    return np.sqrt(np.maximum(square, 0.0))


def largest(values: Floats) -> Floats:
    """Largest of the last axis, NaN left out; NaN when there is no other."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(np.fmax.reduce(values, axis=-1))


def simultaneous_largest_gap(successes: Floats, totals: Floats, level: float = 0.95) -> Pair:
    """Interval of the largest of several gaps.

    Parameters
    ----------
    successes, totals : ndarray, shape (families, groups)
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray of shape ()
        The low end is the largest low end of the gaps, corrected for the number of families
        (Bonferroni) on top of the pairs of groups. The high end is their largest high end
        without correction: it is too low only when that of the truly largest gap is.
    """
    families = int(((totals > 0).sum(axis=-1) >= 2).sum())
    low, _ = simultaneous_gap(successes, totals, spread_level(level, families))
    _, high = simultaneous_gap(successes, totals, level)
    return largest(low), largest(high)


def gaps_and_shares(
    counts: Counts, tables: Floats, rates: Sequence[Rate]
) -> tuple[Floats, list[Floats]]:
    """Return the gaps of rates (r, rates, classes), and flat shares where they are replicated."""
    usable = counts.groups.usable
    found = np.stack([gaps(rate.comparable(counts, tables), usable) for rate in rates], axis=1)
    if not replicates_shares(counts, found.shape[1]):
        return found, []
    cells = Confusion.of(counts, tables)
    return found, [rate.shares(cells).reshape(len(tables), -1) for rate in rates]


def replicates_shares(counts: Counts, rates: int) -> bool:
    """Whether the shares of all classes and groups are replicated beside the gaps."""
    shares = rates * len(counts.classes) * len(counts.groups)
    return not counts.independent and shares <= MAX_REPLICATED_SHARES


def gap_method(counts: Counts, draws: Draws, over: str, rates: int) -> str:
    """Say how the interval of a largest gap was made."""
    closed = f"pairwise Newcombe intervals, simultaneous over {over} and groups"
    kept = draws.boot is None or replicates_shares(counts, rates)
    left_out = "" if kept else "; too many groups for replicates of each share"
    return interval_method(counts, draws, closed) + left_out


def too_few(value: float, base: str) -> str:
    """Say why there is no gap, "" when there is one."""
    return f"fewer than two groups have {base}" if np.isnan(value) else ""


def needed(groups: Groups, base: str) -> str:
    """Say what a group needs to take part in a gap."""
    return base if groups.min_size <= 1 else f"at least {groups.min_size} {base}"


def families(counts: Counts, draws: Draws, rates: Sequence[Rate], lead: int) -> list[Family]:
    """Return the gaps of rates in draws that hold `lead` numbers before them."""
    classes, width = len(counts.classes), len(rates)
    shares = lead + width * classes
    size = classes * len(counts.groups)
    kept = replicates_shares(counts, width)
    return [
        Family(rate, counts, draws, lead + place * classes, shares + place * size if kept else None)
        for place, rate in enumerate(rates)
    ]


@dataclass(frozen=True, eq=False)
class Family:
    """The gaps of one rate over all classes, and where they stand in the draws.

    Attributes
    ----------
    rate : Rate
    counts : Counts
    draws : Draws
    start : int
        Place of the first class's gap in the draws; the others follow.
    shares : int or None
        Place of the first class's first group, None when shares were not replicated.
    """

    rate: Rate
    counts: Counts
    draws: Draws
    start: int
    shares: int | None

    @cached_property
    def cells(self) -> Confusion:
        """The observed table."""
        return Confusion.of(self.counts, self.counts.observed)

    @cached_property
    def large(self) -> Mask:
        """Which cells (classes, groups) have rows enough."""
        return enough(self.rate.fewest(self.cells)[0], self.counts.groups)

    @property
    def compared(self) -> Pair:
        """Successes and totals of the groups that are large enough; 0 in cells that are not."""
        usable = self.counts.groups.usable
        successes, totals = (
            np.where(self.large, one[0], 0.0)[:, usable] for one in self.rate.counts(self.cells)[0]
        )
        return successes, totals

    @property
    def value(self) -> Floats:
        """The gap of each class."""
        return self.draws.observed[self.start : self.start + len(self.counts.classes)]

    @property
    def reason(self) -> list[str]:
        """Why a class has no gap."""
        base = needed(self.counts.groups, self.rate.base)
        return [too_few(one, base) for one in self.value.tolist()]

    @cached_property
    def _rows(self) -> Floats:
        """Rows of each cell that is large enough, (classes, groups)."""
        fewest = self.rate.fewest(self.cells)[0]
        rows: Floats = self.rate.totals(self.cells)[0]
        return np.where(self.large & (fewest > 0), rows, fewest)

    @property
    def n(self) -> Floats:
        """Rows of the groups that were compared, per class."""
        groups = self.counts.groups
        taking = np.where(enough(self._rows, groups), self._rows, 0.0)
        return np.asarray(np.rint(taking[..., groups.usable].sum(axis=-1)))

    @property
    def excluded(self) -> list[tuple[Excluded, ...]]:
        """How many groups large enough each class left out for want of rows."""
        groups, base = self.counts.groups, self.rate.base
        absent = groups.usable & (self._rows == 0)
        small = groups.usable & ~absent & ~enough(self._rows, groups)
        reasons = (f"groups without {base}", f"groups with fewer than {groups.min_size} {base}")
        pairs = zip(*(one.sum(axis=-1).tolist() for one in (absent, small)), strict=True)
        return [
            tuple(Excluded(why, many) for why, many in zip(reasons, pair, strict=True) if many)
            for pair in pairs
        ]

    @property
    def ends(self) -> Pair:
        """Ends of the gap of each class."""
        counts, draws = self.counts, self.draws
        if draws.boot is not None:
            many = len(counts.classes)
            return percentile(draws.boot[:, self.start : self.start + many], draws.level)[:2]
        single = len(self.rate.terms) == 1
        several = single or counts.groups.usable.sum() >= 2
        if not (draws.intervals and counts.independent and several):
            return np.full(len(counts.classes), np.nan), np.full(len(counts.classes), np.nan)
        if single:
            return simultaneous_gap(*self.compared, draws.level)
        return self._hybrid_ends(draws.level)

    def _hybrid_ends(self, level: float) -> Pair:
        """Return ends as `simultaneous_gap` has them, of a mean of shares."""
        usable = self.counts.groups.usable
        critical = studentized_range(level, int(usable.sum()))
        wide, narrow = (
            self.rate.scored(self.cells, one).known(self.large).where(usable)
            for one in (1.0 - 2.0 * float(ndtr(-critical)), level)
        )
        lows, highs = [np.zeros(len(wide.value))], [np.zeros(len(wide.value))]
        for group in range(int(usable.sum())):
            others = np.arange(wide.value.shape[-1]) != group
            below, above = (one.where(~others).minus(one.where(others)) for one in (wide, narrow))
            lows.append(np.fmax.reduce(below.low, axis=-1))
            highs.append(np.fmax.reduce(above.high, axis=-1))
        several = (~np.isnan(narrow.value)).sum(axis=-1) >= 2
        low, high = np.fmax.reduce(lows), np.fmin(np.fmax.reduce(highs), 1.0)
        return np.where(several, low, np.nan), np.where(several, high, np.nan)

    def by_group(self) -> GroupColumns:
        """Return the rate of all groups in every class."""
        groups, draws = self.counts.groups, self.draws
        scored = self.rate.scored(self.cells, draws.level)
        low, high = scored.low, scored.high
        if not self.counts.independent:
            low = high = np.full(low.shape, np.nan)
            if draws.boot is not None and self.shares is not None:
                replicates = draws.boot[:, self.shares : self.shares + low.size]
                low, high = (
                    end.reshape(low.shape) for end in percentile(replicates, draws.level)[:2]
                )
        absent = [totals[0] == 0 for _, totals in self.rate.counts(self.cells)]
        bases = [f"no {base}" for *_, base in self.rate.terms]
        note = np.select([*absent, ~(groups.usable & self.large)], [*bases, too_small(groups)], "")
        totals = self.rate.totals(self.cells)[0]
        return GroupColumns(groups, totals, scored.value, low, high, note)

    def table(self, metric: str = "") -> pa.Table:
        """Return one part per class: the gap, its interval and chance level, and every group."""
        return parts_table(
            metric or self.rate.name,
            self.counts.classes,
            self.draws,
            self.start,
            self.ends,
            by_group=self.by_group(),
            n=self.n,
            excluded=self.excluded,
            reason=self.reason,
        )
