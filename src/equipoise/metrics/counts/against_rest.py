"""Each group's share of rows against that of all other groups together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from equipoise.core.arrays import Floats
from equipoise.stats.intervals import Scored, scored

_BAND = 0.025


@dataclass(frozen=True, eq=False)
class AgainstRest:
    """Shares of groups against the rest, arrays (..., groups); NaN where one side has no rows.

    Attributes
    ----------
    rest : Scored
        The share of all other groups with its Wilson interval.
    difference : Scored
        The group's share minus that of the rest, with Newcombe's interval.
    chance : ndarray
        Half the width of the middle 95 % of the difference when rows exchange their groups: a
        normal band around 0 with the exact variance.
    p_value : ndarray
        Exact, two-sided: twice the smaller tail of the hypergeometric distribution.
    """

    rest: Scored
    difference: Scored
    chance: Floats
    p_value: Floats

    @classmethod
    def of(cls, successes: Floats, n: Floats, level: float = 0.95) -> AgainstRest:
        """Compare every group with all others pooled.

        Parameters
        ----------
        successes, n : ndarray, shape (..., groups)
            Whole counts; 0 of 0 where a group takes no part.
        level : float
            Confidence level of the intervals, in (0, 1).
        """
        rest, rest_n = all_others(successes), all_others(n)
        own, others = scored(successes, n, level), scored(rest, rest_n, level)
        total, every = successes + rest, n + rest_n
        drawn = stats.hypergeom(every, total, n)
        with np.errstate(divide="ignore", invalid="ignore"):
            tails = np.minimum(drawn.cdf(successes), drawn.sf(successes - 1.0))
            band = -special.ndtri(_BAND) * drawn.std() * (1.0 / n + 1.0 / rest_n)
        known = (n > 0) & (rest_n > 0)
        chance, p = (np.where(known, one, np.nan) for one in (band, np.minimum(2.0 * tails, 1.0)))
        return cls(others, own.minus(others), chance, p)


def all_others(counts: Floats) -> Floats:
    """Return the sums over all other groups, (..., groups)."""
    return np.asarray(counts.sum(axis=-1, keepdims=True) - counts)
