"""Counter-based random streams: the same numbers for the same names, in any order.

Compiled random orders and subsets, all equally likely, draw from SplitMix64: the mixed values of a
counter that rises by an odd step from a key of 64 bits, which `stream` gives. Numbers below a bound
are Lemire's, which have no bias. Steele, Lea & Flood 2014, OOPSLA, 453-472; Lemire 2019, ACM TOMACS
29, 3.
"""

from collections.abc import Sequence
from copy import deepcopy
from hashlib import blake2b
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from equipoise.core import Bytes, Floats, Integers, Words
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Seed = int | np.random.Generator
"""What streams derive from: a number, or a generator, of which the present state counts."""


def seed_of(rng: Seed) -> int:
    """Return a seed as a number; a generator's state doesn't change."""
    if isinstance(rng, np.random.Generator):
        return int(deepcopy(rng).integers(1 << 63))
    return index(rng)


def stream(seed: Seed, *names: str | int) -> np.random.Generator:
    """Return the generator that belongs to a seed and names; equal names, equal numbers."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_digest(seed, names, 16))))


def unit_uniforms(seed: Seed, name: str, units: Words, replicates: range) -> Floats:
    """Return one uniform number per replicate and unit, a function of their names alone.

    Parameters
    ----------
    seed, name : int or Generator, str
        Key of the stream.
    units : ndarray of uint64, shape (units,)
        Keys of the units, see `unit_keys`.
    replicates : range
        Indices of the replicates.

    Returns
    -------
    ndarray of float64, shape (replicates, units)
        In [0, 1). The number of a unit in a replicate does not depend on which other units
        or replicates are asked for, so subsets, shards and models stay paired.
    """
    words = np.empty((len(units), len(replicates)), dtype=np.uint64)
    philox_numbers(units, _key(seed, name), replicates.start, words)
    return words.T / 2.0**53


def _key(seed: Seed, name: str) -> Words:
    """Return the key of `unit_uniforms`: two 32-bit words."""
    key = int.from_bytes(_digest(seed, (name,), 8))
    return np.array([key & 0xFFFFFFFF, key >> 32], dtype=np.uint64)


def place_keys(places: Integers) -> Words:
    """Return keys of units that have no name but their place, shape (units,)."""
    return unit_keys([f"\x00{place}" for place in places.tolist()])


def unit_keys(names: Sequence[str] | NDArray[np.str_]) -> Words:
    """Return a 64-bit key per unit name, shape (units,), stable over runs and machines."""
    texts = (name.encode(errors="surrogatepass") for name in names)
    digests = (blake2b(text, digest_size=8).digest() for text in texts)
    return np.fromiter(map(int.from_bytes, digests), dtype=np.uint64, count=len(names))


def _digest(seed: Seed, names: tuple[str | int, ...], size: int) -> bytes:
    # A numpy integer must name the same stream as Python's own.
    plain_names = (name if isinstance(name, str) else index(name) for name in names)
    return blake2b(repr((seed_of(seed), *plain_names)).encode(), digest_size=size).digest()


# P(at most k) of a Poisson variable with mean 1, of uniform numbers times 2^53, which are whole.
_REACHED = np.ceil(np.ldexp(pdtr(np.arange(20), 1.0), 53)).astype(np.uint64)
_UNITS_AT_ONCE = 4096


def unit_counts(seed: Seed, keys: Words, replicates: range) -> Integers:
    """Return how often each unit counts in some replicates, shape (replicates, units)."""
    times = unit_times(keys, len(replicates), seed, first=replicates.start)
    return times[:, 1:].T.astype(np.int64, order="C")


def unit_times(keys: Words, replicates: int, seed: Seed, *, first: int = 0) -> Bytes:
    """Return how often each unit counts, shape (n, 1 + replicates): once, and in each replicate.

    The numbers are those of `unit_counts`, turned and packed: for many units in compiled loops.
    `first` is the index of the first replicate, where all of them would be too many to hold.
    """
    times = np.empty((len(keys), 1 + replicates), dtype=np.uint8)
    key = _key(seed, "bootstrap")

    def fill(start: int) -> None:
        # The first to touch memory waits for it: every thread does for its own part.
        part = slice(start, start + _UNITS_AT_ONCE)
        times[part, 0] = 1
        if replicates:
            _poisson_times(keys[part], key, first, _REACHED, times[part])

    each(fill, range(0, len(keys), _UNITS_AT_ONCE))
    return times


@compiled("void(uint64[::1], uint64[::1], int64, uint64[::1], uint8[:,::1])")
def _poisson_times(units: Any, key: Any, first: int, reached: Any, times: Any) -> None:
    """Set how often each row counts in each replicate, columns from the second on.

    The number of a unit and a replicate says how many of the cumulated probabilities `reached`,
    which are times 2^53, too, are at most as large.
    """
    lanes, numbers = np.empty((4, 64), np.uint32), np.empty(64, np.uint64)
    counted = np.empty(64, np.uint8)
    n_replicates = times.shape[1] - 1
    for row in range(len(units)):
        for start in range(0, n_replicates, 64):
            _philox(units[row], first + start, key, lanes, numbers)
            for lane in range(64):
                count = np.uint8(0)
                for place in range(20):
                    count += np.uint8(reached[place] <= numbers[lane])
                counted[lane] = count
            for lane in range(min(64, n_replicates - start)):
                times[row, 1 + start + lane] = counted[lane]


@compiled("void(uint64[::1], uint64[::1], int64, uint64[:,::1])")
def philox_numbers(units: Words, key: Words, first: int, out: Words) -> None:
    """Set the number of each unit in each replicate, shape (units, replicates)."""
    lanes, numbers = np.empty((4, 64), np.uint32), np.empty(64, np.uint64)
    n_replicates = out.shape[1]
    for row in range(len(units)):
        for start in range(0, n_replicates, 64):
            _philox(units[row], first + start, key, lanes, numbers)
            for lane in range(min(64, n_replicates - start)):
                out[row, start + lane] = numbers[lane]


@compiled()
def _philox(unit: Any, first: Any, key: Any, lanes: Any, numbers: Any) -> None:
    """Set 64 numbers in [0, 2^53), of a unit in the replicates from the first on.

    They are the first two words of Philox4x32 with ten rounds (Salmon et al. 2011, Random123).
    Replicates run in lanes of 32 bits, which processors take many of at once.
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1, c2, c3 = lanes[0], lanes[1], lanes[2], lanes[3]
    for lane in range(64):
        index = np.uint64(first + lane)
        c0[lane], c1[lane] = np.uint32(unit & low), np.uint32(unit >> half)
        c2[lane], c3[lane] = np.uint32(index & low), np.uint32(index >> half)
    k0, k1 = np.uint32(key[0]), np.uint32(key[1])
    for _ in range(10):
        for lane in range(64):
            p0 = np.uint64(0xD2511F53) * np.uint64(c0[lane])
            p1 = np.uint64(0xCD9E8D57) * np.uint64(c2[lane])
            c0[lane] = np.uint32(p1 >> half) ^ c1[lane] ^ k0
            c2[lane] = np.uint32(p0 >> half) ^ c3[lane] ^ k1
            c1[lane], c3[lane] = np.uint32(p1 & low), np.uint32(p0 & low)
        k0, k1 = np.uint32(k0 + np.uint32(0x9E3779B9)), np.uint32(k1 + np.uint32(0xBB67AE85))
    for lane in range(64):
        high = np.uint64(c0[lane] >> np.uint32(5)) << np.uint64(26)
        numbers[lane] = high | np.uint64(c1[lane] >> np.uint32(6))


Labels = Bytes | NDArray[np.uint16] | NDArray[np.uint32]


def keys(seed: Seed, *names: str | int, n_streams: int) -> Words:
    """Return keys of independent streams, shape (many,); more begin with the same ones."""
    return stream(seed, *names).integers(1 << 64, size=n_streams, dtype=np.uint64)


@compiled(*(f"void(uint64[::1], uint{bits}[:, ::1])" for bits in (8, 16, 32)))
def shuffle(keys: Words, labels: Labels) -> None:
    """Shuffle each line of labels with a stream of its own (Fisher-Yates)."""
    for line in range(labels.shape[0]):
        state = keys[line]
        row = labels[line]
        for i in range(row.shape[0] - 1, 0, -1):
            state, partner = _below(state, i + 1)
            row[i], row[partner] = row[partner], row[i]


@compiled("void(uint64, int64, int64, uint64[:, ::1])")
def draw_subsets(key: int, n: int, size: int, words: Words) -> None:
    """Draw subsets of `size` of n members, as bits of words, shape (draws, words for n bits).

    Members are first taken with a probability near size / n, 64 at a time: random words, joined
    by "and" and "or" along the binary digits of round(256 size / n). Then members at random are
    taken or put back until there are `size`. Given their number, the members of the first step
    are a uniform subset, and each later step keeps it so: the law is that of a partial
    Fisher-Yates shuffle, at about a fifth of the steps.
    """
    n_words = words.shape[1]
    last = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 * n_words - n)
    share = round(256 * size / n)
    state = np.uint64(key)
    for line in range(words.shape[0]):
        row = words[line]
        n_taken = 0
        for place in range(n_words):
            state, word = _bits(state, share)
            row[place] = word & last if place == n_words - 1 else word
            n_taken += _ones(row[place])
        state = _mend(state, row, n, n_taken - size)


@compiled("void(uint64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, ::1])")
def add_exchanged(
    keys: Words,
    order: Integers,
    starts: Integers,
    n_members: Integers,
    values: Integers,
    out: Integers,
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
    for pool in range(len(n_members)):
        if 2 * n_members[pool] > starts[pool + 1] - starts[pool]:
            for place in range(starts[pool], starts[pool + 1]):
                for column in range(k):
                    base[column] += values[order[place], column]
    for line in range(len(keys)):
        state = keys[line]
        out[line] = base
        for pool in range(len(n_members)):
            start, pool_size = starts[pool], starts[pool + 1] - starts[pool]
            complement = 2 * n_members[pool] > pool_size
            for step in range(pool_size - n_members[pool] if complement else n_members[pool]):
                state, ahead = _below(state, pool_size - step)
                place, partner = start + step, start + step + ahead
                order[place], order[partner] = order[partner], order[place]
                for column in range(k):
                    value = values[order[place], column]
                    out[line, column] += -value if complement else value


@compiled()
def _shuffle(state: Any, starts: Any, labels: Any) -> None:
    """Shuffle labels within pools."""
    for pool in range(len(starts) - 1):
        start, pool_size = starts[pool], starts[pool + 1] - starts[pool]
        for i in range(pool_size - 1, 0, -1):
            state, offset = _below(state, i + 1)
            target, partner = start + i, start + offset
            labels[target], labels[partner] = labels[partner], labels[target]


@compiled("void(uint64, int64[::1], int64[::1])")
def shuffle_within(key: np.uint64, starts: Integers, labels: Integers) -> None:
    """Shuffle labels within pools, in place.

    Parameters
    ----------
    key : uint64
    starts : ndarray of int64, shape (pools + 1,)
        Where each pool begins.
    labels : ndarray of int64, shape (n,)
        Label of each member, pool by pool.
    """
    _shuffle(key, starts, labels)


@compiled("void(uint64[::1], int64[::1], int64[::1], int64[:, ::1], int64[:, :, ::1])")
def add_relabelled(
    keys: Words, starts: Integers, labels: Integers, values: Integers, out: Integers
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
        _shuffle(keys[line], starts, labels)
        for place in range(len(labels)):
            for column in range(values.shape[1]):
                out[line, labels[place], column] += values[place, column]


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
    """Return a word with each bit set with probability share / 256, share < 256."""
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
    limit = np.uint64(bound)
    while True:
        state, mixed = _next(state)
        product = (mixed >> np.uint64(32)) * limit
        low = product & np.uint64(0xFFFFFFFF)
        if low >= limit or low >= np.uint64(0x100000000) % limit:
            return state, np.int64(product >> np.uint64(32))


@compiled()
def _next(state: Any) -> Any:
    state += np.uint64(0x9E3779B97F4A7C15)
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, mixed ^ (mixed >> np.uint64(31))
