"""Compiled loops over views of text: see `equipoise.metrics.texts`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled

Words = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint8]
Codes = npt.NDArray[np.int32]
Keys = npt.NDArray[np.unsignedinteger[Any]]

# A view is two words: length and first bytes, and the others or where all lie.
VIEW = 2
# The length, and the longest text that a view holds itself.
LENGTH, _INSIDE = 0xFFFFFFFF, 12
# What multiplies words to spread them over a table: odd, of 63 bits.
_ONE, _OTHER = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9
# Rows that go through the steps of encoding together.
_BLOCK = 512

_READ = "Array(int64, 1, 'C', readonly=True)"
_BITS = "Array(uint8, 1, 'C', readonly=True)"


@compiled()
def _slot(first: int, second: int, table: Codes) -> int:
    """Return where the search for a view begins in a table of 2^k slots."""
    mixed = first * _ONE + second * _OTHER
    return (((mixed ^ (mixed >> 31)) * _ONE) >> 24) & (len(table) - 1)


@compiled()
def _found(first: int, second: int, slot: int, seen: Words, table: Codes) -> int:
    """Return the slot that holds a view, or the empty one that may."""
    while table[slot]:
        code = table[slot] - 1
        if seen[VIEW * code] == first and seen[VIEW * code + 1] == second:
            break
        slot = slot + 1 if slot < len(table) - 1 else 0
    return slot


@compiled(
    f"UniTuple(int64, 2)({_READ}, {_BITS}, int64, {_READ}, int64, int64, int64[::1], "
    "int32[::1], int32[::1])"
)
def encode(  # noqa: PLR0913, PLR0917 - a kernel has no objects
    words: Words,
    valid: Bits,
    offset: int,
    begins: Words,
    row: int,
    many: int,
    seen: Words,
    table: Codes,
    codes: Codes,
) -> tuple[int, int]:
    """Encode rows from one on; return the first for which there is no room, and the views.

    Some rows go through each step together, so that the processor waits for many places of the
    table at once: a third of the time that going row by row takes where there are many views.
    """
    views, slots = np.empty(VIEW * _BLOCK, np.int64), np.empty(_BLOCK, np.int64)
    for start in range(row, len(codes), _BLOCK):
        some = min(_BLOCK, len(codes) - start)
        for i in range(some):
            bit = start + i + offset
            # Where a text is missing its view may say anything.
            there = len(valid) == 0 or (valid[bit >> 3] >> (bit & 7)) & 1 == 1
            first = words[VIEW * (start + i)] if there else 0
            second = words[VIEW * (start + i) + 1]
            if first & LENGTH > _INSIDE:
                second = begins[second & LENGTH] + ((second >> 32) & LENGTH)
            views[VIEW * i], views[VIEW * i + 1] = first, second
            slots[i] = _slot(first, second, table)
        for i in range(some):
            codes[start + i] = table[slots[i]] - 1
        for i in range(some):
            first, second, code = views[VIEW * i], views[VIEW * i + 1], codes[start + i]
            if first & LENGTH == 0:
                codes[start + i] = -1
            elif code < 0 or seen[VIEW * code] != first or seen[VIEW * code + 1] != second:
                slot = _found(first, second, slots[i], seen, table)
                if not table[slot]:
                    if VIEW * many == len(seen):
                        return start + i, many
                    seen[VIEW * many], seen[VIEW * many + 1] = first, second
                    many += 1
                    table[slot] = many
                codes[start + i] = table[slot] - 1
    return len(codes), many


def enlarged(seen: Words, many: int, slots: int) -> tuple[Words, Codes]:
    """Return the views with room for twice as many, and their table."""
    seen, table = np.concatenate([seen, np.zeros_like(seen)]), np.zeros(2 * slots, np.int32)
    _enter(seen, many, table)
    return seen, table


@compiled(f"void({_READ}, int64, int32[::1])")
def _enter(seen: Words, many: int, table: Codes) -> None:
    """Fill an empty table."""
    for code in range(many):
        first, second = seen[VIEW * code], seen[VIEW * code + 1]
        table[_found(first, second, _slot(first, second, table), seen, table)] = code + 1


@compiled(f"void({_BITS}, {_READ}, {_READ}, uint8[::1])")
def join(memory: Bits, seen: Words, ends: Words, joined: Bits) -> None:
    """Write all texts one after the other."""
    for code in range(len(ends) - 1):
        first, second = seen[VIEW * code], seen[VIEW * code + 1]
        start, length = ends[code], ends[code + 1] - ends[code]
        if length > _INSIDE:
            joined[start : start + length] = memory[second : second + length]
        else:
            for byte in range(length):
                word = first >> (32 + 8 * byte) if byte < 4 else second >> (8 * byte - 32)
                joined[start + byte] = word & 0xFF


_NUMBER = "void(int32[::1], int32[::1], int32[::1], int64[::1], int64[::1], int64, int64, "


@compiled(f"{_NUMBER} uint32[::1])", f"{_NUMBER} uint64[::1])")
def number(
    first: Codes,
    second: Codes,
    third: Codes,
    begun: Words,
    sizes: Words,
    threads: int,
    thread: int,
    keys: Keys,
) -> None:
    """Write the number of the cell of each row: of its second, then first, then third place.

    Codes from `begun` on are those that a thread met first, and become its own.
    """
    for row in range(len(keys)):
        one, other, group = np.int64(first[row]), np.int64(second[row]), np.int64(third[row])
        one += max(one - begun[0], 0) * (threads - 1) + (one >= begun[0]) * thread
        other += max(other - begun[1], 0) * (threads - 1) + (other >= begun[1]) * thread
        group += max(group - begun[2], 0) * (threads - 1) + (group >= begun[2]) * thread
        keys[row] = ((other + 1) * sizes[0] + one + 1) * sizes[2] + group + 1


@compiled("void(int32[::1], Array(int32, 1, 'C', readonly=True))")
def numbered_anew(codes: Codes, of_views: Codes) -> None:
    """Put another number for each code; -1 stays."""
    for row in range(len(codes)):
        if codes[row] >= 0:
            codes[row] = of_views[codes[row]]
