"""Hybrid score intervals of differences, ratios and means of independent proportions.

Variance estimates are recovered from the ends of each proportion's own interval (MOVER), so that
a share of 0 or 1 needs no correction. For two Wilson intervals the difference is Newcombe's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.intervals import wilson

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scored:
    """Values with the ends of their intervals, three arrays of one shape; NaN where unknown."""

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, successes: Floats, totals: Floats, level: float) -> Scored:
        """Return shares with their Wilson intervals."""
        value = np.where(totals > 0, successes / np.where(totals > 0, totals, 1.0), np.nan)
        return cls(value, *wilson(successes, totals, level))

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """The value, the low end and the high end."""
        return self.value, self.low, self.high

    def where(self, index: Any) -> Scored:
        """Return the values at an index or mask of the last axis."""
        return Scored(self.value[..., index], self.low[..., index], self.high[..., index])

    def known(self, kept: npt.NDArray[np.bool_]) -> Scored:
        """Return the values with NaN where they are not kept."""
        value, low, high = (
            np.where(kept, one, np.nan) for one in (self.value, self.low, self.high)
        )
        return Scored(value, low, high)

    def scaled(self, factor: Floats | float) -> Scored:
        """Return the values times a number of at least 0."""
        return Scored(factor * self.value, factor * self.low, factor * self.high)

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
