"""How far apart the numbers of two sets are, in standard deviations over both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# A standard deviation that is rounding only, relative to the largest score.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class TwoSets:
    """Numbers of two sets, and how far apart these are in standard deviations."""

    x: Floats
    y: Floats
    ddof: int

    @cached_property
    def means(self) -> tuple[float, float]:
        """Mean of each set."""
        return _mean(self.x), _mean(self.y)

    @cached_property
    def spread(self) -> float:
        """Standard deviation over both sets; 0 where it is rounding only."""
        pooled = np.sort(np.concatenate([self.x, self.y]))
        if len(pooled) <= self.ddof:
            return 0.0
        apart = pooled - pooled.sum() / len(pooled)
        found = math.sqrt((apart * apart).sum() / (len(pooled) - self.ddof))
        return found if found > _ROUNDING * float(max(pooled[-1], -pooled[0])) else 0.0

    @cached_property
    def effect_size(self) -> float:
        """Difference in means in standard deviations; NaN where these are 0."""
        first, second = self.means
        return (first - second) / self.spread if self.spread else float("nan")

    @property
    def reason(self) -> str:
        """Why there is no effect size."""
        return "" if self.spread else "all scores are equal: their standard deviation is 0"


def _mean(values: Floats) -> float:
    # Sorted, so that the last bit does not depend on the order of rows.
    return float(np.sort(values).sum() / len(values))


def weighted_effects(x: Floats, y: Floats, wx: Floats, wy: Floats, ddof: int) -> Floats:
    """Effect size, both means and the difference of sums, shape (replicates, 4)."""
    nx, ny = wx.sum(axis=1), wy.sum(axis=1)
    sums = (wx * x).sum(axis=1), (wy * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[0] / nx, sums[1] / ny
        centre = ((sums[0] + sums[1]) / (nx + ny))[:, None]
        squares = (wx * (x - centre) ** 2).sum(axis=1) + (wy * (y - centre) ** 2).sum(axis=1)
        spread = np.sqrt(squares / np.maximum(nx + ny - ddof, 0))
        flat = spread <= _ROUNDING * max(np.abs(x).max(), np.abs(y).max())
        effect = (means[0] - means[1]) / np.where(flat, np.nan, spread)
    return np.stack([effect, *means, sums[0] - sums[1]], axis=1)
