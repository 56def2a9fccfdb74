"""Compiled loops over whole numbers: members counted, sums of columns and of subsets of members."""

from __future__ import annotations

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


@compiled("void(int64[:, ::1], int64, int64[:, ::1])")
def enumerate_sums(values: Whole, size: int, found: Whole) -> None:
    """Write the sums of all subsets of `size` >= 2 members (n, k), in lexicographic order.

    Sums of the first members of a subset are kept: the next subset shares most of them. The last
    two members run through all that can follow.
    """
    n, k = values.shape
    body = size - 2
    chosen = np.arange(body)
    partial = np.zeros((body + 1, k), np.int64)
    place, line = 0, 0
    while line < found.shape[0]:
        for i in range(place, body):
            for column in range(k):
                partial[i + 1, column] = partial[i, column] + values[chosen[i], column]
        for last_but_one in range(chosen[body - 1] + 1 if body else 0, n - 1):
            for column in range(k):
                base = partial[body, column] + values[last_but_one, column]
                for last in range(last_but_one + 1, n):
                    found[line + last - last_but_one - 1, column] = base + values[last, column]
            line += n - 1 - last_but_one
        place = body - 1
        while place > 0 and chosen[place] == n - size + place:
            place -= 1
        if body:
            chosen[place] += 1
            for i in range(place + 1, body):
                chosen[i] = chosen[i - 1] + 1


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
