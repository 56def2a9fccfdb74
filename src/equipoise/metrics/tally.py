"""Rows counted by three labels at once, without sorting or encoding them where labels are numbers.

Numbers of a small range are counted as they are: the place of a row in the table follows from its
labels by arithmetic. Counts are whole, so their sum does not depend on how rows are spread over
threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.columns import Column
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, stretches

Indices = npt.NDArray[np.int64]
Counted = npt.NDArray[np.int32]
Table = Indices | Counted
Pairs = npt.NDArray[np.uint32]

# Rows from which on a compiled pass is quicker than sorting, by more than loading it takes.
_MANY = 1 << 19
# Pairs of labels whose places stay in the caches.
_MOST_PAIRS = 1 << 22
# Rows and cells that 32 bits can count.
_MOST = 1 << 31
# Cells of a table before it grows.
_FIRST_CELLS = 1 << 18
# Rows that stay in the cache between being made int64 and being counted.
_CHUNK = 1 << 15
# Rows that go through the steps of counting together.
_BLOCK = 1024


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
    few = _MANY <= len(first) < _MOST and pairs <= _MOST_PAIRS and pairs * third.size < _MOST
    if not few and any(one.guessed for one in columns):
        raise OutOfRangeError
    keys, table = _counted_pairs(columns) if few else _sorted_pairs(columns)
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
    """Count in one pass: a pair gets a row of the table where it is met first."""
    first, second, third = columns
    ranges = np.array([end for one in columns for end in (one.low, one.size)], dtype=np.int64)

    def count(rows: range) -> tuple[Indices, Counted]:
        counted = _Counted(first.size * second.size, third.size)
        for few in _chunks(columns, rows):
            counted.add(few, ranges)
        return counted.ordered()

    return reduce(_together, each(count, stretches(len(first))))


class _Counted:
    """Counts of the pairs met so far, with room for more.

    `_begin` tells where the row of a pair begins in the table, from 1 on; 0: it has none.
    """

    def __init__(self, pairs: int, groups: int) -> None:
        self._begin = np.zeros(pairs, dtype=np.int32)
        self._table = np.zeros((max(1, _FIRST_CELLS // groups), groups), dtype=np.int32)
        self._keys = np.zeros(len(self._table), dtype=np.int64)
        self._many = 0

    def add(self, rows: Sequence[Indices], ranges: Indices) -> None:
        """Count rows of three columns; raise where one is out of range."""
        first, second, third = rows
        done = 0
        while done < len(first):
            where = (self._begin, self._keys, self._table.reshape(-1))
            done, self._many = _add(first, second, third, ranges, *where, done, self._many)
            if done < 0:
                raise OutOfRangeError
            if done < len(first):
                self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])

    def ordered(self) -> tuple[Indices, Counted]:
        """Return the pairs, sorted, and their rows of the table."""
        order = np.argsort(self._keys[: self._many])
        return self._keys[order], self._table[order]


def _together(
    one: tuple[Indices, Counted], other: tuple[Indices, Counted]
) -> tuple[Indices, Counted]:
    """Add two tables of sorted keys."""
    if np.array_equal(one[0], other[0]):
        return one[0], np.add(one[1], other[1], out=one[1])
    keys = np.union1d(one[0], other[0])
    table = np.zeros((len(keys), one[1].shape[1]), dtype=np.int32)
    for some, counted in (one, other):
        table[np.searchsorted(keys, some)] += counted
    return keys, table


def _chunks(columns: Sequence[Column], rows: range) -> Iterator[list[Indices]]:
    """Yield the values of rows as int64, of few at a time where they must be made such."""
    every = [one.values for one in columns]
    ready = all(one.dtype == np.int64 and one.flags.c_contiguous for one in every)
    step = max(len(rows), 1) if ready else _CHUNK
    for start in range(rows.start, rows.stop, step):
        few = slice(start, min(start + step, rows.stop))
        yield [np.ascontiguousarray(one[few], dtype=np.int64) for one in every]


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


_WHERE = "int64[::1], int32[::1], int64[::1], int32[::1]"


@compiled(f"UniTuple(int64, 2)({_LABELS}, {_LABELS}, {_LABELS}, {_WHERE}, int64, int64)")
def _add(  # noqa: PLR0913, PLR0917 - a kernel has no objects
    first: Indices,
    second: Indices,
    third: Indices,
    ranges: Indices,
    begin: Counted,
    keys: Indices,
    table: Counted,
    start: int,
    many: int,
) -> tuple[int, int]:
    """Count rows from `start` on; return where it stopped, and how many pairs are known.

    It stops at the end, at new pairs when the table is full, and with -1 at a row out of range.
    A few rows go through each step together, which takes half as long as row by row.
    """
    low, other_low, group_low = ranges[0], ranges[2], ranges[4]
    size, other_size, groups = np.uint64(ranges[1]), np.uint64(ranges[3]), np.uint64(ranges[5])
    places = np.empty(_BLOCK, dtype=np.uint32)
    for row in range(start, len(first), _BLOCK):
        end = min(row + _BLOCK, len(first))
        ones, others, group = first[row:end], second[row:end], third[row:end]
        outside = False
        for i in range(len(ones)):
            # What lies below a range is large without a sign.
            one, other = np.uint64(ones[i] - low), np.uint64(others[i] - other_low)
            far = np.uint64(group[i] - group_low) >= groups
            outside = bool(outside | far | (one >= size) | (other >= other_size))
            places[i] = np.uint32(one) * np.uint32(other_size) + np.uint32(other)
        if outside:
            return -1, many
        new = False
        for i in range(len(ones)):
            new = bool(new | (begin[places[i]] == 0))
        if new:
            many, entered = _enter(places[: len(ones)], begin, keys, many, ranges[5])
            if not entered:
                return row, many
        for i in range(len(ones)):
            places[i] = np.uint32(begin[places[i]] - 1) + np.uint32(group[i] - group_low)
        for i in range(len(ones)):
            table[places[i]] += 1
    return len(first), many


@compiled()
def _enter(
    places: Pairs, begin: Counted, keys: Indices, many: int, groups: int
) -> tuple[int, bool]:
    """Give new pairs their rows; return how many are known, and whether there was room."""
    for pair in places:
        if begin[pair] == 0:
            if many == len(keys):
                return many, False
            begin[pair], keys[many] = many * groups + 1, pair
            many += 1
    return many, True
