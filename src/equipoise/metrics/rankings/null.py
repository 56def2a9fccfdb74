"""Groups exchanged between items whose order says nothing: the null of every retrieval metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from equipoise.metrics.rankings.kernels import draw_first, shuffle
from equipoise.metrics.rankings.pools import Floats, Indices
from equipoise.metrics.rankings.statistics import Drawn, Statistic
from equipoise.metrics.rankings.tops import Tops
from equipoise.stats.streams import stream
from equipoise.stats.threads import each

Result = TypeVar("Result")

# Labels that a block of draws may hold: bounds the memory, fixed so that the same data give the
# same blocks on every machine.
_BLOCK_LABELS = 4_000_000
# Blocks of draws that a function is applied to at once.
_BLOCKS = 64

# Measured costs in nanoseconds: of a call, of shuffling a label among others, of drawing one.
_CALL, _SHUFFLED, _DRAWN = 5_000, 10, 40
# Labels from which on that alone decides: calls take nothing beside shuffling so many.
_LARGE = 1 << 16
# The largest random word, and how many more are drawn than it should take.
_WORD, _SPARE = 2**64 - 1, 1_000


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

    @cached_property
    def _words(self) -> float:
        """Random words that a shuffle takes on average: those beyond a bound are left out."""
        last = np.arange(1, int(self.size.max(initial=1)))
        each = 2.0 ** np.ceil(np.log2(last + 1)) / (last + 1)
        return float(np.append(0.0, np.cumsum(each))[self.size - 1].sum())

    @property
    def moves(self) -> bool:
        """Whether any exchange changes anything: some stratum holds different labels."""
        owner = np.repeat(np.arange(len(self.size)), self.size)
        differ = (self.labels[1:] != self.labels[:-1]) & (owner[1:] == owner[:-1])
        return bool(differ.any())

    def draw(
        self, rng: np.random.Generator, many: int, labels: npt.NDArray[np.int32] | None = None
    ) -> npt.NDArray[np.int32]:
        """Return labels of the items, shape (many, *shape of the items), by Fisher and Yates.

        A copy of the labels that may change, and is as before after that, spares making one.
        """
        if self._costs_less_whole(many):
            state = np.tile(self.labels, (many, 1))
            self._shuffle(rng, state)
            return state.take(self.source, axis=1)
        random = rng.random(many * int(self.wanted.sum()))
        source = self.source.ravel()
        found = np.empty((many, len(source)), dtype=np.int32)
        held = self.labels.copy() if labels is None else labels
        draw_first(held, self.first, self.size, self.wanted, random, source, found)
        return found.reshape(many, *self.source.shape)

    def _shuffle(self, rng: np.random.Generator, state: npt.NDArray[np.int32]) -> None:
        """Shuffle whole strata, with as many random words as it takes."""
        expected = len(state) * self._words
        words = np.empty(0, dtype=np.uint64)
        while True:
            many = int(expected / 2 + 5 * np.sqrt(expected)) + _SPARE
            more = rng.integers(0, _WORD, many, dtype=np.uint64, endpoint=True)
            words = np.concatenate([words, more])
            random = words.astype("<u8", copy=False).view("<u4").astype(np.uint32, copy=False)
            if shuffle(state, self.first, self.size, random):
                return
            state[:] = self.labels

    def _costs_less_whole(self, many: int) -> bool:
        """Whether shuffling whole strata is quicker than drawing what is wanted of them."""
        if len(self.labels) >= _LARGE:
            return len(self.labels) * _SHUFFLED < int(self.wanted.sum()) * _DRAWN
        whole = len(self.size) * _CALL + many * len(self.labels) * _SHUFFLED
        steps = int(self.wanted.max(initial=0))
        return whole < steps * 4 * _CALL + many * int(self.wanted.sum()) * _DRAWN

    def evaluate(
        self,
        function: Callable[[npt.NDArray[np.int32]], Result],
        draws: int,
        seed: int,
        name: str,
    ) -> list[Result]:
        """Apply a function to blocks of draws, in threads; results are in the order of draws.

        What a function returns for a draw must not depend on which others are in its block.
        """
        size = max(1, _BLOCK_LABELS // max(len(self.labels) + self.source.size, 1))
        starts = range(0, draws, size)
        # Of many labels few are drawn at once, though few may be looked at.
        together = max(1, min(_BLOCKS, _BLOCK_LABELS // max(size * self.source.size, 1)))

        def some(part: range) -> Result:
            held = self.labels.copy() if len(part) > 1 else None
            drawn = (
                self.draw(stream(seed, name, start), min(size, draws - start), held)
                for start in part
            )
            return function(np.concatenate([*drawn]) if len(part) > 1 else next(drawn))

        parts = [starts[at : at + together] for at in range(0, len(starts), together)]
        return each(some, parts)


def simulate(
    statistics: Sequence[Statistic], tops: Tops, exchange: LabelExchange, draws: int, seed: int
) -> list[Floats]:
    """Return every statistic on exchanged labels, each of shape (draws, pools, ...)."""

    def block(codes: npt.NDArray[np.int32]) -> list[Floats]:
        drawn = Drawn(codes, tops)
        return [one(drawn) for one in statistics]

    found = exchange.evaluate(block, draws, seed, "retrieval")
    return [np.concatenate(values) for values in zip(*found, strict=True)]
