"""Counter-based random streams: the same numbers for the same names, in any order."""

from collections.abc import Sequence
from copy import deepcopy
from hashlib import blake2b
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.core import Bytes, Floats, Integers, Words
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Seed = int | np.random.Generator
"""What streams derive from: a number, or a generator, of which the present state counts."""


def seed_of(rng: Seed) -> int:
    """Return a seed as a number: a generator's next one, while it stays as it is."""
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


def place_keys(start: int, many: int) -> Words:
    """Return keys of units that have no name but their place, shape (many,)."""
    return unit_keys([f"\x00{start + place}" for place in range(many)])


def unit_keys(names: Sequence[str] | npt.NDArray[np.str_]) -> Words:
    """Return a 64-bit key per unit name, shape (units,), stable over runs and machines."""
    texts = (name.encode(errors="surrogatepass") for name in names)
    digests = (blake2b(text, digest_size=8).digest() for text in texts)
    return np.fromiter(map(int.from_bytes, digests), dtype=np.uint64, count=len(names))


def _digest(seed: Seed, names: tuple[str | int, ...], size: int) -> bytes:
    # A numpy integer must name the same stream as Python's own.
    plain = (name if isinstance(name, str) else index(name) for name in names)
    return blake2b(repr((seed_of(seed), *plain)).encode(), digest_size=size).digest()


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
    times = np.ones((len(keys), 1 + replicates), dtype=np.uint8)
    if replicates:
        key = _key(seed, "bootstrap")
        starts = range(0, len(keys), _UNITS_AT_ONCE)
        parts = [slice(start, start + _UNITS_AT_ONCE) for start in starts]
        each(lambda part: _poisson_times(keys[part], key, first, _REACHED, times[part]), parts)
    return times


@compiled("void(uint64[::1], uint64[::1], int64, uint64[::1], uint8[:,::1])")
def _poisson_times(units: Any, key: Any, first: int, reached: Any, times: Any) -> None:
    """Set how often each row counts in each replicate, columns from the second on.

    The number of a unit and a replicate says how many of the cumulated probabilities `reached`,
    which are times 2^53, too, are at most as large.
    """
    lanes, numbers = np.empty((4, 64), np.uint32), np.empty(64, np.uint64)
    counted = np.empty(64, np.uint8)
    many = times.shape[1] - 1
    for row in range(len(units)):
        for start in range(0, many, 64):
            _philox(units[row], first + start, key, lanes, numbers)
            for lane in range(64):
                found = np.uint8(0)
                for place in range(20):
                    found += np.uint8(reached[place] <= numbers[lane])
                counted[lane] = found
            for lane in range(min(64, many - start)):
                times[row, 1 + start + lane] = counted[lane]


@compiled("void(uint64[::1], uint64[::1], int64, uint64[:,::1])")
def philox_numbers(units: Any, key: Any, first: int, found: Any) -> None:
    """Set the number of each unit in each replicate, shape (units, replicates)."""
    lanes, numbers = np.empty((4, 64), np.uint32), np.empty(64, np.uint64)
    many = found.shape[1]
    for row in range(len(units)):
        for start in range(0, many, 64):
            _philox(units[row], first + start, key, lanes, numbers)
            for lane in range(min(64, many - start)):
                found[row, start + lane] = numbers[lane]


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
