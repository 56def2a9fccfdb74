"""Cosines of items and queries, ranked block by block: the table of scores is never written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.retrieval.kernels import inner, reaching
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Found = tuple[Indices, Floats]

# Items of a block: block and products stay in a core's cache.
_BLOCK = 2048
# Items whose scores say how high the k-th best is at least.
_SAMPLE = 8192
# Share of the sampled items above which a query's candidates are so many that all are scored.
_CROWD = 0.25
# Lengths at which products of float32 neither overflow nor vanish.
_SHORT, _LONG = 1e-15, 1e15
_HALF_ULP = 2.0**-24


@dataclass(frozen=True, eq=False)
class CosineScores:
    """Cosine of every item to every query, taken when it is needed; see `cosine_scores`.

    Attributes
    ----------
    items : ndarray, shape (n, d)
        Vectors as given; a memory-mapped array is read block by block.
    queries : ndarray of float64, shape (queries, d)
        Of length 1.
    names : tuple of str
        Of the queries.
    """

    items: npt.NDArray[Any] = field(repr=False)
    queries: Floats = field(repr=False)
    names: tuple[str, ...]

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.items)

    def of_owner(self, owner: Indices, rows: Indices) -> Floats:
        """Return the score of each item for its own query, shape (n,); 0 off the rows asked for."""
        found = np.zeros(len(self))
        blocks = each(partial(self._own, owner, rows), range(0, len(rows), _BLOCK))
        if blocks:
            found[rows] = np.concatenate(blocks)
        return found

    def of_query(self, query: int, rows: Indices) -> Floats:
        """Return the scores of items for one query, shape (rows,)."""
        owner = np.broadcast_to(np.int64(query), len(self))
        blocks = each(partial(self._own, owner, rows), range(0, len(rows), _BLOCK))
        return np.concatenate(blocks)

    def best(self, queries: Sequence[int], rows: Indices, k: int) -> list[Found]:
        """Find the k best of some items for each query, all that tie with the k-th included.

        Scores in float32 say which items may be among them; these are scored in float64.

        Parameters
        ----------
        queries : sequence of int
        rows : ndarray of int64, shape (m,)
            Items that are ranked, more than k or k of them.
        k : int

        Returns
        -------
        list of (rows, scores)
            Per query, in the order of `rows`.
        """
        least, crowded = self._least(queries, rows, k)
        scan = partial(self._scan, np.asarray(queries), rows, least)
        blocks = each(scan, range(0, len(rows), _BLOCK))
        query, place, score = (np.concatenate(one) for one in zip(*blocks, strict=True))
        order = np.argsort(query.astype(np.uint16), kind="stable")
        edges = np.cumsum(np.bincount(query, minlength=len(queries)))[:-1]
        near = [
            _near(places, scores, k, self._error)
            for places, scores in zip(
                np.split(place[order], edges), np.split(score[order], edges), strict=True
            )
        ]
        return [
            self._exactly(query, rows if full else rows[places], k)
            for query, places, full in zip(queries, near, crowded.tolist(), strict=True)
        ]

    @property
    def _error(self) -> float:
        """How far a score in float32 may lie from the true one, whatever the order of its sum."""
        return 1.01 * (int(self.items.shape[1]) + 8) * _HALF_ULP

    @cached_property
    def _short(self) -> npt.NDArray[np.float32]:
        return self.queries.astype(np.float32)

    def _least(
        self, queries: Sequence[int], rows: Indices, k: int
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Return what a score must reach to be among the k best, and who has crowds that do."""
        sample = rows[:: max(1, len(rows) // max(_SAMPLE, 4 * k))]
        block, inverse = self._block(sample)
        scores = (self._short[np.asarray(queries)] @ block.T) * inverse
        last = np.partition(scores, len(sample) - k, axis=1)[:, len(sample) - k]
        least = last - np.float32(2 * self._error)
        many = (scores >= least[:, None]).sum(axis=1)
        crowded = many > max(4 * k, _CROWD * len(sample))
        return np.where(crowded, np.float32(np.inf), least), crowded

    def _scan(
        self, queries: Indices, rows: Indices, least: npt.NDArray[np.float32], start: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return query, place and score of a block's items that may be among the best."""
        block, inverse = self._block(rows[start : start + _BLOCK])
        products = self._short[queries] @ block.T
        room = products.size // 16
        while True:
            query, place = np.empty(room, np.int32), np.empty(room, np.int32)
            score = np.empty(room, np.float32)
            many = reaching(products, inverse, least, query, place, score)
            if many <= room:
                return query[:many], place[:many] + np.int32(start), score[:many]
            room = many

    def _block(self, rows: Indices) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return items in float32 and what makes their length 1."""
        vectors = self._vectors(rows)
        owner, dots, squares = (
            np.zeros(len(rows), np.int64),
            np.empty(len(rows)),
            np.empty(len(rows)),
        )
        inner(vectors, owner, self.queries, dots, squares)
        lengths = _lengths(squares, rows)
        if vectors.dtype == np.float32 and lengths.min() > _SHORT and lengths.max() < _LONG:
            return vectors, (1.0 / lengths).astype(np.float32)
        unit = vectors / lengths[:, None]
        return unit.astype(np.float32), np.ones(len(rows), np.float32)

    def _vectors(self, rows: Indices) -> npt.NDArray[Any]:
        """Return items as kernels take them: float32 or float64, without a copy where they are."""
        run = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1
        part = self.items[rows[0] : rows[-1] + 1] if run else self.items[rows]
        exact = self.items.dtype.kind == "f" and self.items.dtype.itemsize <= 4
        return np.ascontiguousarray(part, dtype=np.float32 if exact else np.float64)

    def _own(self, owner: Indices, rows: Indices, start: int) -> Floats:
        held = rows[start : start + _BLOCK]
        dots, squares = np.empty(len(held)), np.empty(len(held))
        inner(self._vectors(held), owner[held], self.queries, dots, squares)
        return np.asarray(dots / _lengths(squares, held))

    def _exactly(self, query: int, rows: Indices, k: int) -> Found:
        scores = self.of_query(query, rows)
        last = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = scores >= last
        return rows[kept], scores[kept]


def _near(places: npt.NDArray[np.int32], scores: Any, k: int, error: float) -> Any:
    if len(scores) <= k:
        return places
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    return places[scores >= last - np.float32(2 * error)]


def _lengths(squares: Floats, rows: Indices) -> Floats:
    lengths = np.sqrt(squares)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        what = "is zero" if lengths[bad[0]] == 0 else "holds a number that is not finite"
        raise InputError(
            f"items: vector {rows[bad[0]] + 1} {what}, and has no cosine. Leave such items out"
        )
    return lengths


def cosine_scores(items: Any, queries: Any, *, names: Sequence[str] | None = None) -> CosineScores:
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
    """
    table, asked = _matrix(items, "items"), _matrix(queries, "queries").astype(np.float64)
    if table.shape[1] != asked.shape[1]:
        raise InputError(
            f"queries: vectors of {asked.shape[1]} numbers; expected {table.shape[1]}, as in items"
        )
    lengths = np.sqrt((asked**2).sum(axis=1))
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InputError(f"queries: vector {bad[0] + 1} is zero or not finite, and has no cosine")
    given = tuple(str(name) for name in (range(len(asked)) if names is None else names))
    if len(given) != len(asked) or len(set(given)) < len(given):
        raise InputError(
            f"names: {len(given)} names, {len(set(given))} of them distinct; "
            f"expected {len(asked)} distinct ones, one per query"
        )
    return CosineScores(table, asked / lengths[:, None], given)


def _matrix(values: Any, what: str) -> npt.NDArray[Any]:
    try:
        found = np.asarray(values)
    except ValueError:
        raise InputError(f"{what}: vectors of different lengths; expected one shape") from None
    if found.dtype.kind not in "fiu":
        raise InputError(f"{what}: values of type {found.dtype}; expected real numbers")
    if found.ndim != 2 or not found.size:
        raise InputError(f"{what}: shape {found.shape}; expected (vectors, numbers), not empty")
    return found
