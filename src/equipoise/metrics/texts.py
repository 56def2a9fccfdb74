"""Codes of texts that lie in memory as views of 16 bytes, the form of polars and newer Arrow.

A view holds a text of up to 12 bytes itself, and else its length, its first 4 bytes and where the
whole text lies. Rows with equal views have equal texts. Where many rows share their texts (short
ones do; long ones after a join, a gather, or read from a dictionary of Parquet), it is enough to
read the text of each distinct view, not of each row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from equipoise.metrics.texts_compiled import (
    LENGTH,
    VIEW,
    Bits,
    Codes,
    Words,
    encode,
    enlarged,
    join,
    numbered_anew,
)
from equipoise.stats.threads import each, stretches

# Views that there is room for at first: a power of 2.
_ROOM = 1 << 12
# Slots of the table for each view that there is room for.
_SLOTS = 4
# Rows, of so many, that tell whether rows share texts, and by how much views may outnumber texts.
_TRIED, _APART = 32, 1.25
# Rows for each view from which on rows share texts without doubt.
_OFTEN = 1.5
# Rows for each view from which on this is quicker than reading the text of each row.
_RATHER = 8


@dataclass(frozen=True, eq=False)
class Viewed:
    """Codes of a column of views, and what they stand for.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
        -1 where a text is missing or "".
    texts : LargeStringArray of Arrow
        Each once, in the order in which they occur first.
    """

    codes: Codes
    texts: pa.LargeStringArray


def coded_views(column: pa.ChunkedArray) -> Viewed | None:
    """Encode a column of string views, its rows spread over threads.

    None where rows share too few of their texts for this to be quicker.
    """
    begun = Views.tried(column)
    if begun is None:
        return None
    codes = np.empty(len(column), dtype=np.int32)
    parts = stretches(len(column))
    # Every thread goes on from the views that the first rows have.
    known = [begun.copy() for _ in parts]

    def add(which: int) -> bool:
        part = slice(parts[which].start, parts[which].stop)
        return known[which].add(column[part], codes[part])

    if not all(each(add, range(len(parts)))):
        return None
    texts, numbers = together(begun, known)

    def renumber(which: int) -> None:
        if not np.array_equal(numbers[which], np.arange(len(numbers[which]))):
            numbered_anew(codes[parts[which].start : parts[which].stop], numbers[which])

    each(renumber, range(len(parts)))
    return Viewed(codes, texts)


def together(begun: Views, known: Sequence[Views]) -> tuple[pa.LargeStringArray, list[Codes]]:
    """Return the texts of several views that went on from the same ones, and where theirs are.

    Parameters
    ----------
    begun : Views
    known : sequence of Views
        In the order of their rows.

    Returns
    -------
    texts : LargeStringArray of Arrow
        Each once, in the order in which they occur first.
    numbers : list of ndarray of int32
        For each of the views the number of the text that each code stands for.
    """
    coded = texts_of(begun, known).dictionary_encode()
    ends = np.cumsum([begun.many, *(one.many - begun.many for one in known)])[:-1]
    first, *later = np.split(coded.indices.to_numpy(), ends)
    return coded.dictionary, [np.append(first, own) for own in later]


def texts_of(begun: Views, known: Sequence[Views]) -> pa.LargeStringArray:
    """Return the texts of some views, then those that each of others has beyond them."""
    return pa.concat_arrays([begun.texts(), *(one.texts(begun.many) for one in known)])


@dataclass(frozen=True, eq=False)
class _Memory:
    """All memory from the first to the last buffer of texts; only the buffers are read."""

    bytes: Bits
    begin: int

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Memory:
        buffers = [one for chunk in column.chunks for one in chunk.buffers()[2:]]
        begin = min((one.address for one in buffers), default=0)
        size = max((one.address + one.size for one in buffers), default=0) - begin
        if not size:
            return cls(np.zeros(0, dtype=np.uint8), 0)
        return cls(np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(begin)), begin)


class Views:
    """The distinct views so far (`many`), and a table that finds them.

    `_seen` holds for each code the first word of its view, then the second word or, of a long
    text, its place in memory. A slot of the table holds one more than a code, or 0.
    """

    def __init__(self, memory: _Memory, most: int, many: int, seen: Words, table: Codes) -> None:
        self._memory, self._most, self.many = memory, most, many
        self._seen, self._table = seen, table

    @classmethod
    def tried(cls, column: pa.ChunkedArray) -> Views | None:
        """Return the views of the first rows; None where rows share too few of their texts."""
        rows = len(column)
        if not rows:
            return None
        few = min(rows, max(_ROOM, rows // _TRIED))
        room = np.zeros(VIEW * _ROOM, np.int64), np.zeros(_SLOTS * _ROOM, np.int32)
        found = cls(_Memory.of(column), _ROOM + rows // _RATHER, 0, *room)
        if not found.add(column[:few], np.empty(few, dtype=np.int32)):
            return None
        # Where many rows have the view of another, memory is shared; reading texts would tell late.
        if _OFTEN * found.many <= few or found.many <= _APART * len(found.texts().unique()) + 1:
            return found
        return None

    def copy(self) -> Views:
        """Return the same views, to go on with other rows."""
        return Views(self._memory, self._most, self.many, self._seen.copy(), self._table.copy())

    def add(self, column: pa.ChunkedArray, codes: Codes) -> bool:
        """Write the code of each row; return False when there are too many views."""
        start = 0
        for chunk in column.chunks:
            if not self._add(chunk, codes[start : start + len(chunk)]):
                return False
            start += len(chunk)
        return True

    def _add(self, chunk: pa.Array, codes: Codes) -> bool:
        valid, words, *texts = chunk.buffers()
        words = np.frombuffer(words, np.int64)[VIEW * chunk.offset :]
        bits = np.frombuffer(valid if valid and chunk.null_count else b"", np.uint8)
        begins = np.array([one.address - self._memory.begin for one in texts], dtype=np.int64)
        row = 0
        while row < len(codes):
            row, self.many = encode(
                words, bits, chunk.offset, begins, row, self.many, self._seen, self._table, codes
            )
            if self.many > self._most:
                return False
            if VIEW * self.many == len(self._seen):
                self._seen, self._table = enlarged(self._seen, self.many, len(self._table))
        return True

    def texts(self, start: int = 0) -> pa.LargeStringArray:
        """Return the text of each code from `start` on."""
        seen = self._seen[VIEW * start : VIEW * self.many]
        ends = np.zeros(self.many - start + 1, dtype=np.int64)
        np.cumsum(seen[::VIEW] & LENGTH, out=ends[1:])
        joined = np.empty(ends[-1], dtype=np.uint8)
        join(self._memory.bytes, seen, ends, joined)
        return pa.LargeStringArray.from_buffers(
            len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(joined)
        )
