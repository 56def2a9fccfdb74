"""Compiled loops over whole numbers: members counted, sums of columns and of subsets of members."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@compiled("void(Array(float64, 2, 'C', readonly=True), float64, float64, int64[::1])")
def add_whole(values: Floats, first: float, second: float, total: Whole) -> None:
    """Add the rows, times both factors and rounded to whole numbers, to `total` (d,)."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            total[j] += np.int64(np.rint(values[i, j] * first * second))


@compiled(
    "void(int64[::1], int64, int64, uint8[::1])", "void(int64[::1], int64, int64, float64[::1])"
)
def count_drawn(drawn: Whole, n: int, first: int, times: npt.NDArray[Any]) -> None:
    """Add 1 to the times that each of the members drawn has counted.

    Parameters
    ----------
    drawn : ndarray of int64, shape (draws,)
        Members, n for each line.
    n, first : int
        Members of a line, and the place of the first draw in the first line.
    times : ndarray, shape (lines * n,)
    """
    line, left = np.uint64(n * (first // n)), n - first % n
    for i in range(drawn.shape[0]):
        times[line + np.uint64(drawn[i])] += 1
        left -= 1
        if left == 0:
            line, left = line + np.uint64(n), n


@compiled("void(int64[::1], int64, int64[::1])")
def enumerate_sums(values: Whole, size: int, found: Whole) -> None:
    """Write the sums of all subsets of `size` members (n,), in lexicographic order.

    After its first member, a subset goes on as one of the last of one member fewer: all sums of
    those, which stand at the end, are added to the member in one run. Runs read what no earlier
    one wrote.
    """
    n, end = values.shape[0], found.shape[0]
    # Subsets that go on with all, all but the first, ... of the members left.
    lengths = np.ones(n - size + 1, np.int64)
    found[end - 1] = 0
    for chosen in range(size):
        place = end - lengths.sum()
        for spare in range(n - size, -1, -1):
            value, many = values[n - 1 - chosen - spare], lengths[spare]
            sums, rest = found[place : place + many], found[end - many :]
            for i in range(many):
                sums[i] = value + rest[i]
            place += many
        lengths = np.cumsum(lengths)


@compiled("void(int64[:, ::1], int64[::1], int64, int64, int64, float64[:, ::1])")
def differences(sums: Whole, total: Whole, n: int, m: int, bits: int, found: Floats) -> None:
    """Write the mean of a set minus the mean of the other, of numbers in fixed point.

    Parameters
    ----------
    sums : ndarray of int64, shape (draws, k)
        Of the first set.
    total : ndarray of int64, shape (k,)
        Of both sets.
    n, m : int
        Sizes of the sets.
    bits : int
        After the point.
    found : ndarray, shape (draws, k)
    """
    # In two steps, for 2^-bits may be no float.
    once, again = math.ldexp(1.0, -bits // 2), math.ldexp(1.0, -bits - -bits // 2)
    for draw in range(sums.shape[0]):
        for i in range(sums.shape[1]):
            first, second = sums[draw, i], total[i] - sums[draw, i]
            low = (first - second) / n if n == m else first / n - second / m
            found[draw, i] = low * once * again


@compiled("void(uint64[:, ::1], int64[:, ::1], int64[:, ::1])")
def add_chosen(words: npt.NDArray[np.uint64], values: Whole, found: Whole) -> None:
    """Write the sums of the members whose bits are set.

    Parameters
    ----------
    words : ndarray, shape (draws, w)
    values : ndarray, shape (k, 64 w)
        k numbers of each member.
    found : ndarray, shape (draws, k)
    """
    for line in range(words.shape[0]):
        for column in range(values.shape[0]):
            total = np.int64(0)
            for place in range(words.shape[1]):
                word = words[line, place]
                for bit in range(64):
                    chosen = -np.int64(word >> np.uint64(bit) & np.uint64(1))
                    total += values[column, 64 * place + bit] & chosen
            found[line, column] = total
