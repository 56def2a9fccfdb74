"""Counts of independent rows with one label each, made without a number for each row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import MIN_SIZE, Booleans, Groups, InputError, Integers, Integers32, encode
from equipoise.core.groups import CountedGroups
from equipoise.core.labels import coded, in_order, label_array
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, stretches

Whole = npt.NDArray[np.integer[Any]] | Booleans

NOTHING = "no row has a true class, a prediction and a group; expected at least one"

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12
# Rows from which on the compiled pass is quicker than sorting.
_MANY = 1 << 19
# Pairs of labels whose places stay in the caches.
_MOST_PAIRS = 1 << 22
# Cells of a table; more are counted by sorting.
_ROOM = 1 << 19
# Rows that 32 bits can count.
_MOST = 1 << 31
# Rows that go through the steps of counting together.
_BLOCK = 1024


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
    """

    values: Whole
    low: int
    size: int
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, labels: Any, *, what: str) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Arrow encodes text in its own memory, which is that of polars and pandas, too.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        known = coded(labels) or label_array(labels, what=what)
        if isinstance(known, np.ndarray) and known.ndim == 1 and known.dtype.kind in "iub":
            low, high = (int(known.min()), int(known.max())) if len(known) else (0, 0)
            size = high - low + 1
            if size <= max(_RANGE, len(known)) and -_EXACT < low <= high < _EXACT:
                return cls(known, low, size)
        return cls.coded(*encode(known, what=what))

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


def _sorted_pairs(columns: Sequence[Column]) -> tuple[Integers, Integers]:
    """Count the rows of three columns by their places in each.

    Returns
    -------
    pairs : ndarray of int64, shape (pairs,)
        Place in the first column times the size of the second, plus the place there; those that
        occur, sorted.
    table : ndarray of int64, shape (pairs, places of the third column)
    """
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


def _counted_pairs(columns: Sequence[Column]) -> tuple[Integers, Integers] | None:
    """Count in one pass: a pair gets a row of the table where it is met first.

    None for few rows, where sorting is quicker than loading the compiled pass, and for tables that
    are too large.
    """
    first, second, third = columns
    pairs, room = first.size * second.size, _ROOM // third.size
    if not _MANY <= len(first) < _MOST or pairs > _MOST_PAIRS:
        return None
    ranges = np.array([(one.low, one.size) for one in columns])

    def count(rows: range) -> tuple[Integers, Integers32] | None:
        some = slice(rows.start, rows.stop)
        ones, others, groups = (
            np.ascontiguousarray(one.values[some], dtype=np.int64) for one in columns
        )
        begin, keys = np.zeros(pairs, dtype=np.int32), np.zeros(room, dtype=np.int64)
        table = np.zeros(room * third.size, dtype=np.int32)
        many = _add(ones, others, groups, ranges, begin, keys, table)
        return None if many < 0 else (keys[:many], table.reshape(room, -1)[:many])

    parts = stretches(len(first))
    found = [one for one in each(count, parts) if one is not None]
    if len(found) < len(parts):
        return None
    known = np.unique(np.concatenate([keys for keys, _ in found]))
    table = np.zeros((len(known), third.size), dtype=np.int64)
    for keys, counted in found:
        table[np.searchsorted(known, keys)] += counted
    return known, table


# Labels may come from memory that must not be written.
_LABELS = "Array(int64, 1, 'C', readonly=True)"


@compiled(
    f"int64({_LABELS}, {_LABELS}, {_LABELS}, int64[:, ::1], int32[::1], int64[::1], int32[::1])"
)
def _add(
    first: Integers,
    second: Integers,
    third: Integers,
    ranges: Integers,
    begin: Integers32,
    keys: Integers,
    table: Integers32,
) -> int:
    """Count rows; return how many pairs are known, -1 where the table may be full.

    `begin` tells where the row of a pair begins in the table, from 1 on; 0: it has none. A few
    rows go through each step together, which is several times as quick as row by row.
    """
    low, other_low, group_low = ranges[0, 0], ranges[1, 0], ranges[2, 0]
    size, groups, many = np.uint32(ranges[1, 1]), ranges[2, 1], 0
    places = np.empty(_BLOCK, dtype=np.uint32)
    for row in range(0, len(first), _BLOCK):
        end = min(row + _BLOCK, len(first))
        ones, others, group = first[row:end], second[row:end], third[row:end]
        new = False
        for i in range(len(ones)):
            places[i] = np.uint32(ones[i] - low) * size + np.uint32(others[i] - other_low)
        for i in range(len(ones)):
            new = bool(new | (begin[places[i]] == 0))
        if new and many + _BLOCK > len(keys):
            return -1
        for i in range(len(ones) if new else 0):
            if begin[places[i]] == 0:
                begin[places[i]], keys[many] = many * groups + 1, places[i]
                many += 1
        for i in range(len(ones)):
            places[i] = np.uint32(begin[places[i]] - 1) + np.uint32(group[i] - group_low)
        for i in range(len(ones)):
            table[places[i]] += 1
    return many


def count_cells(
    y_true: Any, y_pred: Any, groups: Any
) -> tuple[Groups, tuple[str, ...], Integers, Integers, dict[str, int]]:
    """Count independent rows of one label each, see `equipoise.metrics.counts.count`.

    Returns
    -------
    groups : Groups
        Of the rows that are counted.
    classes : tuple of str
        Every label that occurs, sorted.
    keys : ndarray of int64, shape (outcomes,)
        Index of the true class times the number of classes, plus that of the label; sorted.
    table : ndarray of int64, shape (outcomes, groups)
    excluded : dict of str to int
    """
    given = Groups.of(groups) if isinstance(groups, Groups | Mapping) else None
    named = [(y_true, "y_true"), (y_pred, "y_pred"), (groups, "groups['group']")]
    columns = each(lambda one: Column.of(one[0], what=one[1]), named[: 2 if given else 3])
    if given:
        columns.append(Column.coded(given.codes, given.names))
    check_lengths(len(columns[0]), y_pred=len(columns[1]), groups=len(columns[2]))
    pairs, table = _counted_pairs(columns) or _sorted_pairs(columns)
    truth, label, group = columns
    of_pair = np.divmod(pairs, label.size)
    kept, excluded = _complete(columns, of_pair, table)
    classes, of_truth, of_label = _classes(truth, label, of_pair)
    keys = of_truth[of_pair[0]] * len(classes) + of_label[of_pair[1]]
    if given:
        places = np.arange(1, group.size)
        made = (given.attributes, given.levels, given.min_size)
    else:
        places = np.flatnonzero(table.sum(axis=0))
        places = places[~group.missing(places)]
        made = (("group",), tuple((name,) for name in group.texts(places)), MIN_SIZE)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(keys[rows], kind="stable")]
    keys, table = keys[rows], table[np.ix_(rows, places)]

    def codes() -> Integers32:
        lost = np.any([one.missing(one.places()) for one in columns], axis=0)
        of_place = np.zeros(group.size, dtype=np.int32)
        of_place[places] = np.arange(len(places), dtype=np.int32)
        return np.asarray(of_place[group.places()[~lost]])

    return CountedGroups(made, table.sum(axis=0), codes), classes, keys, table, excluded


def _complete(
    columns: Sequence[Column], of_pair: tuple[Integers, Integers], table: Integers
) -> tuple[Booleans, dict[str, int]]:
    """Return which pairs have a class, a label and a group, and rows without by reason."""
    truth, label, group = columns
    no_truth, no_label = truth.missing(of_pair[0]), label.missing(of_pair[1])
    complete, first = ~(no_truth | no_label), int(group.names is not None)
    lost = {
        "missing true class": table[no_truth].sum(),
        "missing prediction": table[no_label & ~no_truth].sum(),
        "missing group": table[complete, :first].sum(),
    }
    # Some pairs occur without a group only.
    kept = complete & table[:, first:].any(axis=1)
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
