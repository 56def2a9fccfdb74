"""Compiled loops of the null: labels that change places, and what becomes of NDKL."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.stats.compiled import compiled


@compiled("boolean(int32[:, ::1], int64[::1], int64[::1], uint32[::1])")
def shuffle(state: Any, first: Any, size: Any, random: Any) -> Any:
    """Shuffle each stratum of each row in place, as numpy's `Generator.permuted` does.

    Parameters
    ----------
    state : ndarray of int32, shape (rows, labels)
    first, size : ndarray of int64, shape (strata,)
        Where the labels of a stratum begin, and how many there are.
    random : ndarray of uint32
        Random words: of each the low bits are taken, and those beyond a bound left out.

    Returns
    -------
    bool
        False where the words were too few.
    """
    at, held = 0, len(random)
    mask = np.ones(size.max() if len(size) else 1, np.int64)
    for last in range(2, len(mask)):
        mask[last] = 2 * mask[last - 1] + 1 if last > mask[last - 1] else mask[last - 1]
    for stratum in range(len(first)):
        start = first[stratum]
        for row in range(len(state)):
            last = size[stratum] - 1
            while last > 0 and at < held:
                # Without a branch for a word that is left out: it would be mistaken often.
                place = np.int64(random[at]) & mask[last]
                at += 1
                taken = place <= last
                other = start + (place if taken else last)
                label = state[row, start + last]
                state[row, start + last] = state[row, other]
                state[row, other] = label
                last -= np.int64(taken)
            if last > 0:
                return False
    return True


@compiled(
    "void(int32[::1], int64[::1], int64[::1], int64[::1], float64[::1], int64[::1], int32[:, ::1])"
)
def draw_first(
    labels: Any, first: Any, size: Any, wanted: Any, random: Any, source: Any, found: Any
) -> None:
    """Draw the first labels of each stratum from all of it, without replacement.

    Labels change places for a draw, and back after it: its cost is that of what is drawn.

    Parameters
    ----------
    labels : ndarray of int32, shape (labels,)
        After each draw as before.
    first, size
        See `shuffle`.
    wanted : ndarray of int64, shape (strata,)
        How many are drawn, most first.
    random : ndarray of float64, shape (draws * sum of wanted,)
        In [0, 1): by step, draw and stratum.
    source : ndarray of int64, shape (m,)
        Places in `labels` that are looked at.
    found : ndarray of int32, shape (draws, m)
        Written.
    """
    steps = wanted[0] if len(wanted) else 0
    draws, strata = len(found), np.zeros(steps, np.int64)
    starts = np.zeros(steps + 1, np.int64)
    for step in range(steps):
        while strata[step] < len(wanted) and wanted[strata[step]] > step:
            strata[step] += 1
        starts[step + 1] = starts[step] + draws * strata[step]
    others = np.empty((steps, len(wanted)), np.int64)
    for draw in range(draws):
        for step in range(steps):
            for stratum in range(strata[step]):
                here = first[stratum] + step
                at = starts[step] + draw * strata[step] + stratum
                other = here + np.int64(random[at] * (size[stratum] - step))
                others[step, stratum] = other
                labels[here], labels[other] = labels[other], labels[here]
        for place in range(len(source)):
            found[draw, place] = labels[source[place]]
        for step in range(steps - 1, -1, -1):
            for stratum in range(strata[step]):
                here, other = first[stratum] + step, others[step, stratum]
                labels[here], labels[other] = labels[other], labels[here]


@compiled(
    "void(int32[:, :, ::1], float64[:, ::1], float64[::1], float64[::1], float64[::1], "
    "float64[:, ::1])"
)
def divergences(codes: Any, wanted: Any, growth: Any, logs: Any, weights: Any, found: Any) -> None:
    """Write the weighted sum over prefixes of KL(shares ‖ desired shares).

    An item changes one count: i KL_i = Σ c ln c − i ln i − Σ c ln d costs O(1) a place.

    Parameters
    ----------
    codes : ndarray of int32, shape (draws, pools, k)
    wanted : ndarray, shape (pools, groups)
        Logarithms of the desired shares.
    growth : ndarray, shape (k,)
        (c + 1) ln(c + 1) − c ln c.
    logs, weights : ndarray, shape (k,)
        ln i, and the weight of prefix i.
    found : ndarray, shape (draws, pools)
        Written.
    """
    draws, pools, k = codes.shape
    counts = np.zeros(wanted.shape[1], np.int64)
    for draw in range(draws):
        for pool in range(pools):
            counts[:] = 0
            total, kept = 0.0, 0.0
            for i in range(k):
                group = codes[draw, pool, i]
                total += growth[counts[group]]
                total -= wanted[pool, group]
                counts[group] += 1
                # Rounding may leave a trace below 0 where shares are as desired.
                kept += weights[i] * max(total / (i + 1) - logs[i], 0.0)
            found[draw, pool] = kept


@compiled(
    "void(int32[:, :, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1], "
    "float64[:, :, :, ::1])"
)
def walk(codes: Any, wanted: Any, inverse: Any, growth: Any, logs: Any, found: Any) -> None:
    """Write KL and the largest and smallest ratio of count and desired share, of each prefix.

    Parameters
    ----------
    codes, wanted, growth, logs
        See `divergences`.
    inverse : ndarray, shape (pools, groups)
        1 / desired share; NaN for groups that are not compared.
    found : ndarray, shape (3, draws, pools, k)
        Written.
    """
    draws, pools, k = codes.shape
    groups = wanted.shape[1]
    counts = np.zeros(groups, np.int64)
    for draw in range(draws):
        for pool in range(pools):
            counts[:] = 0
            total, largest = 0.0, 0.0
            for i in range(k):
                group = codes[draw, pool, i]
                total += growth[counts[group]]
                total -= wanted[pool, group]
                counts[group] += 1
                found[0, draw, pool, i] = max(total / (i + 1) - logs[i], 0.0)
                ratio = counts[group] * inverse[pool, group]
                # Counts only grow, and with them the largest ratio. NaN compares with nothing.
                largest = ratio if ratio > largest else largest
                found[1, draw, pool, i] = largest
                smallest = np.inf
                for other in range(groups):
                    ratio = counts[other] * inverse[pool, other]
                    smallest = ratio if ratio < smallest else smallest
                found[2, draw, pool, i] = smallest
