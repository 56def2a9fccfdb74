"""Compiled random orders and random subsets, all equally likely.

Kernels draw from SplitMix64: the mixed values of a counter that rises by an odd step from a key
of 64 bits, which `stats.streams.stream` gives. Numbers below a bound are Lemire's, which have no
bias. Steele, Lea & Flood 2014, OOPSLA, 453-472; Lemire 2019, ACM TOMACS 29, 3.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import Bytes, Floats, Integers, Words
from equipoise.stats.compiled import compiled
from equipoise.stats.streams import Seed, stream

Labels = Bytes | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


def keys(seed: Seed, *names: str | int, many: int) -> Words:
    """Return keys of independent streams, shape (many,); more begin with the same ones."""
    return stream(seed, *names).integers(1 << 64, size=many, dtype=np.uint64)


@compiled(*(f"void(uint64[::1], uint{bits}[:, ::1])" for bits in (8, 16, 32)))
def shuffle(keys: Words, labels: Labels) -> None:
    """Shuffle each line of labels with a stream of its own (Fisher-Yates)."""
    for line in range(labels.shape[0]):
        state = keys[line]
        row = labels[line]
        for i in range(row.shape[0] - 1, 0, -1):
            state, other = _below(state, i + 1)
            row[i], row[other] = row[other], row[i]


@compiled("void(uint64, int64, int64, uint64[:, ::1])")
def draw_subsets(key: int, n: int, size: int, words: Words) -> None:
    """Draw subsets of `size` of n members, as bits of words, shape (draws, words for n bits).

    Members are first taken with a probability near size / n, 64 at a time: random words, joined
    by "and" and "or" along the binary digits of round(256 size / n). Then members at random are
    taken or put back until there are `size`. Given their number, the members of the first step
    are a uniform subset, and each later step keeps it so: the law is that of a partial
    Fisher-Yates shuffle, at about a fifth of the steps.
    """
    many = words.shape[1]
    last = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 * many - n)
    share = round(256 * size / n)
    state = np.uint64(key)
    for line in range(words.shape[0]):
        row = words[line]
        taken = 0
        for place in range(many):
            state, word = _bits(state, share)
            row[place] = word & last if place == many - 1 else word
            taken += _ones(row[place])
        state = _mend(state, row, n, taken - size)


@compiled("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1])")
def add_exchanged(
    keys: Words,
    order: Integers,
    starts: Integers,
    wanted: Integers,
    values: Integers,
    found: Integers,
) -> None:
    """Add up random members of pools, so many of each pool, each line with a stream of its own.

    Parameters
    ----------
    keys : ndarray of uint64, shape (lines,)
    order : ndarray of int64, shape (n,)
        Members, pool by pool. It is written over.
    starts : ndarray of int64, shape (pools + 1,)
        Where each pool begins in `order`.
    wanted : ndarray of int64, shape (pools,)
        Members to take; the fewer of those taken and those left are drawn (Fisher-Yates).
    values : ndarray of int64, shape (n, k)
        k numbers of each member.
    found : ndarray of int64, shape (lines, k)
        Receives the sums.
    """
    k = values.shape[1]
    base = np.zeros(k, np.int64)
    for pool in range(len(wanted)):
        if 2 * wanted[pool] > starts[pool + 1] - starts[pool]:
            for place in range(starts[pool], starts[pool + 1]):
                for column in range(k):
                    base[column] += values[order[place], column]
    for line in range(len(keys)):
        state = keys[line]
        found[line] = base
        for pool in range(len(wanted)):
            start, many = starts[pool], starts[pool + 1] - starts[pool]
            left = 2 * wanted[pool] > many
            for drawn in range(many - wanted[pool] if left else wanted[pool]):
                state, ahead = _below(state, many - drawn)
                place, other = start + drawn, start + drawn + ahead
                order[place], order[other] = order[other], order[place]
                for column in range(k):
                    value = values[order[place], column]
                    found[line, column] += -value if left else value


@compiled("void(uint64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, :, ::1])")
def add_relabelled(
    keys: Words, starts: Integers, labels: Integers, values: Integers, found: Integers
) -> None:
    """Add up values by label after labels are shuffled within pools, each line with its stream.

    Parameters
    ----------
    keys : ndarray of uint64, shape (lines,)
    starts : ndarray of int64, shape (pools + 1,)
        Where each pool of members begins.
    labels : ndarray of int64, shape (n,)
        Label of each member, pool by pool. It is written over.
    values : ndarray of int64, shape (n, k)
        k numbers of each member.
    found : ndarray of int64, shape (lines, labels, k)
        To which the sums are added.
    """
    for line in range(len(keys)):
        state = keys[line]
        for pool in range(len(starts) - 1):
            start, many = starts[pool], starts[pool + 1] - starts[pool]
            for i in range(many - 1, 0, -1):
                state, other = _below(state, i + 1)
                here, there = start + i, start + other
                labels[here], labels[there] = labels[there], labels[here]
        for place in range(len(labels)):
            for column in range(values.shape[1]):
                found[line, labels[place], column] += values[place, column]


@compiled("void(uint64[::1], int64[:, ::1], float64[:, ::1], float64[:, :, ::1])")
def add_shuffled(states: Words, counts: Integers, values: Floats, found: Floats) -> None:
    """Add up values by label after labels are shuffled, each line with a stream of its own.

    Parameters
    ----------
    states : ndarray of uint64, shape (lines,)
        States of the streams: keys at first, written over, so that a further call goes on.
    counts : ndarray of int64, shape (lines, labels)
        How many of the n members have each label.
    values : ndarray, shape (n, k)
        k numbers of each member.
    found : ndarray, shape (lines, labels, k)
        To which the sums are added.
    """
    held = np.empty(len(values), np.int32)
    for line in range(len(states)):
        place = 0
        for label in range(counts.shape[1]):
            for _ in range(counts[line, label]):
                held[place] = label
                place += 1
        state = states[line]
        for i in range(len(held) - 1, -1, -1):
            state, other = _below(state, i + 1)
            label, held[other] = held[other], held[i]
            for column in range(values.shape[1]):
                found[line, label, column] += values[i, column]
        states[line] = state


@compiled()
def _mend(state: Any, row: Any, n: Any, over: Any) -> Any:
    """Take or put back random members until none is left over or missing."""
    while over != 0:
        state, member = _below(state, n)
        bit = np.uint64(1) << np.uint64(member & 63)
        if (row[member >> 6] & bit != 0) == (over > 0):
            row[member >> 6] ^= bit
            over += -1 if over > 0 else 1
    return state


@compiled()
def _bits(state: Any, share: Any) -> Any:
    """Return a word whose bits are set with probability share / 256, share < 256."""
    word = np.uint64(0)
    for digit in range(8):
        # Below the lowest digit that is set there is nothing to join.
        if share & ((2 << digit) - 1):
            state, mixed = _next(state)
            word = (word | mixed) if share >> digit & 1 else (word & mixed)
    return state, word


@compiled()
def _ones(word: Any) -> Any:
    # Sums of neighbouring bits, pairs and fours, then of all bytes.
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    pairs = np.uint64(0x3333333333333333)
    word = (word & pairs) + ((word >> np.uint64(2)) & pairs)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled()
def _below(state: Any, bound: Any) -> Any:
    """Return the state and a number from 0 to bound - 1, all equally likely; bound < 2^32."""
    many = np.uint64(bound)
    while True:
        state, mixed = _next(state)
        product = (mixed >> np.uint64(32)) * many
        low = product & np.uint64(0xFFFFFFFF)
        if low >= many or low >= np.uint64(0x100000000) % many:
            return state, np.int64(product >> np.uint64(32))


@compiled()
def _next(state: Any) -> Any:
    state += np.uint64(0x9E3779B97F4A7C15)
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))
