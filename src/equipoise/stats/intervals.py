"""Closed-form intervals of proportions, their differences and extremes, means and correlations.

Each function takes `level`, a confidence level in (0, 1), and returns two arrays (low, high) of
the broadcast shape. Counts may be fractions (soft counts); where `n` is 0 both ends are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]


def check_level(level: float) -> None:
    """Raise InputError unless a confidence level lies strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise InputError(f"level={level}: expected a confidence level between 0 and 1")


def normal(level: float) -> Floats:
    """Return the two-sided normal critical value, 1.96 at level 0.95."""
    check_level(level)
    return np.asarray(-special.ndtri((1.0 - level) / 2.0))


@cache
def studentized_range(level: float, groups: int) -> float:
    """Return the quantile of the range of independent normals, as a multiple of sqrt(2).

    That is the critical value of a difference of two of `groups` means; with two groups, the
    normal one. Kept once computed: it takes milliseconds.
    """
    quantile: float = stats.studentized_range.ppf(level, groups, np.inf)
    return quantile / math.sqrt(2.0)


def by_count(
    critical: Callable[[float, int], float], counts: npt.NDArray[np.int64], level: float
) -> Floats:
    """Return a critical value for each number of groups, of which at least two are assumed."""
    distinct, place = np.unique(np.maximum(counts, 2), return_inverse=True)
    found = np.array([critical(level, count) for count in distinct.tolist()])
    return found[place].reshape(counts.shape)


def where(known: npt.NDArray[np.bool_], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return both ends with NaN where nothing is known."""
    return np.where(known, low, np.nan), np.where(known, high, np.nan)


Pair = tuple[Floats, Floats]

# Pairs of groups that are compared at once.
_PAIRS = 1_000_000


def wilson(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Pair:
    """Score interval of a proportion.

    Parameters
    ----------
    successes, n : array-like
        Counts, broadcast together.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray
        In [0, 1]; NaN where `n` is 0.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].

    References
    ----------
    Wilson 1927, JASA 22, 209-212.
    """
    counts = _counts(successes, n)
    return _score(*counts, normal(level))


def newcombe(
    s1: npt.ArrayLike,
    n1: npt.ArrayLike,
    s2: npt.ArrayLike,
    n2: npt.ArrayLike,
    level: float = 0.95,
) -> Pair:
    """Hybrid score interval of a difference of two independent proportions, p1 - p2.

    Parameters
    ----------
    s1, n1, s2, n2 : array-like
        Successes and trials of both samples, broadcast together.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray
        In [-1, 1]; NaN where `n1` or `n2` is 0.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].

    References
    ----------
    Newcombe 1998, Statistics in Medicine 17, 873-890, method 10.
    """
    first, second, z = _counts(s1, n1), _counts(s2, n2), normal(level)
    return _hybrid(_Scored.of(*first, z), _Scored.of(*second, z))


def simultaneous_gap(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Pair:
    """Interval of the largest minus the smallest of several proportions, max p - min p.

    The low end is the largest low end of all pairwise Newcombe intervals at the critical value
    of the studentized range, so that it exceeds 0 by chance at the stated rate only, whatever
    the number of groups. The high end is the largest high end of the pairwise intervals at the
    normal critical value: it can be too low only when the interval of the one pair of groups
    that are truly farthest apart is, so it pays no price for the number of pairs.

    Parameters
    ----------
    successes, n : array-like, shape (..., groups)
        Counts; a group with n = 0 is ignored.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        In [0, 1]; NaN with fewer than two groups.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].

    References
    ----------
    Agresti, Bini, Bertaccini & Ryu 2008, Biometrics 64, 1270-1275 (pairwise intervals from
    scores and the studentized range); Newcombe 1998.
    """
    check_level(level)
    s, n = _counts(successes, n)
    groups = (n > 0).sum(axis=-1)
    wide = _Scored.of(s, n, by_count(studentized_range, groups, level)[..., None])
    narrow = _Scored.of(s, n, normal(level))
    low, high = np.zeros(groups.shape), np.zeros(groups.shape)
    many = n.shape[-1]
    step = max(1, _PAIRS // max(n.size, 1))
    for start in range(0, many, step):
        some = slice(start, start + step)
        # Whom a group is not compared with: itself, and those without rows, which are NaN.
        apart = np.arange(many)[some, None] != np.arange(many)
        lows = _hybrid_low(wide.column(some), wide.row())
        highs = _hybrid_high(narrow.column(some), narrow.row())
        for end, ends in ((low, lows), (high, highs)):
            reached = np.fmax.reduce(np.where(apart, ends, np.nan), axis=(-2, -1), initial=0.0)
            np.fmax(end, reached, out=end)
    return where(groups >= 2, low, high)


def simultaneous_shortfall(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Pair:
    """Interval of how far the worst group falls short of the whole: overall - min p.

    The whole is the average with the groups' shares w of the rows held fixed, so that group g
    falls short by (1 - w)(p of the others - p of g): a Newcombe interval, scaled. The low end
    is corrected for the number of groups (Bonferroni) and uses the groups' exact (Clopper-
    Pearson) ends, because Wilson's fail far out in the tails; the high end needs no correction,
    as in `simultaneous_gap`.

    Parameters
    ----------
    successes, n : array-like, shape (..., groups)
        Counts; a group with n = 0 is ignored.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        In [0, 1]; NaN with fewer than two groups.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].
    """
    check_level(level)
    s, n = _counts(successes, n)
    groups = (n > 0).sum(axis=-1)
    all_s = np.nansum(s, axis=-1, keepdims=True)
    all_n = n.sum(axis=-1, keepdims=True)
    rest = _counts(np.where(n > 0, np.clip(all_s - s, 0.0, all_n - n), 0.0), all_n - n)
    above = ((1.0 - level) / np.maximum(groups, 2))[..., None]
    z = -special.ndtri(above)
    exact = _Scored(_rate(s, n), _score(s, n, z)[0], _exact_high(s, n, above))
    lows, _ = _hybrid(_Scored.of(*rest, z), exact)
    z = normal(level)
    _, highs = _hybrid(_Scored.of(*rest, z), _Scored.of(s, n, z))
    share = 1.0 - n / np.maximum(all_n, 1.0)
    low = np.fmax.reduce(share * lows, axis=-1, initial=0.0)
    high = np.fmax.reduce(share * highs, axis=-1, initial=0.0)
    return where(groups >= 2, low, high)


def simultaneous_minimum(successes: npt.ArrayLike, n: npt.ArrayLike, level: float = 0.95) -> Pair:
    """Interval of the smallest of several proportions, min p.

    The smallest observed rate is biased downward, more so with more groups. The high end is the
    smallest of the groups' exact (Clopper-Pearson) ends corrected for their number (Šidák): far
    out in the tails Wilson's fail. The low end, the smallest of the uncorrected Wilson ends, can
    be too high only when that of the truly worst group is. One group alone has its Wilson
    interval.

    Parameters
    ----------
    successes, n : array-like, shape (..., groups)
        Counts; a group with n = 0 is ignored.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        In [0, 1]; NaN without a group.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].
    """
    check_level(level)
    s, n = _counts(successes, n)
    groups = (n > 0).sum(axis=-1)
    lows, _ = _score(s, n, normal(level))
    above = np.minimum(1.0 - level ** (1.0 / np.maximum(groups, 1)), (1.0 - level) / 2.0)
    highs = np.where(
        (groups > 1)[..., None], _exact_high(s, n, above[..., None]), _score(s, n, normal(level))[1]
    )
    low = np.fmin.reduce(lows, axis=-1, initial=1.0)
    high = np.fmin.reduce(highs, axis=-1, initial=1.0)
    return where(groups >= 1, low, high)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Proportions with their Wilson ends."""

    p: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, s: Floats, n: Floats, z: Floats) -> _Scored:
        return cls(_rate(s, n), *_score(s, n, z))

    def column(self, groups: slice) -> _Scored:
        """Some groups along the last axis but one, to be held against `row`."""
        return _Scored(*(one[..., groups, None] for one in (self.p, self.low, self.high)))

    def row(self) -> _Scored:
        return _Scored(*(one[..., None, :] for one in (self.p, self.low, self.high)))


def _hybrid(first: _Scored, second: _Scored) -> Pair:
    return _hybrid_low(first, second), _hybrid_high(first, second)


def _hybrid_low(first: _Scored, second: _Scored) -> Floats:
    below = np.hypot(first.p - first.low, second.high - second.p)
    low: Floats = np.maximum(first.p - second.p - below, -1.0)
    return low


def _hybrid_high(first: _Scored, second: _Scored) -> Floats:
    above = np.hypot(first.high - first.p, second.p - second.low)
    high: Floats = np.minimum(first.p - second.p + above, 1.0)
    return high


def _score(s: Floats, n: Floats, z: Floats) -> Pair:
    p, size = _rate(s, n), np.where(n > 0, n, 1.0)
    spread = z * np.sqrt(p * (1.0 - p) / size + z * z / (4.0 * size * size))
    centre, scale = p + z * z / (2.0 * size), 1.0 + z * z / size
    # Rounding must not move the ends that are 0 and 1 by definition.
    low = np.where(s <= 0.0, 0.0, np.maximum((centre - spread) / scale, 0.0))
    high = np.where(s >= n, 1.0, np.minimum((centre + spread) / scale, 1.0))
    return where(~np.isnan(p), low, high)


def _exact_high(s: Floats, n: Floats, above: Floats) -> Floats:
    """Return the high end of Clopper and Pearson, which p exceeds with probability `above`.

    At the small probabilities that many groups ask for, Wilson's end is too low near p = 1.
    """
    high = special.betaincinv(s + 1.0, np.where(n > s, n - s, 1.0), 1.0 - above)
    return np.where(n > 0, np.where(n > s, high, 1.0), np.nan)


def _rate(s: Floats, n: Floats) -> Floats:
    return np.where(n > 0, s / np.where(n > 0, n, 1.0), np.nan)


def _counts(successes: npt.ArrayLike, n: npt.ArrayLike) -> Pair:
    s, trials = np.broadcast_arrays(
        np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    )
    # Sums of soft counts may exceed their total by rounding.
    slack = 1e-9 * np.maximum(trials, 1.0)
    if (s < -slack).any() or (s > trials + slack).any():
        raise InputError("successes: expected counts between 0 and n")
    return np.clip(s, 0.0, np.maximum(trials, 0.0)), trials


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
