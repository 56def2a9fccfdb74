"""Rows counted by pairs of labels of which there could be far more than occur: sorted, in threads.

Each thread makes one number of each of its rows and sorts them; what it counted is added up in the
order of the pairs, so that the number of threads does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Indices = npt.NDArray[np.int64]
Counted = npt.NDArray[np.int32]
Keys = npt.NDArray[np.unsignedinteger[Any]]
Rows = Callable[[range], Iterator[list[Indices]]]

# Cells that 32 bits tell apart, which sort in half of the time.
_NARROW = 1 << 32


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
    cells = sizes[0] * size * groups

    def sort(part: range) -> tuple[Keys, Indices]:
        keys: Keys = np.empty(len(part), dtype=np.uint32 if cells <= _NARROW else np.uint64)
        start = 0
        for first, second, group in rows(part):
            _number(first, second, group, size, groups, offset, keys[start : start + len(first)])
            start += len(first)
        keys.sort()
        pairs = np.empty(len(keys), dtype=np.int64)
        return keys, pairs[: _pairs(keys, groups, pairs)].copy()

    found = each(sort, parts)
    every = np.sort(np.concatenate([pairs for _, pairs in found]))
    every = every[np.append(True, every[1:] != every[:-1])]
    table = np.zeros((len(every), groups), dtype=np.int32)

    def pour(some: tuple[int, int]) -> None:
        first, last = some
        low, high = every[first] * groups, (every[last - 1] + 1) * groups
        for keys, _ in found:
            begin, end = np.searchsorted(keys, np.array([low, high - 1], keys.dtype))
            end += np.searchsorted(keys[end:], keys.dtype.type(high - 1), side="right")
            _pour(keys[begin:end], every[first:last], groups, table[first:last])

    ends = [len(every) * part // len(parts) for part in range(len(parts) + 1)]
    each(pour, [some for some in pairwise(ends) if some[0] < some[1]])
    return every, table


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
    "void(uint32[::1], int64[::1], int64, int32[:, ::1])",
    "void(uint64[::1], int64[::1], int64, int32[:, ::1])",
)
def _pour(keys: Keys, pairs: Indices, groups: int, table: Counted) -> None:
    """Add sorted cells to the rows of their pairs."""
    row = 0
    begin = pairs[0] * groups
    for key in keys:
        cell = np.int64(key)
        while cell >= begin + groups:
            row += 1
            begin = pairs[row] * groups
        table[row, cell - begin] += 1
