"""Codes of texts that lie in memory as views of 16 bytes, the form of polars and newer Arrow.

A view holds a text of up to 12 bytes itself, and else its length, its first 4 bytes and where the
whole text lies. Rows with equal views have equal texts. Where many rows share their texts (short
ones do; long ones after a join, a gather, or read from a dictionary of Parquet), it is enough to
read the text of each distinct view, not of each row.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.labels import Coded
from equipoise.stats.compiled import compiled

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


def coded_views(column: pa.ChunkedArray) -> Coded | None:
    """Encode a column of string views, in the order in which texts occur first; "" is missing.

    None where rows share too few of their texts for this to be quicker.
    """
    rows = len(column)
    if not rows:
        return None
    views = _Views(_Memory.of(column))
    codes = np.empty(rows, dtype=np.int32)
    most = _ROOM + rows // _RATHER
    tried = max(_ROOM, rows // _TRIED)
    start = 0
    for chunk in _pieces(column, tried):
        if not views.add(chunk, codes[start : start + len(chunk)], most):
            return None
        if start == 0 and not views.shared:
            return None
        start += len(chunk)
    texts = views.texts().dictionary_encode()
    if len(texts.dictionary) < len(texts):
        of_view = np.append(texts.indices.to_numpy(), np.int32(-1))
        codes = of_view[codes]
    return Coded(codes, tuple(texts.dictionary.to_pylist()))


def _pieces(column: pa.ChunkedArray, tried: int) -> Iterator[pa.Array]:
    """Yield the chunks, the first of them in two pieces."""
    first, *others = column.chunks
    yield first[:tried]
    yield first[tried:]
    yield from others


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
    """The distinct views so far, and a table that finds them.

    `_seen` holds for each code the first word of its view, then the second word or, of a long
    text, its place in memory.
    """

    def __init__(self, memory: _Memory) -> None:
        self._memory = memory
        self._many = 0
        self._seen = np.zeros(_VIEW * _ROOM, dtype=np.int64)
        self._table = np.zeros(_SLOT * 4 * _ROOM, dtype=np.int64)

    def add(self, chunk: pa.Array, codes: Codes, most: int) -> bool:
        """Write the code of each row of a chunk; return False when there are too many views."""
        valid, words, *texts = chunk.buffers()
        words = np.frombuffer(words, np.int64)[_VIEW * chunk.offset :]
        bits = np.frombuffer(valid if valid and chunk.null_count else b"", np.uint8)
        begins = np.array([one.address - self._memory.begin for one in texts], dtype=np.int64)
        row = 0
        while row < len(codes):
            row, self._many = _encode(
                words, bits, chunk.offset, begins, row, self._many, self._seen, self._table, codes
            )
            if self._many > most:
                return False
            if _VIEW * self._many == len(self._seen):
                self._seen = np.concatenate([self._seen, np.zeros_like(self._seen)])
                self._table = np.zeros(2 * len(self._table), dtype=np.int64)
                _enter(self._seen, self._many, self._table)
        return True

    @property
    def shared(self) -> bool:
        """Whether there are about as many views as texts."""
        return self._many <= _APART * len(self.texts().unique()) + 1

    def texts(self) -> pa.LargeStringArray:
        """Return the text of each code."""
        ends = np.zeros(self._many + 1, dtype=np.int64)
        np.cumsum(self._seen[: _VIEW * self._many : _VIEW] & _LOW, out=ends[1:])
        joined = np.empty(ends[-1], dtype=np.uint8)
        _join(self._memory.bytes, self._seen, ends, joined)
        return pa.LargeStringArray.from_buffers(
            self._many, pa.py_buffer(ends), pa.py_buffer(joined)
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
