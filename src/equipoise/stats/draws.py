"""Draws of count tables: bootstrap replicates and permutations of groups.

A table has one row per outcome (for predictions: a true class with a predicted label) and one
column per group. For independent rows of unit weight, resampling rows is a multinomial draw on
the cells and permuting groups a multivariate hypergeometric one: the cost does not depend on
the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.stats import poisson

from equipoise.stats.streams import stream, unit_uniforms

Tables = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Numbers that one block of drawn tables may hold: bounds the memory, fixed so that the same
# data give the same blocks on every machine.
_BLOCK_CELLS = 4_000_000
_MAX_BLOCK = 256


class Sampler(Protocol):
    """Draws tables like an observed one."""

    @property
    def table(self) -> Tables:
        """The observed table, shape (outcomes, groups)."""
        ...

    def bootstrap(self, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks (replicates, outcomes, groups) of tables of resampled units."""
        ...

    def permute(self, strata: Indices, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks of tables whose groups are permuted within strata of outcomes."""
        ...


@dataclass(frozen=True, eq=False)
class TableSampler:
    """Draws for independent rows of unit weight.

    Attributes
    ----------
    table : ndarray, shape (outcomes, groups)
        Observed counts.
    """

    table: Tables

    @cached_property
    def _order(self) -> Indices:
        """Groups ordered by their counts, so that renaming groups does not change a draw."""
        return np.lexsort(self.table[::-1])

    def bootstrap(self, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks of multinomial draws with the observed total, see `Sampler`."""
        flat = self.table[:, self._order].ravel()
        cells = np.flatnonzero(flat)
        total = int(flat.sum())
        for start, size in block_sizes(replicates, self.table.size):
            draws = np.zeros((size, flat.size))
            rng = stream(seed, "bootstrap", start)
            draws[:, cells] = rng.multinomial(total, flat[cells] / total, size=size)
            yield self._restore(draws.reshape(size, *self.table.shape))

    def permute(self, strata: Indices, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks of hypergeometric draws with the margins of each stratum kept."""
        table = self.table[:, self._order].astype(np.int64)
        for start, size in block_sizes(replicates, self.table.size):
            rng = stream(seed, "permutation", start)
            yield self._restore(_fixed_margins(table, strata, rng, size).astype(np.float64))

    def _restore(self, draws: Tables) -> Tables:
        restored = np.empty_like(draws)
        restored[..., self._order] = draws
        return restored


@dataclass(frozen=True, eq=False)
class ItemSampler:
    """Draws for rows that repeat within units, or that spread their weight over outcomes.

    Attributes
    ----------
    outcome, item : ndarray of int64, shape (entries,)
        Outcome and row of each entry; a row has one entry, or several with split weight.
    weight : ndarray, shape (entries,)
    group, unit : ndarray of int64, shape (items,)
        Group of each row, and index of its unit into `keys`.
    keys : ndarray of uint64, shape (units,)
        Names of the units as keys of random streams.
    shape : tuple of int
        Outcomes and groups.
    """

    outcome: Indices
    item: Indices
    weight: Tables
    group: Indices
    unit: Indices
    keys: npt.NDArray[np.uint64] = field(repr=False)
    shape: tuple[int, int]

    @cached_property
    def table(self) -> Tables:
        """Observed weights, shape (outcomes, groups)."""
        return self._count(self.group, self.weight)

    def bootstrap(self, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks in which each unit counts a Poisson(1) number of times."""
        for start, size in block_sizes(replicates, max(int(np.prod(self.shape)), len(self.keys))):
            uniforms = unit_uniforms(seed, "bootstrap", self.keys, range(start, start + size))
            times = poisson.ppf(uniforms, 1.0)[:, self.unit[self.item]]
            yield np.stack([self._count(self.group, self.weight * row) for row in times])

    def permute(self, strata: Indices, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks with groups permuted between units, or within those that mix groups.

        Within a stratum, units of one group exchange their groups; the rows of a unit that has
        several groups exchange theirs among themselves.
        """
        blocks = self._exchange(strata)
        for start, size in block_sizes(replicates, max(int(np.prod(self.shape)), len(self.group))):
            rngs = (stream(seed, "permutation", start + step) for step in range(size))
            groups = (blocks.shuffle(self.group, rng) for rng in rngs)
            yield np.stack([self._count(group, self.weight) for group in groups])

    def _count(self, group: Indices, weight: Tables) -> Tables:
        flat = self.outcome * self.shape[1] + group[self.item]
        counted = np.bincount(flat, weight, minlength=int(np.prod(self.shape)))
        return counted.astype(np.float64).reshape(self.shape)

    def _exchange(self, strata: Indices) -> Exchange:
        first = np.zeros(len(self.group), dtype=np.int64)
        first[self.item[::-1]] = self.outcome[::-1]
        return Exchange.of(self.group, self.unit, strata[first])


@dataclass(frozen=True, eq=False)
class Exchange:
    """Which rows may exchange their groups.

    Attributes
    ----------
    carrier : ndarray, shape (items,)
        Rows with one carrier share one group: a unit within a stratum, or a single row.
    pool : ndarray, shape (carriers,)
        Carriers of one pool exchange groups.
    group : ndarray, shape (carriers,)
    """

    carrier: Indices
    pool: Indices
    group: Indices

    @classmethod
    def of(cls, group: Indices, unit: Indices, stratum: Indices) -> Exchange:
        """Find carriers and pools from each row's group, unit and stratum."""
        cell = np.unique(np.stack([stratum, unit]), axis=1, return_inverse=True)[1].ravel()
        lowest, highest = np.full(cell.max() + 1, group.max()), np.zeros(cell.max() + 1, np.int64)
        np.minimum.at(lowest, cell, group)
        np.maximum.at(highest, cell, group)
        mixed = (lowest != highest)[cell]
        rows = np.arange(len(group))
        name = np.stack([mixed, np.where(mixed, rows, cell)])
        _, first, carrier = np.unique(name, axis=1, return_index=True, return_inverse=True)
        pool = np.where(mixed, cell, -1 - stratum)[first]
        return cls(carrier.ravel(), np.unique(pool, return_inverse=True)[1], group[first])

    def shuffle(self, group: Indices, rng: np.random.Generator) -> Indices:
        """Return each row's group after one random exchange within pools."""
        noise = rng.random(len(self.pool))
        places = np.argsort(self.pool, kind="stable")
        order = np.lexsort((noise, self.pool))
        exchanged = np.empty_like(self.group)
        exchanged[places] = self.group[order]
        return exchanged[self.carrier].astype(group.dtype)


def block_sizes(replicates: int, cells: int) -> Iterator[tuple[int, int]]:
    """Yield the start and size of blocks of replicates that bound the memory of drawn tables."""
    size = max(1, min(_MAX_BLOCK, _BLOCK_CELLS // max(cells, 1)))
    for start in range(0, replicates, size):
        yield start, min(size, replicates - start)


def _fixed_margins(table: Indices, strata: Indices, rng: np.random.Generator, size: int) -> Indices:
    """Draw tables with the row and column sums of each stratum of `table`."""
    totals = table.sum(axis=1)
    # The largest outcome of a stratum comes last: it takes what is left and costs no draw.
    order = np.lexsort((totals, strata))
    names, first, lengths = np.unique(strata[order], return_index=True, return_counts=True)
    left = np.stack([table[strata == name].sum(axis=0) for name in names])
    left = np.broadcast_to(left, (size, *left.shape)).copy()
    drawn = np.zeros((size, *table.shape), dtype=np.int64)
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


def _take(left: Indices, totals: Indices, rng: np.random.Generator) -> Indices:
    """Draw `totals` rows without replacement from what is `left`, (size, strata, groups)."""
    taken = np.zeros_like(left)
    wanted = np.broadcast_to(totals, left.shape[:-1]).copy()
    others = left.sum(axis=-1)
    for group in range(left.shape[-1] - 1):
        here = left[..., group]
        others = others - here
        taken[..., group] = rng.hypergeometric(here, others, wanted)
        wanted -= taken[..., group]
    taken[..., -1] = wanted
    return taken
