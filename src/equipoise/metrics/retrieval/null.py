"""Groups exchanged between items whose order says nothing: the null of every retrieval metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from equipoise.metrics.retrieval.pools import Floats, Indices
from equipoise.metrics.retrieval.statistics import Drawn, Statistic
from equipoise.metrics.retrieval.tops import Tops
from equipoise.stats.streams import stream

# Labels that a block of draws may hold: bounds the memory, fixed so that the same data give the
# same blocks on every machine.
_BLOCK_LABELS = 4_000_000

# Measured costs in nanoseconds: of a call, of shuffling a label among others, of drawing one.
_CALL, _SHUFFLED, _DRAWN = 5_000, 10, 40


@dataclass(frozen=True, eq=False)
class LabelExchange:
    """Labels that change places within strata, drawn only for the items that are looked at.

    Attributes
    ----------
    labels : ndarray, shape (labels,)
        Labels of the strata that hold such items, stratum after stratum.
    first, size, wanted : ndarray of int64, shape (strata,)
        Where the labels of a stratum begin, how many there are, and how many are drawn; most
        wanted first.
    source : ndarray of int64
        Place in `labels` of each item that is looked at, in any shape.
    """

    labels: npt.NDArray[np.int32] = field(repr=False)
    first: Indices
    size: Indices
    wanted: Indices
    source: Indices = field(repr=False)

    @classmethod
    def of(cls, codes: npt.NDArray[np.int32], stratum: Indices, items: Indices) -> LabelExchange:
        """Prepare draws.

        Parameters
        ----------
        codes : ndarray of int32, shape (n,)
            Labels; -1 does not take part.
        stratum : ndarray of int64, shape (n,)
            Labels exchange within a stratum.
        items : ndarray of int64, any shape
            Rows whose labels are looked at; -1 is none.
        """
        seen = items[items >= 0]
        rows, places = np.unique(seen, return_index=True)
        rows = rows[np.argsort(places)]
        names, at, inverse, wanted = np.unique(
            stratum[rows], return_index=True, return_inverse=True, return_counts=True
        )
        # By the number wanted, then by who comes first: not by the strata's names.
        order = np.lexsort((at, -wanted))
        position = np.empty(len(order), dtype=np.int64)
        position[order] = np.arange(len(order))
        members = np.flatnonzero((codes >= 0) & np.isin(stratum, names))
        owner = position[np.searchsorted(names, stratum[members])]
        labels = codes[members]
        rank = np.argsort(np.argsort(np.bincount(labels), kind="stable"), kind="stable")
        size = np.bincount(owner, minlength=len(names))
        first = np.cumsum(size) - size
        slot = np.empty(len(codes), dtype=np.int64)
        by_stratum = np.argsort(position[inverse], kind="stable")
        start = np.cumsum(wanted[order]) - wanted[order]
        place = np.arange(len(rows)) - np.repeat(start, wanted[order])
        slot[rows[by_stratum]] = np.repeat(first, wanted[order]) + place
        source = np.where(items >= 0, slot[items], 0)
        return cls(labels[np.lexsort((rank[labels], owner))], first, size, wanted[order], source)

    @property
    def moves(self) -> bool:
        """Whether any exchange changes anything: some stratum holds different labels."""
        owner = np.repeat(np.arange(len(self.size)), self.size)
        differ = (self.labels[1:] != self.labels[:-1]) & (owner[1:] == owner[:-1])
        return bool(differ.any())

    def draw(self, rng: np.random.Generator, many: int) -> npt.NDArray[np.int32]:
        """Return labels of the items, shape (many, *shape of the items), by Fisher and Yates."""
        state = np.tile(self.labels, (many, 1))
        if self._costs_less_whole(many):
            for first, size in zip(self.first.tolist(), self.size.tolist(), strict=True):
                part = state[:, first : first + size]
                part[:] = rng.permuted(part, axis=1)
            return state[:, self.source]
        flat = state.ravel()
        rows = np.arange(many)[:, None] * len(self.labels)
        for step in range(int(self.wanted.max(initial=0))):
            strata = int((self.wanted > step).sum())
            at = rows + self.first[:strata] + step
            ahead = rng.random((many, strata)) * (self.size[:strata] - step)
            chosen = at + ahead.astype(np.int64)
            label = flat[chosen]
            flat[chosen] = flat[at]
            flat[at] = label
        return state[:, self.source]

    def _costs_less_whole(self, many: int) -> bool:
        """Whether shuffling whole strata is quicker than drawing what is wanted of them."""
        whole = len(self.size) * _CALL + many * len(self.labels) * _SHUFFLED
        steps = int(self.wanted.max(initial=0))
        return whole < steps * 4 * _CALL + many * int(self.wanted.sum()) * _DRAWN

    def blocks(self, draws: int, seed: int, name: str) -> Iterator[npt.NDArray[np.int32]]:
        """Yield blocks of draws, each of a stream of its own."""
        size = max(1, _BLOCK_LABELS // max(len(self.labels) + self.source.size, 1))
        for start in range(0, draws, size):
            yield self.draw(stream(seed, name, start), min(size, draws - start))


def simulate(
    statistics: Sequence[Statistic], tops: Tops, exchange: LabelExchange, draws: int, seed: int
) -> list[Floats]:
    """Return every statistic on exchanged labels, each of shape (draws, pools, ...)."""
    found: list[list[Floats]] = [[] for _ in statistics]
    for codes in exchange.blocks(draws, seed, "retrieval"):
        drawn = Drawn(codes, tops)
        for one, values in zip(statistics, found, strict=True):
            values.append(one(drawn))
    return [np.concatenate(values) for values in found]
