"""Chance levels and p-values from draws of the null distribution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.core.estimate import Chance, Harm

Floats = npt.NDArray[np.float64]

# Differences that are rounding only: relative to the largest number of the comparison.
_TIE = 1e-12
# With this many draws at least as extreme as the observed value, their share is precise enough.
_ENOUGH = 10
_FEWEST = 100
_TAIL_SHARE = 0.15
_SIGNS: dict[Harm, tuple[float, ...]] = {
    "higher": (1.0,),
    "lower": (-1.0,),
    "either": (1.0, -1.0),
}


@dataclass(frozen=True)
class PValue:
    """A p-value in (0, 1], NaN when there is none, and how it was reached."""

    value: float
    method: str


def band(
    null_draws: npt.ArrayLike, *, method: str = "", weights: npt.ArrayLike | None = None
) -> Chance:
    """Return the chance level: mean and 95 % band of a statistic under its null.

    Parameters
    ----------
    null_draws : array-like, shape (m,)
        The statistic on rearranged data; NaN where it could not be computed: ignored.
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
        low, high = (draws[place] for place in _edges_of(len(draws)))
        return Chance(float((draws * (1.0 / len(draws))).sum()), float(low), float(high), method)
    if (mass == mass[0]).all():
        draws, share = np.sort(draws), mass / mass.sum()
    else:
        order = np.argsort(draws, kind="stable")
        draws, share = draws[order], mass[order] / mass.sum()
    low, high = (draws[place] for place in _edges(share))
    return Chance(float((draws * share).sum()), float(low), float(high), method)


def mirrored_band(half: npt.ArrayLike, *, method: str = "") -> Chance:
    """Return the chance level where the other half of the draws is minus the ones given.

    As where two sets of equal size exchange members: the mean is 0.

    Parameters
    ----------
    half : array-like, shape (m,)
        Finite numbers.
    method : str
        How the draws were made.

    Returns
    -------
    Chance
        NaN throughout without draws.
    """
    sizes = np.abs(np.asarray(half, np.float64))
    many = len(sizes)
    if not many:
        return Chance(np.nan, np.nan, np.nan, method)
    low, high = _edges_of(2 * many)
    # All draws in order would be minus their sizes, falling, and their sizes, rising.
    # One place at a time, which vector units find; mostly it is the same one.
    places = many - 1 - low, high - many
    ends = {place: float(np.partition(sizes, place)[place]) for place in {*places}}
    return Chance(0.0, 0.0 - ends[places[0]], ends[places[1]], method)


def p_value(
    null_draws: npt.ArrayLike,
    observed: float,
    harm: Harm = "higher",
    *,
    weights: npt.ArrayLike | None = None,
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
    beyond = [draws >= observed - tie if sign > 0.0 else draws <= observed + tie for sign in signs]
    extreme = min(
        float(np.count_nonzero(one) if mass is None else mass[one].sum()) for one in beyond
    )
    if weights is not None:
        every = float(len(draws) if mass is None else mass.sum())
        return PValue(min(1.0, len(signs) * extreme / every), "exact")
    plain = (1.0 + extreme) / (1.0 + len(draws))
    if extreme < _ENOUGH and 1.0 / (1.0 + len(draws)) > resolution > 0.0:
        fitted = min((tail(sign * draws, sign * observed) for sign in signs), key=_value)
        if fitted.value < plain:
            return PValue(len(signs) * fitted.value, fitted.method)
    return PValue(min(1.0, len(signs) * plain), "permutation")


def mirrored_p_value(
    half: npt.ArrayLike, observed: float, harm: Harm = "higher", *, scale: float
) -> PValue:
    """Return the p-value where all rearrangements are those given, and minus each of them.

    Parameters
    ----------
    half : array-like, shape (m,)
        Finite numbers, at least one.
    observed, harm, scale
        As in `p_value`.
    """
    draws = np.asarray(half, np.float64)
    least = [sign * observed - _TIE * scale for sign in _SIGNS[harm]]
    # A draw is as extreme as the least of those that count, or its mirror image is.
    extreme = min(
        int(np.count_nonzero(draws >= one) + np.count_nonzero(draws <= -one)) for one in least
    )
    return PValue(min(1.0, len(least) * extreme / (2 * len(draws))), "exact")


def tail(null_draws: npt.ArrayLike, observed: float) -> PValue:
    """Return an approximate right-tail p-value, finer than the number of draws allows.

    The larger of two: a Pearson type III (shifted gamma) distribution matched to the mean,
    variance and skewness of the draws (a negative skewness counts as 0), and a generalised
    Pareto distribution fitted to the largest 15 % of them by probability-weighted moments. The
    first never ends, the second sees a tail that is heavier than the moments tell. From 1000
    draws, P(p <= t) stays below 1.5 t down to t = 1e-6 for statistics with a normal or lighter
    tail, such as gaps and Cramér's V, and below 3 t for chi-squared tails (docs/coverage.md).
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
    skewness = max(float((standard**3).mean()), 0.0)
    gamma = float(stats.pearson3.sf((observed - float(draws.mean())) / spread, skewness))
    value = max(gamma, _pareto(draws, observed), float(np.finfo(float).tiny))
    return PValue(value, "approximate tail (Pearson III, generalised Pareto)")


def _pareto(draws: Floats, observed: float) -> float:
    many = round(_TAIL_SHARE * len(draws))
    ordered = np.sort(draws)
    threshold = (ordered[-many - 1] + ordered[-many]) / 2.0
    beyond = ordered[-many:] - threshold
    places = (np.arange(1, many + 1) - 0.35) / many
    first, second = beyond.mean(), (beyond * (1.0 - places)).mean()
    if observed <= threshold or first <= 2.0 * second:
        return 0.0
    shape = 2.0 - first / (first - 2.0 * second)
    scale = 2.0 * first * second / (first - 2.0 * second)
    return _TAIL_SHARE * float(stats.genpareto.sf(observed - threshold, shape, scale=scale))


def chi2_mean(n: npt.ArrayLike, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Floats:
    """Return the exact mean of Pearson's statistic over all tables with the same margins.

    Parameters
    ----------
    n, rows, columns : array-like
        The table's total and its numbers of non-empty rows and columns, broadcast together.

    Returns
    -------
    ndarray
        n / (n - 1) (rows - 1)(columns - 1); NaN where `n` is below 2.

    References
    ----------
    Haldane 1940, Biometrika 31, 346-355.
    """
    total = np.asarray(n, np.float64)
    known = np.where(total >= 2, total, np.nan)
    freedom = (np.asarray(rows, np.float64) - 1.0) * (np.asarray(columns, np.float64) - 1.0)
    return np.asarray(known / (known - 1.0) * freedom)


def _value(p: PValue) -> float:
    return p.value if not np.isnan(p.value) else np.inf


def _edges(share: Floats) -> tuple[int, int]:
    """Return where the band of sorted draws begins and ends."""
    reached = np.cumsum(share) + _TIE
    low, high = np.searchsorted(reached, (0.025, 0.975)).tolist()
    return low, high


@lru_cache(maxsize=64)
def _edges_of(many: int) -> tuple[int, int]:
    """Return them for that many draws of equal weight: a study has few numbers of draws."""
    return _edges(np.full(many, 1.0 / many))


def _draws(
    null_draws: npt.ArrayLike, weights: npt.ArrayLike | None
) -> tuple[Floats, Floats | None]:
    """Return the draws that are numbers, and their weights; None where all are 1."""
    draws = np.asarray(null_draws, np.float64)
    if draws.ndim != 1:
        raise InputError(f"null_draws: shape {draws.shape}; expected one number per draw, (m,)")
    known = ~np.isnan(draws)
    if weights is None or isinstance(weights, float):
        return (draws if known.all() else draws[known]), None
    mass = np.asarray(weights, np.float64)
    if mass.shape != draws.shape:
        raise InputError(f"weights: shape {mass.shape}; expected {draws.shape}, as null_draws")
    known &= mass > 0
    if not known.all():
        draws, mass = draws[known], mass[known]
    return draws, None if (mass == 1.0).all() else mass
