"""Sums of subsets of whole numbers: all of them, counted in two halves, or drawn at random."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from equipoise.metrics.associations.kernels import add_chosen, enumerate_sums
from equipoise.stats.shuffling import draw_subsets, keys
from equipoise.stats.threads import each

Whole = npt.NDArray[np.int64]

# Subset sums of one side of a halved pool: 2^22 numbers.
MOST_HALVED = 44

# Subsets that a thread draws from one stream.
_BLOCK = 2048


def all_sums(values: Whole, size: int) -> Whole:
    """Return the sums of all subsets of `size` members.

    Parameters
    ----------
    values : ndarray of int64, shape (n, k)
        k numbers of each member.
    size : int

    Returns
    -------
    ndarray of int64, shape (subsets, k)
        Subsets in lexicographic order.
    """
    found = np.empty((values.shape[1], math.comb(len(values), size)), dtype=np.int64)
    for column, sums in zip(np.ascontiguousarray(values.T), found, strict=True):
        enumerate_sums(column, size, sums)
    return np.ascontiguousarray(found.T)


def count_at_least(values: Whole, size: int, threshold: int) -> int:
    """Count subsets of `size` members whose sum is at least a threshold.

    Sums of each half are grouped by size and sorted, and pairs counted between them, so that 40
    members take 2^20 sums a side instead of 1.4e11 subsets.

    Parameters
    ----------
    values : ndarray of int64, shape (n,), n <= 44
    size, threshold : int
    """
    left, right = (_sorted_sums(half) for half in (values[::2], values[1::2]))
    found = 0
    for many, sums in enumerate(left):
        if 0 <= size - many < len(right):
            others = right[size - many]
            # Reversed, what is searched for rises, which keeps the search in the cache.
            needed = threshold - sums[::-1]
            found += len(sums) * len(others) - int(np.searchsorted(others, needed).sum())
    return found


def _sorted_sums(values: Whole) -> list[Whole]:
    sums: list[Whole] = [np.zeros(1, dtype=np.int64)]
    for value in values:
        shifted = [some + value for some in sums]
        sums = [
            sums[0],
            *(np.concatenate(pair) for pair in zip(sums[1:], shifted[:-1], strict=True)),
            shifted[-1],
        ]
    return [np.sort(some) for some in sums]


def random_sums(values: Whole, size: int, draws: int, seed: int, *names: str) -> Whole:
    """Return sums of random subsets of `size` members, all equally likely.

    Parameters
    ----------
    values : ndarray of int64, shape (n, k)
    size, draws : int
    seed, names : int, str
        Key of the random stream.

    Returns
    -------
    ndarray of int64, shape (draws, k)
    """
    n, k = values.shape
    words = math.ceil(n / 64)
    columns = np.zeros((k, 64 * words), dtype=np.int64)
    columns[:, :n] = values.T
    found = np.empty((draws, k), dtype=np.int64)
    starts = range(0, draws, _BLOCK)

    def draw(index: int) -> None:
        part = found[starts[index] : starts[index] + _BLOCK]
        chosen = np.empty((len(part), words), dtype=np.uint64)
        draw_subsets(streams[index], n, size, chosen)
        add_chosen(chosen, columns, part)

    streams = keys(seed, "partition", *names, many=len(starts))
    each(draw, range(len(starts)))
    return found
