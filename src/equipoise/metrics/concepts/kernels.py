"""Compiled loops over rows and thresholds of one concept in one group.

The cell of a row says where it stands among the U distinct scores of positives, in descending
order: 3u + 1 is a positive at threshold u, 3u a negative above it (and not above the one before),
3u + 2 a negative equal to it, and 3U a negative below all. A packed row is 4 times its cell, plus 2
where it is measured at the concept's fixed threshold, plus 1 where it is then predicted positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.stats.compiled import compiled

# Lanes of random numbers side by side, and draws that are made at once.
LANES = 16
_DRAWS = 128


@compiled("int64(float64[::1], boolean[::1], uint8[::1], int32[::1], uint32[::1])")
def pack(scores: Any, labels: Any, measured: Any, rows: Any, packed: Any) -> Any:
    """Pack some rows; return how many distinct scores their positives have."""
    rising = _distinct_positives(scores, labels, rows)
    many = len(rising)
    first, scale = _buckets(rising)
    for place in range(len(rows)):
        row = rows[place]
        below = _count_below(rising, first, scale, scores[row]) if many else 0
        if labels[row]:
            cell = 3 * (many - 1 - below) + 1
        elif below < many and rising[below] == scores[row]:
            cell = 3 * (many - 1 - below) + 2
        else:
            cell = 3 * (many - below)
        packed[place] = 4 * cell + measured[row]
    return many


@compiled()
def _distinct_positives(scores: Any, labels: Any, rows: Any) -> Any:
    found = np.empty(len(rows), np.float64)
    size = 0
    for row in rows:
        if labels[row]:
            found[size] = scores[row]
            size += 1
    found = np.sort(found[:size])
    many = min(size, 1)
    for place in range(1, size):
        if found[place] != found[many - 1]:
            found[many] = found[place]
            many += 1
    return found[:many]


@compiled()
def _buckets(rising: Any) -> Any:
    """Cut the range of sorted numbers evenly: the first of each bucket, and buckets per unit."""
    many = max(8 * len(rising), 1)
    first = np.zeros(many + 1, np.int32)
    width = rising[-1] - rising[0] if len(rising) else 0.0
    scale = many / width if 0.0 < width < np.inf else 0.0
    for number in rising:
        first[_bucket(rising, scale, many, number) + 1] += 1
    for bucket in range(many):
        first[bucket + 1] += first[bucket]
    return first, scale


@compiled()
def _bucket(rising: Any, scale: Any, many: Any, number: Any) -> Any:
    if not 0.0 < scale < np.inf:
        return 0
    return np.int64(min(max((number - rising[0]) * scale, 0.0), many - 1.0))


@compiled()
def _count_below(rising: Any, first: Any, scale: Any, score: Any) -> Any:
    """Count the sorted numbers below a score; rounding keeps order, so one bucket holds the end."""
    bucket = _bucket(rising, scale, len(first) - 1, score)
    base, end = np.int64(first[bucket]), np.int64(first[bucket + 1])
    while end - base > 4:
        middle = (base + end) // 2
        if rising[middle] < score:
            base = middle + 1
        else:
            end = middle
    while base < end and rising[base] < score:
        base += 1
    return base


@compiled("int64(int32[::1], int32[::1], boolean[::1], int64[:,::1], int32[::1])")
def choose(order: Any, codes: Any, labels: Any, quota: Any, chosen: Any) -> Any:
    """Choose the first rows of each group and label in an order, until `quota` is used up."""
    left, many = quota.sum(), 0
    for row in order:
        if many == left:
            break
        label = np.int64(labels[row])
        if quota[codes[row], label] > 0:
            quota[codes[row], label] -= 1
            chosen[many] = row
            many += 1
    return many


@compiled("void(boolean[::1], int32[::1], int64[::1])")
def count_by_group(flags: Any, codes: Any, counts: Any) -> None:
    """Count the rows of each group that have a flag."""
    for row in range(len(flags)):
        counts[codes[row]] += flags[row]


@compiled("void(uint32[::1], uint32[::1], int64[::1], uint32[:,::1], int64, float64[:,::1])")
def fixed_draws(positive: Any, negative: Any, draw: Any, state: Any, many: Any, found: Any) -> None:
    """Draw positives and negatives with replacement, and measure each replicate.

    `draw` says how many positives and negatives a replicate has, and how many of them, the first
    ones drawn, count at the fixed threshold; `many` is the number of thresholds. A replicate's
    row of `found` gets the sums of `metric_of_sums`.
    """
    counts = np.zeros(3 * many + 1, np.int32)
    drawn = np.empty(_DRAWS, np.uint32)
    for replicate in range(len(found)):
        true = _draw(positive, draw[0], draw[2], state, drawn, counts)
        false = _draw(negative, draw[1], draw[3], state, drawn, counts)
        precision, won = 0.0, 0
        hits: Any = 0
        mistakes: Any = 0
        for u in range(many):
            times, equal = np.int64(counts[3 * u + 1]), np.int64(counts[3 * u + 2])
            mistakes += np.int64(counts[3 * u]) + equal
            hits += times
            precision += times * hits / max(hits + mistakes, 1)
            won += times * (2 * (draw[1] - mistakes) + equal)
        found[replicate, 0] = precision
        found[replicate, 1] = won / 2.0
        found[replicate, 4] = true
        found[replicate, 5] = draw[2] - true
        found[replicate, 6] = false
        found[replicate, 7] = draw[3] - false
        counts[:] = 0
    found[:, 2] = draw[0]
    found[:, 3] = draw[1]


@compiled()
def _draw(pool: Any, many: Any, measured: Any, state: Any, drawn: Any, counts: Any) -> Any:
    """Count the cells of drawn rows; return how many of the measured ones are predicted."""
    seen: Any = 0
    predicted: Any = 0
    done = 0
    while done < many:
        _indices(state, len(pool), drawn)
        size = min(len(drawn), many - done)
        done += size
        if seen + size <= measured:
            for place in range(size):
                row = pool[drawn[place]]
                counts[row >> np.uint32(2)] += np.int32(1)
                seen += np.int64((row >> np.uint32(1)) & np.uint32(1))
                predicted += np.int64(row & np.uint32(1))
        else:
            for place in range(size):
                row = pool[drawn[place]]
                counts[row >> np.uint32(2)] += np.int32(1)
                if seen < measured:
                    seen += np.int64((row >> np.uint32(1)) & np.uint32(1))
                    predicted += np.int64(row & np.uint32(1))
    # Lanes of their own: the other metrics' draws are the same without these.
    while seen < measured:
        _indices(state[4:], len(pool), drawn)
        for place in drawn:
            if seen < measured:
                seen += np.int64((pool[place] >> np.uint32(1)) & np.uint32(1))
                predicted += np.int64(pool[place] & np.uint32(1))
    return predicted


@compiled()
def _indices(state: Any, below: Any, drawn: Any) -> None:
    """Fill with random whole numbers below another: lanes of xoshiro128++ (Blackman, Vigna)."""
    many = np.uint64(below)
    # Of 2^32 numbers so many are left over when all results are to be equally likely (Lemire).
    surplus = np.uint32((np.uint64(1 << 32) - many) % many)
    biased = np.uint32(1)
    # Redrawing all where one is among them leaves the others independent and uniform.
    while biased:
        biased = np.uint32(0)
        for first in range(0, len(drawn), LANES):
            for lane in range(LANES):
                a, b, c, d = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
                word = np.uint32(a + d)
                word = np.uint32(((word << np.uint32(7)) | (word >> np.uint32(25))) + a)
                moved = np.uint32(b << np.uint32(9))
                c, d = np.uint32(c ^ a), np.uint32(d ^ b)
                b, a = np.uint32(b ^ c), np.uint32(a ^ d)
                c = np.uint32(c ^ moved)
                d = np.uint32((d << np.uint32(11)) | (d >> np.uint32(21)))
                state[0, lane], state[1, lane], state[2, lane], state[3, lane] = a, b, c, d
                wide = np.uint64(word) * many
                drawn[first + lane] = np.uint32(wide >> np.uint64(32))
                biased |= np.uint32(np.uint32(wide) < surplus)
