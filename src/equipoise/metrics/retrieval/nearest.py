"""Which items may be among the best: scores in float32 against a bar that rises by rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from equipoise.metrics.retrieval.kernels import reaching
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.float32]

# Items of a block: its vectors and products stay in a core's cache.
BLOCK = 2048
# Items of the first round, which says how good the K-th best is at least.
_FIRST = 8192
# Share of all items from which a query's candidates are so many that all may be taken.
_CROWD = 0.25


@dataclass(frozen=True, eq=False)
class Hits:
    """Scores that reach their query's bar: query, place of the item, score."""

    query: npt.NDArray[np.int16]
    place: Indices
    score: Shorts

    @classmethod
    def of(cls, products: Shorts, inverse: Shorts, bar: Shorts, places: Indices) -> Hits:
        """List what reaches the bar among products (queries, items) times `inverse`."""
        room = products.size // 16 + 1
        while True:
            query, column = np.empty(room, np.int16), np.empty(room, np.int32)
            score = np.empty(room, np.float32)
            many = reaching(products, inverse, bar, query, column, score)
            if many <= room:
                return cls(query[:many], places[column[:many]], score[:many])
            room = many

    @classmethod
    def join(cls, every: Sequence[Hits]) -> Hits:
        """Put hits together."""
        return cls(
            np.concatenate([one.query for one in every]),
            np.concatenate([one.place for one in every]),
            np.concatenate([one.score for one in every]),
        )


@dataclass(frozen=True, eq=False)
class Search:
    """A search for the items that may be among the k best of each query.

    Attributes
    ----------
    queries : ndarray of float32, shape (q, d)
        At most 512.
    read : callable
        From the place of a block's first item to its vectors (m, d) and, shape (m,), what
        their products with the queries are multiplied with.
    items, k : int
    error : float
        How far a score in float32 may lie from the true one.
    """

    queries: Shorts = field(repr=False)
    read: Callable[[int], tuple[Shorts, Shorts]]
    items: int
    k: int
    error: float

    def __call__(self) -> list[Indices | None]:
        """Return the places of each query's candidates, None where they are too many to tell."""
        first, *later = self._rounds()
        tables = each(self._table, first)
        table = np.concatenate(tables, axis=1)
        bar = np.array([self._bar(row) for row in table], dtype=np.float32)
        places = np.concatenate(
            [np.arange(start, min(start + BLOCK, self.items)) for start in first]
        )
        hits = Hits.of(table, np.ones(len(places), np.float32), bar, places)
        crowded = np.zeros(len(bar), dtype=bool)
        hits, bar = self._raised(hits, crowded)
        for starts in later:
            found = each(partial(self._scan, bar), starts)
            hits, bar = self._raised(Hits.join([hits, *found]), crowded)
        edges = np.cumsum(np.bincount(hits.query, minlength=len(bar)))[:-1]
        near = np.split(hits.place, edges)
        return [None if full else one for one, full in zip(near, crowded.tolist(), strict=True)]

    def _rounds(self) -> Iterator[list[int]]:
        """Yield where the blocks of each round begin.

        Every round takes blocks from everywhere, for data are often sorted.
        """
        starts = np.arange(0, self.items, BLOCK)
        stride = max(1, self.items // max(_FIRST, 16 * self.k))
        place = np.arange(len(starts))
        turn = np.where(place % stride == 0, 0, np.where(place % 4 == 1, 1, 2))
        for number in np.unique(turn).tolist():
            yield starts[turn == number].tolist()

    def _table(self, start: int) -> Shorts:
        block, inverse = self.read(start)
        return np.asarray((self.queries @ block.T) * inverse)

    def _scan(self, bar: Shorts, start: int) -> Hits:
        block, inverse = self.read(start)
        places = np.arange(start, start + len(block))
        return Hits.of(self.queries @ block.T, inverse, bar, places)

    def _bar(self, scores: Shorts) -> float:
        """Return what a score must reach to be among the k best of all, by those of some."""
        if len(scores) < self.k:
            return -np.inf
        last = np.partition(scores, len(scores) - self.k)[len(scores) - self.k]
        return float(last) - 2.0 * self.error

    def _raised(self, hits: Hits, crowded: npt.NDArray[np.bool_]) -> tuple[Hits, Shorts]:
        """Return hits by query that reach the bar they set, and the bar; marks crowded queries."""
        order = np.argsort(hits.query, kind="stable")
        counts = np.bincount(hits.query, minlength=len(crowded))
        edges = np.cumsum(counts)[:-1]
        rows = np.split(hits.score[order], edges)
        bar = np.array([self._bar(row) for row in rows], dtype=np.float32)
        # Down to the next number, as rounding may have gone up.
        bar = np.nextafter(bar, np.float32(-np.inf))
        kept = hits.score[order] >= np.repeat(bar, counts)
        many = np.bincount(hits.query[order][kept], minlength=len(crowded))
        crowded |= many > max(_CROWD * self.items, 8 * self.k)
        bar[crowded] = np.inf
        kept &= ~np.repeat(crowded, counts)
        order = order[kept]
        return Hits(hits.query[order], hits.place[order], hits.score[order]), bar
