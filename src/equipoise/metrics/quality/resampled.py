"""What quality metrics resample: units of rows, and shares of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, no_ends
from equipoise.core.labels import encode
from equipoise.stats.intervals import percentile, wilson
from equipoise.stats.poisson import unit_counts
from equipoise.stats.resampling import Bootstrap, Resampling
from equipoise.stats.streams import unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

SPREAD = "resampling spread"


@dataclass(frozen=True, eq=False)
class Units:
    """Rows that are resampled together.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
    names : sequence of str
    given : bool
        Whether units were named; otherwise every row is one.
    """

    codes: Indices
    names: Sequence[str]
    given: bool

    @classmethod
    def of(cls, units: Any, count: int) -> Units:
        """Return the units of `count` rows; a row without a unit is one by itself.

        Raises
        ------
        InputError
            When there is not one unit per row.
        """
        if units is None:
            return cls(np.arange(count), [f"row {place}" for place in range(count)], given=False)
        codes, names = encode(units, what="units")
        if len(codes) != count:
            raise InputError(f"units: {len(codes)} rows; expected {count}")
        alone = np.flatnonzero(codes < 0)
        found = codes.astype(np.int64)
        found[alone] = len(names) + np.arange(len(alone))
        return cls(found, [*names, *(f"row {place}" for place in alone.tolist())], given=True)

    @property
    def name(self) -> str:
        """What is resampled, in a word."""
        return "unit" if self.given else "row"

    def times(self, resampling: Bootstrap, seed: int) -> npt.NDArray[np.int64]:
        """Return how often each unit counts in each replicate, (replicates, units)."""
        return unit_counts(seed, unit_keys(self.names), range(resampling.replicates))

    def sums(self, values: Floats) -> Floats:
        """Return the sum of a number per row over each unit, shape (units,)."""
        found = np.bincount(self.codes, weights=values, minlength=len(self.names))
        return found.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ShareEnds:
    """Interval of a share: Wilson's, and never narrower than that of resampled units.

    Attributes
    ----------
    hits, total : float
    replicates : ndarray or None
        Shares of resampled units.
    """

    hits: float
    total: float
    replicates: Floats | None = None

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end; NaN without rows."""
        if not self.total:
            return math.nan, math.nan
        low, high = (float(one) for one in wilson(self.hits, self.total, level))
        if self.replicates is None:
            return low, high
        below, above, _ = percentile(self.replicates, level)
        return min(low, float(below)), max(high, float(above))


@dataclass(frozen=True, eq=False)
class MovedPercentile:
    """Percentiles of replicates whose mean was moved to the value, not below a least one."""

    replicates: Floats
    least: float

    @classmethod
    def around(cls, value: float, replicates: Floats, *, least: float) -> Ends:
        """Return the ends of replicates around a value; none of fewer than two."""
        known = replicates[np.isfinite(replicates)]
        return cls(known - known.mean() + value, least) if len(known) > 1 else no_ends

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        low, high, _ = percentile(self.replicates, level)
        return max(self.least, float(low)), float(high)


def share_ends(
    hits: npt.NDArray[np.bool_],
    kept: npt.NDArray[np.bool_],
    units: Units,
    resampling: Resampling | None,
    seed: int,
) -> ShareEnds | None:
    """Return the interval of the share of `hits` among the rows that are `kept`."""
    if resampling is None:
        return None
    total, found = float(kept.sum()), float((hits & kept).sum())
    if not units.given or not isinstance(resampling, Bootstrap) or not total:
        return ShareEnds(found, total)
    # Units draw by their names, so those that are not asked for need not be drawn.
    present, codes = np.unique(units.codes[kept], return_inverse=True)
    here = Units(codes, [units.names[one] for one in present.tolist()], given=True)
    times = here.times(resampling, seed).astype(np.float64)
    numbers = np.stack([here.sums(hits[kept].astype(float)), here.sums(np.ones(int(total)))])
    drawn = np.einsum("ru,ku->kr", times, numbers)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ShareEnds(found, total, drawn[0] / drawn[1])


def share_method(units: Units, resampling: Resampling | None) -> str:
    """Say how the interval of a share was made."""
    if resampling is None:
        return "none: resampling=None gives the value alone"
    if units.given and isinstance(resampling, Bootstrap):
        return f"Wilson, widened to the percentiles of {resampling.replicates} resamples of units"
    return "Wilson"
