"""Rates of each group against the best, the worst, a reference group and all groups together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    RATES,
    TRUE_POSITIVE_RATE,
    Confusion,
    Rate,
    shares,
)
from equipoise.metrics.counts import Counts, count
from equipoise.metrics.gaps import spread_level
from equipoise.metrics.hybrid import Scored
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rates import NAME as AVERAGE_ODDS
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Bootstrap, Resampling

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

VERSUS = ("best", "worst", "reference", "overall")


@dataclass(frozen=True)
class Compared:
    """A metric of groups: one rate, or the mean of several over separate rows."""

    name: str
    rates: tuple[Rate, ...]
    worse: str

    @property
    def base(self) -> str:
        """What the denominators count, in words."""
        return " or no ".join(rate.base for rate in self.rates)

    def values(self, cells: Confusion) -> Floats:
        """Return the metric, (r, classes, groups)."""
        every = [cells.shares(rate) for rate in self.rates]
        return np.asarray(sum(every) / len(every))

    def totals(self, cells: Confusion) -> Floats:
        """Return the rows behind the metric, (r, classes, groups)."""
        return np.asarray(sum(rate.counts(cells)[1] for rate in self.rates))

    def mean(self, of_rate: Callable[[Rate], Scored]) -> Scored:
        """Return the mean over rates of independent values."""
        found = of_rate(self.rates[0])
        for rate in self.rates[1:]:
            found = found.plus(of_rate(rate))
        return found.scaled(1.0 / len(self.rates))


COMPARED = (
    *(Compared(rate.name, (rate,), rate.worse) for rate in RATES),
    Compared(AVERAGE_ODDS, (TRUE_POSITIVE_RATE, FALSE_POSITIVE_RATE), "lower"),
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """One metric of all classes and groups against one group per class, or against all rows.

    Attributes
    ----------
    counts : Counts
    compared : Compared
    versus : str
        One of `VERSUS`.
    partner : ndarray of int64, shape (classes,), or None
        The group compared with, -1 where there is none; None: all rows.
    """

    counts: Counts
    compared: Compared
    versus: str
    partner: Indices | None

    def differences(self, tables: Floats) -> tuple[Floats, Floats]:
        """Return differences and ratios of tables (r, outcomes, groups)."""
        values = self.compared.values(Confusion.of(self.counts, tables))
        other = self.other(values, tables)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.where(other > 0, values / other, np.nan)
        return values - other, ratio if len(self.compared.rates) == 1 else np.full_like(
            ratio, np.nan
        )

    def other(self, values: Floats, tables: Floats) -> Floats:
        """Return what the groups' values are compared with, (r, classes, 1)."""
        if self.partner is None:
            together = tables.sum(axis=2, keepdims=True)
            return self.compared.values(Confusion.of(self.counts, together))
        picked = np.take_along_axis(values, np.maximum(self.partner, 0)[None, :, None], axis=2)
        return np.where(self.partner[:, None] >= 0, picked, np.nan)

    def level(self, level: float) -> float:
        """Return the level of each interval; a group that the data choose costs all pairs."""
        usable = int(self.counts.groups.usable.sum())
        chosen = self.versus in ("best", "worst")
        return spread_level(level, usable * (usable - 1) // 2) if chosen else level

    def closed(self, level: float) -> tuple[Scored, Scored]:
        """Return difference and ratio with closed-form intervals, (classes, groups)."""
        cells, each = Confusion.of(self.counts, self.counts.table[None]), self.level(level)
        if self.partner is None:
            difference = self.compared.mean(lambda rate: _rest_difference(rate, cells, each))
            return difference, _rest_ratio(self.compared.rates[0], cells, each)
        own = self.compared.mean(lambda rate: _scored(rate, cells, each))
        place = np.maximum(self.partner, 0)[:, None]
        other = Scored(*(np.take_along_axis(one, place, axis=1) for one in own.arrays))
        return own.minus(other), own.over(other)


def _scored(rate: Rate, cells: Confusion, level: float) -> Scored:
    successes, totals = rate.counts(cells)
    return Scored.of(successes[0], totals[0], level)


def _rest_of(rate: Rate, cells: Confusion, level: float) -> tuple[Scored, Scored, Floats]:
    """Return each group, all others together, and the group's share of the rows."""
    successes, totals = (one[0] for one in rate.counts(cells))
    every = totals.sum(axis=1, keepdims=True)
    left = np.maximum(successes.sum(axis=1, keepdims=True) - successes, 0.0), every - totals
    return Scored.of(successes, totals, level), Scored.of(*left, level), shares(totals, every)


def _rest_difference(rate: Rate, cells: Confusion, level: float) -> Scored:
    own, others, share = _rest_of(rate, cells, level)
    return own.minus(others).scaled(1.0 - share)


def _rest_ratio(rate: Rate, cells: Confusion, level: float) -> Scored:
    own, others, share = _rest_of(rate, cells, level)
    found = own.over(others)
    with np.errstate(divide="ignore"):
        return Scored(*(1.0 / (share + (1.0 - share) / one) for one in found.arrays))


Blocks = Callable[[], Iterable[Floats]]

_KEPT_CELLS = 20_000_000
SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("subject", pa.string()),
        ("group", pa.string()),
        ("versus", pa.string()),
        ("versus_group", pa.string()),
        ("difference", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("ratio", pa.float64()),
        ("ratio_low", pa.float64()),
        ("ratio_high", pa.float64()),
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
        See `compare_rates`.

    Raises
    ------
    InputError
        When `reference` names no group, shapes do not fit or no row is complete.
    """
    counts = count(y_true, y_pred, groups, weights=weights, units=units)
    return compare_rates(counts, reference=reference, resampling=resampling, rng=rng)


def compare_rates(
    counts: Counts,
    *,
    reference: str | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> pa.Table:
    """Compare rates as `rate_comparisons` does, from counts.

    Parameters
    ----------
    counts : Counts
    reference, resampling, rng
        See `rate_comparisons`.

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
        When `reference` names no group.

    References
    ----------
    Newcombe 1998, Statistics in Medicine 17, 873-890; Donner & Zou 2012, Statistical Methods in
    Medical Research 21, 347-359; Bellamy et al. 2019 (average odds difference).
    """
    if reference is not None and reference not in counts.groups.names:
        names = ", ".join(repr(name) for name in counts.groups.names)
        raise InputError(f"reference={reference!r}: no such group; expected one of {names}")
    blocks = _blocks(counts, resampling, rng)
    return pa.concat_tables(
        _table(one, resampling, blocks)
        for compared in COMPARED
        for one in _comparisons(counts, compared, reference)
    )


def _comparisons(counts: Counts, compared: Compared, reference: str | None) -> Iterator[Comparison]:
    values = compared.values(Confusion.of(counts, counts.table[None]))[0]
    taking = np.where(counts.groups.usable, values, np.nan)
    none = np.isnan(taking).all(axis=1)
    towards = 1.0 if compared.worse == "lower" else -1.0
    for versus, sign in (("best", towards), ("worst", -towards)):
        score = np.where(np.isnan(taking), -np.inf, sign * taking)
        yield Comparison(counts, compared, versus, np.where(none, -1, score.argmax(axis=1)))
    if reference is not None:
        place = counts.groups.names.index(reference)
        yield Comparison(counts, compared, "reference", np.full(len(values), place))
    yield Comparison(counts, compared, "overall", None)


def _table(one: Comparison, resampling: Resampling | None, blocks: Blocks) -> pa.Table:
    counts, classes = one.counts, np.arange(len(one.counts.classes))
    table = counts.table[None]
    difference, ratio = (values[0] for values in one.differences(table))
    intervals = _intervals(one, resampling, blocks)
    ends = [np.where(np.isnan(difference), np.nan, end) for end in intervals[:2]]
    ends += [np.where(np.isnan(ratio), np.nan, end) for end in intervals[2:]]
    groups = np.arange(len(counts.groups))
    partner = np.full(len(classes), -1) if one.partner is None else one.partner
    # A group is not compared with itself.
    kept = np.flatnonzero((groups != partner[:, None]).ravel())
    subject, group = np.divmod(kept, len(groups))
    columns = [one_.ravel()[kept] for one_ in (difference, *ends[:2], ratio, *ends[2:])]
    n = one.compared.totals(Confusion.of(counts, table))[0].ravel()[kept]
    names = pa.array([*counts.groups.names, ""])
    return pa.Table.from_arrays(
        [
            pa.repeat(one.compared.name, len(kept)),
            pa.array(counts.classes).take(pa.array(subject)),
            names.take(pa.array(group)),
            pa.repeat(one.versus, len(kept)),
            names.take(pa.array(np.where(partner < 0, len(groups), partner)[subject])),
            *(pa.array(column) for column in columns),
            pa.array(np.rint(n).astype(np.int64)),
            pa.array(_reasons(one, difference, ratio).ravel()[kept]),
        ],
        schema=SCHEMA,
    )


def _blocks(counts: Counts, resampling: Resampling | None, rng: int) -> Blocks:
    """Return replicates for every comparison, drawn once where they fit the memory."""
    if counts.independent or not isinstance(resampling, Bootstrap):
        return tuple
    replicates = resampling.replicates
    if replicates * counts.table.size > _KEPT_CELLS:
        return lambda: counts.sampler.bootstrap(replicates, rng)
    kept = tuple(counts.sampler.bootstrap(replicates, rng))
    return lambda: kept


def _intervals(
    one: Comparison, resampling: Resampling | None, blocks: Blocks
) -> tuple[Floats, Floats, Floats, Floats]:
    if resampling is not None and one.counts.independent:
        difference, ratio = one.closed(resampling.level)
        return difference.low, difference.high, ratio.low, ratio.high
    if not isinstance(resampling, Bootstrap):
        nothing = np.full((len(one.counts.classes), len(one.counts.groups)), np.nan)
        return nothing, nothing, nothing, nothing
    drawn = zip(*(one.differences(tables) for tables in blocks()), strict=True)
    level = one.level(resampling.level)
    difference_ends, ratio_ends = (percentile(np.concatenate(some), level)[:2] for some in drawn)
    return *difference_ends, *ratio_ends


def _reasons(one: Comparison, difference: Floats, ratio: Floats) -> npt.NDArray[Any]:
    cells = Confusion.of(one.counts, one.counts.table[None])
    values = one.compared.values(cells)
    other = np.broadcast_to(one.other(values, one.counts.table[None])[0], difference.shape)
    undefined = "ratio: the rate compared with is 0"
    if len(one.compared.rates) > 1:
        undefined = "ratio: average odds are compared by their difference only"
    reason = np.where(np.isnan(ratio), undefined, "").astype(object)
    if one.partner is None:
        totals = one.compared.totals(cells)[0]
        alone = totals == totals.sum(axis=1, keepdims=True)
        reason[alone] = f"no other group has {one.compared.base.replace(' or no ', ' and ')}"
    reason[np.isnan(other)] = f"what it is compared with has no {one.compared.base}"
    reason[np.isnan(values[0])] = f"the group has no {one.compared.base}"
    return reason
