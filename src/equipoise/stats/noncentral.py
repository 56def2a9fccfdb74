"""Intervals of effect sizes by inversion of the noncentral chi-squared distribution."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.stats.critical import Floats, check_level, normal, where

# Each step halves the bracket; after the last it is below the spacing of floats.
_STEPS = 56


def noncentral_chi2(
    chi2: npt.ArrayLike, df: npt.ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats]:
    """Interval of the noncentrality of a chi-squared statistic, by inverting its test.

    Parameters
    ----------
    chi2, df : array-like
        Observed statistics, at least 0, and their degrees of freedom, broadcast together.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray
        At least 0, and 0 where even no effect at all makes a statistic as large (or as small)
        likely enough; NaN where `chi2` is NaN or `df` is not positive.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a statistic is negative or infinite.

    References
    ----------
    Smithson 2003, Confidence Intervals, chapter 4; Steiger & Fouladi 1997.
    """
    check_level(level)
    x, freedom = np.broadcast_arrays(np.asarray(chi2, np.float64), np.asarray(df, np.float64))
    if (x < 0).any() or np.isinf(x).any():
        raise InputError("chi2: expected finite statistics of at least 0")
    known = ~np.isnan(x) & (freedom > 0)
    x, freedom = np.where(known, x, 0.0), np.where(known, freedom, 1.0)
    low = _noncentrality(x, freedom, (1.0 + level) / 2.0, level)
    high = _noncentrality(x, freedom, (1.0 - level) / 2.0, level)
    return where(known, low, high)


def effect_size_interval(
    chi2: npt.ArrayLike,
    n: npt.ArrayLike,
    df: npt.ArrayLike,
    divisor: npt.ArrayLike,
    level: float = 0.95,
    *,
    design_effect: npt.ArrayLike = 1.0,
) -> tuple[Floats, Floats]:
    """Plain interval of an effect size of a table: sqrt(noncentrality / (n divisor)).

    It presumes a weak association. Strong ones, and skewed margins, make it far too narrow (see
    docs/coverage.md): where the table itself is at hand use `association_interval`.

    Parameters
    ----------
    chi2, n, df : array-like
        Pearson's statistic, the table's total and its degrees of freedom (r - 1)(c - 1).
    divisor : array-like
        min(r, c) - 1 for Cramér's V, 1 for phi, sqrt((r - 1)(c - 1)) for Tschuprow's T.
    level : float
        Confidence level in (0, 1).
    design_effect : array-like
        How many times larger the variance is than with independent rows (clustered data): both
        `chi2` and `n` are divided by it, the first-order correction of Rao & Scott.

    Returns
    -------
    low, high : ndarray
        In [0, 1]; can reach 0. NaN where `n`, `df` or `divisor` is 0 or the statistic NaN.

    Raises
    ------
    InputError
        When `level` is outside (0, 1), a statistic is negative or infinite, or a design effect
        is not positive.

    References
    ----------
    Smithson 2003; Rao & Scott 1984, Annals of Statistics 12, 46-60.
    """
    inflation = np.asarray(design_effect, np.float64)
    if not (inflation > 0).all():
        raise InputError("design_effect: expected positive numbers; 1 for independent rows")
    size = np.asarray(n, np.float64) * np.asarray(divisor, np.float64) / inflation
    ends = noncentral_chi2(np.asarray(chi2, np.float64) / inflation, df, level)
    known = np.where(size > 0, size, np.nan)
    low, high = (np.sqrt(np.minimum(end / known, 1.0)) for end in ends)
    return low, high


def _noncentrality(x: Floats, df: Floats, probability: float, level: float) -> Floats:
    """Return the noncentrality at which P(X <= x) is `probability`, 0 where there is none."""
    # X is at least (Z + sqrt(noncentrality))^2, which bounds the root.
    low, high = np.zeros_like(x), np.sqrt(x) + normal(level)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        above = stats.ncx2.cdf(x, df, middle * middle) > probability
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(stats.chi2.cdf(x, df) > probability, ((low + high) / 2.0) ** 2, 0.0)
