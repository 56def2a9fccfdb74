"""Codes of texts that lie in memory as views of 16 bytes, the form of polars and newer Arrow.

A view holds a text of up to 12 bytes itself, and else its length, its first 4 bytes and where the
whole text lies. Rows with equal views have equal texts. Where many rows share their texts (short
ones do; long ones after a join, a gather, or read from a dictionary of Parquet), it is enough to
read the text of each distinct view, not of each row.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each, stretches

Words = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]

# Views that there is room for at first: a power of 2.
_ROOM = 1 << 12
# A view is two words; a slot of the table is a view and one more than its code.
_VIEW, _SLOT = 2, 3
_INSIDE, _LOW = 12, 0xFFFFFFFF
# What multiplies words to spread them over a table: odd, of 63 bits.
_ONE, _OTHER = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9
# Rows, of so many, that tell whether rows share texts, and by how much views may outnumber texts.
_TRIED, _APART = 64, 1.25
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
    rows = len(column)
    if not rows:
        return None
    codes = np.empty(rows, dtype=np.int32)
    most = _ROOM + rows // _RATHER
    tried = min(rows, max(_ROOM, rows // _TRIED))
    views = _Views.of(column)
    if not views.add(column[:tried], codes[:tried], most) or not views.shared:
        return None
    # Every thread goes on from the views that the first rows have.
    parts = [range(tried + one.start, tried + one.stop) for one in stretches(rows - tried)]
    others = [views.copy() for _ in parts]

    def add(which: int) -> bool:
        part = slice(parts[which].start, parts[which].stop)
        return others[which].add(column[part], codes[part], most)

    if not all(each(add, range(len(parts)))):
        return None
    texts = pa.concat_arrays([views.texts(), *(one.texts(views.many) for one in others)])
    known = texts.dictionary_encode()
    ends = np.cumsum([views.many, *(one.many - views.many for one in others)]).tolist()
    first, *later = np.split(known.indices.to_numpy(), ends[:-1])

    def renumber(some: tuple[range, Codes]) -> None:
        rows, of_views = some
        if not np.array_equal(of_views, np.arange(len(of_views))):
            _renumber(codes[rows.start : rows.stop], of_views)

    together = [(part, np.append(first, own)) for part, own in zip(parts, later, strict=True)]
    each(renumber, [(range(tried), first), *together])
    return Viewed(codes, known.dictionary)


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


class _Views:
    """The distinct views so far (`many`), and a table that finds them.

    `_seen` holds for each code the first word of its view, then the second word or, of a long
    text, its place in memory.
    """

    def __init__(self, memory: _Memory, many: int, seen: Words, table: Words) -> None:
        self._memory, self.many, self._seen, self._table = memory, many, seen, table

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Views:
        """Begin with none."""
        room = np.zeros(_VIEW * _ROOM, np.int64), np.zeros(_SLOT * 4 * _ROOM, np.int64)
        return cls(_Memory.of(column), 0, *room)

    def copy(self) -> _Views:
        """Return the same views, to go on with other rows."""
        return _Views(self._memory, self.many, self._seen.copy(), self._table.copy())

    def add(self, column: pa.ChunkedArray, codes: Codes, most: int) -> bool:
        """Write the code of each row; return False when there are too many views."""
        start = 0
        for chunk in column.chunks:
            if not self._add(chunk, codes[start : start + len(chunk)], most):
                return False
            start += len(chunk)
        return True

    def _add(self, chunk: pa.Array, codes: Codes, most: int) -> bool:
        valid, words, *texts = chunk.buffers()
        words = np.frombuffer(words, np.int64)[_VIEW * chunk.offset :]
        bits = np.frombuffer(valid if valid and chunk.null_count else b"", np.uint8)
        begins = np.array([one.address - self._memory.begin for one in texts], dtype=np.int64)
        row = 0
        while row < len(codes):
            row, self.many = _encode(
                words, bits, chunk.offset, begins, row, self.many, self._seen, self._table, codes
            )
            if self.many > most:
                return False
            if _VIEW * self.many == len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
                self._table = np.zeros(2 * len(self._table), dtype=np.int64)
                _enter(self._seen, self.many, self._table)
        return True

    @property
    def shared(self) -> bool:
        """Whether there are about as many views as texts."""
        return self.many <= _APART * len(self.texts().unique()) + 1

    def texts(self, start: int = 0) -> pa.LargeStringArray:
        """Return the text of each code from `start` on."""
        seen = self._seen[_VIEW * start : _VIEW * self.many]
        ends = np.zeros(self.many - start + 1, dtype=np.int64)
        np.cumsum(seen[::_VIEW] & _LOW, out=ends[1:])
        joined = np.empty(ends[-1], dtype=np.uint8)
        _join(self._memory.bytes, seen, ends, joined)
        return pa.LargeStringArray.from_buffers(
            len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(joined)
        )


_READ = "Array(int64, 1, 'C', readonly=True)"
_BITS = "Array(uint8, 1, 'C', readonly=True)"


@compiled(
    f"UniTuple(int64, 2)({_READ}, {_BITS}, int64, {_READ}, int64, int64, int64[::1], "
    "int64[::1], int32[::1])"
)
def _encode(  # noqa: PLR0913, PLR0917 - a kernel has no objects
    words: Words,
    valid: Bits,
    offset: int,
    begins: Words,
    row: int,
    many: int,
    seen: Words,
    table: Words,
    codes: Codes,
) -> tuple[int, int]:
    """Encode rows from one on; return the first for which there is no room, and the views."""
    last = len(table) // _SLOT - 1
    while row < len(codes):
        first, second, bit = words[_VIEW * row], words[_VIEW * row + 1], row + offset
        if first & _LOW == 0 or (len(valid) and (valid[bit >> 3] >> (bit & 7)) & 1 == 0):
            codes[row] = -1
            row += 1
            continue
        if first & _LOW > _INSIDE:
            second = begins[second & _LOW] + ((second >> 32) & _LOW)
        mixed = first * _ONE + second * _OTHER
        slot = _SLOT * ((((mixed ^ (mixed >> 31)) * _ONE) >> 24) & last)
        while table[slot + 2] and (table[slot] != first or table[slot + 1] != second):
            slot = slot + _SLOT if slot < _SLOT * last else 0
        if not table[slot + 2]:
            if _VIEW * many == len(seen):
                return row, many
            seen[_VIEW * many], seen[_VIEW * many + 1] = first, second
            many += 1
            table[slot], table[slot + 1], table[slot + 2] = first, second, many
        codes[row] = table[slot + 2] - 1
        row += 1
    return row, many


@compiled(f"void({_READ}, int64, int64[::1])")
def _enter(seen: Words, many: int, table: Words) -> None:
    """Fill an empty table."""
    last = len(table) // _SLOT - 1
    for code in range(many):
        first, second = seen[_VIEW * code], seen[_VIEW * code + 1]
        mixed = first * _ONE + second * _OTHER
        slot = _SLOT * ((((mixed ^ (mixed >> 31)) * _ONE) >> 24) & last)
        while table[slot + 2]:
            slot = slot + _SLOT if slot < _SLOT * last else 0
        table[slot], table[slot + 1], table[slot + 2] = first, second, code + 1


@compiled(f"void({_BITS}, {_READ}, {_READ}, uint8[::1])")
def _join(memory: Bits, seen: Words, ends: Words, joined: Bits) -> None:
    """Write all texts one after the other."""
    for code in range(len(ends) - 1):
        first, second = seen[_VIEW * code], seen[_VIEW * code + 1]
        start, length = ends[code], ends[code + 1] - ends[code]
        if length > _INSIDE:
            joined[start : start + length] = memory[second : second + length]
        else:
            for byte in range(length):
                word = first >> (32 + 8 * byte) if byte < 4 else second >> (8 * byte - 32)
                joined[start + byte] = word & 0xFF


@compiled("void(int32[::1], Array(int32, 1, 'C', readonly=True))")
def _renumber(codes: Codes, of_views: Codes) -> None:
    """Put another number for each code; -1 stays."""
    for row in range(len(codes)):
        if codes[row] >= 0:
            codes[row] = of_views[codes[row]]
