"""Rows counted by three columns of text at once, as they are read.

Each thread encodes some rows at a time and makes one number of each; codes of all rows are never
written, for which there would have to be more memory than for all else. Every thread numbers the
texts that it is the first to meet by itself, so one text may have several numbers until all are
put in order, which is done while the numbers of rows are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.labels import in_order
from equipoise.metrics.columns import Column, UnwrittenCodes, views
from equipoise.metrics.sorted_pairs import (
    NARROW,
    Counted,
    Keys,
    distinct,
    poured,
    sort_cells,
    written,
)
from equipoise.metrics.tally import Tally
from equipoise.metrics.texts import Views, texts_of
from equipoise.metrics.texts_compiled import number
from equipoise.stats.threads import each, stretches

Indices = npt.NDArray[np.int64]

# Rows whose codes stay in the cache until they are numbered.
_CHUNK = 1 << 16
# Rows that 32 bits can count.
_MOST = 1 << 31
# Cells that 62 bits tell apart.
_WIDE = 1 << 62
# Places that there are for truths and groups: those of the first rows, a part of them and some.
_PART, _SOME = 8, 4


class _NoRoomError(Exception):
    """There are more texts than numbers for them."""


@dataclass(frozen=True, eq=False)
class TextTally:
    """How often each pair of texts occurs in each group.

    Attributes
    ----------
    tally : Tally
        Sorted by the places of the first column, then of the second.
    first, second : Column
        Place c + 1 is that of `classes[c]`.
    third : Column
    classes : tuple of str
        Every text of the first and the second column, in order.
    """

    tally: Tally
    first: Column
    second: Column
    third: Column
    classes: tuple[str, ...]


def text_tally(*labels: Any) -> TextTally | None:
    """Count the rows of three columns by their texts.

    None where labels are no string views, few or more than 32 bits count, or of different lengths,
    or rows share too few of their texts for this to be quicker than encoding column by column.
    """
    columns = [one for one in map(views, labels) if one is not None]
    rows = {len(one) for one in columns}
    if len(columns) < len(labels) or len(rows) > 1 or max(rows) >= _MOST:
        return None
    begun = [one for one in each(Views.tried, columns) if one is not None]
    if len(begun) < len(columns):
        return None
    first, _, third = (one.many + one.many // _PART + _SOME for one in begun)
    for most in (NARROW, _WIDE):
        reading = _Reading(columns, begun, (first, most // (first * third), third))
        try:
            with written(reading.parts, reading.write, most) as keys:
                return _counted(reading, keys)
        except _NoRoomError:
            continue
    return None


def _counted(reading: _Reading, keys: Sequence[Keys]) -> TextTally:
    """Count the rows of which the numbers are written."""
    size, _, groups = reading.sizes
    sorting = [partial(sort_cells, part, groups) for part in keys]
    tasks: list[Callable[[], Any]] = [reading.in_order, *sorting]
    (classes, firsts, seconds), *found = each(lambda task: task(), tasks)
    every, places = distinct(found), len(classes) + 1
    of_pairs = firsts[every % size] * places + seconds[every // size]
    order = np.argsort(of_pairs)
    ordered = of_pairs[order]
    new = np.diff(ordered, prepend=-1) > 0
    place = np.cumsum(new) - 1
    # A pair that is met again has a row of its own until all are counted: threads share no row.
    rows, many = np.empty_like(order), int(new.sum())
    rows[order] = np.where(new, place, many + np.cumsum(~new) - 1)
    names = reading.texts(2)
    table = poured(keys, every, rows, groups, len(names) + 1)
    _add_rows(table[:many], place[~new], table[many:])
    names, table = _distinct(names, table[:many])
    first, second = (
        Column(UnwrittenCodes(column, classes), -1, places, classes)
        for column in reading.columns[:2]
    )
    of_groups = UnwrittenCodes(reading.columns[2], names)
    third = Column(of_groups, -1, len(names) + 1, names, ordered=False)
    pairs = ordered[new]
    tally = Tally(pairs // places, pairs % places, table)
    return TextTally(tally, first, second, third, classes)


def _add_rows(table: Counted, rows: Indices, added: Counted) -> None:
    """Add rows to those of a table that they belong to, sorted by these; several may be of one."""
    while len(rows):
        new = np.diff(rows, prepend=-1) > 0
        table[rows[new]] += added[new]
        rows, added = rows[~new], added[~new]


def _distinct(texts: pa.LargeStringArray, table: Counted) -> tuple[pa.LargeStringArray, Counted]:
    """Return each text once, and a table with a column for each of them after the first column."""
    coded = texts.dictionary_encode()
    if len(coded.dictionary) == len(texts):
        return texts, table[:, : len(texts) + 1]
    found = np.zeros((len(table), len(coded.dictionary) + 1), dtype=table.dtype)
    found[:, 0] = table[:, 0]
    for place, code in enumerate(coded.indices.to_pylist(), start=1):
        if code is not None:
            found[:, code + 1] += table[:, place]
    return coded.dictionary, found


@dataclass(frozen=True, eq=False)
class _Reading:
    """Columns that are read by threads, which go on from the views of the first rows.

    Attributes
    ----------
    columns : sequence of ChunkedArray
    begun : list of Views
    sizes : tuple of int
        Numbers there are for the places of each column.
    """

    columns: Sequence[pa.ChunkedArray]
    begun: list[Views]
    sizes: tuple[int, int, int]

    @cached_property
    def parts(self) -> list[range]:
        """Rows of each thread."""
        return stretches(len(self.columns[0]))

    @cached_property
    def _known(self) -> dict[int, list[Views]]:
        """The views of each column, by thread."""
        return {}

    def write(self, part: range, keys: Keys) -> None:
        """Write the number of the cell of each row: of its second, then first, then third place.

        Raises
        ------
        _NoRoomError
            When a code is beyond its column's size, or there are too many views.
        """
        thread, begun = self.parts.index(part), np.array([one.many for one in self.begun])
        known, sizes = [one.copy() for one in self.begun], np.array(self.sizes)
        self._known[thread] = known
        read = [np.empty(_CHUNK, np.int32) for _ in self.columns]
        for start in range(0, len(part), _CHUNK):
            few = part[start : start + _CHUNK]
            codes = [room[: len(few)] for room in read]
            for one, column, some in zip(known, self.columns, codes, strict=True):
                if not one.add(column[few.start : few.stop], some):
                    raise _NoRoomError
            many = np.array([one.many for one in known])
            if (begun + (many - begun) * len(self.parts) >= sizes).any():
                raise _NoRoomError
            first, second, third = codes
            place = keys[start : start + len(few)]
            number(first, second, third, begun, sizes, len(self.parts), thread, place)

    def in_order(self) -> tuple[tuple[str, ...], Indices, Indices]:
        """Return the texts of the first and the second column, sorted, and where theirs are.

        Returns
        -------
        tuple of str, ndarray, ndarray
            For each of the two columns the place of every code from -1 on: 0 for a missing text.
        """
        own = [self.texts(column) for column in (0, 1)]
        every = pa.concat_arrays(own)
        there = every.is_valid().to_numpy(zero_copy_only=False)
        names, places = in_order(every.drop_null())
        found = np.zeros(len(every), dtype=np.int64)
        found[there] = places + 1
        first, second = np.split(found, [len(own[0])])
        return names, np.append(0, first), np.append(0, second)

    def texts(self, column: int) -> pa.LargeStringArray:
        """Return the text of each code, null where no thread has it."""
        begun = self.begun[column]
        known = [every[column] for _, every in sorted(self._known.items())]
        new = [one.many - begun.many for one in known]
        place = np.full((max(new), len(known)), -1, dtype=np.int64)
        starts = begun.many + np.cumsum([0, *new[:-1]])
        for thread, (many, start) in enumerate(zip(new, starts.tolist(), strict=True)):
            place[:many, thread] = np.arange(start, start + many)
        where = np.append(np.arange(begun.many), place)
        return texts_of(begun, known).take(pa.array(where, mask=where < 0))
