"""Rows counted by pairs of labels of which there could be far more than occur: sorted, in threads.

Each thread makes one number of each of its rows and sorts them; what they counted is added up pair
by pair, so that the number of threads does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled
from equipoise.stats.lent import lent
from equipoise.stats.threads import each

Indices = npt.NDArray[np.int64]
Counted = npt.NDArray[np.int32]
Keys = npt.NDArray[np.unsignedinteger[Any]]
Rows = Callable[[range], Iterator[list[Indices]]]
Write = Callable[[range, Keys], None]

# Cells that 32 bits tell apart, which sort in half of the time.
NARROW = 1 << 32
# Pairs whose rows of the table stay in the cache while they are counted.
_BLOCK = 1 << 12


def sorted_pairs(
    parts: Sequence[range], rows: Rows, sizes: tuple[int, int, int], offset: int
) -> tuple[Indices, Counted]:
    """Return the pairs that occur, sorted, and how often in each group, (pairs, groups).

    Parameters
    ----------
    parts : sequence of range
        Rows of each thread.
    rows : callable
        Gives the values of the three columns for a range of rows, a few rows at a time.
    sizes : tuple of int
        Places there are in each column; at most 2^62 together.
    offset : int
        The number of the first cell, `(first * size + second) * groups + group`.
    """
    _, size, groups = sizes

    def write(part: range, keys: Keys) -> None:
        start = 0
        for first, second, group in rows(part):
            _number(first, second, group, size, groups, offset, keys[start : start + len(first)])
            start += len(first)

    with written(parts, write, sizes[0] * size * groups) as keys:
        every = distinct(each(partial(sort_cells, groups=groups), keys))
        return every, poured(keys, every, np.arange(len(every)), groups, groups)


@contextmanager
def written(parts: Sequence[range], write: Write, cells: int) -> Iterator[list[Keys]]:
    """Lend the number of the cell of every row, `pair * groups + group`, by parts.

    Parameters
    ----------
    parts : sequence of range
        Rows of each thread.
    write : callable
        Given a range of rows, writes their numbers.
    cells : int
        Numbers there may be.
    """
    kind = np.dtype(np.uint32 if cells <= NARROW else np.uint64)
    with lent([len(part) for part in parts], kind) as keys:
        each(lambda which: write(parts[which], keys[which]), range(len(parts)))
        yield keys


def sort_cells(keys: Keys, groups: int) -> Indices:
    """Sort the numbers of cells where they are, and return the pairs that occur among them."""
    keys.sort()
    pairs: Indices = np.empty(len(keys), dtype=np.int64)
    return pairs[: _pairs(keys, groups, pairs)].copy()


def distinct(pairs: Sequence[Indices]) -> Indices:
    """Return every pair once, sorted."""
    every: Indices = np.sort(np.concatenate(pairs))
    new = np.append(True, every[1:] != every[:-1])
    return np.compress(new, every)


def poured(keys: Sequence[Keys], every: Indices, rows: Indices, groups: int, occur: int) -> Counted:
    """Return how often each pair is in each group, (pairs, groups that occur).

    Parameters
    ----------
    keys : sequence of ndarray
        Numbers of cells, each sorted.
    every : ndarray of int64, shape (pairs,)
        Sorted.
    rows : ndarray of int64, shape (pairs,)
        The row of each pair, all different.
    groups, occur : int
        Numbers there are for groups, and how many of them, from the first, may occur.
    """
    table = np.zeros((len(every), occur), dtype=np.int32)

    def pour(first: int) -> None:
        some = slice(first, min(first + _BLOCK, len(every)))
        low, high = every[first] * groups, (every[some.stop - 1] + 1) * groups
        for held in keys:
            begin, end = np.searchsorted(held, np.array([low, high - 1], held.dtype))
            end += np.searchsorted(held[end:], held.dtype.type(high - 1), side="right")
            _pour(held[begin:end], every[some], rows[some], groups, table)

    each(pour, range(0, len(every), _BLOCK))
    return table


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(
    f"void({_LABELS}, {_LABELS}, {_LABELS}, int64, int64, int64, uint32[::1])",
    f"void({_LABELS}, {_LABELS}, {_LABELS}, int64, int64, int64, uint64[::1])",
)
def _number(
    first: Indices,
    second: Indices,
    group: Indices,
    size: int,
    groups: int,
    offset: int,
    keys: Keys,
) -> None:
    """Write the number of each row's cell."""
    for row in range(len(keys)):
        keys[row] = (first[row] * size + second[row]) * groups + group[row] - offset


@compiled(
    "int64(uint32[::1], int64, int64[::1])",
    "int64(uint64[::1], int64, int64[::1])",
)
def _pairs(keys: Keys, groups: int, pairs: Indices) -> int:
    """Write the pairs that occur among sorted cells; return how many there are."""
    many, bound = 0, 0
    for key in keys:
        cell = np.int64(key)
        if cell >= bound:
            pairs[many] = cell // groups
            bound = (pairs[many] + 1) * groups
            many += 1
    return many


@compiled(
    "void(uint32[::1], int64[::1], int64[::1], int64, int32[:, ::1])",
    "void(uint64[::1], int64[::1], int64[::1], int64, int32[:, ::1])",
)
def _pour(keys: Keys, pairs: Indices, rows: Indices, groups: int, table: Counted) -> None:
    """Add sorted cells to the rows of their pairs."""
    row = 0
    begin = pairs[0] * groups
    for key in keys:
        cell = np.int64(key)
        while cell >= begin + groups:
            row += 1
            begin = pairs[row] * groups
        table[rows[row], cell - begin] += 1
