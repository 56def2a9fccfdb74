"""Counts of independent rows with one label each, made without a number for each row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import CountedGroups, Groups
from equipoise.core.labels import Codes, check_unmasked, coded, encode, in_order, label_array
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, stretches

Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Rows that stay in the cache while the smallest and the largest of them are found.
_CHUNK = 1 << 15
# Rows at either end whose smallest and largest are taken for those of all.
_FIRST = 1 << 13
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12
# Rows from which on guessing a range is quicker than reading all of them.
_MANY = 1 << 19


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
        What places 1, 2, ... stand for, sorted, place 0 being missing; None: the numbers
        themselves.
    guessed : bool
        Whether `low` and `size` are those of some rows, which saves reading all: a row that lies
        outside is found when rows are counted, see `exact`.
    """

    values: Whole
    low: int
    size: int
    names: tuple[str, ...] | None = None
    guessed: bool = False

    @classmethod
    def of(cls, labels: Any, *, what: str, guess: bool = False) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Arrow encodes text in its own memory, which is that of polars and pandas, too.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        known = None if isinstance(labels, np.ndarray) else coded(labels)
        array = label_array(labels, what=what) if known is None else None
        numbers = None if array is None else cls._numbers(array, guess=guess)
        if numbers is not None:
            return numbers
        return cls.coded(*encode(array if known is None else known, what=what))

    @classmethod
    def _numbers(cls, array: Whole, *, guess: bool) -> Column | None:
        """Take numbers of a small range as they are; None for others."""
        if array.ndim != 1 or array.dtype.kind not in "iub" or not len(array):
            return None
        guessed = guess and len(array) >= _MANY
        low, high = _range_of_some(array) if guessed else _range(array)
        size = high - low + 1
        if size > max(_RANGE, len(array)) or not -_EXACT < low <= high < _EXACT:
            return None
        return cls(array, low, size, guessed=guessed)

    @classmethod
    def coded(cls, codes: Whole, names: tuple[str, ...]) -> Column:
        """Take codes into names, -1 being missing."""
        return cls(codes, -1, len(names) + 1, names)

    def exact(self) -> Column:
        """Return the column with the range of all rows."""
        return Column.of(self.values, what="labels") if self.guessed else self

    @property
    def numeric(self) -> bool:
        """Whether labels are the numbers themselves."""
        return self.names is None and self.values.dtype.kind != "b"

    def __len__(self) -> int:
        return len(self.values)

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


def columns(*named: tuple[Any, str]) -> list[Column]:
    """Take several labels, each with its name for errors, in threads; ranges are guessed.

    Raises
    ------
    InputError
        As `Column.of`.
    """
    return each(lambda one: Column.of(one[0], what=one[1], guess=True), named)


def _range(array: Whole) -> tuple[int, int]:
    """Return the smallest and the largest, reading each stretch of rows from memory once."""
    ends = each(lambda rows: _range_of(array[rows.start : rows.stop]), stretches(len(array)))
    return min(low for low, _ in ends), max(high for _, high in ends)


def _range_of_some(array: Whole) -> tuple[int, int]:
    """Return the smallest and the largest of the first and the last rows: rows may be sorted."""
    return _range_of(np.concatenate([array[:_FIRST], array[-_FIRST:]]))


def _range_of(array: Whole) -> tuple[int, int]:
    parts = [array[start : start + _CHUNK] for start in range(0, len(array), _CHUNK)]
    return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)


Counted = npt.NDArray[np.int32]
Table = Indices | Counted
Pairs = npt.NDArray[np.uint32]

# Rows from which on a compiled pass is quicker than sorting, by more than loading it takes.
# Pairs of labels whose places stay in the caches.
_MOST_PAIRS = 1 << 22
# Rows and cells that 32 bits can count.
_MOST = 1 << 31
# Cells of a table before it grows.
_FIRST_CELLS = 1 << 18
# Rows that stay in the cache between being made int64 and being counted.
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


Mask = npt.NDArray[np.bool_]

# Places for each number of them below which marking is quicker than sorting.
_DENSE = 16


@dataclass(frozen=True, eq=False)
class Cells:
    """How many rows have each true class, predicted label and group.

    Attributes
    ----------
    groups : Groups
        The groups of the rows that were counted.
    classes : tuple of str
        Every label that occurs as truth or prediction, sorted.
    truth, prediction : ndarray of int64, shape (outcomes,)
        Indices into `classes`; outcomes are sorted by truth, then prediction.
    table : ndarray of int32 or int64, shape (outcomes, groups)
    excluded : mapping of str to int
        Rows that were not counted, by reason.
    """

    groups: Groups
    classes: tuple[str, ...]
    truth: Indices
    prediction: Indices
    table: Table
    excluded: Mapping[str, int]

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, groups: Any) -> Cells:
        """Count rows; see `equipoise.metrics.counts.count`."""
        for labels, what in ((y_true, "y_true"), (y_pred, "y_pred"), (groups, "groups")):
            check_unmasked(labels, what=what)
        given, found = _Columns.counted(y_true, y_pred, groups)
        places = given.group_places(found)
        no_truth = given.truth.missing(found.first)
        no_label = given.label.missing(found.second)
        kept = ~(no_truth | no_label)
        lost = {
            "missing true class": found.table[no_truth].sum(),
            "missing prediction": found.table[no_label & ~no_truth].sum(),
        }
        if given.group.names is not None:
            without = np.flatnonzero(found.table[:, 0])
            lost["missing group"] = found.table[without[kept[without]], 0].sum()
            # Some pairs occur without a group only.
            kept[without] &= found.table[without, 1:].any(axis=1)
        check_any(kept)
        classes, of_truth, of_label = given.classes(found)
        key = of_truth[found.first] * len(classes) + of_label[found.second]
        key, counted = _by_key(key, np.flatnonzero(kept), found.table)
        counted = _take(counted, places)
        return cls(
            given.groups(places, _totals(counted)),
            classes,
            key // len(classes),
            key % len(classes),
            counted,
            {reason: int(many) for reason, many in lost.items() if many},
        )


@dataclass(frozen=True, eq=False)
class _Columns:
    """True classes, predicted labels and groups.

    Attributes
    ----------
    truth, label, group : Column
    given : Groups or None
        Groups that were given as such.
    """

    truth: Column
    label: Column
    group: Column
    given: Groups | None = None

    @classmethod
    def counted(cls, y_true: Any, y_pred: Any, groups: Any) -> tuple[_Columns, Tally]:
        """Take columns and count their rows."""
        given = cls.of(y_true, y_pred, groups)
        try:
            return given, tally(given.truth, given.label, given.group)
        except OutOfRangeError:
            given = given.exact()
            return given, tally(given.truth, given.label, given.group)

    @classmethod
    def of(cls, y_true: Any, y_pred: Any, groups: Any) -> _Columns:
        """Take columns as they are where they can be counted so."""
        given = Groups.of(groups) if isinstance(groups, Groups | Mapping) else None
        named = [(y_true, "y_true"), (y_pred, "y_pred")]
        if given is None:
            named.append((groups, "groups['group']"))
        truth, label, *rest = columns(*named)
        group = Column.coded(given.codes, given.names) if given else rest[0]
        check_lengths(len(truth), y_pred=len(label), groups=len(group))
        return cls(truth, label, group, given)

    def exact(self) -> _Columns:
        """Return them with the ranges of all rows."""
        truth, label, group = (one.exact() for one in (self.truth, self.label, self.group))
        return _Columns(truth, label, group, self.given)

    def group_places(self, found: Tally) -> Indices:
        """Return the place of each group: of those given all, else of those that occur."""
        if self.given:
            return np.arange(1, self.group.size)
        places = np.flatnonzero(_totals(found.table))
        return places[~self.group.missing(places)]

    def classes(self, found: Tally) -> tuple[tuple[str, ...], Indices, Indices]:
        """Return the sorted classes, and the class at each place of a truth and of a label."""
        columns = (
            (self.truth, _used(found.first, self.truth)),
            (self.label, _used(found.second, self.label)),
        )
        used = [(one, places[~one.missing(places)]) for one, places in columns]
        if all(column.numeric for column, _ in used):
            return _numbered(*used)
        texts = [column.texts(places) for column, places in used]
        names, of_texts = in_order(texts[0] + texts[1])
        of_columns = []
        for (column, places), some in zip(used, np.split(of_texts, [len(texts[0])]), strict=True):
            classes = np.zeros(column.size, dtype=np.int64)
            classes[places] = some
            of_columns.append(classes)
        return names, of_columns[0], of_columns[1]

    def groups(self, places: Indices, counts: Indices) -> Groups:
        """Return the groups of the rows that are counted."""
        if self.given:
            made = (self.given.attributes, self.given.levels, self.given.min_size)
        else:
            made = (("group",), tuple((name,) for name in self.group.texts(places)), 1)
        return CountedGroups(made, counts, lambda: self._codes(places))

    def _codes(self, places: Indices) -> Codes:
        """Return the group of each row that is counted."""
        columns = (self.truth, self.label, self.group)
        lost = np.any([column.lacks() for column in columns], axis=0)
        codes = np.zeros(self.group.size, dtype=np.int32)
        codes[places] = np.arange(len(places), dtype=np.int32)
        return np.asarray(codes[self.group.places()[~lost]])


def _used(places: Indices, column: Column) -> Indices:
    """Return the places that occur, sorted."""
    if column.size > _DENSE * len(places):
        return np.unique(places)
    seen = np.zeros(column.size, dtype=bool)
    seen[places] = True
    return np.flatnonzero(seen)


def _numbered(*used: tuple[Column, Indices]) -> tuple[tuple[str, ...], Indices, Indices]:
    """Return what `_Columns.classes` does for numbers, which need not be sorted as texts."""
    numbers = np.unique(np.concatenate([places + column.low for column, places in used]))
    first, second = (
        np.searchsorted(numbers, np.arange(column.low, column.low + column.size))
        for column, _ in used
    )
    return tuple(map(str, numbers.tolist())), first, second


def _by_key(key: Indices, rows: Indices, table: Table) -> tuple[Indices, Table]:
    """Return the keys of rows, sorted, and those rows of a table, equal keys added."""
    chosen = key[rows]
    if not (np.diff(chosen) > 0).all():
        order = np.argsort(chosen, kind="stable")
        chosen, rows = chosen[order], rows[order]
    elif len(rows) == len(table):
        return chosen, table
    first = np.flatnonzero(np.diff(chosen, prepend=-1))
    table = table.take(rows, axis=0)
    return chosen[first], table if len(first) == len(rows) else np.add.reduceat(table, first)


def _take(table: Table, places: Indices) -> Table:
    """Return columns, without a copy where they lie beside each other."""
    if len(places) and (np.diff(places) == 1).all():
        return table[:, places[0] : places[-1] + 1]
    return table.take(places, axis=1)


def _totals(table: Table) -> Indices:
    """Return the sum of each column: no more than there are rows, which its type can hold."""
    return np.asarray(table.sum(axis=0, dtype=table.dtype), dtype=np.int64)


def check_lengths(expected: int, **lengths: int) -> None:
    """Check that every column has as many rows as the true classes.

    Raises
    ------
    InputError
        When one has not.
    """
    for name, length in lengths.items():
        if length != expected:
            raise InputError(f"{name}: {length} rows; expected {expected}, as in y_true")


def check_any(kept: Mask) -> None:
    """Check that something is left to count.

    Raises
    ------
    InputError
        When nothing is.
    """
    if not kept.any():
        raise InputError("no row has a true class, a prediction and a group; expected at least one")
