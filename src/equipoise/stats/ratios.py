"""Score interval of a ratio of two shares."""

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core import Floats, InputError, floats, unwarned
from equipoise.stats.intervals import Scored, divide, normal

# Logarithms of ratios that are searched, and halvings that leave 1e-15 of them.
_FARTHEST, _HALVINGS = 46.0, 64


def score_ratio(
    successes: ArrayLike,
    n: ArrayLike,
    other_successes: ArrayLike,
    other_n: ArrayLike,
    level: float = 0.95,
) -> Scored:
    """Return a ratio of two independent shares with its score interval.

    Parameters
    ----------
    successes, n : array-like
        Counts of the numerator.
    other_successes, other_n : array-like
        Counts of the denominator; all four are broadcast together.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Scored
        At least 0. The value is NaN and the high end infinite where the denominator has no
        success; with no success at all the ends are 0 and infinity. NaN where `n` is 0.

    Raises
    ------
    InputError
        When `level` is outside (0, 1) or a count lies outside [0, n].

    References
    ----------
    Koopman 1984, Biometrics 40, 513-517; Miettinen & Nurminen 1985, Statistics in Medicine 4,
    213-226 (without their factor N / (N - 1)).
    """
    z = normal(level)
    s, n, other_s, other_n = np.broadcast_arrays(
        *(floats(counts) for counts in (successes, n, other_successes, other_n))
    )
    if ((s < 0) | (s > n) | (other_s < 0) | (other_s > other_n)).any():
        raise InputError("successes: expected counts between 0 and n")
    defined = (n > 0) & (other_n > 0)
    value = divide(divide(s, n), divide(other_s, other_n))
    with unwarned():
        centre = np.log(np.where(defined & (s > 0) & (other_s > 0), value, 1.0))
        low, high = (_end(sign, centre, (s, n, other_s, other_n), float(z)) for sign in (-1.0, 1.0))
    low = np.where(s <= 0, 0.0, low)
    high = np.where(other_s <= 0, np.inf, high)
    return Scored(value, np.where(defined, low, np.nan), np.where(defined, high, np.nan))


def _end(sign: float, centre: Floats, counts: tuple[Floats, ...], z: float) -> Floats:
    """Return the end below (-1) or above (1) the ratio, by bisection of its logarithm."""
    near = np.where(counts[0] <= 0, -_FARTHEST, np.where(counts[2] <= 0, _FARTHEST, centre))
    far = np.full(near.shape, sign * _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2.0
        inside = -sign * _score(np.exp(middle), *counts) <= z
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return floats(np.exp((near + far) / 2.0))


def _score(ratio: Floats, s: Floats, n: Floats, other_s: Floats, other_n: Floats) -> Floats:
    """Return the standardised difference of shares at a ratio, with shares fitted to it."""
    square = (n + other_n) * ratio
    linear = n * ratio + s + other_n + other_s * ratio
    root = np.sqrt(np.maximum(linear * linear - 4.0 * square * (s + other_s), 0.0))
    other_fit = 2.0 * (s + other_s) / (linear + root)
    fit = np.minimum(ratio * other_fit, 1.0)
    variance = fit * (1.0 - fit) / n + ratio**2 * other_fit * (1.0 - other_fit) / other_n
    return floats((s / n - ratio * other_s / other_n) / np.sqrt(variance))
