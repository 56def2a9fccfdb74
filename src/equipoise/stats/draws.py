"""Draws of count tables: bootstrap replicates and permutations of groups.

A table has one row per outcome (for predictions: a true class with a predicted label) and one
column per group. For independent rows of unit weight, resampling rows is a multinomial draw on
the cells and permuting groups a multivariate hypergeometric one: the cost does not depend on
the number of rows. What is small is drawn row by row instead, which is quicker.

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

from equipoise.stats.exchange import Exchange
from equipoise.stats.margins import FixedMargins
from equipoise.stats.poisson import unit_counts
from equipoise.stats.streams import stream

Tables = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# What moving a row costs, in draws of one cell.
_ROW_EFFORT = 25

# Numbers that one block of drawn tables may hold: bounds the memory, fixed so that the same
# data give the same blocks on every machine.
_BLOCK_CELLS = 1_000_000
_MAX_BLOCK = 1024

# Measured costs in nanoseconds: of drawing one cell, of drawing one row, and of the calls that
# draw the rows of a replicate.
_CELL, _ROW, _CALLS = 50, 5, 20_000


class Sampler(Protocol):
    """Draws tables like an observed one."""

    @property
    def table(self) -> Tables:
        """The observed table, shape (outcomes, groups)."""
        ...

    @property
    def effort(self) -> int:
        """About how many numbers one drawn table takes, in draws of one cell."""
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

    @property
    def effort(self) -> int:
        """One draw a cell."""
        return self.table.size

    @cached_property
    def _order(self) -> Indices:
        return group_order(self.table)

    def bootstrap(self, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks of multinomial draws with the observed total, see `Sampler`."""
        flat = self.table[:, self._order].ravel().astype(np.int64)
        large, small = _by_size(flat)
        rows, total = np.repeat(np.arange(len(small)), flat[small]), flat.sum()
        shares = np.append(flat[large], len(rows)) / total
        for start, size in block_sizes(replicates, self.table.size):
            rng = stream(seed, "bootstrap", start)
            draws = np.zeros((size, flat.size))
            cells = rng.multinomial(total, shares, size=size)
            draws[:, large] = cells[:, :-1]
            if len(rows):
                for replicate, many in zip(draws, cells[:, -1].tolist(), strict=True):
                    drawn = rows[rng.integers(0, len(rows), many)]
                    replicate[small] = np.bincount(drawn, minlength=len(small))
            yield self._restore(draws.reshape(size, *self.table.shape))

    def permute(self, strata: Indices, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks of hypergeometric draws with the margins of each stratum kept."""
        margins = FixedMargins(self.table[:, self._order].astype(np.int64), strata)
        for start, size in block_sizes(replicates, self.table.size):
            rng = stream(seed, "permutation", start)
            yield self._restore(margins.draw(rng, size))

    def _restore(self, draws: Tables | Indices) -> Tables:
        return draws.take(np.argsort(self._order), axis=-1).astype(np.float64, copy=False)


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

    @property
    def effort(self) -> int:
        """Every row is moved and counted again, which takes far longer than a cell."""
        return self.shape[0] * self.shape[1] + _ROW_EFFORT * len(self.group)

    @cached_property
    def table(self) -> Tables:
        """Observed weights, shape (outcomes, groups)."""
        return self._count(self.group, self.weight)

    def bootstrap(self, replicates: int, seed: int) -> Iterator[Tables]:
        """Yield blocks in which each unit counts a Poisson(1) number of times."""
        for start, size in block_sizes(replicates, max(int(np.prod(self.shape)), len(self.keys))):
            times = unit_counts(seed, self.keys, range(start, start + size))
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


def _by_size(cells: Indices) -> tuple[Indices, Indices]:
    """Tell cells to draw as such from those, small ones together, whose rows are drawn."""
    small = (cells > 0) & (_ROW * cells < _CELL)
    if _CELL * small.sum() - _ROW * cells[small].sum() < _CALLS:
        small[:] = False
    return np.flatnonzero((cells > 0) & ~small), np.flatnonzero(small)
