"""Counts of independent rows with one label each, made without a number for each row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.arrays import Booleans, Integers, Integers32
from equipoise.core.errors import InputError
from equipoise.core.groups import CountedGroups, Groups
from equipoise.core.labels import coded, encode, in_order, label_array
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, stretches

Whole = npt.NDArray[np.integer[Any]] | Booleans

NOTHING = "no row has a true class, a prediction and a group; expected at least one"

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Rows that stay in the cache between being made int64 and being counted.
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
        outside is found when rows are counted, see `tally`.
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
        if known is not None:
            return cls.coded(*encode(known, what=what))
        array = label_array(labels, what=what)
        if array.ndim == 1 and array.dtype.kind in "iub" and len(array):
            guessed = guess and len(array) >= _MANY
            # Rows may be sorted.
            some = np.concatenate([array[:_FIRST], array[-_FIRST:]]) if guessed else array
            low, high = int(some.min()), int(some.max())
            size = high - low + 1
            if size <= max(_RANGE, len(array)) and -_EXACT < low <= high < _EXACT:
                return cls(array, low, size, guessed=guessed)
        return cls.coded(*encode(array, what=what))

    @classmethod
    def coded(cls, codes: Whole, names: tuple[str, ...]) -> Column:
        """Take codes into names, -1 being missing."""
        return cls(codes, -1, len(names) + 1, names)

    def __len__(self) -> int:
        return len(self.values)

    def places(self) -> Integers:
        """Return the place of each row."""
        return np.asarray(self.values, dtype=np.int64) - self.low

    def missing(self, places: Integers) -> Booleans:
        """Whether places stand for a missing label."""
        return np.asarray((places == 0) & (self.names is not None))

    def texts(self, places: Integers) -> list[str]:
        """Return the labels of places, none of them missing."""
        if self.names is not None:
            return [self.names[place - 1] for place in places.tolist()]
        return [str(value) for value in (places + self.low).astype(self.values.dtype).tolist()]


Table = Integers | Integers32

# Pairs of labels whose places stay in the caches.
_MOST_PAIRS = 1 << 22
# Rows and cells that 32 bits can count.
_MOST = 1 << 31
# Cells of a table; more are counted by sorting.
_ROOM = 1 << 19
# Rows that go through the steps of counting together.
_BLOCK = 1024


def tally(columns: Sequence[Column]) -> tuple[Sequence[Column], Integers, Table]:
    """Count the rows of three columns by their places in each.

    Returns
    -------
    columns : sequence of Column
        With ranges that hold all rows.
    pairs : ndarray of int64, shape (pairs,)
        Place in the first column times the size of the second, plus the place there; those that
        occur, sorted.
    table : ndarray of int32 or int64, shape (pairs, places of the third column)
    """
    found = _counted_pairs(columns)
    if found is None:
        columns = [Column.of(one.values, what="labels") if one.guessed else one for one in columns]
        found = _counted_pairs(columns) or _sorted_pairs(columns)
    return columns, *found


def _sorted_pairs(columns: Sequence[Column]) -> tuple[Integers, Table]:
    sizes = [column.size for column in columns]
    if math.prod(sizes) >= 1 << 62:
        raise InputError(f"{sizes[0]} × {sizes[1]} × {sizes[2]} labels are too many to count")
    keys = columns[0].places()
    for column in columns[1:]:
        keys *= column.size
        keys += column.places()
    cells, counts = np.unique(keys, return_counts=True)
    pairs, rows = np.unique(cells // sizes[2], return_inverse=True)
    table = np.zeros((len(pairs), sizes[2]), dtype=np.int64)
    table[rows, cells % sizes[2]] = counts
    return pairs, table


def _counted_pairs(columns: Sequence[Column]) -> tuple[Integers, Table] | None:
    """Count in one pass: a pair gets a row of the table where it is met first.

    None for few rows, where sorting is quicker than loading the compiled pass; for tables that are
    too large; and where a row lies outside of the range that was guessed for its column.
    """
    first, second, third = columns
    pairs, room = first.size * second.size, _ROOM // third.size
    if not _MANY <= len(first) < _MOST or pairs > _MOST_PAIRS or pairs * third.size >= _MOST:
        return None
    ranges = np.array([end for one in columns for end in (one.low, one.size)], dtype=np.int64)

    def count(rows: range) -> tuple[Integers, Integers32] | None:
        begin, keys = np.zeros(pairs, dtype=np.int32), np.zeros(room, dtype=np.int64)
        table, many = np.zeros(room * third.size, dtype=np.int32), 0
        for one, other, group in _chunks(columns, rows):
            many = _add(one, other, group, ranges, begin, keys, table, many)
            if many < 0:
                return None
        order = np.argsort(keys[:many])
        return keys[order], table.reshape(room, -1)[order]

    found = each(count, stretches(len(first)))
    known = [one for one in found if one is not None]
    return reduce(_together, known) if len(known) == len(found) else None


def _together(
    one: tuple[Integers, Integers32], other: tuple[Integers, Integers32]
) -> tuple[Integers, Integers32]:
    """Add two tables of sorted keys."""
    keys = np.union1d(one[0], other[0])
    table = np.zeros((len(keys), one[1].shape[1]), dtype=np.int32)
    for some, counted in (one, other):
        table[np.searchsorted(keys, some)] += counted
    return keys, table


def _chunks(columns: Sequence[Column], rows: range) -> Iterator[list[Integers]]:
    """Yield the values of rows as int64, of few at a time where they must be made such."""
    every = [one.values for one in columns]
    ready = all(one.dtype == np.int64 and one.flags.c_contiguous for one in every)
    step = max(len(rows), 1) if ready else _CHUNK
    for start in range(rows.start, rows.stop, step):
        few = slice(start, min(start + step, rows.stop))
        yield [np.ascontiguousarray(one[few], dtype=np.int64) for one in every]


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(
    f"int64({_LABELS}, {_LABELS}, {_LABELS}, int64[::1], int32[::1], int64[::1], int32[::1], int64)"
)
def _add(
    first: Integers,
    second: Integers,
    third: Integers,
    ranges: Integers,
    begin: Integers32,
    keys: Integers,
    table: Integers32,
    many: int,
) -> int:
    """Count rows; return how many pairs are known, -1 for a row out of range or a full table.

    `begin` tells where the row of a pair begins in the table, from 1 on; 0: it has none. A few
    rows go through each step together, which takes half as long as row by row.
    """
    low, other_low, group_low = ranges[0], ranges[2], ranges[4]
    size, other_size, groups = np.uint64(ranges[1]), np.uint64(ranges[3]), np.uint64(ranges[5])
    places = np.empty(_BLOCK, dtype=np.uint32)
    for row in range(0, len(first), _BLOCK):
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
            return -1
        new = False
        for i in range(len(ones)):
            new = bool(new | (begin[places[i]] == 0))
        if new and many + _BLOCK > len(keys):
            return -1
        for i in range(len(ones) if new else 0):
            if begin[places[i]] == 0:
                begin[places[i]], keys[many] = many * ranges[5] + 1, places[i]
                many += 1
        for i in range(len(ones)):
            places[i] = np.uint32(begin[places[i]] - 1) + np.uint32(group[i] - group_low)
        for i in range(len(ones)):
            table[places[i]] += 1
    return many


def count_cells(
    y_true: Any, y_pred: Any, groups: Any
) -> tuple[Groups, tuple[str, ...], Integers, Table, dict[str, int]]:
    """Count independent rows of one label each, see `equipoise.metrics.counts.count`.

    Returns
    -------
    groups : Groups
        Of the rows that are counted.
    classes : tuple of str
        Every label that occurs, sorted.
    keys : ndarray of int64, shape (outcomes,)
        Index of the true class times the number of classes, plus that of the label; sorted.
    table : ndarray of int32 or int64, shape (outcomes, groups)
    excluded : dict of str to int
    """
    given = Groups.of(groups) if isinstance(groups, Groups | Mapping) else None
    named = [(y_true, "y_true"), (y_pred, "y_pred"), (groups, "groups['group']")]
    columns = each(
        lambda one: Column.of(one[0], what=one[1], guess=True), named[: 2 if given else 3]
    )
    if given:
        columns.append(Column.coded(given.codes, given.names))
    check_lengths(len(columns[0]), y_pred=len(columns[1]), groups=len(columns[2]))
    (truth, label, group), pairs, table = tally(columns)
    columns = [truth, label, group]
    of_pair = np.divmod(pairs, label.size)
    kept, excluded = _complete(columns, of_pair, table)
    classes, of_truth, of_label = _classes(truth, label, of_pair)
    keys = of_truth[of_pair[0]] * len(classes) + of_label[of_pair[1]]
    if given:
        places = np.arange(1, group.size)
        made = (given.attributes, given.levels, given.min_size)
    else:
        places = np.flatnonzero(_totals(table))
        places = places[~group.missing(places)]
        made = (("group",), tuple((name,) for name in group.texts(places)), 1)
    keys, table = _by_key(keys, np.flatnonzero(kept), table)
    table = table.take(places, axis=1)

    def codes() -> Integers32:
        lost = np.any([one.missing(one.places()) for one in columns], axis=0)
        of_place = np.zeros(group.size, dtype=np.int32)
        of_place[places] = np.arange(len(places), dtype=np.int32)
        return np.asarray(of_place[group.places()[~lost]])

    return CountedGroups(made, _totals(table), codes), classes, keys, table, excluded


def _complete(
    columns: Sequence[Column], of_pair: tuple[Integers, Integers], table: Table
) -> tuple[Booleans, dict[str, int]]:
    """Return which pairs have a class, a label and a group, and rows without by reason."""
    truth, label, group = columns
    no_truth, no_label = truth.missing(of_pair[0]), label.missing(of_pair[1])
    kept = ~(no_truth | no_label)
    lost = {
        "missing true class": table[no_truth].sum(),
        "missing prediction": table[no_label & ~no_truth].sum(),
    }
    if group.names is not None:
        without = np.flatnonzero(table[:, 0])
        lost["missing group"] = table[without[kept[without]], 0].sum()
        # Some pairs occur without a group only.
        kept[without] &= table[without, 1:].any(axis=1)
    if not kept.any():
        raise InputError(NOTHING)
    return kept, {reason: int(many) for reason, many in lost.items() if many}


def _classes(
    truth: Column, label: Column, of_pair: tuple[Integers, Integers]
) -> tuple[tuple[str, ...], Integers, Integers]:
    """Return the sorted classes, and the class at each place of a truth and of a label."""
    columns = (truth, label)
    used = []
    for one, places in zip(columns, of_pair, strict=True):
        occur = np.flatnonzero(np.bincount(places, minlength=one.size))
        used.append(occur[~one.missing(occur)])
    texts = [one.texts(places) for one, places in zip(columns, used, strict=True)]
    names, of_texts = in_order(texts[0] + texts[1])
    first, second = (np.zeros(one.size, dtype=np.int64) for one in columns)
    first[used[0]], second[used[1]] = np.split(of_texts, [len(texts[0])])
    return names, first, second


def _by_key(key: Integers, rows: Integers, table: Table) -> tuple[Integers, Table]:
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


def _totals(table: Table) -> Integers:
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
