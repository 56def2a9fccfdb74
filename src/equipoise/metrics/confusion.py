"""Confusion rates of every class and group, one class against the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.groups import Groups
from equipoise.metrics.counts import Counts, Null

Floats = npt.NDArray[np.float64]

# A difference of sums of soft counts below this share of the larger sum is rounding.
_ROUNDING = 1e-9


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

    @classmethod
    def observed(cls, counts: Counts) -> Confusion:
        """Sum the observed table, once, without giving up the sums of the latest draws."""
        return counts.once(counts.table, cls._sum_one)

    @classmethod
    def _sum_one(cls, counts: Counts, table: Floats) -> Confusion:
        return cls._sum(counts, table[None])

    def shares(self, rate: Rate) -> Floats:
        """Return a rate of every class and group, (r, classes, groups); NaN without rows."""
        if rate not in self._shares:
            self._shares[rate] = shares(*rate.counts(self))
        return self._shares[rate]

    @cached_property
    def _shares(self) -> dict[Rate, Floats]:
        return {}

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


def _rest(whole: Floats, part: Floats) -> Floats:
    rest = whole - part
    return np.where(rest > _ROUNDING * whole, rest, 0.0)


@dataclass(frozen=True)
class Rate:
    """A share of rows, per class and group.

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
        What the denominator counts, in words.
    counts : callable
        Numerator and denominator from a `Confusion`, each (r, classes, groups).
    """

    name: str
    null: Null
    worse: Literal["lower", "higher"]
    base: str
    counts: Callable[[Confusion], tuple[Floats, Floats]]


SELECTION_RATE = Rate(
    "selection_rate", "rows", "lower", "rows", lambda cells: (cells.prediction, cells.total)
)
ACCURACY = Rate(
    "accuracy", "rows", "lower", "rows", lambda cells: (cells.both + cells.neither, cells.total)
)
TRUE_POSITIVE_RATE = Rate(
    "true_positive_rate",
    "class",
    "lower",
    "rows of the class",
    lambda cells: (cells.both, cells.truth),
)
FALSE_NEGATIVE_RATE = Rate(
    "false_negative_rate",
    "class",
    "higher",
    "rows of the class",
    lambda cells: (cells.missed, cells.truth),
)
FALSE_POSITIVE_RATE = Rate(
    "false_positive_rate",
    "class",
    "higher",
    "rows of other classes",
    lambda cells: (cells.wrong, cells.others),
)
TRUE_NEGATIVE_RATE = Rate(
    "true_negative_rate",
    "class",
    "lower",
    "rows of other classes",
    lambda cells: (cells.neither, cells.others),
)
PRECISION = Rate(
    "precision",
    "prediction",
    "lower",
    "predictions of the class",
    lambda cells: (cells.both, cells.prediction),
)
NEGATIVE_PREDICTIVE_VALUE = Rate(
    "negative_predictive_value",
    "prediction",
    "lower",
    "predictions of other classes",
    lambda cells: (cells.neither, cells.unsaid),
)

RATES = (
    TRUE_POSITIVE_RATE,
    FALSE_POSITIVE_RATE,
    TRUE_NEGATIVE_RATE,
    FALSE_NEGATIVE_RATE,
    PRECISION,
    NEGATIVE_PREDICTIVE_VALUE,
    SELECTION_RATE,
    ACCURACY,
)


def enough(totals: Floats, groups: Groups) -> npt.NDArray[np.bool_]:
    """Whether each denominator has the minimum size of groups, as rounded where it is shown."""
    if groups.min_size <= 1:
        return np.ones(totals.shape, dtype=bool)
    return np.asarray(np.rint(totals) >= groups.min_size)


def comparable(counts: Counts, rate: Rate, values: Floats) -> Floats:
    """Return values (r, classes, groups), NaN where the observed denominator is too small.

    A rate of a handful of rows is 0 or 1 by chance, and would be the largest or smallest of all
    groups; draws leave out what the observed table leaves out.
    """
    if counts.groups.min_size <= 1:
        return values
    _, totals = rate.counts(Confusion.observed(counts))
    return np.where(enough(totals[0], counts.groups), values, np.nan)


def shares(successes: Floats, totals: Floats) -> Floats:
    """Divide, NaN where the total is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(totals > 0, successes / totals, np.nan)
