"""Groups exchanged between units, such as persons with several photos."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.metrics.retrieval.pools import Indices
from equipoise.stats.exchange import Exchange
from equipoise.stats.streams import stream
from equipoise.stats.threads import each

Result = TypeVar("Result")
Codes = npt.NDArray[np.int32]

# Labels that a block of draws may hold.
_BLOCK_LABELS = 4_000_000


@dataclass(frozen=True, eq=False)
class UnitExchange:
    """Labels of units that change places within pools, see `equipoise.stats.exchange`.

    Attributes
    ----------
    exchange : Exchange
    codes : ndarray of int32, shape (rows,)
        Labels of the rows that take part.
    source : ndarray of int64
        Place among those rows of each item that is looked at.
    """

    exchange: Exchange
    codes: Codes = field(repr=False)
    source: Indices = field(repr=False)

    @classmethod
    def of(cls, codes: Codes, stratum: Indices, items: Indices, units: Indices) -> UnitExchange:
        """Prepare draws.

        Parameters
        ----------
        codes : ndarray of int32, shape (n,)
            Labels; -1 does not take part.
        stratum : ndarray of int64, shape (n,)
            Labels exchange within a stratum; -1 does not take part.
        items : ndarray of int64, shape (m,)
            Rows whose labels are looked at.
        units : ndarray of int64, shape (n,)
            From `unit_codes`.
        """
        # Looked at first, in their order, so that permuted rows give the same draws.
        first = items[np.sort(np.unique(items, return_index=True)[1])]
        rest = np.setdiff1d(np.flatnonzero((codes >= 0) & (stratum >= 0)), first)
        rows = np.concatenate([first, rest])
        place = np.empty(len(codes), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        group = codes[rows].astype(np.int64)
        return cls(Exchange.of(group, units[rows], stratum[rows]), codes[rows], place[items])

    @property
    def moves(self) -> bool:
        """Whether any exchange changes anything."""
        order = np.lexsort((self.exchange.group, self.exchange.pool))
        pool, group = self.exchange.pool[order], self.exchange.group[order]
        return bool(((pool[1:] == pool[:-1]) & (group[1:] != group[:-1])).any())

    def evaluate(
        self, function: Callable[[Codes], Result], draws: int, seed: int, name: str
    ) -> list[Result]:
        """Apply a function to blocks of draws (many, items), each of a stream of its own."""
        size = max(1, _BLOCK_LABELS // max(len(self.codes), 1))
        labels = self.codes.astype(np.int64)

        def block(start: int) -> Result:
            rng = stream(seed, name, start)
            many = min(size, draws - start)
            drawn = [self.exchange.shuffle(labels, rng)[self.source] for _ in range(many)]
            return function(np.stack(drawn).astype(np.int32))

        return each(block, range(0, draws, size))


def unit_codes(clusters: Any, expected: int) -> Indices:
    """Return the unit of each row, from 0; a row without one is a unit of its own.

    Raises
    ------
    InputError
        When there are not as many as expected.
    """
    codes, names = encode(clusters, what="clusters")
    if len(codes) != expected:
        raise InputError(f"clusters: {len(codes)} items; expected {expected}, as in scores")
    alone = np.flatnonzero(codes < 0)
    found = codes.astype(np.int64)
    found[alone] = len(names) + np.arange(len(alone))
    return found
