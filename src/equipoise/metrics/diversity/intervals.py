"""Jackknife intervals of mean distances, exact and in linear time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special


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


def within(count: int, squares: float, value: float, factor: float = 1.0) -> Spread:
    """Return the spread of the mean distance within a set.

    Deleting row i leaves (|S|² - 2 S·u_i + 1 - (n - 1)) / ((n - 1)(n - 2)) as mean cosine: the
    jackknife variance of this U-statistic is linear in n. It never pairs an image with its own
    copy, as a bootstrap would, and is on average not below the true variance (Efron & Stein).

    Parameters
    ----------
    count : int
        Rows that are not zero, n.
    squares : float
        Sum over rows of (u_i·m - |m|²)², where m = S / n.
    value : float
    factor : float
        By which the value differs from the mean over pairs of different rows.
    """
    n = count
    if n < 3:
        return Spread(value, np.nan, np.nan)
    deviation = 2.0 * factor * n * np.sqrt(squares) / ((n - 1.0) * (n - 2.0))
    return Spread(value, float(np.sqrt((n - 1.0) / n) * deviation), n - 1.0)


def between(counts: Sequence[int], squares: Sequence[float], value: float) -> Spread:
    """Return the spread of a weighted mean of distances between independent sets.

    The statistic is linear in each set's mean vector, so its jackknife variance is the sum over
    sets of a variance of projections; the degrees of freedom are Welch and Satterthwaite's.

    Parameters
    ----------
    counts : sequence of int
        Rows of each set that are not zero.
    squares : sequence of float
        Sums over each set's rows of the squared deviations of their projections on what the set
        is compared with: the weighted sum of the other sets' mean vectors.
    value : float
    """
    if min(counts) < 2:
        return Spread(value, np.nan, np.nan)
    n = np.asarray(counts, dtype=np.float64)
    parts = np.asarray(squares) / (n - 1.0) / n
    variance = float(parts.sum())
    effective = variance**2 / float((parts**2 / (n - 1.0)).sum()) if variance else (n - 1.0).sum()
    return Spread(value, float(np.sqrt(variance)), float(effective))
