"""Compiled loops over rows of embeddings: sums, projections, exchanges between sets.

Rows come as float32 or float64 and are computed with in float64, in one fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.metrics.unit_rows import float_rows
from equipoise.stats.compiled import compiled

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

_SCATTER = tuple(
    signature
    for bits in (8, 16)
    for signature in float_rows(
        f"void(rows, float64[::1], int64[::1], uint{bits}[:, ::1], int64, float64[:, :, :, ::1])"
    )
)


@compiled(*float_rows("void(rows, float64[::1], float64[::1])"))
def add_scaled(rows: npt.NDArray[Any], scale: Floats, total: Floats) -> None:
    """Add the rows, each times its scale, to `total` (d,)."""
    n, d = rows.shape
    for i in range(n):
        factor = scale[i]
        if factor != 0.0:
            for j in range(d):
                total[j] += factor * np.float64(rows[i, j])


@compiled(*_SCATTER)
def scatter(
    rows: npt.NDArray[Any],
    scale: Floats,
    used: npt.NDArray[np.int64],
    labels: Labels,
    first: int,
    totals: Floats,
) -> None:
    """Add unit rows to the sums of the sets that each permutation puts them in.

    Tiles of 64 rows and 64 columns, and the sums of one permutation, stay in the first cache;
    indices are unsigned, so that none is checked for counting from the end.

    Parameters
    ----------
    rows, scale : ndarray, shape (n, d), (n,)
    used : ndarray, shape (m,)
        Rows that are not zero: these have labels.
    labels : ndarray, shape (permutations, all rows that are not zero)
    first : int
        Column of `labels` that belongs to the first of the used rows.
    totals : ndarray, shape (tiles of columns, permutations, sets, 64)
    """
    d = rows.shape[1]
    tile = np.zeros((64, 64))
    for done in range(0, used.shape[0], 64):
        chosen = used[done : done + 64]
        many = np.uint64(chosen.shape[0])
        begin = np.uint64(first + done)
        for column in range(np.uint64(totals.shape[0])):
            start = np.int64(column) * 64
            for i in range(chosen.shape[0]):
                for j in range(64):
                    inside = start + j < d
                    number = np.float64(rows[chosen[i], start + j]) if inside else 0.0
                    tile[i, j] = scale[chosen[i]] * number
            for line in range(np.uint64(labels.shape[0])):
                for i in range(many):
                    to = np.uint64(labels[line, begin + i])
                    for j in range(np.uint64(64)):
                        totals[column, line, to, j] += tile[i, j]
