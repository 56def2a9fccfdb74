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
        each(lambda part: _poisson_times(keys[part], key, first, _POISSON, times[part]), parts)
    return times


@compiled("void(uint64[::1], uint64[::1], int64, float64[::1], uint8[:,::1])")
def _poisson_times(units: Any, key: Any, first: int, reached: Any, times: Any) -> None:
    """Set how often each row counts in each replicate, columns from the second on.

    The number that belongs to a unit and a replicate in `equipoise.stats.streams.unit_uniforms`
    says how many of the cumulated probabilities `reached` are at most as large.
    """
    low = np.uint64(0xFFFFFFFF)
    for row in range(len(units)):
        for replicate in range(times.shape[1] - 1):
            c0, c1 = units[row] & low, units[row] >> np.uint64(32)
            c2, c3 = np.uint64(first + replicate), np.uint64(0)
            k0, k1 = key[0], key[1]
            for _ in range(10):
                p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
                c0, c2 = (p1 >> np.uint64(32)) ^ c1 ^ k0, (p0 >> np.uint64(32)) ^ c3 ^ k1
                c1, c3 = p1 & low, p0 & low
                k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
            high = np.float64(c0 >> np.uint64(5)) * 67108864.0
            uniform = (high + np.float64(c1 >> np.uint64(6))) / 9007199254740992.0
            many = 0
            while many < len(reached) and reached[many] <= uniform:
                many += 1
            times[row, replicate + 1] = many
