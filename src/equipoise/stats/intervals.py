"""Every closed-form interval, with those of replicates, means and correlations.

Each function takes `level`, a confidence level in (0, 1), and returns two arrays (low, high).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from equipoise.core.errors import InputError
from equipoise.stats.association import Association, association_interval
from equipoise.stats.critical import Floats, check_level, normal, where
from equipoise.stats.noncentral import effect_size_interval, noncentral_chi2
from equipoise.stats.proportions import (
    Pair,
    newcombe,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)

__all__ = [
    "Association",
    "ClosedForm",
    "association_interval",
    "effect_size_interval",
    "fisher_z",
    "mean_t",
    "newcombe",
    "noncentral_chi2",
    "percentile",
    "simultaneous_gap",
    "simultaneous_minimum",
    "simultaneous_shortfall",
    "wilson",
]


@dataclass(frozen=True)
class ClosedForm:
    """The `ends` of an `Estimate`: an interval function of this package with its numbers.

    `ClosedForm(wilson, (12, 40))(0.9)` is the pair of floats that `wilson(12, 40, 0.9)` gives.
    """

    function: Callable[..., Pair]
    arguments: tuple[Any, ...]

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the ends at a confidence level."""
        low, high = self.function(*self.arguments, level=level)
        return float(low), float(high)


def percentile(
    replicates: npt.ArrayLike, level: float = 0.95
) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Percentile interval of bootstrap replicates.

    Parameters
    ----------
    replicates : array-like, shape (replicates, ...)
        NaN where the statistic could not be computed: ignored, and counted.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        Linear between order statistics; beside an infinite one the outer of the two.
    ignored : ndarray of int, shape (...)
        Replicates that were NaN.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or there is no replicate.
    """
    values = np.sort(np.asarray(replicates, dtype=np.float64), axis=0)
    check_level(level)
    if values.ndim == 0 or not len(values):
        raise InputError("replicates: none given; expected shape (replicates, ...)")
    ignored = np.isnan(values).sum(axis=0)
    last = np.maximum(len(values) - ignored - 1, 0)
    low = _order_statistic(values, last * (1.0 - level) / 2.0, outer=np.floor)
    high = _order_statistic(values, last * (1.0 + level) / 2.0, outer=np.ceil)
    return low, high, ignored


def mean_t(values: npt.ArrayLike, level: float = 0.95) -> Pair:
    """Student's t interval of a mean along axis 0; NaN values ignored, NaN ends below two.

    Parameters
    ----------
    values : array-like, shape (n, ...)
    level : float
        Confidence level in (0, 1).

    Raises
    ------
    InputError
        When `level` is outside (0, 1).
    """
    array = np.asarray(values, dtype=np.float64)
    check_level(level)
    present = ~np.isnan(array)
    n = present.sum(axis=0)
    known = np.maximum(n, 1)
    mean = np.where(present, array, 0.0).sum(axis=0) / known
    squares = np.where(present, (array - mean) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum(n - 1, 1)
    half = special.stdtrit(freedom, (1.0 + level) / 2.0) * np.sqrt(squares / freedom / known)
    return where(n >= 2, mean - half, mean + half)


def fisher_z(
    r: npt.ArrayLike,
    n: npt.ArrayLike,
    level: float = 0.95,
    *,
    kind: Literal["pearson", "spearman"] = "pearson",
) -> Pair:
    """Interval of a correlation by Fisher's z.

    Parameters
    ----------
    r, n : array-like
        Correlation in [-1, 1] and number of pairs.
    level : float
        Confidence level in (0, 1).
    kind : "pearson" or "spearman"
        The variance of z is 1/(n - 3) for Pearson's r and (1 + r²/2)/(n - 3) for Spearman's.

    Returns
    -------
    low, high : ndarray
        NaN below four pairs and at |r| = 1, where z is infinite.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a correlation outside [-1, 1].

    References
    ----------
    Bonett & Wright 2000, Psychometrika 65, 23-28.
    """
    r, n = np.asarray(r, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z = normal(level)
    if (np.abs(r) > 1.0 + 1e-12).any():
        raise InputError("r: expected correlations between -1 and 1")
    inflation = 1.0 + r * r / 2.0 if kind == "spearman" else 1.0
    known = (n > 3) & (np.abs(r) < 1.0)
    half = z * np.sqrt(inflation / np.where(known, n - 3.0, 1.0))
    centre = np.arctanh(np.where(known, r, 0.0))
    return where(known, np.tanh(centre - half), np.tanh(centre + half))


def _order_statistic(values: Floats, place: Floats, outer: Callable[[Floats], Floats]) -> Floats:
    """Interpolate sorted values (n, ...) at fractional places (...)."""
    below, above = (
        np.take_along_axis(values, step(place).astype(np.int64)[None], axis=0)[0]
        for step in (np.floor, np.ceil)
    )
    between = np.isfinite(below) & np.isfinite(above)
    ends = np.where(between, above, 0.0) - np.where(between, below, 0.0)
    line = np.where(between, below, 0.0) + ends * (place - np.floor(place))
    return np.where(between, line, below if outer is np.floor else above)
