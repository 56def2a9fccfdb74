"""Rows counted by three labels at once, without sorting or encoding them where labels are numbers.

Numbers of a small range are counted as they are: the place of a row in the table follows from its
labels by arithmetic. Counts are whole, so their sum does not depend on how rows are spread over
threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.columns import Column, stretches
from equipoise.metrics.sorted_pairs import sorted_pairs
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Indices = npt.NDArray[np.int64]
Counted = npt.NDArray[np.int32]
Table = Indices | Counted
Marks = npt.NDArray[np.uint8]

# Rows from which on a compiled pass is quicker than sorting, by more than loading it takes.
_MANY = 1 << 19
# Pairs of labels whose marks and places stay in the caches.
_MOST_PAIRS = 1 << 22
# Cells that 63 bits tell apart, with numbers of either sign.
_MOST_KEYS = 1 << 61
# Rows and cells that 32 bits can count.
_MOST = 1 << 31
# Cells that are counted without marking first which pairs occur.
_FEW_CELLS = 1 << 18
# Rows that stay in the cache between being made int64 and being counted.
_CHUNK = 1 << 15


class OutOfRangeError(Exception):
    """A row lies outside of the range that was guessed for its column."""


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each pair of labels occurs in each group.

    Attributes
    ----------
    first, second : ndarray of int64, shape (pairs,)
        Places of the pairs that occur, sorted.
    table : ndarray of int32 or int64, shape (pairs, places of the third column)
    """

    first: Indices
    second: Indices
    table: Table


def tally(first: Column, second: Column, third: Column) -> Tally:
    """Count the rows of three columns of equal length by their places.

    Raises
    ------
    OutOfRangeError
        When the range of a column was guessed, and a row lies outside.
    """
    columns, pairs = (first, second, third), first.size * second.size
    found: tuple[Indices, Table] | None = None
    if not _MANY <= len(first) < _MOST:
        pass
    elif pairs <= _MOST_PAIRS and pairs * third.size < _MOST:
        found = _counted_pairs(columns)
    elif any(one.guessed for one in columns):
        raise OutOfRangeError
    elif pairs * third.size < _MOST_KEYS:
        low = (first.low * second.size + second.low) * third.size + third.low
        sizes = (first.size, second.size, third.size)
        found = sorted_pairs(stretches(len(first)), partial(_chunks, columns), sizes, low)
    keys, table = found or _sorted_pairs(columns)
    return Tally(keys // second.size, keys % second.size, table)


def _sorted_pairs(columns: Sequence[Column]) -> tuple[Indices, Indices]:
    first, second, third = (column.values for column in columns)
    sizes = [column.size for column in columns]
    if math.prod(sizes) >= 1 << 62:
        raise InputError(f"{sizes[0]} × {sizes[1]} × {sizes[2]} labels are too many to count")
    keys = first.astype(np.int64)
    for size, values in zip(sizes[1:], (second, third), strict=True):
        keys *= size
        keys += values
    keys -= (columns[0].low * sizes[1] + columns[1].low) * sizes[2] + columns[2].low
    keys.sort()
    begins = np.flatnonzero(_new(keys))
    cells, counts = keys[begins], np.diff(begins, append=len(keys))
    pairs = cells // sizes[2]
    new = _new(pairs)
    table = np.zeros((int(new.sum()), sizes[2]), dtype=np.int64)
    table[np.cumsum(new) - 1, cells % sizes[2]] = counts
    return pairs[new], table


def _new(ordered: Indices) -> npt.NDArray[np.bool_]:
    """Whether each number differs from the one before."""
    new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def _counted_pairs(columns: Sequence[Column]) -> tuple[Indices, Counted]:
    first, second, third = columns
    pairs = first.size * second.size
    marked = pairs * third.size > _FEW_CELLS
    keys = _occurring(first, second) if marked else np.arange(pairs)
    # Where the row of a pair begins in the table.
    begin = np.zeros(pairs, dtype=np.int32)
    begin[keys] = np.arange(len(keys)) * third.size
    ranges = _ranges(columns)

    def count(rows: range) -> Counted:
        table = np.zeros(len(keys) * third.size, dtype=np.int32)
        for one, other, group in _chunks(columns, rows):
            if not _add(one, other, group, ranges, begin, table):
                raise OutOfRangeError
        return table

    table = _sum(each(count, stretches(len(first)))).reshape(len(keys), third.size)
    if marked:
        return keys, table
    kept = np.flatnonzero(table.any(axis=1))
    return keys[kept], table[kept]


def _sum(tables: Sequence[Counted]) -> Counted:
    for table in tables[1:]:
        tables[0] += table
    return tables[0]


def _ranges(columns: Sequence[Column]) -> Indices:
    return np.array([end for one in columns for end in (one.low, one.size)], dtype=np.int64)


def _occurring(first: Column, second: Column) -> Indices:
    """Return the pairs that occur."""
    ranges = _ranges((first, second))
    seen = np.zeros(first.size * second.size, dtype=np.uint8)

    def mark(rows: range) -> None:
        for one, other in _chunks((first, second), rows):
            if not _mark(one, other, ranges, seen):
                raise OutOfRangeError

    each(mark, stretches(len(first)))
    return np.flatnonzero(seen.view(np.bool_))


def _chunks(columns: Sequence[Column], rows: range) -> Iterator[list[Indices]]:
    """Yield the values of rows as int64, of few at a time where they must be made such."""
    ready = all(one.values.dtype == np.int64 and one.values.flags.c_contiguous for one in columns)
    step = max(len(rows), 1) if ready else _CHUNK
    for start in range(rows.start, rows.stop, step):
        few = slice(start, min(start + step, rows.stop))
        yield [np.ascontiguousarray(one.values[few], dtype=np.int64) for one in columns]


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(f"boolean({_LABELS}, {_LABELS}, int64[::1], uint8[::1])")
def _mark(first: Indices, second: Indices, ranges: Indices, seen: Marks) -> bool:
    """Mark the pairs that occur; return False at a row out of range."""
    low, other_low = ranges[0], ranges[2]
    size, other_size = np.uint64(ranges[1]), np.uint64(ranges[3])
    for row in range(len(first)):
        # What lies below a range is large without a sign.
        one, other = np.uint64(first[row] - low), np.uint64(second[row] - other_low)
        if one >= size or other >= other_size:
            return False
        seen[one * other_size + other] = 1
    return True


@compiled(f"boolean({_LABELS}, {_LABELS}, {_LABELS}, int64[::1], int32[::1], int32[::1])")
def _add(
    first: Indices,
    second: Indices,
    third: Indices,
    ranges: Indices,
    begin: Counted,
    table: Counted,
) -> bool:
    """Count rows; return False at one out of range."""
    low, other_low, group_low = ranges[0], ranges[2], ranges[4]
    size, other_size, groups = np.uint64(ranges[1]), np.uint64(ranges[3]), np.uint64(ranges[5])
    for row in range(len(first)):
        one, other = np.uint64(first[row] - low), np.uint64(second[row] - other_low)
        group = np.uint64(third[row] - group_low)
        if one >= size or other >= other_size or group >= groups:
            return False
        table[np.uint64(begin[one * other_size + other]) + group] += 1
    return True
