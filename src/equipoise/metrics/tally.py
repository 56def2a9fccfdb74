"""Rows counted by three labels at once, without sorting or encoding them where labels are numbers.

Numbers of a small range are counted as they are: the place of a row in the table follows from its
labels by arithmetic. Counts are whole, so their sum does not depend on how rows are spread over
threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import coded, encode, label_array
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, threads

Indices = npt.NDArray[np.int64]
Counted = npt.NDArray[np.int32]
Marks = npt.NDArray[np.uint8]
Whole = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]

# Rows from which on a compiled pass is quicker than sorting, by more than loading it takes.
_MANY = 1 << 19
# Pairs of labels whose marks and places stay in the caches.
_MOST_PAIRS = 1 << 22
# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Rows and cells that 32 bits can count.
_MOST = 1 << 31
# Cells that are counted without marking first which pairs occur.
_FEW_CELLS = 1 << 18
# Rows that stay in the cache between being made int64 and being counted.
_CHUNK = 1 << 15
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12


@dataclass(frozen=True, eq=False)
class Column:
    """Labels as whole numbers from `low` on; the distance from it is a label's place.

    Attributes
    ----------
    values : ndarray of integers or booleans, shape (n,)
    low : int
    size : int
        Places there are, used or not.
    names : tuple of str or None
        What places 1, 2, ... stand for, place 0 being missing; None: the numbers themselves.
    ordered : bool
        Whether places are in the order of their labels.
    """

    values: Whole
    low: int
    size: int
    names: tuple[str, ...] | None = None
    ordered: bool = True

    @classmethod
    def of(cls, labels: Any, *, what: str) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        known = coded(labels)
        if known is not None:
            names = known.vocabulary
            return cls(np.asarray(known.codes), -1, len(names) + 1, names, ordered=False)
        array = label_array(labels, what=what)
        if array.ndim == 1 and array.dtype.kind in "iub" and len(array):
            low, high = _range(array)
            size = high - low + 1
            if size <= max(_RANGE, len(array)) and low > -_EXACT and high < _EXACT:
                return cls(array, low, size)
        return cls.coded(*encode(array, what=what))

    @classmethod
    def coded(cls, codes: Whole, names: tuple[str, ...]) -> Column:
        """Take codes into names, -1 being missing."""
        return cls(codes, -1, len(names) + 1, names)

    @property
    def numeric(self) -> bool:
        """Whether labels are the numbers themselves."""
        return self.names is None and self.values.dtype.kind != "b"

    def __len__(self) -> int:
        return len(self.values)

    def used(self, places: Indices) -> Indices:
        """Return places in the order of their labels, without that of missing ones."""
        places = places[~self.missing(places)]
        if self.ordered:
            return places
        texts = self.texts(places)
        return places[sorted(range(len(texts)), key=texts.__getitem__)]

    def places(self) -> Indices:
        """Return the place of each row."""
        return np.asarray(self.values, dtype=np.int64) - self.low

    def lacks(self) -> npt.NDArray[np.bool_]:
        """Whether each row has no label."""
        return self.missing(self.places())

    def missing(self, places: Indices) -> npt.NDArray[np.bool_]:
        """Whether places stand for a missing label."""
        return np.asarray((places == 0) & (self.names is not None))

    def texts(self, places: Indices) -> list[str]:
        """Return the labels of places, none of them missing."""
        if self.names is not None:
            return [self.names[place - 1] for place in places.tolist()]
        return [str(value) for value in (places + self.low).astype(self.values.dtype).tolist()]


def _range(array: Whole) -> tuple[int, int]:
    """Return the smallest and the largest, reading each stretch of rows from memory once."""
    parts = [array[start : start + _CHUNK] for start in range(0, len(array), _CHUNK)]
    return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)


@dataclass(frozen=True, eq=False)
class Tally:
    """How often each pair of labels occurs in each group.

    Attributes
    ----------
    first, second : ndarray of int64, shape (pairs,)
        Places of the pairs that occur, sorted.
    table : ndarray of int64, shape (pairs, places of the third column)
    """

    first: Indices
    second: Indices
    table: Indices


def tally(first: Column, second: Column, third: Column) -> Tally:
    """Count the rows of three columns of equal length by their places."""
    columns, pairs = (first, second, third), first.size * second.size
    cells = pairs * third.size
    if not _MANY <= len(first) < _MOST or pairs > _MOST_PAIRS or cells >= _MOST:
        keys, table = _sorted_pairs(columns)
    else:
        keys, table = _counted_pairs(columns)
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


def _counted_pairs(columns: Sequence[Column]) -> tuple[Indices, Indices]:
    first, second, third = columns
    pairs = first.size * second.size
    offset = first.low * second.size + second.low
    marked = pairs * third.size > _FEW_CELLS
    keys = _occurring(columns, offset) if marked else np.arange(pairs)
    # Where the row of a pair begins in the table, less the number of its first group.
    begin = np.zeros(pairs, dtype=np.int32)
    begin[keys] = np.arange(len(keys)) * third.size - third.low

    def count(rows: range) -> Counted:
        table = np.zeros(len(keys) * third.size, dtype=np.int32)
        for one, other, group in _chunks(columns, rows):
            _add(one, other, group, second.size, offset, begin, table)
        return table

    tables = each(count, _parts(len(first)))
    table = np.sum(tables, axis=0, dtype=np.int64).reshape(len(keys), third.size)
    kept = np.flatnonzero(table.any(axis=1))
    return keys[kept], table if marked else table[kept]


def _occurring(columns: Sequence[Column], offset: int) -> Indices:
    """Return the pairs that occur."""
    first, second = columns[:2]
    seen = np.zeros(first.size * second.size, dtype=np.uint8)

    def mark(rows: range) -> None:
        for one, other in _chunks((first, second), rows):
            _mark(one, other, second.size, offset, seen)

    each(mark, _parts(len(first)))
    return np.flatnonzero(seen.view(np.bool_))


def _parts(rows: int) -> list[range]:
    """Cut rows into as many stretches as there are threads: sums of counts do not depend on it."""
    ends = [rows * part // threads() for part in range(threads() + 1)]
    return [range(start, end) for start, end in pairwise(ends)]


def _chunks(columns: Sequence[Column], rows: range) -> Iterator[list[Indices]]:
    """Yield the values of few rows at a time as int64."""
    for start in range(rows.start, rows.stop, _CHUNK):
        few = slice(start, min(start + _CHUNK, rows.stop))
        yield [np.ascontiguousarray(one.values[few], dtype=np.int64) for one in columns]


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(f"void({_LABELS}, {_LABELS}, int64, int64, uint8[::1])")
def _mark(first: Indices, second: Indices, size: int, offset: int, seen: Marks) -> None:
    for row in range(len(first)):
        seen[first[row] * size + second[row] - offset] = 1


@compiled(f"void({_LABELS}, {_LABELS}, {_LABELS}, int64, int64, int32[::1], int32[::1])")
def _add(
    first: Indices,
    second: Indices,
    third: Indices,
    size: int,
    offset: int,
    begin: Counted,
    table: Counted,
) -> None:
    for row in range(len(first)):
        table[begin[first[row] * size + second[row] - offset] + third[row]] += 1
