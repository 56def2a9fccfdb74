"""Before and after on the same subjects or images: the mean difference, its interval, its test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.stats.chance import sign_flips
from equipoise.stats.intervals import mean_t
from equipoise.stats.streams import stream

Floats = npt.NDArray[np.float64]

REPLICATES, FLIPS = 2000, 100_000
FEWEST = 6
"""Units from which on flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""
_TIE = 1e-12


@dataclass(frozen=True)
class Paired:
    """A mean before and after, over units.

    Attributes
    ----------
    n : int
        Units.
    before, after, difference : float
        Means over units; after less before.
    low, high : float
        Student's 95 % interval of the difference, as when models are compared; NaN with fewer than
        `FEWEST` units, of which the test can show nothing either.
    p_value : float
        Two-sided, of differences whose signs are exchangeable; NaN with fewer than two units.
    test : str
    """

    n: int
    before: float
    after: float
    difference: float
    low: float
    high: float
    p_value: float
    test: str


@dataclass(frozen=True)
class Share:
    """How much of the way to a floor was gone.

    Attributes
    ----------
    value, low, high : float
        With its 95 % interval, NaN with fewer than `FEWEST` units: draws of so few lie within
        their own range. A value of NaN is not estimable.
    reason : str
        Why it is not estimable; empty where it is.
    """

    value: float
    low: float
    high: float
    reason: str = ""


def share_of_way(
    before: npt.ArrayLike, after: npt.ArrayLike, floor: npt.ArrayLike, *, seed: int, name: str
) -> Share:
    """Return how much of the way to a floor was gone, units resampled with all three numbers.

    Parameters
    ----------
    before, after, floor : array-like of float, shape (units,)
        Units in which one is NaN are left out.
    seed : int
    name : str
        Of what the units are: the same units are drawn wherever it is the same.

    Returns
    -------
    Share
        Not estimable with fewer than two units, and where the number before is not clear of the
        floor: its excess over it is not above 0, or the 95 % interval of that is not.
    """
    units = np.stack([np.asarray(x, np.float64) for x in (before, after, floor)], axis=1)
    units = units[~np.isnan(units).any(axis=1)]
    if len(units) < 2:
        return _no_share("fewer than two subjects have all three numbers")
    means = units.mean(axis=0)
    drawn = _resampled(units, seed, name)
    ways = drawn[:, 0] - drawn[:, 2]
    way = float(means[0] - means[2])
    if not (way > _TIE and np.percentile(ways, 2.5) > _TIE):
        return _no_share("the number before is not clear of the floor")
    # Fewer than 2.5 % of the draws have no way at all; a share of it would have no sign.
    real = ways > _TIE
    shares = (drawn[real, 0] - drawn[real, 1]) / ways[real]
    few = len(units) < FEWEST
    low, high = (math.nan, math.nan) if few else np.percentile(shares, [2.5, 97.5])
    return Share(float(means[0] - means[1]) / way, float(low), float(high))


def _no_share(reason: str) -> Share:
    return Share(math.nan, math.nan, math.nan, reason)


def _resampled(units: Floats, seed: int, name: str) -> Floats:
    """Return means over resampled units, shape (REPLICATES, columns)."""
    n = len(units)
    draw = stream(seed, "mitigate", "paired", name, n)
    return np.asarray(draw.multinomial(n, np.full(n, 1.0 / n), size=REPLICATES) @ units / n)


def paired(before: npt.ArrayLike, after: npt.ArrayLike, *, seed: int) -> Paired:
    """Compare numbers of the same units.

    Parameters
    ----------
    before, after : array-like of float, shape (units,)
        Units in which either is NaN are left out.
    seed : int
    """
    pair = np.stack([np.asarray(before, np.float64), np.asarray(after, np.float64)], axis=1)
    pair = pair[~np.isnan(pair).any(axis=1)]
    n = len(pair)
    if n == 0:
        return Paired(0, *(math.nan,) * 6, "none: no unit has both numbers")
    apart = pair[:, 1] - pair[:, 0]
    low, high = mean_t(apart) if n >= FEWEST else (math.nan, math.nan)
    means = pair.mean(axis=0)
    p_value, test = _sign_flips(apart, seed)
    return Paired(
        n,
        float(means[0]),
        float(means[1]),
        float(means[1] - means[0]),
        float(low),
        float(high),
        p_value,
        test,
    )


def _sign_flips(differences: Floats, seed: int) -> tuple[float, str]:
    """Return p of the mean where each difference may have had the other sign."""
    if len(differences) < 2:
        return math.nan, "none: fewer than two units"
    found = sign_flips(differences, permutations=FLIPS, seed=seed)
    signs = "all" if found.method == "exact" else f"{FLIPS} draws of the"
    return found.value, f"{signs} signs of the differences"
