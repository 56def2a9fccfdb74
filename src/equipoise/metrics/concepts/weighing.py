"""Compiled loops over images that count several times, for many replicates side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.stats.compiled import compiled


@compiled("void(uint32[::1], int32[::1], int32[::1], int64[::1])")
def by_cell(packed: Any, rows: Any, ordered: Any, ends: Any) -> None:
    """Sort rows by their cell, and set where each cell ends."""
    for row in packed:
        ends[row >> np.uint32(2)] += 1
    start = 0
    for cell in range(len(ends)):
        many = ends[cell]
        ends[cell] = start
        start += many
    for place in range(len(packed)):
        cell = packed[place] >> np.uint32(2)
        ordered[ends[cell]] = rows[place]
        ends[cell] += 1


@compiled(
    "void(int32[::1], int64[::1], uint8[::1], uint8[:,::1], int32[::1], float64, float64[:,::1])"
)
def weigh(
    ordered: Any, ends: Any, measured: Any, times: Any, totals: Any, ratio: Any, found: Any
) -> None:
    """Measure every replicate of rows sorted by cell.

    `times` says how often a row counts in each replicate, `totals` what the rows come to. With a
    `ratio` above 0 negatives weigh so that there are this many for each positive. `found` gets
    the sums of `metric_of_sums`, a column per replicate.
    """
    many, size = len(ends) // 3, len(totals)
    counts, outcomes = np.zeros((3, size), np.int32), np.zeros((4, size), np.int32)
    for u in range(many):
        _add(ordered[ends[3 * u] : ends[3 * u + 1]], measured, times, counts[1], outcomes[:2])
    weight = _weights(counts[1], totals, ratio, found)
    hits, mistakes = np.zeros(size, np.int32), np.zeros(size, np.int32)
    outcomes[:] = 0
    start = 0
    for cell in range(len(ends)):
        kind = cell % 3
        if kind == 0:
            counts[:] = 0
        side = outcomes[:2] if kind == 1 else outcomes[2:]
        _add(ordered[start : ends[cell]], measured, times, counts[kind], side)
        start = ends[cell]
        if kind == 2:
            _step(counts, weight, hits, mistakes, found)
    found[4:] = outcomes


@compiled()
def _weights(positives: Any, totals: Any, ratio: Any, found: Any) -> Any:
    """Set the totals of positives and negatives; return what a negative weighs."""
    weight = np.ones(len(totals))
    for replicate in range(len(totals)):
        true = np.float64(positives[replicate])
        false = totals[replicate] - true
        found[2, replicate], found[3, replicate] = true, false
        if ratio > 0.0 and false > 0.0:
            weight[replicate] = ratio * true / false
    return weight


@compiled()
def _add(rows: Any, measured: Any, times: Any, sums: Any, outcomes: Any) -> None:
    """Add rows of one cell, and to `outcomes`, predicted or not, those that are measured."""
    for row in rows:
        if measured[row] & np.uint8(2):
            outcome = 0 if measured[row] & np.uint8(1) else 1
            for replicate in range(len(sums)):
                many = np.int32(times[row, replicate])
                sums[replicate] += many
                outcomes[outcome, replicate] += many
        else:
            for replicate in range(len(sums)):
                sums[replicate] += np.int32(times[row, replicate])


@compiled()
def _step(counts: Any, weight: Any, hits: Any, mistakes: Any, found: Any) -> None:
    """Pass one threshold in every replicate."""
    for replicate in range(len(weight)):
        true, equal = counts[1, replicate], counts[2, replicate]
        mistakes[replicate] += np.int32(counts[0, replicate] + equal)
        hits[replicate] += true
        reached = hits[replicate] + weight[replicate] * mistakes[replicate]
        gained = np.float64(true) * hits[replicate]
        found[0, replicate] += gained / (reached if reached > 0.0 else 1.0)
        found[1, replicate] += true * (found[3, replicate] - mistakes[replicate] + equal / 2.0)
