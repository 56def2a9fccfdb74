"""Intervals of effect sizes, and of a mean of them, which chance alone keeps away from 0.

Each estimate sqrt(χ² / (n·d)) is, over samples, a scaled noncentral chi variable: its mean lies
above the true effect size, most where that is near 0. A percentile bootstrap adds the same bias
once more and covers a mean near 0 almost never. Here the mean is inverted instead: the interval
holds the true means under which the observed mean is not surprising.

What the observed mean says of the true one depends on how effects are spread over the classes.
The most it can mean is found with equal effects: the expected estimate is convex in the true
effect size, so that by Jensen's inequality equal effects have the smallest bias. The least it
can mean is found with uneven ones: those that the estimates show without their expected bias,
and those of the classes alone whose effect is beyond doubt, all others being 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import chdtrc, gammaln, hyp1f1, ndtri

from equipoise.stats.noncentral import effect_size_interval

Floats = npt.NDArray[np.float64]

# Where Kummer's function gives the mean of a noncentral chi variable without overflow.
_EXACT_DF, _EXACT_NONCENTRALITY = 30.0, 1e4

# Probability that chance alone makes any class count as one of the few that have an effect.
_FEW = 0.05


def effect_interval(
    chi2: Floats, n: Floats, df: Floats, smaller: Floats, largest: Floats, level: float
) -> tuple[Floats, Floats]:
    """Interval of an effect size in [0, largest], by inversion of the noncentral chi-square.

    Parameters
    ----------
    chi2, n, df : ndarray, shape (classes,)
        As `effect_size_interval` takes them, divided by the design effect where there is one.
    smaller : ndarray
        min(rows, columns) - 1, the divisor of Cramér's V.
    largest : ndarray
        The most that the effect size can be, as a multiple of V: 1 for V itself.
    level : float
    """
    low, high = effect_size_interval(chi2, n, df, smaller, level)
    return low * largest, high * largest


@dataclass(frozen=True, eq=False)
class MeanEffect:
    """Ends of the interval of a mean of effect sizes, at any level.

    Attributes
    ----------
    chi2, n, df, smaller, largest : ndarray, shape (classes,)
        As `effect_interval` takes them.
    inflation : float
        Variance of the mean relative to that of independent classes.
    """

    chi2: Floats
    n: Floats
    df: Floats
    smaller: Floats
    largest: Floats
    inflation: float = 1.0

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        if len(self.chi2) == 1:
            ends = (self.chi2, self.n, self.df, self.smaller, self.largest)
            single = effect_interval(*ends, level=level)
            return float(single[0][0]), float(single[1][0])
        unit = self.largest / np.sqrt(self.n * self.smaller)
        observed = float((unit * np.sqrt(self.chi2)).mean())
        z = float(ndtri(0.5 + level / 2.0))
        most = observed + z * float(np.sqrt(self.inflation * (unit**2).sum())) / len(unit)
        equal = self._solve(np.ones_like(unit), unit, -z, observed, most)
        uneven = [self._solve(p, unit, z, observed, most) for p in self._uneven(unit)]
        high = min(equal, float(self.largest.mean()))
        return (min(high, *uneven) if uneven else 0.0), high

    def _uneven(self, unit: Floats) -> list[Floats]:
        """Return patterns of uneven effects with mean 1; none where no estimate exceeds chance."""
        effects = unit * np.sqrt((self.chi2 - self.df).clip(0.0))
        beyond_doubt = chdtrc(self.df, self.chi2) < _FEW / len(unit)
        patterns = (effects, np.where(beyond_doubt, effects, 0.0))
        return [pattern / pattern.mean() for pattern in patterns if pattern.any()]

    def _solve(
        self, pattern: Floats, unit: Floats, z: float, observed: float, most: float
    ) -> float:
        def surprise(mean: float) -> float:
            expected, variance = chi_moments(self.df, (mean * pattern / unit) ** 2)
            spread = np.sqrt(self.inflation * (unit**2 * variance).sum()) / len(unit)
            return float((unit * expected).mean() + z * spread) - observed

        return _root(surprise, most)


def _root(function: Callable[[float], float], most: float) -> float:
    """Return where an increasing function crosses 0 in [0, most]; an end where it does not."""
    if function(0.0) >= 0.0:
        return 0.0
    if function(most) <= 0.0:
        return most
    return float(brentq(function, 0.0, most, xtol=1e-12))


def chi_moments(df: Floats, noncentrality: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the square root of noncentral chi-square variables.

    Parameters
    ----------
    df, noncentrality : ndarray, shape (k,)
    """
    exact = (df <= _EXACT_DF) & (noncentrality <= _EXACT_NONCENTRALITY)
    near = np.where(exact, noncentrality, 0.0)
    mean = _chi_mean(df) * hyp1f1(-0.5, np.where(exact, df, 1.0) / 2.0, -near / 2.0)
    # Beyond, Patnaik's multiple of a central variable, which has the same two moments squared.
    multiple = (df + 2.0 * noncentrality) / (df + noncentrality)
    matched = (df + noncentrality) ** 2 / (df + 2.0 * noncentrality)
    mean = np.where(exact, mean, np.sqrt(multiple) * _chi_mean(matched))
    # Half of the multiple is the limit; the difference of squares has lost its digits by then.
    variance = np.where(matched > 1e6, multiple / 2.0, df + noncentrality - mean**2)
    return mean, variance.clip(0.0, 1.0)


def _chi_mean(df: Floats) -> Floats:
    found: Floats = np.sqrt(2.0) * np.exp(gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0))
    return found
