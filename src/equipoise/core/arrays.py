"""Types of numpy arrays, by what they hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def ranks(values: AnyArray) -> Floats:
    """Return the ranks of a list from 1; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2.0)[place])


def unwarned() -> np.errstate:
    """Let divisions by 0 and logarithms of it be infinite or NaN, without a warning."""
    return np.errstate(divide="ignore", invalid="ignore")
