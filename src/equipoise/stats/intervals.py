"""Closed-form intervals of proportions, their differences and extremes, means and correlations.

Each function takes `level`, a confidence level in (0, 1), and returns two arrays (low, high) of
the broadcast shape. Counts may be fractions (soft counts); where `n` is 0 both ends are NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import (
    AnyArray,
    Booleans,
    Floats,
    InputError,
    Span,
    floats,
    integers,
    record,
    unwarned,
)
from equipoise.core.arguments import check_level


def normal(level: float) -> Floats:
    """Return the two-sided normal critical value, 1.96 at level 0.95."""
    check_level(level)
    return floats(-special.ndtri((1.0 - level) / 2.0))


@cache
def studentized_range(level: float, groups: int) -> float:
    """Return the quantile of the range of independent normals, as a multiple of sqrt(2).

    That is the critical value of a difference of two of `groups` means; with two groups, the
    normal one. Kept once computed: it takes a millisecond.
    """
    # The sum over this grid has the integral over the largest normal number to 15 digits.
    largest = np.linspace(-9.0, 9.0, 1153)
    density = np.exp(-(largest**2) / 2.0) * (groups * (largest[1] - largest[0]) / _ROOT_2_PI)
    below, low, high = special.ndtr(largest), 0.0, 64.0
    while low < (middle := (low + high) / 2.0) < high:
        within = float(density @ (below - special.ndtr(largest - middle)) ** (groups - 1))
        if within < level:
            low = middle
        else:
            high = middle
    return low / math.sqrt(2.0)


def divide(successes: AnyArray, totals: AnyArray) -> Floats:
    """Divide, NaN where the total is 0."""
    defined = totals > 0
    if defined.all():
        return floats(successes / totals)
    with unwarned():
        return np.where(defined, successes / totals, np.nan)


def where(defined: Booleans, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return both ends with NaN where nothing is known."""
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


Pair = tuple[Floats, Floats]

_ROOT_2_PI = math.sqrt(2.0 * math.pi)
# Pairs of groups that are compared at once.
_PAIRS = 1_000_000


def wilson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Pair:
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
    interval = scored(successes, n, level)
    return interval.low, interval.high


def wilson_size(share: ArrayLike, width: ArrayLike, level: float = 0.95) -> Floats:
    """Return the number of rows whose Wilson interval of a share has a width.

    Where rows repeat by unit, it says how many independent rows they count as.

    Parameters
    ----------
    share, width : array-like
        Broadcast together; the width is between 0 and 1.
    level : float
        Confidence level in (0, 1).
    """
    share, square = floats(share), floats(width) ** 2
    z2 = normal(level) ** 2
    linear = z2 * (square - 2.0 * share * (1.0 - share))
    root = np.sqrt(linear**2 + square * z2**2 * (1.0 - square))
    return divide(root - linear, square)


def clopper_pearson(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Pair:
    """Exact interval of a proportion; see `wilson` for parameters, results and errors.

    References
    ----------
    Clopper & Pearson 1934, Biometrika 26, 404-413.
    """
    check_level(level)
    s, trials = _counts(successes, n)
    above = np.asarray((1.0 - level) / 2.0)
    return 1.0 - _exact_high(trials - s, trials, above), _exact_high(s, trials, above)


def scored(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Scored:
    """Return proportions with Wilson intervals; see `wilson` for parameters and errors.

    `scored(s1, n1).minus(scored(s2, n2))` has the hybrid score interval of a difference, method 10
    of Newcombe 1998, Statistics in Medicine 17, 873-890.
    """
    return _scored(*_counts(successes, n), normal(level))


def simultaneous_gap(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Pair:
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
    distinct, place = np.unique(np.maximum((n > 0).sum(axis=-1), 2), return_inverse=True)
    critical = np.array([studentized_range(level, groups) for groups in distinct.tolist()])
    wide = critical[place].reshape(*n.shape[:-1], 1)
    return largest_gap(_scored(s, n, wide), _scored(s, n, normal(level)))


def largest_gap(wide: Scored, narrow: Scored) -> Pair:
    """Return ends of max - min over the last axis, see `simultaneous_gap`.

    `wide` has the values with ends that hold for all pairs together, `narrow` with ends of their
    own; NaN is ignored.
    """
    n_defined = (~np.isnan(narrow.value)).sum(axis=-1)
    low, high = np.zeros(n_defined.shape), np.zeros(n_defined.shape)
    n_groups = narrow.value.shape[-1]
    step = max(1, _PAIRS // max(narrow.value.size, 1))
    for start in range(0, n_groups, step):
        part = slice(start, start + step)
        # A group is not compared with itself.
        different = np.arange(n_groups)[part, None] != np.arange(n_groups)
        for end, ends in (
            (low, wide[..., part, None].minus(wide[..., None, :]).low),
            (high, narrow[..., part, None].minus(narrow[..., None, :]).high),
        ):
            reached = np.fmax.reduce(np.where(different, ends, np.nan), axis=(-2, -1), initial=0.0)
            np.fmax(end, reached, out=end)
    return where(n_defined >= 2, low, np.minimum(high, 1.0))


def simultaneous_shortfall(
    successes: ArrayLike,
    n: ArrayLike,
    level: float = 0.95,
    *,
    design: ArrayLike = 1.0,
) -> Pair:
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
    design : array-like, shape (..., groups)
        How many rows of a group say as much as one that is independent.

    Returns
    -------
    low, high : ndarray, shape (...)
        In [0, 1]; NaN with fewer than two groups.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].
    """
    s, n = _counts(successes, n)
    groups = (n > 0).sum(axis=-1)
    all_s = np.nansum(s, axis=-1, keepdims=True)
    all_n = n.sum(axis=-1, keepdims=True)
    designs = np.broadcast_to(floats(design), n.shape)
    rest_design = (n * designs).sum(axis=-1, keepdims=True) - n * designs
    # The variance of the others' share is the mean of the groups' variances, by their rows.
    rest_design = np.where(
        (n > 0) & (all_n > n), rest_design / np.where(all_n > n, all_n - n, 1.0), 1.0
    )
    rest_successes = np.where(n > 0, np.clip(all_s - s, 0.0, all_n - n), 0.0)
    rest_counts = _counts(rest_successes / rest_design, (all_n - n) / rest_design)
    share = 1.0 - n / np.maximum(all_n, 1.0)
    s, n = s / designs, n / designs
    above = ((1.0 - level) / np.maximum(groups, 2))[..., None]
    z = -special.ndtri(above)
    exact = replace(_scored(s, n, z), high=_exact_high(s, n, above))
    lows = _scored(*rest_counts, z).minus(exact).low
    z = normal(level)
    highs = np.minimum(_scored(*rest_counts, z).minus(_scored(s, n, z)).high, 1.0)
    low = np.fmax.reduce(share * lows, axis=-1, initial=0.0)
    high = np.fmax.reduce(share * highs, axis=-1, initial=0.0)
    return where(groups >= 2, low, high)


def simultaneous_minimum(successes: ArrayLike, n: ArrayLike, level: float = 0.95) -> Pair:
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
    s, n = _counts(successes, n)
    groups = (n > 0).sum(axis=-1)
    single = _scored(s, n, normal(level))
    above = np.minimum(1.0 - level ** (1.0 / np.maximum(groups, 1)), (1.0 - level) / 2.0)
    highs = np.where((groups > 1)[..., None], _exact_high(s, n, above[..., None]), single.high)
    low = np.fmin.reduce(single.low, axis=-1, initial=1.0)
    high = np.fmin.reduce(highs, axis=-1, initial=1.0)
    return where(groups >= 1, low, high)


@record
class Scored:
    """Values with the ends of their intervals, three arrays of one shape; NaN where unknown.

    Variance estimates are recovered from the ends of each proportion's own interval (MOVER), so
    that a share of 0 or 1 needs no correction. For two Wilson intervals the difference is
    Newcombe's.
    """

    value: Floats
    low: Floats
    high: Floats

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats]:
        """The value, the low end and the high end."""
        return self.value, self.low, self.high

    def __getitem__(self, index: Any) -> Scored:
        """Return the values at an index."""
        return Scored(*(array[index] for array in self.arrays))

    def scaled(self, factor: Floats | float) -> Scored:
        """Return the values times a number of at least 0."""
        return Scored(*(factor * array for array in self.arrays))

    def minus(self, other: Scored) -> Scored:
        """Return the difference to independent values (Newcombe 1998)."""
        return self.plus(Scored(-other.value, -other.high, -other.low))

    def plus(self, other: Scored) -> Scored:
        """Return the sum with independent values (Zou & Donner 2008)."""
        value = self.value + other.value
        below = np.hypot(self.value - self.low, other.value - other.low)
        above = np.hypot(self.high - self.value, other.high - other.value)
        return Scored(value, value - below, value + above)

    def over(self, other: Scored) -> Scored:
        """Return the ratio to independent values; NaN with ends for a divisor of 0.

        The ends solve the quadratic equations of Donner & Zou 2012, section 3, in the form that
        keeps its precision. The high end is infinite where the other value may be 0.
        """
        product = self.value * other.value
        small = self.low * (2.0 * self.value - self.low)
        large = self.high * (2.0 * self.value - self.high)
        other_small = other.low * (2.0 * other.value - other.low)
        other_large = other.high * (2.0 * other.value - other.high)
        # Rounding must not make a number that is 0 by definition negative.
        low_root = np.sqrt(np.maximum(product * product - small * other_large, 0.0))
        high_root = np.sqrt(np.maximum(product * product - large * other_small, 0.0))
        value = divide(self.value, other.value)
        with unwarned():
            low, high = small / (product + low_root), (product + high_root) / other_small
        defined = ~np.isnan(product)
        low = np.where(defined & (self.low == 0), 0.0, low)
        return Scored(value, low, np.where(defined & (other.low == 0), np.inf, high))


def _scored(s: Floats, n: Floats, z: Floats) -> Scored:
    size = np.where(n > 0, n, 1.0)
    p = np.where(n > 0, s / size, np.nan)
    spread = z * np.sqrt(p * (1.0 - p) / size + z * z / (4.0 * size * size))
    centre, scale = p + z * z / (2.0 * size), 1.0 + z * z / size
    # Rounding must not move the ends that are 0 and 1 by definition.
    low = np.where(s <= 0.0, 0.0, np.maximum((centre - spread) / scale, 0.0))
    high = np.where(s >= n, 1.0, np.minimum((centre + spread) / scale, 1.0))
    return Scored(p, *where(~np.isnan(p), low, high))


def _exact_high(s: Floats, n: Floats, above: Floats) -> Floats:
    """Return the high end of Clopper and Pearson, which p exceeds with probability `above`.

    At the small probabilities that many groups ask for, Wilson's end is too low near p = 1.
    """
    high = special.betaincinv(s + 1.0, np.where(n > s, n - s, 1.0), 1.0 - above)
    return np.where(n > 0, np.where(n > s, high, 1.0), np.nan)


def _counts(successes: ArrayLike, n: ArrayLike) -> Pair:
    s, trials = np.broadcast_arrays(floats(successes), floats(n))
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

    def __call__(self, level: float) -> Span:
        """Return the ends at a confidence level."""
        low, high = self.function(*self.arguments, level=level)
        return float(low), float(high)


def percentile(replicates: ArrayLike, level: float = 0.95) -> Pair:
    """Percentile interval of bootstrap replicates.

    Parameters
    ----------
    replicates : array-like, shape (replicates, ...)
        NaN where the statistic could not be computed: ignored.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        Linear between order statistics; beside an infinite one the outer of the two.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or there is no replicate.
    """
    values = np.sort(floats(replicates), axis=0)
    check_level(level)
    if values.ndim == 0 or not len(values):
        raise InputError("replicates: none given; expected shape (replicates, ...)")
    last = np.maximum((~np.isnan(values)).sum(axis=0) - 1, 0)
    low = order_statistic(values, last * (1.0 - level) / 2.0, outer=0)
    return low, order_statistic(values, last * (1.0 + level) / 2.0, outer=1)


def mean_t(values: ArrayLike, level: float = 0.95) -> Pair:
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
    array = floats(values)
    check_level(level)
    present = ~np.isnan(array)
    n = present.sum(axis=0)
    n_present = np.maximum(n, 1)
    mean = np.where(present, array, 0.0).sum(axis=0) / n_present
    squares = np.where(present, (array - mean) ** 2, 0.0).sum(axis=0)
    freedom = np.maximum(n - 1, 1)
    half = special.stdtrit(freedom, (1.0 + level) / 2.0) * np.sqrt(squares / freedom / n_present)
    return where(n >= 2, mean - half, mean + half)


def jackknife_t(value: ArrayLike, left_out: Sequence[ArrayLike], level: float = 0.95) -> Pair:
    """Student's t interval of smooth statistics, with the variance of the jackknife.

    Parameters
    ----------
    value : array-like, shape (...)
        The statistics.
    left_out : sequence of array-like, shape (n, ...)
        For each independent sample, the statistics without each of its members.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray, shape (...)
        NaN where no sample has two members. Degrees of freedom: Satterthwaite's.

    Raises
    ------
    InputError
        When `level` is outside (0, 1).

    References
    ----------
    Efron & Tibshirani 1993, An Introduction to the Bootstrap, chapter 11; Satterthwaite 1946,
    Biometrics Bulletin 2, 110-114.
    """
    check_level(level)
    centre, half = floats(value), np.sqrt(_jackknife(value, left_out, level))
    return centre - half, centre + half


def _jackknife(value: ArrayLike, left_out: Sequence[ArrayLike], level: float) -> Floats:
    """Return the squared half width of `jackknife_t`; NaN where no sample has two members."""
    shape = np.shape(value)
    total, squares = np.zeros(shape), np.zeros(shape)
    samples = [sample for sample in map(np.asarray, left_out) if len(sample) > 1]
    with unwarned():
        for sample in samples:
            variance = sample.var(axis=0) * (len(sample) - 1.0)
            total, squares = total + variance, squares + variance**2 / (len(sample) - 1.0)
        freedom = np.where(squares > 0.0, total**2 / np.where(squares > 0.0, squares, 1.0), 1.0)
    squares = special.stdtrit(freedom, (1.0 + level) / 2.0) ** 2 * total
    return np.where(bool(samples), squares, np.nan)


def jackknife_score(
    value: ArrayLike, left_out: Sequence[ArrayLike], limits: Span, level: float = 0.95
) -> Pair:
    """Score interval of means of numbers that have limits, with Student's t and the jackknife.

    The variance of a mean near a limit is less, in proportion to the distance from a single limit,
    or to the product of both distances. So the ends never leave the limits. Between 0 and 1 it is
    Wilson's interval of as many rows as have that variance.

    Parameters
    ----------
    value, left_out, level
        See `jackknife_t`.
    limits : (float, float)
        Least and greatest mean, of which either may be infinite. A value beyond them, or two
        infinite ones, give `jackknife_t`.

    Raises
    ------
    InputError
        When `level` is outside (0, 1).

    References
    ----------
    Wilson 1927, Journal of the American Statistical Association 22, 209-212; McCullagh & Nelder
    1989, Generalized Linear Models, chapter 9 (variances in proportion to a function of the mean).
    """
    check_level(level)
    centre, squares = floats(value), _jackknife(value, left_out, level)
    lower, upper = limits
    above, below = centre - lower, upper - centre
    # Roots of (value - mean)^2 = squares V(mean) / V(value), with V as above.
    with unwarned():
        if math.isfinite(lower) and math.isfinite(upper):
            ratio = squares / (above * below)
            shift, shrink = ratio * (below - above) / 2.0, 1.0 + ratio
            half = np.sqrt(squares + (ratio * (upper - lower) / 2.0) ** 2)
        else:
            nearest = np.where(above < below, above, -below)
            shift, shrink = squares / (2.0 * nearest), np.ones_like(squares)
            half = np.sqrt(squares + shift**2)
        limited = (above > 0.0) & (below > 0.0) & (squares > 0.0)
        low, high = centre + (shift - half) / shrink, centre + (shift + half) / shrink
    half = np.sqrt(squares)
    return np.where(limited, low, centre - half), np.where(limited, high, centre + half)


def fisher_z(
    r: ArrayLike,
    n: ArrayLike,
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
    r, n = floats(r), floats(n)
    z = normal(level)
    if (np.abs(r) > 1.0 + 1e-12).any():
        raise InputError("r: expected correlations between -1 and 1")
    inflation = 1.0 + r * r / 2.0 if kind == "spearman" else 1.0
    defined = (n > 3) & (np.abs(r) < 1.0)
    half = z * np.sqrt(inflation / np.where(defined, n - 3.0, 1.0))
    centre = np.arctanh(np.where(defined, r, 0.0))
    return where(defined, np.tanh(centre - half), np.tanh(centre + half))


def order_statistic(values: Floats, place: Floats, outer: int) -> Floats:
    """Interpolate sorted values (n, ...) at fractional places (...)."""
    sides = [
        np.take_along_axis(values, integers(step(place))[None], axis=0)[0]
        for step in (np.floor, np.ceil)
    ]
    finite = np.isfinite(sides).all(axis=0)
    below, above = np.where(finite, sides, 0.0)
    line: Floats = below + (above - below) * (place - np.floor(place))
    return np.where(finite, line, sides[outer])
