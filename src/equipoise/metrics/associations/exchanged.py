"""What exchanging the members of two sets gave: p-values and chance levels of their difference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Chance, Harm
from equipoise.metrics.associations.subsets import count_at_least
from equipoise.stats.chance import PValue, band, mirrored_band, mirrored_p_value, p_value

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]

# Differences of sums that are rounding only, relative to the sum of absolute numbers.
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Exchanged:
    """Differences in means of two sets, observed and with members exchanged.

    Attributes
    ----------
    observed : ndarray, shape (k,)
        Mean of the first set minus mean of the second, of each of k numbers.
    drawn : ndarray, shape (m, k)
        With members exchanged; of partitions that are mirrored, the first half.
    enumerated : bool
        Whether every partition stands there once.
    partitions : int
        How many partitions there are.
    text : str
        How the null was drawn.
    scale : float
        Sum of absolute numbers over both sets, in units of the differences: what ties refer to.
    halves : tuple of (ndarray of int64, int, int), or None
        Whole numbers, size of the first set and its sum, where p can be counted exactly.
    resolution : float
        The finest p-value that matters; 0 where draws are not approximated.
    mirrored : bool
        Whether `drawn` lacks as many rows, minus its own from the last to the first: those of the
        mirror images that partitions into sets of equal sizes have.
    """

    observed: Floats
    drawn: Floats
    enumerated: bool
    partitions: int
    text: str
    scale: float
    halves: tuple[Whole, int, int] | None = None
    resolution: float = 0.0
    mirrored: bool = False

    @cached_property
    def null(self) -> Floats:
        """All differences with members exchanged, shape (partitions, k)."""
        return np.concatenate([self.drawn, -self.drawn[::-1]]) if self.mirrored else self.drawn

    def scaled(self, factor: float, shift: float) -> Exchanged:
        """Return the same exchange of factor * difference + shift, factor > 0."""
        mirrored = self.mirrored and shift == 0.0
        return replace(
            self,
            observed=self.observed * factor + shift,
            drawn=(self.drawn if mirrored else self.null) * factor + shift,
            scale=self.scale * factor,
            mirrored=mirrored,
        )

    def chance(self, factor: float, method: str) -> Chance:
        """Return the chance level of a multiple of the single number (k = 1)."""
        # Of partitions that are enumerated, each counts once, as one that is drawn does.
        draws = self.drawn[:, 0] * factor
        return (mirrored_band if self.mirrored else band)(draws, method=method)

    def p_value(self, harm: Harm) -> PValue:
        """Return the p-value of the single number (k = 1), exact where that is feasible."""
        if self.mirrored:
            observed = float(self.observed[0])
            return mirrored_p_value(self.drawn[:, 0], observed, harm, scale=self.scale)
        if self.halves is None:
            return self.p_value_of(self.null[:, 0], float(self.observed[0]), harm)
        values, size, first = self.halves
        tie = math.floor(_TIE * int(np.abs(values).sum()))
        total = math.comb(len(values), size)
        tails = {
            "higher": lambda: count_at_least(values, size, first - tie),
            "lower": lambda: total - count_at_least(values, size, first + tie + 1),
        }
        sides = ("higher", "lower") if harm == "either" else (harm,)
        extreme = min(tails[side]() for side in sides)
        return PValue(
            min(1.0, len(sides) * extreme / total), "exact, partitions counted in two halves"
        )

    def p_value_of(self, null: Floats, observed: float, harm: Harm) -> PValue:
        """Return the p-value of a number computed from each row of `null`."""
        weights = 1.0 if self.enumerated else None
        return p_value(
            null, observed, harm, weights=weights, resolution=self.resolution, scale=self.scale
        )
