"""Draws of count tables: bootstrap replicates and permutations of groups.

A table has one row per outcome (for predictions: a true class with a predicted label) and one
column per group. For independent rows of unit weight, resampling rows is a multinomial draw on
the cells and permuting groups a multivariate hypergeometric one: the cost does not depend on
the number of rows. Tables with fewer rows than cells are permuted row by row, which is quicker.

Draws depend on the data and the seed alone, not on the order of rows, the names of groups, threads
or memory. Replicates of a `TableSampler` share a stream per block, whose size follows from the
shape of the table: more replicates redraw the last block. Those of an `ItemSampler` have a stream
each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.stats.exchange import Exchange
from equipoise.stats.streams import stream, unit_uniforms

Tables = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Numbers that one block of drawn tables may hold: bounds the memory, fixed so that the same
# data give the same blocks on every machine.
_BLOCK_CELLS = 4_000_000
_MAX_BLOCK = 256

# Measured costs in nanoseconds: of a call that draws one cell of all replicates, of each of these
# numbers, of shuffling one row, and of shuffling one stratum.
_CALL, _CELL, _ROW, _STRATUM = 10_000, 200, 40, 5_000

# P(at most k) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)


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
        return group_order(self.table)

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
        draw = _shuffled_rows if _rows_are_cheaper(table, strata) else _fixed_margins
        for start, size in block_sizes(replicates, self.table.size):
            rng = stream(seed, "permutation", start)
            yield self._restore(draw(table, strata, rng, size).astype(np.float64))

    def _restore(self, draws: Tables) -> Tables:
        restored = np.empty_like(draws)
        restored[..., self._order] = draws
        return restored


def group_order(table: Tables) -> Indices:
    """Order groups by their counts, so that renaming groups does not change a draw."""
    return np.lexsort(table[::-1])


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
            times = np.searchsorted(_POISSON, uniforms, side="right")
            unit = self.unit[self.item]
            yield np.stack([self._count(self.group, self.weight * row[unit]) for row in times])

    def permute(self, strata: Indices, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks with groups permuted between units, or within those that mix groups.

        See `Exchange.of`. A row whose weight is spread over several strata belongs to the one
        of its largest weight.
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
        # Written last is what stays: the largest weight, of equal ones the first.
        order = np.lexsort((-np.arange(len(self.weight)), self.weight))
        main = np.empty(len(self.group), dtype=np.int64)
        main[self.item[order]] = strata[self.outcome[order]]
        return Exchange.of(self.group, self.unit, main)


def block_sizes(replicates: int, cells: int) -> Iterator[tuple[int, int]]:
    """Yield the start and size of blocks of replicates that bound the memory of drawn tables."""
    size = max(1, min(_MAX_BLOCK, _BLOCK_CELLS // max(cells, 1)))
    for start in range(0, replicates, size):
        yield start, min(size, replicates - start)


def _rows_are_cheaper(table: Indices, strata: Indices) -> bool:
    """Whether shuffling rows costs less than drawing cells; the same for every block."""
    lengths = np.unique(strata, return_counts=True)[1]
    _, size = next(block_sizes(_MAX_BLOCK, table.size))
    calls = (int(lengths.max()) - 1) * (table.shape[1] - 1)
    by_cells = _CALL * calls + _CELL * size * table.size
    return bool(size * (_ROW * table.sum() + _STRATUM * len(lengths)) < by_cells)


def _shuffled_rows(table: Indices, strata: Indices, rng: np.random.Generator, size: int) -> Indices:
    """Draw tables by shuffling the groups of the rows of each stratum."""
    order = np.argsort(strata, kind="stable")
    groups = table.shape[1]
    base = np.repeat(order, table[order].sum(axis=1)) * groups
    labels = np.repeat(np.tile(np.arange(groups), len(order)), table[order].ravel())
    ends = np.cumsum(np.bincount(np.unique(strata, return_inverse=True)[1], table.sum(axis=1)))
    parts = np.split(labels, ends[:-1].astype(np.int64))
    drawn = np.empty((size, table.size), dtype=np.int64)
    for row in drawn:
        for part in parts:
            rng.shuffle(part)
        row[:] = np.bincount(base + labels, minlength=table.size)
    return drawn.reshape(size, *table.shape)


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
