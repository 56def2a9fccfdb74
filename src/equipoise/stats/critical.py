"""Critical values of the normal and the studentized range distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

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
