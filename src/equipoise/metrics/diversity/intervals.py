"""Jackknife intervals of mean distances, exact and in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from equipoise.metrics.diversity.sums import Floats, UnitSums, projections

Array = npt.NDArray[np.generic]


@dataclass(frozen=True)
class Spread:
    """The ends of a mean distance: value ± t · standard error, within [0, 2].

    Attributes
    ----------
    value, error, freedom : float
        Estimate, jackknife standard error and degrees of freedom of Student's t; NaN when a
        set is too small for them.
    """

    value: float
    error: float
    freedom: float

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        half = float(special.stdtrit(self.freedom, (1.0 + level) / 2.0)) * self.error
        return float(np.clip(self.value - half, 0, 2)), float(np.clip(self.value + half, 0, 2))


def within(embeddings: Array, sums: UnitSums, value: float, factor: float = 1.0) -> Spread:
    """Return the spread of the mean distance within a set.

    Deleting row i leaves (|S|² - 2 S·u_i + 1 - (n - 1)) / ((n - 1)(n - 2)) as mean cosine: the
    jackknife variance of this U-statistic is linear in n. It never pairs an image with its own
    copy, as a bootstrap would, and is on average not below the true variance (Efron & Stein).

    Parameters
    ----------
    embeddings : ndarray, shape (n, d)
    sums : UnitSums
        Of the same embeddings.
    value : float
    factor : float
        By which the value differs from the mean over pairs of different rows.
    """
    n = sums.count
    if n < 3:
        return Spread(value, np.nan, np.nan)
    along = projections(embeddings, sums.total)
    deviations = 2.0 * factor * (along - along.mean()) / ((n - 1.0) * (n - 2.0))
    return Spread(value, float(np.sqrt((n - 1.0) / n * (deviations**2).sum())), n - 1.0)


def between(
    sets: Sequence[Array], sums: Sequence[UnitSums], weights: Floats, value: float
) -> Spread:
    """Return the spread of a weighted mean of distances between independent sets.

    The statistic is linear in each set's mean vector, so its jackknife variance is the sum over
    sets of a variance of projections; the degrees of freedom are Welch and Satterthwaite's.

    Parameters
    ----------
    sets : sequence of ndarray
    sums : sequence of UnitSums
    weights : ndarray, shape (sets, sets)
        Symmetric, 0 on the diagonal: weight of each pair, so that Σ_{a<b} is 1.
    value : float
    """
    if min(one.count for one in sums) < 2:
        return Spread(value, np.nan, np.nan)
    directions = weights @ np.stack([one.mean for one in sums])
    parts = np.array(
        [
            projections(rows, direction).var(ddof=1) / one.count
            for rows, direction, one in zip(sets, directions, sums, strict=True)
        ]
    )
    variance = float(parts.sum())
    freedom = np.array([one.count - 1.0 for one in sums])
    effective = variance**2 / float((parts**2 / freedom).sum()) if variance else freedom.sum()
    return Spread(value, float(np.sqrt(variance)), float(effective))
