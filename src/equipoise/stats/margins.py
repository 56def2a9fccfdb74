"""Random tables with the row and column sums of each stratum kept.

Rows with many counts are drawn cell by cell, hypergeometric given those drawn before. Rows with
few counts are pooled: the pool's composition is drawn as one row, then what is in it is shuffled.
Which rows are pooled follows from the row sums alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

# Measured costs in nanoseconds: of drawing a cell, of shuffling one count of a row, of each
# replicate's shuffle.
_CELL, _COUNT, _SHUFFLE = 75, 9, 20_000


@dataclass(frozen=True, eq=False)
class FixedMargins:
    """Draws tables like an observed one, with groups exchanged within strata of outcomes.

    Attributes
    ----------
    table : ndarray of int64, shape (outcomes, groups)
    strata : ndarray of int64, shape (outcomes,)
    """

    table: Indices
    strata: Indices

    def draw(self, rng: np.random.Generator, size: int) -> Indices:
        """Return tables (size, outcomes, groups)."""
        large, small = np.flatnonzero(~self._pooled), self._small
        rows = np.concatenate([self.table[large], self._pools])
        strata = np.concatenate([self._stratum[large], np.unique(self._stratum[small])])
        cells = cellwise(rows, strata, rng, size)
        drawn = np.empty((size, *self.table.shape), dtype=np.int64)
        drawn[:, large] = cells[:, : len(large)]
        if len(small):
            for replicate, pools in zip(drawn, cells[:, len(large) :], strict=True):
                replicate[small] = self._shuffled(pools, rng)
        return drawn

    @cached_property
    def _stratum(self) -> Indices:
        return np.unique(self.strata, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _pooled(self) -> npt.NDArray[np.bool_]:
        """Outcomes with so few counts that shuffling them costs less than drawing cells."""
        totals, cells = self.table.sum(axis=1), _CELL * (self.table.shape[1] - 1)
        pooled = _COUNT * totals < cells
        pooled &= np.bincount(self._stratum, pooled)[self._stratum] > 1
        saved = (cells - _COUNT * totals[pooled]).sum()
        return pooled if saved > _SHUFFLE else np.zeros_like(pooled)

    @cached_property
    def _small(self) -> Indices:
        """Outcomes that are pooled, by stratum."""
        order = np.argsort(self._stratum, kind="stable")
        return order[self._pooled[order]]

    @cached_property
    def _pools(self) -> Indices:
        return _sums(self.table[self._small], self._stratum[self._small])

    @cached_property
    def _places(self) -> Indices:
        """Where the row of each pooled count begins, in the order of `_small`."""
        totals = self.table[self._small].sum(axis=1)
        return np.repeat(np.arange(len(totals)) * self.table.shape[1], totals)

    @cached_property
    def _labels(self) -> Keys:
        """Sort keys of each pool and group: the pool in the highest bits, the group in the lowest.

        Sorting with random bits between them shuffles all pools at once.
        """
        pools, groups = np.indices(self._pools.shape, dtype=np.uint64)
        return np.asarray(pools << np.uint64(64 - self._bits[0]) | groups).ravel()

    @cached_property
    def _bits(self) -> tuple[int, int]:
        pools, groups = self._pools.shape
        return max(1, (pools - 1).bit_length()), max(1, (groups - 1).bit_length())

    def _shuffled(self, pools: Indices, rng: np.random.Generator) -> Indices:
        """Deal the counts of pools (pools, groups) to the pooled outcomes."""
        pool_bits, group_bits = self._bits
        keys = rng.integers(
            0, 1 << (64 - pool_bits - group_bits), len(self._places), dtype=np.uint64
        )
        keys <<= np.uint64(group_bits)
        keys |= np.repeat(self._labels, pools.ravel())
        keys.sort()
        keys &= np.uint64((1 << group_bits) - 1)
        shape = (len(self._small), self.table.shape[1])
        dealt = np.bincount(self._places + keys.view(np.int64), minlength=shape[0] * shape[1])
        return dealt.reshape(shape)


def cellwise(table: Indices, strata: Indices, rng: np.random.Generator, size: int) -> Indices:
    """Draw tables (size, outcomes, groups) with the sums of `table` in each stratum.

    Strata and replicates are drawn side by side, outcome after outcome; where there are few of
    them and many outcomes, one replicate after the other, group after group.
    """
    lengths = np.bincount(strata)
    if 4 * (lengths.max() - 1) > size * len(lengths):
        return _by_group(table, strata, rng, size)
    return _by_outcome(table, strata, rng, size)


def _by_group(table: Indices, strata: Indices, rng: np.random.Generator, size: int) -> Indices:
    drawn = np.empty((size, *table.shape), dtype=np.int64)
    parts = [np.flatnonzero(strata == name) for name in range(int(strata.max()) + 1)]
    for replicate in drawn:
        for part in parts:
            left = table[part].sum(axis=1)
            for group, wanted in enumerate(table[part, :-1].sum(axis=0).tolist()):
                taken = rng.multivariate_hypergeometric(left, wanted, method="marginals")
                replicate[part, group] = taken
                left = left - taken
            replicate[part, -1] = left
    return drawn


def _by_outcome(table: Indices, strata: Indices, rng: np.random.Generator, size: int) -> Indices:
    totals = table.sum(axis=1)
    # The largest outcome of a stratum comes last: it takes what is left and costs no draw.
    order = np.lexsort((totals, strata))
    lengths = np.bincount(strata)
    first = np.cumsum(lengths) - lengths
    left = np.broadcast_to(_sums(table, strata), (size, len(lengths), table.shape[1])).copy()
    drawn = np.empty((size, *table.shape), dtype=np.int64)
    for position in range(int(lengths.max())):
        last = np.flatnonzero(lengths == position + 1)
        drawn[:, order[first[last] + position]] = left[:, last]
        active = np.flatnonzero(lengths > position + 1)
        if len(active):
            outcomes = order[first[active] + position]
            taken = _take(left[:, active], totals[outcomes], rng)
            drawn[:, outcomes] = taken
            left[:, active] -= taken
    return drawn


def _sums(table: Indices, strata: Indices) -> Indices:
    """Sum the outcomes of each stratum that occurs."""
    order = np.argsort(strata, kind="stable")
    first = np.unique(strata[order], return_index=True)[1]
    return np.add.reduceat(table[order], first, axis=0) if len(table) else table


def _take(left: Indices, totals: Indices, rng: np.random.Generator) -> Indices:
    """Draw `totals` rows without replacement from what is `left`, (size, strata, groups)."""
    taken = np.empty_like(left)
    wanted = np.broadcast_to(totals, left.shape[:-1]).copy()
    others = left.sum(axis=-1)
    for group in range(left.shape[-1] - 1):
        here = left[..., group]
        others = others - here
        drawn = rng.hypergeometric(here, others, wanted)
        taken[..., group] = drawn
        wanted -= drawn
    taken[..., -1] = wanted
    return taken
