"""Compiled loops over scores: inner products, what reaches a bar, sums by group."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from equipoise.stats.compiled import compiled
from equipoise.stats.shuffling import add_shuffled
from equipoise.stats.streams import stream
from equipoise.stats.threads import each


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
