"""Counter-based random streams: the same numbers for the same names, in any order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from hashlib import blake2b
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.core.arrays import Bytes, Floats, Integers, Words
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

# Multipliers and Weyl constants of Philox4x32 (Salmon et al. 2011, Random123).
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


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
    index = np.asarray(replicates, dtype=np.uint64)[:, None]
    parts = (units & _LOW, units >> _HALF, index & _LOW, index >> _HALF)
    counter = list(np.broadcast_arrays(*parts))
    words = philox(counter, stream_key(seed, name))
    return ((words[0] >> np.uint64(5)) * 67108864.0 + (words[1] >> np.uint64(6))) / 2.0**53


def stream_key(seed: Seed, name: str) -> tuple[int, int]:
    """Return the key of `unit_uniforms` for `philox`: two 32-bit words."""
    key = int.from_bytes(_digest(seed, (name,), 8))
    return key & 0xFFFFFFFF, key >> 32


def place_keys(start: int, many: int) -> Words:
    """Return keys of units that have no name but their place, shape (many,)."""
    return unit_keys([f"\x00{start + place}" for place in range(many)])


def unit_keys(names: Sequence[str] | npt.NDArray[np.str_]) -> Words:
    """Return a 64-bit key per unit name, shape (units,), stable over runs and machines."""
    texts = (name.encode(errors="surrogatepass") for name in names)
    digests = (blake2b(text, digest_size=8).digest() for text in texts)
    return np.fromiter(map(int.from_bytes, digests), dtype=np.uint64, count=len(names))


def philox(counter: list[Words], key: tuple[int, int]) -> list[Words]:
    """Return the four output words of Philox4x32 with ten rounds, each in [0, 2^32).

    Parameters
    ----------
    counter : list of four ndarrays of uint64
        32-bit words in 64-bit arrays of one shape.
    key : tuple of two int
        32-bit words.
    """
    c0, c1, c2, c3 = (np.array(word, dtype=np.uint64) for word in counter)
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        k0, k1 = (k0 + _WEYL[0]) & _LOW, (k1 + _WEYL[1]) & _LOW
    return [c0, c1, c2, c3]


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
        key = np.array(stream_key(seed, "bootstrap"), dtype=np.uint64)
        starts = range(0, len(keys), _UNITS_AT_ONCE)
        parts = [slice(start, start + _UNITS_AT_ONCE) for start in starts]
        each(lambda part: _poisson_times(keys[part], key, first, _REACHED, times[part]), parts)
    return times


@compiled("void(uint64[::1], uint64[::1], int64, uint64[::1], uint8[:,::1])")
def _poisson_times(units: Any, key: Any, first: int, reached: Any, times: Any) -> None:
    """Set how often each row counts in each replicate, columns from the second on.

    The number that belongs to a unit and a replicate in `equipoise.stats.streams.unit_uniforms`,
    times 2^53, says how many of the cumulated probabilities `reached` are at most as large.
    Replicates run in lanes of 32 bits, which processors take many of at once.
    """
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    c0, c1 = np.empty(64, np.uint32), np.empty(64, np.uint32)
    c2, c3 = np.empty(64, np.uint32), np.empty(64, np.uint32)
    counted = np.empty(64, np.uint8)
    many = times.shape[1] - 1
    for row in range(len(units)):
        for start in range(0, many, 64):
            for lane in range(64):
                c0[lane], c1[lane] = np.uint32(units[row] & low), np.uint32(units[row] >> half)
                c2[lane], c3[lane] = np.uint32(first + start + lane), np.uint32(0)
            k0, k1 = np.uint32(key[0]), np.uint32(key[1])
            for _ in range(10):
                for lane in range(64):
                    p0 = np.uint64(0xD2511F53) * np.uint64(c0[lane])
                    p1 = np.uint64(0xCD9E8D57) * np.uint64(c2[lane])
                    c0[lane] = np.uint32(p1 >> half) ^ c1[lane] ^ k0
                    c2[lane] = np.uint32(p0 >> half) ^ c3[lane] ^ k1
                    c1[lane], c3[lane] = np.uint32(p1 & low), np.uint32(p0 & low)
                k0, k1 = (
                    np.uint32(k0 + np.uint32(0x9E3779B9)),
                    np.uint32(k1 + np.uint32(0xBB67AE85)),
                )
            for lane in range(64):
                high = np.uint64(c0[lane] >> np.uint32(5)) << np.uint64(26)
                uniform = high | np.uint64(c1[lane] >> np.uint32(6))
                found = np.uint8(0)
                for place in range(20):
                    found += np.uint8(reached[place] <= uniform)
                counted[lane] = found
            for lane in range(min(64, many - start)):
                times[row, 1 + start + lane] = counted[lane]
