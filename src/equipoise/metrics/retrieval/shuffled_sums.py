"""Sums by group with the groups of many images exchanged, without an array of all their labels.

A shuffle of ten million labels waits for memory at every step. Here images are cut into parts that
stay in the cache: how many labels of each group a part gets is drawn first, part after part, and
then they are shuffled within it. Every order of all labels is still equally likely.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from equipoise.stats.shuffling import add_shuffled
from equipoise.stats.streams import stream
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Result = TypeVar("Result")

# Images from which on this is quicker than an array of labels for each draw.
_MANY = 1 << 13
# Draws that a thread makes together, and numbers of a part, which is read for each of them.
_TOGETHER, _NUMBERS = 128, 1 << 15
# Images of a part, at least.
_LEAST = 256


def exchange_alone(items: Indices, codes: Codes, stratum: Indices) -> bool:
    """Whether items are many, and exchange labels with each other and no others.

    Parameters
    ----------
    items : ndarray of int64, shape (m,)
        Distinct rows.
    codes : ndarray of int32, shape (n,)
        Labels; -1 does not take part.
    stratum : ndarray of int64, shape (n,)
        Labels exchange within a stratum.
    """
    if len(items) < _MANY:
        return False
    members = (stratum == stratum[items[0]]) & (codes >= 0)
    return bool(members[items].all()) and np.count_nonzero(members) == len(items)


def of_shuffled(
    function: Callable[[Floats], Result],
    scores: Floats,
    sizes: Indices,
    draws: int,
    seed: int,
    name: str,
) -> list[Result]:
    """Apply a function to sums of scores by group, groups exchanged among all images.

    Parameters
    ----------
    function : callable
        Takes sums of shape (some draws, groups, k), the same for groups in another order, but for
        those of equal sizes. What it returns for a draw must not depend on the others.
    scores : ndarray, shape (n, k)
        k numbers of each image.
    sizes : ndarray of int64, shape (groups,)
        Images of each group, n together.
    draws : int
    seed, name : int, str
        Key of the random stream.

    Returns
    -------
    list
        What the function returned, in the order of the draws.
    """
    ends = np.append(np.arange(0, len(scores), _part(scores.shape[1])), len(scores)).tolist()
    order = np.argsort(sizes, kind="stable")

    def some(start: int) -> Result:
        rng = stream(seed, name, "parts", start)
        many = min(_TOGETHER, draws - start)
        states = rng.integers(1 << 64, size=many, dtype=np.uint64)
        found = np.zeros((many, len(sizes), scores.shape[1]))
        left = np.repeat(sizes[order][None], many, axis=0)
        for first, last in pairwise(ends):
            counts = _dealt(rng, left, last - first)
            left -= counts
            add_shuffled(states, counts, scores[first:last], found)
        return function(found[:, np.argsort(order)])

    return each(some, range(0, draws, _TOGETHER))


def _part(numbers: int) -> int:
    return max(_LEAST, _NUMBERS // numbers)


def _dealt(rng: np.random.Generator, left: Indices, size: int) -> Indices:
    """Return how many labels of each group are among the next ones, shape (draws, groups)."""
    counts, wanted = np.zeros_like(left), np.full(len(left), size)
    others = left.sum(axis=1)
    for group in range(left.shape[1] - 1):
        others -= left[:, group]
        counts[:, group] = rng.hypergeometric(left[:, group], others, wanted)
        wanted -= counts[:, group]
    counts[:, -1] = wanted
    return counts
