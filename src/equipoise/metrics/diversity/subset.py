"""A subset whose images lie far apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.diversity.sums import UnitSums, embedding_array, projections


def diverse_subset(embeddings: Any, size: int) -> npt.NDArray[np.int64]:
    """Choose images greedily so that the mean distance within the chosen is large.

    Starts with the image that is furthest from all others on average, then adds the one with
    the largest summed distance to those chosen. Ties go to the lower row.

    Parameters
    ----------
    embeddings : array-like, shape (n, d)
        Rows of zeros are never chosen.
    size : int
        How many to choose, from 1 to the number of rows that are not zero.

    Returns
    -------
    ndarray of int64, shape (size,)
        Rows in the order chosen: a prefix is the choice of a smaller size. Its diversity is
        `iss_intra(embeddings[rows])`.

    Raises
    ------
    InputError
        When the array is not (n, d) real finite numbers or `size` does not fit.

    References
    ----------
    Hassin, Rubinstein & Tamir 1997, Operations Research Letters 21, 133-137.
    """
    array = embedding_array(embeddings)
    sums = UnitSums.of(array)
    if not 1 <= size <= sums.count:
        raise InputError(f"size={size}: expected 1 to {sums.count}, the rows that are not zero")
    rows = np.flatnonzero(np.asarray(array != 0).any(axis=1))
    chosen = [int(np.argmin(projections(array, sums.total)))]
    cosines = np.zeros(len(rows))
    for _ in range(size - 1):
        newest = UnitSums.of(array[rows[chosen[-1]]][None]).total
        cosines += projections(array, newest)
        cosines[chosen[-1]] = np.inf
        chosen.append(int(np.argmin(cosines)))
    return np.asarray(rows[np.array(chosen)])
