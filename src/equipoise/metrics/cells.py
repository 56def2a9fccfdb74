"""Counts of independent rows with one label each, made without a number for each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import CountedGroups, Groups
from equipoise.core.labels import Codes, in_order
from equipoise.core.masked import check_unmasked
from equipoise.metrics.columns import Column, columns
from equipoise.metrics.tally import OutOfRangeError, Table, Tally, tally

Indices = npt.NDArray[np.int64]
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
