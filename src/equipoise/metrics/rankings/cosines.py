"""Cosines of items and queries, ranked block by block: the table of scores is never written out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equipoise.core import (
    AnyArray,
    Floats,
    Floats32,
    InputError,
    Integers,
    Integers32,
    Strings,
    floats,
    record,
)
from equipoise.metrics.vector_rows import Table, float_rows, take_rows
from equipoise.metrics.vectors.sets import embedding_table, kernel_rows
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

# Items of a block: its vectors and products stay in a core's cache.
BLOCK = 2048
# Items of the first round, which says how good the K-th best is at least.
_FIRST = 8192
# Share of all items from which a query's candidates are so many that all may be taken.
_CROWD = 0.25


Hits = tuple[NDArray[np.int16], Integers, Floats32]
"""Scores that reach their query's bar: query, place of the item, score."""


def _hits(products: Floats32, inverse: Floats32, bar: Floats32, places: Integers) -> Hits:
    """List what reaches the bar among products (queries, items) times `inverse`."""
    room = products.size // 16 + 1
    while True:
        query, column = np.empty(room, np.int16), np.empty(room, np.int32)
        score = np.empty(room, np.float32)
        n_hits = reaching(products, inverse, bar, query, column, score)
        if n_hits <= room:
            return query[:n_hits], places[column[:n_hits]], score[:n_hits]
        room = n_hits


Found = tuple[Integers, Floats]

# Queries that are compared with a block at once.
_QUERIES = 512
# Squared lengths at which products of float32 neither overflow nor vanish.
_SMALLEST, _LARGEST = 1e-30, 1e30
_HALF_ULP = 2.0**-24


@record
class CosineScores:
    """Cosine of every item to every query, taken when it is needed; see `cosine_scores`.

    Attributes
    ----------
    items : ndarray or ChosenRows, shape (n, d)
        Vectors as given; a memory-mapped array, or rows of one, is read block by block.
    queries : ndarray of float64, shape (queries, d)
        Of length 1.
    names : tuple of str
        Of the queries.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.cosine_scores(rng.normal(size=(60, 8)), rng.normal(size=(2, 8))).names
    ('0', '1')
    """

    items: Table
    queries: Floats
    names: Strings

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    @property
    def cells(self) -> int:
        """Number of scores, of all items for all queries."""
        return len(self) * len(self.queries)

    def of_owner(self, owner: Integers, rows: Integers) -> Floats:
        """Return the score of each item for its own query, shape (n,); 0 off the rows asked for."""
        scores = np.zeros(len(self))
        scores[rows] = self._scores(owner[rows], rows)
        return scores

    def of_query(self, query: int, rows: Integers) -> Floats:
        """Return the scores of items for one query, shape (rows,)."""
        return self._scores(np.full(len(rows), query), rows)

    def table(self) -> Floats:
        """Return all scores, shape (queries, n), in one pass over the items."""
        scores = np.empty((len(self.queries), len(self)))

        def add(start: int) -> None:
            rows = np.arange(start, min(start + BLOCK, len(self)))
            vectors, dots = self._vectors(rows), np.empty((len(rows), len(self.queries)))
            _, lengths = self._products(np.zeros(len(rows), np.int64), rows, vectors)
            inner_all(vectors, self.queries, dots)
            np.divide(dots.T, lengths, out=scores[:, start : start + len(rows)])

        each(add, range(0, len(self), BLOCK))
        return scores

    def of_items(self, rows: Integers) -> Floats:
        """Return the scores of some items for all queries, shape (queries, rows)."""
        return CosineScores(take_rows(self.items, rows), self.queries, self.names).table()

    def best(self, queries: Sequence[int], rows: Integers, k: int) -> list[Found]:
        """Find the k best of some items for each query, all that tie with the k-th included.

        Scores in float32 say which items may be among them; these are scored in float64.

        Parameters
        ----------
        queries : sequence of int
        rows : ndarray of int64, shape (m,)
            Items that are ranked, at least k.
        k : int

        Returns
        -------
        list of (rows, scores)
            Per query, in no order.
        """
        best_items: list[Found] = []
        for start in range(0, len(queries), _QUERIES):
            batch = queries[start : start + _QUERIES]
            unit = self.queries[batch].astype(np.float32)
            candidates = self._candidates(unit, rows, k)
            # Queries with few candidates go together, as each call takes its time.
            turns = np.cumsum([len(places) for places in candidates]) // (2 * BLOCK)
            edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(candidates)]
            parts = [[*zip(batch[a:b], candidates[a:b], strict=True)] for a, b in pairwise(edges)]
            for best in each(partial(self._best, k), parts):
                best_items += best
        return best_items

    def _candidates(self, queries: Floats32, rows: Integers, k: int) -> list[Integers]:
        """Return the items that may be among the k best of each query, all where they are many.

        Parameters
        ----------
        queries : ndarray of float32, shape (q, d)
        rows : ndarray of int64, shape (m,)
            Items that are ranked.
        k : int
        """
        # How far a score in float32 may lie from the true one, whatever the order of its sums.
        items, error = len(rows), (1.5 * int(self.items.shape[1]) + 16) * _HALF_ULP
        crowded = np.zeros(len(queries), dtype=bool)

        def table(start: int) -> Floats32:
            block, inverse = self._block(rows, start)
            return (queries @ block.T) * inverse

        def bars(score_rows: Iterable[Floats32]) -> Floats32:
            """Return lower bounds of the k-th best score, from some of the scores."""
            last = (np.partition(row, -k)[-k] if len(row) >= k else -np.inf for row in score_rows)
            return np.array([float(score) - 2.0 * error for score in last], dtype=np.float32)

        def raised(hits: Hits) -> tuple[Hits, Floats32]:
            """Return hits by query that reach their bar, and it; marks crowded queries."""
            order = np.argsort(hits[0], kind="stable")
            query, place, score = hits[0][order], hits[1][order], hits[2][order]
            counts = np.bincount(query, minlength=len(crowded))
            # Down to the next number, as rounding may have gone up.
            bar = np.nextafter(bars(np.split(score, np.cumsum(counts)[:-1])), np.float32(-np.inf))
            reached = score >= np.repeat(bar, counts)
            n_candidates = np.bincount(query[reached], minlength=len(crowded))
            np.logical_or(crowded, n_candidates > max(_CROWD * items, 8 * k), out=crowded)
            bar[crowded] = np.inf
            reached &= ~np.repeat(crowded, counts)
            return (query[reached], place[reached], score[reached]), bar

        def scan(bar: Floats32, start: int) -> Hits:
            block, inverse = self._block(rows, start)
            places = np.arange(start, start + len(block))
            return _hits(queries @ block.T, inverse, bar, places)

        # Every round takes blocks from everywhere, for data are often sorted.
        starts = np.arange(0, items, BLOCK)
        place = np.arange(len(starts))
        stride = max(1, items // max(_FIRST, 16 * k))
        turn = np.where(place % stride == 0, 0, np.where(place % 4 == 1, 1, 2))
        first, *later = (starts[turn == number].tolist() for number in np.unique(turn))
        scores = np.concatenate(each(table, first), axis=1)
        places = np.concatenate([np.arange(start, min(start + BLOCK, items)) for start in first])
        unit_scale = np.ones(len(places), np.float32)
        hits, bar = raised(_hits(scores, unit_scale, bars(scores), places))
        for round_starts in later:
            round_hits = each(partial(scan, bar), round_starts)
            query, row, score = (
                np.concatenate(arrays) for arrays in zip(hits, *round_hits, strict=True)
            )
            hits, bar = raised((query, row, score))
        candidates = np.split(hits[1], np.cumsum(np.bincount(hits[0], minlength=len(bar)))[:-1])
        return [
            rows if full else rows[candidate_places]
            for candidate_places, full in zip(candidates, crowded, strict=True)
        ]

    def _best(self, k: int, candidates: Sequence[tuple[int, Integers]]) -> list[Found]:
        """Return the k best among the candidates of some queries, scored in float64."""
        lengths = [len(candidate_rows) for _, candidate_rows in candidates]
        owner = np.repeat([query for query, _ in candidates], lengths)
        rows = np.concatenate([candidate_rows for _, candidate_rows in candidates])
        query_scores = np.split(self._scores(owner, rows), np.cumsum(lengths[:-1]))
        best_items = []
        for (_, candidate_rows), scores in zip(candidates, query_scores, strict=True):
            among_best = (
                scores >= np.partition(scores, len(candidate_rows) - k)[len(candidate_rows) - k]
            )
            best_items.append((candidate_rows[among_best], scores[among_best]))
        return best_items

    def _block(self, rows: Integers, start: int) -> tuple[Floats32, Floats32]:
        """Return a block of items in float32 and what makes their length 1."""
        block_rows = rows[start : start + BLOCK]
        vectors = self._vectors(block_rows)
        if vectors.dtype == np.float32:
            squares = np.einsum("ij,ij->i", vectors, vectors)
            if ((squares > _SMALLEST) & (squares < _LARGEST)).all():
                return vectors, 1.0 / np.sqrt(squares)
        _, lengths = self._products(np.zeros(len(block_rows), np.int64), block_rows, vectors)
        return (vectors / lengths[:, None]).astype(np.float32), np.ones(len(block_rows), np.float32)

    def _scores(self, owner: Integers, rows: Integers) -> Floats:
        """Score rows for the query of each, block by block."""
        blocks = (np.split(array, range(BLOCK, len(rows), BLOCK)) for array in (owner, rows))
        pairs = zip(*blocks, strict=True)
        return np.concatenate(each(lambda pair: self._score(*pair), pairs))

    def _score(self, owner: Integers, rows: Integers) -> Floats:
        dots, lengths = self._products(owner, rows, self._vectors(rows))
        return dots / lengths

    def _products(
        self, owner: Integers, rows: Integers, vectors: AnyArray
    ) -> tuple[Floats, Floats]:
        """Return the products of items with their queries, and the items' lengths, in float64."""
        dots, squares = np.empty(len(rows)), np.empty(len(rows))
        inner(vectors, owner, self.queries, dots, squares)
        lengths = np.sqrt(squares)
        bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if len(bad):
            problem = "is zero" if lengths[bad[0]] == 0 else "holds a number that is not finite"
            raise InputError(
                f"items: vector {rows[bad[0]] + 1} {problem}, and has no cosine. "
                "Leave these items out"
            )
        return dots, lengths

    def _vectors(self, rows: Integers) -> AnyArray:
        """Return items as kernels take them: float32 or float64."""
        return kernel_rows(take_rows(self.items, rows))


Scores: TypeAlias = ArrayLike | CosineScores
"""Scores of every item for every query, (queries, n) or (n,), or what computes them."""


def cosine_scores(
    items: ArrayLike, queries: ArrayLike, *, names: Sequence[str] | None = None
) -> CosineScores:
    """Score items by their cosine to queries, to be given to retrieval metrics as `scores`.

    The table of queries by items is never held: items are read in blocks, compared in float32
    with the K-th best so far, and those near it scored in float64. What is ranked, and what
    ties, is as if all scores were in float64. Threads are those of `EQUIPOISE_THREADS`; a
    linear algebra library that starts its own (`OPENBLAS_NUM_THREADS` and the like) should be
    left one, or the two stand in each other's way.

    Parameters
    ----------
    items : array-like, shape (n, d)
        Vectors such as embeddings of images, of any length but 0. Memory-mapped arrays are read
        where they are needed. Checked for zeros, NaN and infinity when they are ranked.
    queries : array-like, shape (queries, d)
        Vectors of the queries, of any length but 0.
    names : sequence of str, optional
        Names of the queries, all different; default: their numbers.

    Returns
    -------
    CosineScores
        Stands for scores of shape (queries, n): every query ranks all items. Where a metric is
        given `queries=`, the name of the query that each item belongs to, every query ranks its
        own items alone.

    Raises
    ------
    InputError
        When shapes do not fit, numbers are not real, a query's vector is zero or not finite, or
        names repeat.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> images, prompts = rng.normal(size=(60, 8)), rng.normal(size=(2, 8))
    >>> scores = m.cosine_scores(images, prompts, names=["a chef", "a nurse"])
    >>> m.max_skew(scores, ["women", "men"] * 30, k=10)
    <max_skew 0.326 [0.005, 0.686]; chance 0.191, p = 0.14, n = 60 in 2 groups>
    """
    table = embedding_table(items, "items")
    query_vectors = floats(embedding_table(queries, "queries")[:])
    if table.shape[1] != query_vectors.shape[1]:
        raise InputError(
            f"queries: vectors of {query_vectors.shape[1]} numbers; expected {table.shape[1]}, "
            "as in items"
        )
    lengths = np.sqrt((query_vectors**2).sum(axis=1))
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(f"queries: vector {bad[0] + 1} is zero or not finite, and has no cosine")
    query_names = tuple(map(str, range(len(query_vectors)) if names is None else names))
    if len(query_names) != len(query_vectors) or len({*query_names}) < len(query_names):
        raise InputError(
            f"names: {len({*query_names})} distinct names; expected {len(query_vectors)}, "
            "one per query"
        )
    return CosineScores(table, query_vectors / lengths[:, None], query_names)


# Sums that run side by side, added in one order: the same number on every machine.
_LANES = 32
# Scores that are looked at together: few of them reach the bar.
_RUN = 64


@compiled(*float_rows("void(rows, int64[::1], float64[:, ::1], float64[::1], float64[::1])"))
def inner(block: AnyArray, owner: Integers, queries: Floats, dots: Floats, squares: Floats) -> None:
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
    n_vectors, size = block.shape
    n_in_lanes = size - size % _LANES
    dot, square = np.zeros(_LANES), np.zeros(_LANES)
    for i in range(n_vectors):
        row, query = block[i], queries[owner[i]]
        for lane in range(_LANES):
            dot[lane], square[lane] = 0.0, 0.0
        for start in range(0, n_in_lanes, _LANES):
            for lane in range(_LANES):
                value = np.float64(row[start + lane])
                dot[lane] += value * query[start + lane]
                square[lane] += value * value
        total, length = 0.0, 0.0
        for lane in range(_LANES):
            total += dot[lane]
            length += square[lane]
        for j in range(n_in_lanes, size):
            value = np.float64(row[j])
            total += value * query[j]
            length += value * value
        dots[i], squares[i] = total, length


@compiled(*float_rows("void(rows, float64[:, ::1], float64[:, ::1])"))
def inner_all(block: AnyArray, queries: Floats, dots: Floats) -> None:
    """Write the products of each vector with every query, to the digits of `inner`.

    Parameters
    ----------
    block : ndarray of float32 or float64, shape (m, d)
    queries : ndarray of float64, shape (q, d)
    dots : ndarray of float64, shape (m, q)
        Written.
    """
    n_vectors, size = block.shape
    n_in_lanes = size - size % _LANES
    dot = np.zeros(_LANES)
    for i in range(n_vectors):
        row = block[i]
        for q in range(len(queries)):
            query = queries[q]
            for lane in range(_LANES):
                dot[lane] = 0.0
            for start in range(0, n_in_lanes, _LANES):
                for lane in range(_LANES):
                    dot[lane] += np.float64(row[start + lane]) * query[start + lane]
            total = 0.0
            for lane in range(_LANES):
                total += dot[lane]
            for j in range(n_in_lanes, size):
                total += np.float64(row[j]) * query[j]
            dots[i, q] = total


@compiled()
def _list(  # noqa: PLR0913, PLR0917 - kernels take arrays
    row: Any,
    inverse: Any,
    bar: Any,
    run: Any,
    q: Any,
    n_hits: Any,
    query: Any,
    place: Any,
    score: Any,
) -> Any:
    """List what reaches the bar in a run of a row, after the first `many`."""
    for j in range(run[0], run[1]):
        value = row[j] * inverse[j]
        if value >= bar:
            if n_hits < len(query):
                query[n_hits], place[n_hits], score[n_hits] = q, j, value
            n_hits += 1
    return n_hits


@compiled(
    "int64(float32[:, ::1], float32[::1], float32[::1], int16[::1], int32[::1], float32[::1])"
)
def reaching(
    products: Floats32,
    inverse: Floats32,
    least: Floats32,
    query: AnyArray,
    place: Integers32,
    score: Floats32,
) -> int:
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
    n_hits = 0
    queries, items = products.shape
    n_in_runs = items - items % _RUN
    for q in range(queries):
        row, bar = products[q], least[q]
        for start in range(0, n_in_runs, _RUN):
            # A loop of fixed length, so that the processor compares many at once.
            hits = np.int32(0)
            for j in range(_RUN):
                hits |= np.int32(row[start + j] * inverse[start + j] >= bar)
            if hits != 0:
                n_hits = _list(
                    row, inverse, bar, (start, start + _RUN), q, n_hits, query, place, score
                )
        n_hits = _list(row, inverse, bar, (n_in_runs, items), q, n_hits, query, place, score)
    return n_hits
