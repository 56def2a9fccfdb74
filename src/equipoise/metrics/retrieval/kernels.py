"""Compiled loops over scores: inner products, what reaches a bar, sums by group."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.stats.compiled import compiled

# Sums that run side by side, added in one order: the same number on every machine.
_LANES = 32
# Scores that are looked at together: few of them reach the bar.
_RUN = 64


@compiled(
    "void(float32[:, ::1], int64[::1], float64[:, ::1], float64[::1], float64[::1])",
    "void(float64[:, ::1], int64[::1], float64[:, ::1], float64[::1], float64[::1])",
)
def inner(block: Any, owner: Any, queries: Any, dots: Any, squares: Any) -> None:
    """Write the products of each vector with its query, and with itself, in float64.

    Parameters
    ----------
    block : ndarray of float32 or float64, shape (m, d)
    owner : ndarray of int64, shape (m,)
        Row of `queries` for each vector.
    queries : ndarray of float64, shape (q, d)
    dots, squares : ndarray of float64, shape (m,)
        Written.
    """
    many, size = block.shape
    even = size - size % _LANES
    dot, square = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(many):
        row, query = block[i], queries[owner[i]]
        for lane in range(_LANES):
            dot[lane], square[lane] = 0.0, 0.0
        for start in range(0, even, _LANES):
            for lane in range(_LANES):
                value = np.float64(row[start + lane])
                dot[lane] += value * query[start + lane]
                square[lane] += value * value
        total, length = 0.0, 0.0
        for lane in range(_LANES):
            total += dot[lane]
            length += square[lane]
        for j in range(even, size):
            value = np.float64(row[j])
            total += value * query[j]
            length += value * value
        dots[i], squares[i] = total, length


@compiled()
def _list(  # noqa: PLR0913, PLR0917 - kernels take arrays
    row: Any,
    inverse: Any,
    bar: Any,
    run: Any,
    q: Any,
    many: Any,
    query: Any,
    place: Any,
    score: Any,
) -> Any:
    """List what reaches the bar in a run of a row, after the first `many`."""
    for j in range(run[0], run[1]):
        value = row[j] * inverse[j]
        if value >= bar:
            if many < len(query):
                query[many], place[many], score[many] = q, j, value
            many += 1
    return many


@compiled(
    "int64(float32[:, ::1], float32[::1], float32[::1], int16[::1], int32[::1], float32[::1])"
)
def reaching(products: Any, inverse: Any, least: Any, query: Any, place: Any, score: Any) -> int:
    """List the scores that reach their query's bar, and return how many do.

    Parameters
    ----------
    products : ndarray of float32, shape (q, m)
    inverse : ndarray of float32, shape (m,)
        What a product is multiplied with.
    least : ndarray of float32, shape (q,)
    query, place, score : ndarray
        Written, as far as there is room: row, column and score of what reaches.
    """
    many = 0
    queries, items = products.shape
    even = items - items % _RUN
    for q in range(queries):
        row, bar = products[q], least[q]
        for start in range(0, even, _RUN):
            # A loop of fixed length, so that the processor compares many at once.
            hits = np.int32(0)
            for j in range(_RUN):
                hits |= np.int32(row[start + j] * inverse[start + j] >= bar)
            if hits != 0:
                many = _list(row, inverse, bar, (start, start + _RUN), q, many, query, place, score)
        many = _list(row, inverse, bar, (even, items), q, many, query, place, score)
    return many


@compiled("void(int32[:, ::1], float64[:, ::1], float64[:, :, ::1], float64[:, ::1])")
def group_sums(codes: Any, scores: Any, sums: Any, counts: Any) -> None:
    """Add up the scores of each group for every drawing of the groups.

    Parameters
    ----------
    codes : ndarray of int32, shape (draws, n)
    scores : ndarray, shape (n, concepts)
    sums : ndarray, shape (draws, groups, concepts)
        Zeros; added to.
    counts : ndarray, shape (draws, groups)
        Zeros; added to.
    """
    draws, items = codes.shape
    # Some items at a time, whose scores stay in the cache for all draws.
    for start in range(0, items, 256):
        for draw in range(draws):
            for i in range(start, min(start + 256, items)):
                group = codes[draw, i]
                counts[draw, group] += 1.0
                for concept in range(scores.shape[1]):
                    sums[draw, group, concept] += scores[i, concept]
