"""Intervals of effects and of their largest difference, from resampled units."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from equipoise.core.estimate import Ends, no_ends
from equipoise.metrics.retrieval.pools import Floats

_REPLICATES_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Simultaneous:
    """Ends of the largest difference of several effects: intervals of all pairs that hold at once.

    Attributes
    ----------
    differences, errors : ndarray, shape (pairs,)
        Of every pair of groups.
    largest : ndarray, shape (replicates,)
        Largest |difference − observed| / error over the pairs, in each replicate.
    freedom : int
        Units of the smallest group, less one.
    """

    differences: Floats
    errors: Floats
    largest: Floats
    freedom: int

    @classmethod
    def of(cls, effects: Floats, boot: Floats, freedom: int) -> Simultaneous | None:
        """Prepare the ends.

        Parameters
        ----------
        effects : ndarray, shape (groups,)
        boot : ndarray, shape (replicates, groups)
            NaN where groups do not meet.
        freedom : int

        Returns
        -------
        Simultaneous or None
            None where the smallest group has one unit, or replicates are too few.
        """
        kept = np.flatnonzero(~np.isnan(effects))
        drawn = boot[~np.isnan(boot[:, kept]).any(axis=1)][:, kept]
        if freedom < 1 or len(drawn) < 2:
            return None
        first, second = np.array([*combinations(range(len(kept)), 2)]).T
        differences = effects[kept][first] - effects[kept][second]
        errors, largest = np.empty(len(first)), np.zeros(len(drawn))
        # Some pairs at a time: among many groups there are thousands.
        size = max(1, _REPLICATES_AT_ONCE // len(drawn))
        for start in range(0, len(first), size):
            part = slice(start, start + size)
            apart = drawn[:, first[part]] - drawn[:, second[part]]
            errors[part] = apart.std(axis=0)
            moved = np.abs(apart - differences[part])
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(errors[part] > 0, moved / errors[part], 0.0)
            largest = np.maximum(largest, ratio.max(axis=1))
        return cls(differences, errors, largest, freedom)

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        critical = float(np.quantile(self.largest, level)) * widening(self.freedom, level)
        half = critical * self.errors
        sizes = np.abs(self.differences)
        return float(np.maximum(sizes - half, 0.0).max()), float((sizes + half).max())


def simultaneous(effects: Floats, boot: Floats | None, freedom: int) -> Ends:
    """Return the ends of the gap of one pool, none where there are no replicates."""
    found = None if boot is None else Simultaneous.of(effects, boot, freedom)
    return no_ends if found is None else found


def pointwise(
    effects: Floats, boot: Floats | None, freedom: int, level: float
) -> tuple[Floats, Floats]:
    """Return Student's ends of each effect alone, each (groups,)."""
    if boot is None or freedom < 1:
        return np.full(len(effects), np.nan), np.full(len(effects), np.nan)
    drawn = boot[~np.isnan(boot).all(axis=1)]
    error = drawn.std(axis=0) if len(drawn) > 1 else np.full(len(effects), np.nan)
    normal = float(special.ndtri((1.0 + level) / 2.0))
    half = normal * widening(freedom, level) * error
    return effects - half, effects + half


def widening(freedom: int, level: float) -> float:
    """Return how much wider than the bootstrap's an interval of few units is.

    The bootstrap's variance lacks the factor n / (n − 1), and its quantiles are those of known
    variances.
    """
    upper = (1.0 + level) / 2.0
    student = float(special.stdtrit(freedom, upper)) / float(special.ndtri(upper))
    return student * float(np.sqrt((freedom + 1) / freedom))
