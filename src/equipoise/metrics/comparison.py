"""One rate of every group against another group or all rows: difference, ratio, intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.metrics.average_odds import NAME as AVERAGE_ODDS
from equipoise.metrics.confusion import (
    FALSE_POSITIVE_RATE,
    RATES,
    TRUE_POSITIVE_RATE,
    Confusion,
    Rate,
    shares,
)
from equipoise.metrics.counts import Counts
from equipoise.metrics.gaps import spread_level
from equipoise.metrics.hybrid import Scored

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
