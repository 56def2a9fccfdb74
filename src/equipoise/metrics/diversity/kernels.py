"""Compiled loops over rows of embeddings: lengths, sums, projections, exchanges between sets.

Rows come as float32 or float64 and are computed with in float64, in one fixed order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint32]

_ROWS = "Array(float{}, 2, 'C', readonly=True)"


def _either(signature: str) -> tuple[str, str]:
    single, double = (signature.replace("rows", _ROWS.format(bits)) for bits in (32, 64))
    return single, double


@compiled(*_either("boolean(rows, float64[::1])"))
def inverse_lengths(rows: npt.NDArray[Any], scale: Floats) -> bool:
    """Write 1 / |row| of each row, 0 where squares sum to 0; False where they leave the range.

    Squares are summed in 64 lanes, as vector units do, and these in halves.
    """
    n, d = rows.shape
    whole = d - d % 64
    lanes = np.empty(64)
    for i in range(n):
        lanes[:] = 0.0
        for start in range(0, whole, 64):
            for j in range(64):
                x = np.float64(rows[i, start + j])
                lanes[j] += x * x
        for j in range(d - whole):
            x = np.float64(rows[i, whole + j])
            lanes[j] += x * x
        half = 32
        while half:
            for j in range(half):
                lanes[j] += lanes[j + half]
            half //= 2
        scale[i] = 0.0
        if lanes[0] != 0.0:
            if not 1e-250 < lanes[0] < 1e250:
                return False
            scale[i] = 1.0 / np.sqrt(lanes[0])
    return True


@compiled(*_either("void(rows, float64[::1], float64[::1])"))
def add_scaled(rows: npt.NDArray[Any], scale: Floats, total: Floats) -> None:
    """Add the rows, each times its scale, to `total` (d,)."""
    n, d = rows.shape
    for i in range(n):
        factor = scale[i]
        if factor != 0.0:
            for j in range(d):
                total[j] += factor * np.float64(rows[i, j])


@compiled(*_either("void(rows, float64[::1], float64[:, ::1], float64[:, ::1])"))
def project(rows: npt.NDArray[Any], scale: Floats, directions: Floats, found: Floats) -> None:
    """Write the inner products of rows, each times its scale, with directions (k, d): (n, k)."""
    n, d = rows.shape
    whole = d - d % 32
    lanes = np.empty(32)
    row = np.empty(d)
    for i in range(n):
        for j in range(d):
            row[j] = rows[i, j]
        for k in range(directions.shape[0]):
            lanes[:] = 0.0
            for start in range(0, whole, 32):
                for j in range(32):
                    lanes[j] += row[start + j] * directions[k, start + j]
            for j in range(d - whole):
                lanes[j] += row[whole + j] * directions[k, whole + j]
            half = 16
            while half:
                for j in range(half):
                    lanes[j] += lanes[j + half]
                half //= 2
            found[i, k] = lanes[0] * scale[i]


@compiled("void(uint64[::1], uint32[:, ::1])")
def shuffle(keys: npt.NDArray[np.uint64], labels: Labels) -> None:
    """Shuffle each line of labels with a stream of its own: all orders are equally likely.

    Fisher-Yates with SplitMix64, the mixed values of a counter that starts at the line's key,
    and Lemire's bounded numbers, which have no bias.

    References
    ----------
    Steele, Lea & Flood 2014, OOPSLA, 453-472; Lemire 2019, ACM TOMACS 29, 3.
    """
    for line in range(labels.shape[0]):
        state = keys[line]
        row = labels[line]
        for i in range(row.shape[0] - 1, 0, -1):
            many = np.uint64(i + 1)
            while True:
                state += np.uint64(0x9E3779B97F4A7C15)
                z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                product = ((z ^ (z >> np.uint64(31))) >> np.uint64(32)) * many
                low = product & np.uint64(0xFFFFFFFF)
                if low >= many or low >= np.uint64(0x100000000) % many:
                    break
            other = np.int64(product >> np.uint64(32))
            row[i], row[other] = row[other], row[i]


@compiled(
    *_either("void(rows, float64[::1], int64[::1], uint32[:, ::1], int64, float64[:, :, :, ::1])")
)
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
