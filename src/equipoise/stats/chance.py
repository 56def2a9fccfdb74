"""Chance levels, p-values, sign flips and corrections for the number of tests."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from equipoise.core import Chance, Floats, Harm, InputError, floats
from equipoise.stats.streams import Seed, stream

_ALPHA = 0.05
# Differences that are rounding only: relative to the largest number of the comparison.
SAMPLED = "permutation"
"""How a p-value is called that counts sampled draws."""
_TIE = 1e-12
# With this many draws at least as extreme as the observed value, their share is precise enough.
_ENOUGH = 10
_FEWEST = 100
_TAIL_SHARE = 0.15
# Below this skewness a Pearson type III distribution is normal to 5 digits of a far tail.
_NORMAL = 1.6e-5
_SIGNS: dict[Harm, tuple[float, ...]] = {
    "higher": (1.0,),
    "lower": (-1.0,),
    "either": (1.0, -1.0),
}


@dataclass(frozen=True)
class PValue:
    """A p-value in (0, 1], NaN when there is none, and how it was reached.

    Attributes
    ----------
    value : float
    method : str
    at_most : bool
        Whether no sampled draw was as extreme, so that more draws could only make it smaller.
    """

    value: float
    method: str
    at_most: bool = False


def band(
    null_draws: ArrayLike,
    harm: Harm = "either",
    *,
    method: str = "",
    weights: ArrayLike | None = None,
) -> Chance:
    """Return the chance level: mean and 95 % band of a statistic under its null.

    A number beyond the band has a p-value of at most 0.05, a number inside a larger one: see
    `p_value`. On the side without harm the band ends at the last draw.

    Parameters
    ----------
    null_draws : array-like, shape (m,)
        The statistic on rearranged data; NaN where it could not be computed: ignored.
    harm : "higher", "lower" or "either"
        Which direction counts as more extreme.
    method : str
        How the draws were made.
    weights : array-like, shape (m,), or float, optional
        Probabilities of the draws where all rearrangements were enumerated; a number where they
        are all alike.

    Returns
    -------
    Chance
        NaN throughout when every draw is NaN.

    Raises
    ------
    InputError
        When `null_draws` is not one-dimensional or `weights` has another shape.
    """
    draws, mass = _draws(null_draws, weights)
    if not len(draws):
        return Chance(np.nan, np.nan, np.nan, method)
    if mass is None:
        draws = np.sort(draws)
        mean = float((draws * np.full(len(draws), 1.0 / len(draws))).sum())
        outside = _most_outside(len(draws), harm, exact=weights is not None)
        places = outside, len(draws) - 1 - outside
    else:
        order = np.argsort(draws, kind="stable")
        draws, weight = draws[order], mass[order] / mass.sum()
        mean, share = float((draws * weight).sum()), _ALPHA / len(_SIGNS[harm]) + _TIE
        below = int((np.cumsum(weight) <= share).sum())
        places = below, len(draws) - 1 - int((np.cumsum(weight[::-1]) <= share).sum())
    low = draws[0 if harm == "higher" else places[0]]
    return Chance(mean, float(low), float(draws[-1 if harm == "lower" else places[1]]), method)


@lru_cache(64)
def _most_outside(n_draws: int, harm: Harm, *, exact: bool) -> int:
    """Return the most draws beyond an end of a 95 % band.

    With that many at least as extreme, the p-value is at most 0.05.
    """
    share = _ALPHA / len(_SIGNS[harm]) + _TIE
    if exact:
        return math.floor(share * n_draws)
    return max(math.floor(share * (n_draws + 1)) - 1, 0)


def mirrored_band(half: ArrayLike, harm: Harm = "either", *, method: str = "") -> Chance:
    """Return the chance level where the other half of the draws is minus the ones given.

    As where two sets of equal size exchange members: the mean is 0.

    Parameters
    ----------
    half : array-like, shape (m,)
        Finite numbers.
    harm, method
        As in `band`.

    Returns
    -------
    Chance
        NaN throughout without draws.
    """
    sizes = np.abs(floats(half))
    n_draws = len(sizes)
    if not n_draws:
        return Chance(np.nan, np.nan, np.nan, method)
    # The largest of all draws are the largest sizes.
    place = n_draws - 1 - _most_outside(2 * n_draws, harm, exact=True)
    end, largest = float(np.partition(sizes, place)[place]), float(sizes.max())
    low = largest if harm == "higher" else end
    return Chance(0.0, 0.0 - low, largest if harm == "lower" else end, method)


def folded_band(
    null_draws: ArrayLike, *, method: str = "", weights: ArrayLike | None = None
) -> Chance:
    """Return the chance level of a number whose size is tested: its mean, and a band around 0.

    See `band` for parameters.
    """
    end = band(np.abs(floats(null_draws)), "higher", weights=weights).high
    return Chance(band(null_draws, weights=weights).mean, -end, end, method)


def p_value(
    null_draws: ArrayLike,
    observed: float,
    harm: Harm = "higher",
    *,
    weights: ArrayLike | None = None,
    resolution: float = 0.0,
    scale: float | None = None,
) -> PValue:
    """Return the p-value of an observed statistic against draws of its null.

    Sampled draws give (1 + #{T* >= T}) / (1 + m), which is valid for any m. Enumerated
    rearrangements, among which is the observed one, give their probability of T* >= T. Where
    either direction is harm, the smaller one-sided p-value is doubled.

    Parameters
    ----------
    null_draws : array-like, shape (m,)
        The statistic on rearranged data; NaN where it could not be computed: ignored.
    observed : float
    harm : "higher", "lower" or "either"
        Which direction counts as more extreme.
    weights : array-like, shape (m,), or float, optional
        Probabilities of all rearrangements, when they were enumerated; a number where they are
        all alike.
    resolution : float
        The finest p-value that matters. Where sampled draws are too few for it and hardly any
        is as extreme as the observed value, the p-value comes from `tail`; 0: never.
    scale : float, optional
        Differences of up to 1e-12 of it count as ties. Default: the largest absolute number.

    Raises
    ------
    InputError
        When `null_draws` is not one-dimensional or `weights` has another shape.

    References
    ----------
    Phipson & Smyth 2010, Statistical Applications in Genetics 9, 39.
    """
    draws, mass = _draws(null_draws, weights)
    if np.isnan(observed) or not len(draws):
        return PValue(np.nan, "no p-value: nothing to compare")
    signs = _SIGNS[harm]
    if scale is None:
        finite = np.abs(np.append(draws, observed))
        scale = float(finite[np.isfinite(finite)].max(initial=0.0))
    tie = _TIE * scale
    extreme_masks = [
        draws >= observed - tie if sign > 0.0 else draws <= observed + tie for sign in signs
    ]
    extreme = min(
        float(np.count_nonzero(mask) if mass is None else mass[mask].sum())
        for mask in extreme_masks
    )
    if weights is not None:
        total = float(len(draws) if mass is None else mass.sum())
        return PValue(min(1.0, len(signs) * extreme / total), "exact")
    sampled_p = (1.0 + extreme) / (1.0 + len(draws))
    if extreme < _ENOUGH and 1.0 / (1.0 + len(draws)) > resolution > 0.0:
        fitted = min(
            (tail(sign * draws, sign * observed) for sign in signs),
            key=lambda p: np.nan_to_num(p.value, nan=np.inf),
        )
        if fitted.value < sampled_p:
            return PValue(len(signs) * fitted.value, fitted.method)
    return PValue(min(1.0, len(signs) * sampled_p), SAMPLED, at_most=extreme == 0.0)


def mirrored_p_value(
    half: ArrayLike, observed: float, harm: Harm = "higher", *, scale: float
) -> PValue:
    """Return the p-value of draws that are half of a symmetric null.

    Parameters
    ----------
    half : array-like, shape (m,)
        Finite numbers, at least one.
    observed, harm, scale
        As in `p_value`.
    """
    draws = floats(half)
    bounds = [sign * observed - _TIE * scale for sign in _SIGNS[harm]]
    # A draw is as extreme as the least of those that count, or its mirror image is.
    extreme = min(
        int(np.count_nonzero(draws >= bound) + np.count_nonzero(draws <= -bound))
        for bound in bounds
    )
    return PValue(min(1.0, len(bounds) * extreme / (2 * len(draws))), "exact")


def tail(null_draws: ArrayLike, observed: float) -> PValue:
    """Return an approximate right-tail p-value, finer than the number of draws allows.

    The larger of two: a Pearson type III (shifted gamma) distribution matched to the mean,
    variance and skewness of the draws (a negative skewness counts as 0), and a generalised
    Pareto distribution fitted to the largest 15 % of them by probability-weighted moments. The
    first never ends, the second sees a tail that is heavier than the moments tell. From 1000
    draws, P(p <= t) stays below 1.5 t down to t = 1e-6 for statistics with a normal or lighter
    tail, such as gaps and Cramér's V, and below 3 t for chi-squared tails (docs/calibration).
    A tail that is heavier still is understated; more draws are the remedy.

    Parameters
    ----------
    null_draws : array-like, shape (m,)
        At least 100 finite numbers; NaN ignored.
    observed : float

    Returns
    -------
    PValue
        NaN with fewer draws, infinite ones, or when they are all equal.

    References
    ----------
    Mielke & Berry 2007, Permutation Methods, section 2.3; Hosking & Wallis 1987, Technometrics
    29, 339-349; Knijnenburg et al. 2009, Bioinformatics 25, i161-i168.
    """
    draws, _ = _draws(null_draws, None)
    spread = float(draws.std()) if len(draws) >= _FEWEST and np.isfinite(draws).all() else 0.0
    if spread == 0.0:
        return PValue(np.nan, "no tail: too few draws, infinite ones, or all equal")
    standard = (draws - draws.mean()) / spread
    skewness = max(float((standard * standard * standard).mean()), 0.0)
    gamma = _pearson((observed - float(draws.mean())) / spread, skewness)
    n_tail, pareto = round(_TAIL_SHARE * len(draws)), 0.0
    ordered = np.sort(np.partition(draws, -n_tail - 1)[-n_tail - 1 :])
    threshold = (ordered[0] + ordered[1]) / 2.0
    excesses = ordered[1:] - threshold
    places = (np.arange(1, n_tail + 1) - 0.35) / n_tail
    first, second = excesses.mean(), (excesses * (1.0 - places)).mean()
    if observed > threshold and first > 2.0 * second:
        shape = 2.0 - first / (first - 2.0 * second)
        scale = 2.0 * first * second / (first - 2.0 * second)
        pareto = _TAIL_SHARE * _pareto((observed - threshold) / scale, shape)
    value = max(gamma, pareto, float(np.finfo(float).tiny))
    return PValue(value, "approximate tail (Pearson III, generalised Pareto)")


def _pearson(standard: float, skewness: float) -> float:
    """Return P(X >= x) of a Pearson type III distribution of mean 0 and variance 1."""
    if skewness < _NORMAL:
        return float(special.ndtr(-standard))
    shape, above = 4.0 / skewness**2, max(standard + 2.0 / skewness, 0.0)
    return float(special.gammaincc(shape, 2.0 / skewness * above))


def _pareto(excess: float, shape: float) -> float:
    """Return P(X >= x) of a generalised Pareto distribution of scale 1."""
    ends = 1.0 + shape * excess <= 0.0
    return 0.0 if ends else float(special.inv_boxcox(-excess, -shape))


def _draws(null_draws: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats | None]:
    """Return draws without NaN, and their weights; None for equal weights."""
    draws = floats(null_draws)
    if draws.ndim != 1:
        raise InputError(f"null_draws: shape {draws.shape}; expected one number per draw, (m,)")
    defined = ~np.isnan(draws)
    if weights is None or isinstance(weights, float):
        return (draws if defined.all() else draws[defined]), None
    mass = floats(weights)
    if mass.shape != draws.shape:
        raise InputError(f"weights: shape {mass.shape}; expected {draws.shape}, as null_draws")
    defined &= mass > 0
    if not defined.all():
        draws, mass = draws[defined], mass[defined]
    return draws, None if (mass == 1.0).all() else mass


# Differences whose signs are all enumerated: 65,536 of them.
_EVERY = 16
_AT_ONCE = 1 << 20


def sign_flips(
    differences: ArrayLike,
    *,
    permutations: int = 100_000,
    seed: Seed = 0,
) -> PValue:
    """Return the p-value, in both directions, of a mean of paired differences: signs flip.

    Parameters
    ----------
    differences : array-like, shape (n,)
        One per pair, finite; one of 0 is the same with either sign. Pairs must be independent.
    permutations : int
        Flips drawn; up to 16 differences other than 0 all are enumerated, and p is exact.
    seed : int

    Raises
    ------
    InputError
        When differences are not finite numbers in one dimension.

    References
    ----------
    Fisher 1935, The Design of Experiments, section 21.
    """
    array = floats(differences)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InputError("differences must be finite numbers in one dimension, one for each pair")
    if not len(array):
        return PValue(np.nan, "no p-value: no pairs")
    array = array[array != 0.0]
    scale = float(np.abs(array).sum())
    if len(array) <= _EVERY:
        signs = np.array([*product((1.0, -1.0), repeat=len(array))])
        return p_value(signs @ array, float(array.sum()), "either", weights=1.0, scale=scale)
    random, blocks = stream(seed, "sign flips"), []
    step = max(_AT_ONCE // len(array), 1)
    for start in range(0, permutations, step):
        n_flips = min(step, permutations - start)
        flips = random.integers(0, 2, (n_flips, len(array)), dtype=np.int8) * 2 - 1
        blocks.append((flips * array).sum(axis=1))
    return p_value(np.concatenate(blocks), float(array.sum()), "either", scale=scale)


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Return q-values that control the false discovery rate.

    Among the tests with q <= α at most the share α is false on average, when tests are
    independent or positively dependent.

    Parameters
    ----------
    p : array-like, shape (tests,)
        P-values; NaN where there was no test: stays NaN and is not counted.

    Returns
    -------
    ndarray, shape (tests,)
        In [0, 1], at least as large as `p`.

    Raises
    ------
    InputError
        When a p-value lies outside [0, 1] or `p` is not one-dimensional.

    References
    ----------
    Benjamini & Hochberg 1995, JRSS B 57, 289-300.
    """
    return _adjusted(p, _stepped_up)


def holm(p: ArrayLike) -> Floats:
    """Return adjusted p-values that control the chance of even one false discovery.

    Parameters
    ----------
    p : array-like, shape (tests,)
        P-values; NaN where there was no test: stays NaN and is not counted.

    Returns
    -------
    ndarray, shape (tests,)
        In [0, 1], at least as large as `p`; valid under any dependence of the tests.

    Raises
    ------
    InputError
        When a p-value lies outside [0, 1] or `p` is not one-dimensional.

    References
    ----------
    Holm 1979, Scandinavian Journal of Statistics 6, 65-70.
    """
    return _adjusted(p, _stepped_down)


def _stepped_up(values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")[::-1]
    steps = values[order] * (len(order) / np.arange(len(order), 0, -1))
    values[order] = np.minimum(np.minimum.accumulate(steps), 1.0)
    return values


def _stepped_down(values: Floats) -> Floats:
    order = np.argsort(values, kind="stable")
    steps = values[order] * np.arange(len(order), 0, -1)
    values[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return values


def _adjusted(p: ArrayLike, adjust: Callable[[Floats], Floats]) -> Floats:
    """Adjust the p-values that are no NaN."""
    values = np.array(p, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"p: shape {values.shape}; expected one p-value per test, shape (tests,)")
    if ((values < 0) | (values > 1)).any():
        raise InputError("p: expected p-values between 0 and 1, NaN where there was no test")
    tested = ~np.isnan(values)
    values[tested] = adjust(values[tested])
    return values
