"""Two answers to the same rows: score intervals and tests of the difference of their shares.

A row is a gain where only the second answer has the outcome, and a loss where only the first has
it. Counts may be fractions, such as rows divided by their design effect.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from scipy import special

from equipoise.core import Floats, floats, unwarned
from equipoise.stats.intervals import Scored, divide

# Halvings of an interval between -1 and 1, to the precision of its ends.
_HALVINGS = 60


def paired_scored(gains: Floats, losses: Floats, n: Floats, z: Floats | float) -> Scored:
    """Return the difference of two paired shares with Tango's score interval.

    It excludes 0 exactly where McNemar's test without correction, `paired_z`, exceeds `z`.

    Parameters
    ----------
    gains, losses, n : ndarray
        Rows that only the second and only the first answer has, and all rows; broadcast together.
    z : float or ndarray
        Critical value.

    Returns
    -------
    Scored
        In [-1, 1]; NaN without rows.

    References
    ----------
    Tango 1998, Statistics in Medicine 17, 891-908.
    """
    b, c, n, critical = map(floats, np.broadcast_arrays(gains, losses, n, z))
    value = divide(b - c, n)
    ends = [_end(b, c, n, value, side * critical) for side in (1.0, -1.0)]
    return Scored(value, *(np.where(n > 0, end, np.nan) for end in ends))


def _end(b: Floats, c: Floats, n: Floats, value: Floats, z: Floats) -> Floats:
    """Return the difference at which the score statistic is z, between the value and its limit."""
    inner = np.where(n > 0, value, 0.0)
    outer = np.where(z > 0, -1.0, 1.0)
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2.0
        within = np.abs(_score(b, c, n, middle)) <= np.abs(z)
        inner, outer = np.where(within, middle, inner), np.where(within, outer, middle)
    return floats((inner + outer) / 2.0)


def _score(b: Floats, c: Floats, n: Floats, difference: Floats) -> Floats:
    """Return the score statistic of a difference; infinite where it is impossible."""
    linear = (2.0 * n - b + c) * difference - b - c
    constant = -c * difference * (1.0 - difference)
    root = np.sqrt(np.maximum(linear**2 - 8.0 * n * constant, 0.0))
    with unwarned():
        only_first = (root - linear) / (4.0 * n)
        variance = n * (2.0 * only_first + difference * (1.0 - difference))
        distance = b - c - n * difference
        score = distance / np.sqrt(variance)
    return np.where(variance > 0.0, score, np.where(distance == 0.0, 0.0, np.inf))


def paired_z(gains: Floats, losses: Floats) -> Floats:
    """Return McNemar's statistic, 0 where the answers agree on every row.

    References
    ----------
    McNemar 1947, Psychometrika 12, 153-157.
    """
    changed = gains + losses
    return np.where(changed > 0.0, divide(gains - losses, np.sqrt(changed)), 0.0)


def simultaneous_p(z: Floats, tests: int) -> Floats:
    """Return two-sided p-values of normal statistics that hold for several tests together (Šidák).

    For independent tests that is the chance that the largest of them is as extreme; for others,
    it is at least that.
    """
    single = 2.0 * special.ndtr(-np.abs(z))
    # Of tiny numbers, 1 - (1 - p)^k would lose all digits.
    return floats(-np.expm1(tests * np.log1p(-np.minimum(single, 1.0 - 1e-16))))


def simultaneous_z(level: float, tests: int) -> float:
    """Return the critical value of several independent two-sided tests together (Šidák)."""
    single = -np.expm1(np.log(level) / max(tests, 1))
    return float(-special.ndtri(single / 2.0))


Block = tuple[Scored, Scored, Scored]
"""Of some numbers: how far each moves, with ends of its own; and the numbers before and after."""


def largest_change(blocks: Callable[[], Iterable[Block]]) -> tuple[float, float]:
    """Return an interval of how far the largest of several numbers moves.

    The largest number moves at least as far as the number that is largest at first, and at most as
    far as the number that is largest afterwards. Only numbers whose band reaches the highest low
    end of all can be the largest. Where another number takes the lead, the bands of both largest
    numbers limit the interval.

    Parameters
    ----------
    blocks : callable
        Yields the numbers in blocks, twice the same. Ends of numbers before and after hold for all
        together; NaN is left out.

    Returns
    -------
    low, high : float
        NaN without a number.
    """
    largest = np.full((2, 3), -np.inf)
    for _, *models in blocks():
        for place, numbers in enumerate(models):
            reached = [np.fmax.reduce(array, axis=None) for array in numbers.arrays]
            largest[place] = np.fmax(largest[place], reached)
    low, high = math.inf, -math.inf
    for change, first, second in blocks():
        low = np.fmin.reduce(change.low[first.high >= largest[0, 1]], initial=low)
        high = np.fmax.reduce(change.high[second.high >= largest[1, 1]], initial=high)
    if not low <= high:
        return math.nan, math.nan
    before, after = (Scored(*row) for row in largest)
    of_levels = after.minus(before)
    return float(np.maximum(low, of_levels.low)), float(np.minimum(high, of_levels.high))
