"""Types of numpy arrays, by what they hold."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

AnyArray = NDArray[Any]
Booleans = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Integers32 = NDArray[np.int32]
Objects = NDArray[np.object_]
Positions = NDArray[np.intp]
Words = NDArray[np.uint64]
Words32 = NDArray[np.uint32]


def floats(values: ArrayLike) -> Floats:
    """Return numbers as float64: the array itself where it has them."""
    return np.asarray(values, dtype=np.float64)


def integers(values: ArrayLike) -> Integers:
    """Return numbers as int64: the array itself where it has them."""
    return np.asarray(values, dtype=np.int64)


def nans(shape: int | tuple[int, ...]) -> Floats:
    """Return an array of numbers that are not known yet."""
    return np.full(shape, np.nan)


def numbered(values: ArrayLike) -> Integers:
    """Return the place of each value among the distinct ones, in their order."""
    return np.unique(values, return_inverse=True)[1]


def ranks(values: AnyArray) -> Floats:
    """Return the ranks of a list from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[place])


def tally(mask: ArrayLike) -> int:
    """Return how many cells are true."""
    return int(np.count_nonzero(mask))


def unwarned() -> np.errstate:
    """Let divisions by 0 and logarithms of it be infinite or NaN, without a warning."""
    return np.errstate(divide="ignore", invalid="ignore")
