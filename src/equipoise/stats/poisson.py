"""How often units count in a bootstrap replicate: a Poisson(1) number of times, by their name."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.stats.compiled import compiled
from equipoise.stats.streams import stream_key, unit_uniforms
from equipoise.stats.threads import each

Keys = npt.NDArray[np.uint64]
Times = npt.NDArray[np.uint8]

# P(at most k) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)
# The same of uniform numbers times 2^53, which are whole.
_REACHED = np.ceil(np.ldexp(_POISSON, 53)).astype(np.uint64)
_UNITS_AT_ONCE = 4096


def unit_counts(seed: int, keys: Keys, replicates: range) -> npt.NDArray[np.int64]:
    """Return how often each unit counts in some replicates, shape (replicates, units)."""
    uniforms = unit_uniforms(seed, "bootstrap", keys, replicates)
    return np.searchsorted(_POISSON, uniforms, side="right")


def unit_times(keys: Keys, replicates: int, seed: int, *, first: int = 0) -> Times:
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
