"""What a metric of one concept needs of the scores: which cell of a small table each row is in."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equipoise.core import (
    Booleans,
    Bytes,
    Floats,
    Integers,
    Integers32,
    Words32,
    floats,
    integers,
    unwarned,
)
from equipoise.stats.compiled import compiled
from equipoise.stats.streams import Seed, stream

# Lanes of random numbers side by side, and draws that are made at once.
LANES = 16
_DRAWS = 128


@compiled("Tuple((uint32[::1], int64))(float64[::1], boolean[::1], uint8[::1], int32[::1])")
def pack(
    scores: Floats, labels: Booleans, measured: Bytes, rows: Integers32
) -> tuple[Words32, int]:
    """Return cells with the bits of `measured` of some rows, and how many thresholds there are.

    Thresholds are the distinct scores of positives, falling. Cell 3 u holds the negatives above
    threshold u and not above the one before, 3 u + 1 the positives and 3 u + 2 the negatives at it;
    the last cell the negatives below all. `measured` has two bits: whether the row is measured at
    the fixed threshold, and whether it is predicted positive there.
    """
    rising = _distinct_positives(scores, labels, rows)
    n_thresholds = len(rising)
    first, scale = _buckets(rising)
    packed = np.empty(len(rows), np.uint32)
    for place in range(len(rows)):
        row = rows[place]
        below = _count_below(rising, first, scale, scores[row]) if n_thresholds else 0
        if labels[row]:
            cell = 3 * (n_thresholds - 1 - below) + 1
        elif below < n_thresholds and rising[below] == scores[row]:
            cell = 3 * (n_thresholds - 1 - below) + 2
        else:
            cell = 3 * (n_thresholds - below)
        packed[place] = 4 * cell + measured[row]
    return packed, n_thresholds


@compiled()
def _distinct_positives(scores: Any, labels: Any, rows: Any) -> Any:
    positives = np.empty(len(rows), np.float64)
    size = 0
    for row in rows:
        if labels[row]:
            positives[size] = scores[row]
            size += 1
    positives = np.sort(positives[:size])
    n_distinct = min(size, 1)
    for place in range(1, size):
        if positives[place] != positives[n_distinct - 1]:
            positives[n_distinct] = positives[place]
            n_distinct += 1
    return positives[:n_distinct]


@compiled()
def _buckets(rising: Any) -> Any:
    """Cut the range of sorted numbers evenly: the first of each bucket, and buckets per unit."""
    n_buckets = max(16 * len(rising), 1)
    first = np.zeros(n_buckets + 1, np.int32)
    width = rising[-1] - rising[0] if len(rising) else 0.0
    scale = n_buckets / width if 0.0 < width < np.inf else 0.0
    for number in rising:
        first[_bucket(rising, scale, n_buckets, number) + 1] += 1
    for bucket in range(n_buckets):
        first[bucket + 1] += first[bucket]
    return first, scale


@compiled()
def _bucket(rising: Any, scale: Any, n_buckets: Any, number: Any) -> Any:
    if not 0.0 < scale < np.inf:
        return 0
    return np.int64(min(max((number - rising[0]) * scale, 0.0), n_buckets - 1.0))


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


@compiled("void(int32[::1], int32[::1], boolean[::1], int64[:,::1], int32[::1])")
def choose(
    order: Integers32, codes: Integers32, labels: Booleans, quota: Integers, chosen: Integers32
) -> None:
    """Choose the first rows of each group and label in an order, until `quota` is used up."""
    n_chosen = 0
    for row in order:
        if n_chosen == len(chosen):
            break
        label = np.int64(labels[row])
        if quota[codes[row], label] > 0:
            quota[codes[row], label] -= 1
            chosen[n_chosen] = row
            n_chosen += 1


@compiled("void(uint32[::1], uint32[::1], int64[::1], uint32[:,::1], int64, float64[:,::1])")
def fixed_draws(
    positive: Words32,
    negative: Words32,
    draw: Integers,
    state: Words32,
    n_thresholds: int,
    out: Floats,
) -> None:
    """Draw positives and negatives with replacement, and measure each replicate.

    `draw` says how many positives and negatives a replicate has, and how many of them, the first
    ones drawn, count at the fixed threshold; `many` is the number of thresholds. A replicate's
    row of `found` gets the sums of `metric_of_sums`.
    """
    counts = np.zeros(3 * n_thresholds + 1, np.int32)
    indices = np.empty(_DRAWS, np.uint32)
    for replicate in range(len(out)):
        true = _draw(positive, draw[0], draw[2], state, indices, counts)
        false = _draw(negative, draw[1], draw[3], state, indices, counts)
        precision, won = 0.0, 0
        hits: Any = 0
        mistakes: Any = 0
        for u in range(n_thresholds):
            times, equal = np.int64(counts[3 * u + 1]), np.int64(counts[3 * u + 2])
            mistakes += np.int64(counts[3 * u]) + equal
            hits += times
            precision += times * hits / max(hits + mistakes, 1)
            won += times * (2 * (draw[1] - mistakes) + equal)
        out[replicate, 0] = precision
        out[replicate, 1] = won / 2.0
        out[replicate, 4] = true
        out[replicate, 5] = draw[2] - true
        out[replicate, 6] = false
        out[replicate, 7] = draw[3] - false
        counts[:] = 0
    out[:, 2] = draw[0]
    out[:, 3] = draw[1]


@compiled()
def _draw(pool: Any, n_draws: Any, measured: Any, state: Any, indices: Any, counts: Any) -> Any:
    """Count the cells of drawn rows; return how many of the measured ones are predicted."""
    n_measured: Any = 0
    predicted: Any = 0
    done = 0
    while done < n_draws:
        _indices(state, len(pool), indices)
        size = min(len(indices), n_draws - done)
        done += size
        # A loop without a branch while all draws are measured.
        if n_measured + size <= measured:
            for place in range(size):
                row = pool[indices[place]]
                counts[row >> np.uint32(2)] += np.int32(1)
                n_measured += np.int64((row >> np.uint32(1)) & np.uint32(1))
                predicted += np.int64(row & np.uint32(1))
            continue
        for place in range(size):
            row = pool[indices[place]]
            counts[row >> np.uint32(2)] += np.int32(1)
            if n_measured < measured:
                n_measured += np.int64((row >> np.uint32(1)) & np.uint32(1))
                predicted += np.int64(row & np.uint32(1))
    # Lanes of their own: the other metrics' draws are the same without these.
    while n_measured < measured:
        _indices(state[4:], len(pool), indices)
        for place in indices:
            if n_measured < measured:
                n_measured += np.int64((pool[place] >> np.uint32(1)) & np.uint32(1))
                predicted += np.int64(pool[place] & np.uint32(1))
    return predicted


@compiled()
def _indices(state: Any, below: Any, indices: Any) -> None:
    """Fill with random whole numbers below another: lanes of xoshiro128++ (Blackman, Vigna)."""
    bound = np.uint64(np.uint32(below))
    # Of 2^32 numbers so many are left over when all results are to be equally likely (Lemire).
    surplus = np.uint32((np.uint64(1 << 32) - bound) % bound)
    biased = np.uint32(1)
    # Redrawing all where one is among them leaves the others independent and uniform.
    while biased:
        biased = np.uint32(0)
        for first in range(0, len(indices), LANES):
            lanes = indices[first : first + LANES]
            for lane in range(LANES):
                a, b, c, d = state[0, lane], state[1, lane], state[2, lane], state[3, lane]
                word = np.uint32(a + d)
                word = np.uint32(((word << np.uint32(7)) | (word >> np.uint32(25))) + a)
                shifted = np.uint32(b << np.uint32(9))
                c, d = np.uint32(c ^ a), np.uint32(d ^ b)
                b, a = np.uint32(b ^ c), np.uint32(a ^ d)
                c = np.uint32(c ^ shifted)
                d = np.uint32((d << np.uint32(11)) | (d >> np.uint32(21)))
                state[0, lane], state[1, lane], state[2, lane], state[3, lane] = a, b, c, d
                wide = np.uint64(word) * bound
                lanes[lane] = np.uint32(wide >> np.uint64(32))
                biased |= np.uint32(np.uint32(wide) < surplus)


@compiled("void(uint32[::1], int32[::1], int32[::1], int64[::1])")
def by_cell(packed: Words32, rows: Integers32, ordered: Integers32, ends: Integers) -> None:
    """Sort rows by their cell, and set where each cell ends."""
    for row in packed:
        ends[row >> np.uint32(2)] += 1
    start = 0
    for cell in range(len(ends)):
        size = ends[cell]
        ends[cell] = start
        start += size
    for place in range(len(packed)):
        cell = packed[place] >> np.uint32(2)
        ordered[ends[cell]] = rows[place]
        ends[cell] += 1


@compiled(
    "void(int32[::1], int64[::1], uint8[::1], uint8[:,::1], int32[::1], float64, float64[:,::1])"
)
def weigh(
    ordered: Integers32,
    ends: Integers,
    measured: Bytes,
    times: Bytes,
    totals: Integers32,
    ratio: float,
    out: Floats,
) -> None:
    """Measure every replicate of rows sorted by cell.

    `times` says how often a row counts in each replicate, `totals` what the rows come to. With a
    `ratio` above 0 negatives weigh so that there are this many for each positive. `found` gets
    the sums of `metric_of_sums`, a column per replicate.
    """
    n_thresholds, size = len(ends) // 3, len(totals)
    counts, outcomes = np.zeros((3, size), np.int32), np.zeros((4, size), np.int32)
    for u in range(n_thresholds):
        _add(ordered[ends[3 * u] : ends[3 * u + 1]], measured, times, counts[1], outcomes[:2])
    weight = _weights(counts[1], totals, ratio, out)
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
            _step(counts, weight, hits, mistakes, out)
    out[4:] = outcomes


@compiled()
def _weights(positives: Any, totals: Any, ratio: Any, out: Any) -> Any:
    """Set the totals of positives and negatives; return the negatives' weight."""
    weight = np.ones(len(totals))
    for replicate in range(len(totals)):
        true = np.float64(positives[replicate])
        false = totals[replicate] - true
        out[2, replicate], out[3, replicate] = true, false
        if ratio > 0.0 and false > 0.0:
            weight[replicate] = ratio * true / false
    return weight


@compiled()
def _add(rows: Any, measured: Any, times: Any, sums: Any, outcomes: Any) -> None:
    """Add the rows of one cell, and the measured rows to `outcomes`."""
    for row in rows:
        if measured[row] & np.uint8(2):
            outcome = 0 if measured[row] & np.uint8(1) else 1
            for replicate in range(len(sums)):
                count = np.int32(times[row, replicate])
                sums[replicate] += count
                outcomes[outcome, replicate] += count
        else:
            for replicate in range(len(sums)):
                sums[replicate] += np.int32(times[row, replicate])


@compiled()
def _step(counts: Any, weight: Any, hits: Any, mistakes: Any, out: Any) -> None:
    """Pass one threshold in every replicate."""
    for replicate in range(len(weight)):
        true, equal = counts[1, replicate], counts[2, replicate]
        mistakes[replicate] += np.int32(counts[0, replicate] + equal)
        hits[replicate] += true
        reached = hits[replicate] + weight[replicate] * mistakes[replicate]
        gained = np.float64(true) * hits[replicate]
        out[0, replicate] += gained / (reached if reached > 0.0 else 1.0)
        out[1, replicate] += true * (out[3, replicate] - mistakes[replicate] + equal / 2.0)


Packed = NDArray[np.uint32]


def weighted_sums(
    packed: tuple[Packed, int],
    rows: Integers32,
    measured: Bytes,
    times: tuple[Bytes, Integers32],
    ratio: float | None,
) -> Floats:
    """Return the sums of every replicate of one group, for `metric_of_sums`.

    Parameters
    ----------
    packed : tuple
        Of the group's rows, and how many thresholds they have: see `pack`.
    rows : ndarray of int32
        The group's rows.
    measured : ndarray, shape (n,)
        The two lowest bits of `packed`, of all rows.
    times : tuple
        How often all rows count, see `equipoise.stats.streams.unit_times`, and what the group's
        rows come to.
    ratio : float, optional

    Returns
    -------
    ndarray, shape (8, replicates)
    """
    ordered, ends = np.empty_like(rows), np.zeros(3 * packed[1] + 1, dtype=np.int64)
    by_cell(packed[0], rows, ordered, ends)
    sums = np.zeros((8, times[0].shape[1]))
    weigh(ordered, ends, measured, *times, 0.0 if ratio is None else float(ratio), sums)
    return sums


def fixed_prevalence(
    packed: tuple[Packed, int],
    labels: Booleans,
    draw: tuple[int, int, int, int],
    rng: tuple[Seed, str, str],
    replicates: int,
) -> Floats:
    """Draw positives and negatives with replacement.

    Parameters
    ----------
    packed : tuple
        Of the group's rows, and how many thresholds they have: see `pack`.
    labels : ndarray of bool
        Of the same rows.
    draw : tuple of four int
        How many positives and negatives a replicate has, and how many positives and negatives
        of those that are measured at the fixed threshold: the first that are drawn.
    rng : tuple
        Seed and names of the stream. Rows are drawn by their place, so that models that share
        rows share draws.
    replicates : int

    Returns
    -------
    ndarray, shape (8, replicates)
        For `metric_of_sums`.
    """
    sums = np.empty((replicates, 8))
    state = stream(rng[0], "hall", *rng[1:]).integers(1 << 32, size=(8, LANES), dtype=np.uint32)
    rows, n_thresholds = packed
    fixed_draws(rows[labels], rows[~labels], np.array(draw), state, n_thresholds, sums)
    return sums.T


Metric = Literal[
    "average_precision", "auroc", "true_positive_rate", "false_positive_rate", "precision", "f1"
]
RANKED: tuple[Metric, ...] = ("average_precision", "auroc")


def _all_rows(scores: Floats, labels: Booleans) -> tuple[Integers, int]:
    all_rows = np.arange(len(scores), dtype=np.int32)
    packed, n_thresholds = pack(scores, labels, np.zeros(len(scores), dtype=np.uint8), all_rows)
    return integers(packed >> 2), n_thresholds


def ranked_cells(scores: Floats, labels: Booleans) -> tuple[Integers, int, int]:
    """Return the cell of each row, how many cells have positives, and how many there are.

    They keep everything that AP and AUROC need, ties included. Of the U distinct scores of
    positives, falling: U cells of positives, U of negatives above threshold u and not above the
    one before, U of negatives that equal it, and one of negatives below all.
    """
    place, n_thresholds = _all_rows(scores, labels)
    threshold, kind = place // 3, place % 3
    # Kinds are above, positive and equal; what is below all thresholds is last.
    cell = threshold + np.array([n_thresholds, 0, 2 * n_thresholds])[kind]
    cell[threshold == n_thresholds] = 3 * n_thresholds
    return cell, n_thresholds, 3 * n_thresholds + 1


def best_f1_threshold(scores: Floats, labels: Booleans) -> float:
    """Threshold with the largest F1 of "positive if the score is at least it".

    Parameters
    ----------
    scores, labels : ndarray, shape (n,)

    Returns
    -------
    float
        One of the scores, so that something is predicted positive; of equally good ones the
        larger. NaN when no label is positive.
    """
    if not labels.any():
        return float("nan")
    # Below a positive's score, what another negative adds makes F1 smaller.
    place, n_thresholds = _all_rows(scores, labels)
    above, equal_true, equal = (
        np.bincount(place, minlength=3 * n_thresholds + 1)[:-1].reshape(-1, 3).T
    )
    true = np.cumsum(equal_true)
    predicted = np.cumsum(above + equal_true + equal)
    # Equal quotients of whole numbers are equal floats: ties are exact.
    best = int(np.argmax(true / (predicted + labels.sum())))
    return float(np.unique(scores[labels])[::-1][best])


def metric_of_sums(metric: Metric, sums: Floats, ratio: float | None) -> Floats:
    """Return a metric of the sums that kernels give.

    Parameters
    ----------
    metric : str
    sums : ndarray, shape (8, ...)
        Sum over positives of the precision at their score; pairs of a positive and a negative in
        the right order, ties half; positives; negatives; TP, FN, FP and TN at the fixed threshold.
    ratio : float, optional
        As in `metric_of`.

    Returns
    -------
    ndarray, shape (...)
        NaN where a denominator is 0.
    """
    precision, won, positives, negatives = sums[:4]
    with unwarned():
        if metric == "auroc":
            return floats(won / (positives * negatives))
        if metric == "average_precision":
            # Negatives that are not there cannot be weighed.
            defined = (positives > 0) & ((negatives > 0) | (ratio is None))
            return np.where(defined, precision / positives, np.nan)
    return _at_threshold(metric, sums[4:], ratio)


def metric_of(metric: Metric, tables: Floats, ratio: float | None) -> Floats:
    """Return a metric of tables of cells.

    Parameters
    ----------
    metric : str
    tables : ndarray, shape (r, cells)
        Weights of the cells of `ranked_cells` (AP, AUROC); else TP, FN, FP and TN.
    ratio : float, optional
        Weigh negatives so that there are this many for each positive.

    Returns
    -------
    ndarray, shape (r,)
        NaN where a denominator is 0.
    """
    if metric not in RANKED:
        return _at_threshold(metric, tables.T, ratio)
    sums, n_thresholds = np.zeros((4, len(tables))), tables.shape[1] // 3
    true, above, equal = (tables[:, i * n_thresholds : (i + 1) * n_thresholds] for i in range(3))
    false, positives = np.cumsum(above + equal, axis=1), true.sum(axis=1)
    negatives = (above + equal).sum(axis=1) + tables[:, -1]
    sums[2:4] = positives, negatives
    if metric == "auroc":
        sums[1] = (true * (negatives[:, None] - false + equal / 2.0)).sum(axis=1)
        return metric_of_sums(metric, sums, ratio)
    with unwarned():
        if ratio is not None:
            false *= (ratio * positives / negatives)[:, None]
        hits = np.cumsum(true, axis=1)
        # A threshold that no positive of this replicate has adds nothing.
        sums[0] = np.where(true > 0, true * hits / (hits + false), 0.0).sum(axis=1)
    return metric_of_sums(metric, sums, ratio)


def _at_threshold(metric: Metric, outcomes: Floats, ratio: float | None) -> Floats:
    tp, fn, fp, tn = outcomes
    with unwarned():
        if metric == "true_positive_rate":
            return floats(tp / (tp + fn))
        if metric == "false_positive_rate":
            return floats(fp / (fp + tn))
        weighted = fp if ratio is None else fp * (ratio * (tp + fn) / (fp + tn))
        if metric == "precision":
            return floats(tp / (tp + weighted))
        # Without positives a group has no F1, though the quotient would be 0.
        return np.where(tp + fn > 0, 2.0 * tp / (2.0 * tp + weighted + fn), np.nan)
