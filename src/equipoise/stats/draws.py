"""Draws of count tables: bootstrap replicates, permutations of groups, and all rearrangements.

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

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from equipoise.core import (
    AnyArray,
    Floats,
    Integers,
    Words,
    floats,
    integers,
    numbered,
    record,
    unwarned,
)
from equipoise.stats.exchange import Exchange, RowExchange, varies
from equipoise.stats.streams import Seed, stream, unit_counts
from equipoise.stats.threads import each
from equipoise.stats.unit_tables import UnitTables

Result = TypeVar("Result")

# Variance from which on counts are drawn as normal numbers, and what rounding adds to it.
_NORMAL, _ROUNDED = 20.0, 1.0 / 12.0
# Replicates whose mean tells the moments of a column.
_SEEN = 1 << 6
# Whole numbers below are exact with 32 bits.
_FLOAT32 = 1 << 24
# Fewer counts are drawn exactly: that is quicker.
_WORTH = 1 << 7
# Measured costs in nanoseconds: of drawing a cell, of shuffling one count of a row, of each
# replicate's shuffle.
_DEALT, _COUNT, _SHUFFLE = 75, 9, 20_000


def fixed_margins(
    table: Integers, strata: Integers
) -> Callable[[np.random.Generator, int], Integers]:
    """Return a function that draws tables like one, groups exchanged within strata of outcomes.

    It draws `size` tables of the shape (groups, outcomes, size).

    Parameters
    ----------
    table : ndarray of int64, shape (outcomes, groups)
    strata : ndarray of int64, shape (outcomes,)
    """
    stratum = numbered(strata)
    totals, cells = table.sum(axis=1), _DEALT * (table.shape[1] - 1)
    # Outcomes with so few counts that shuffling them costs less than drawing cells.
    pooled = _COUNT * totals < cells
    pooled &= np.bincount(stratum, pooled)[stratum] > 1
    if (cells - _COUNT * totals[pooled]).sum() <= _SHUFFLE:
        pooled[:] = False
    order = np.argsort(stratum, kind="stable")
    large, small = np.flatnonzero(~pooled), order[pooled[order]]
    rows = np.concatenate([table[large], _sums(table[small], stratum[small])])
    kinds = np.concatenate([stratum[large], np.unique(stratum[small])])
    deal = _dealing((len(rows) - len(large), table.shape[1]), totals[small])

    def draw(rng: np.random.Generator, size: int) -> Integers:
        pieces = cellwise(rows, kinds, rng, size)
        if not len(small):
            return pieces
        tables = np.empty((*table.shape[::-1], size), dtype=pieces.dtype)
        tables[:, large] = pieces[:, : len(large)]
        pools = np.ascontiguousarray(pieces[:, len(large) :].transpose(2, 1, 0))
        for replicate, pool_counts in enumerate(pools):
            tables[:, small, replicate] = deal(pool_counts, rng).T
        return tables

    return draw


def _dealing(
    shape: tuple[int, int], totals: Integers
) -> Callable[[Integers, np.random.Generator], Integers]:
    """Return a function that deals the counts of pools (pools, groups) to outcomes of `totals`.

    Keys have the pool in the highest bits, the group in the lowest and random bits between them:
    sorting them shuffles all pools at once.
    """
    pool_bits, group_bits = (max(1, (size - 1).bit_length()) for size in shape)
    pool, group = np.indices(shape, dtype=np.uint64)
    labels = np.asarray(pool << np.uint64(64 - pool_bits) | group).ravel()
    places = np.repeat(np.arange(len(totals)) * shape[1], totals)

    def deal(pools: Integers, rng: np.random.Generator) -> Integers:
        largest = 1 << (64 - pool_bits - group_bits)
        keys = rng.integers(0, largest, len(places), dtype=np.uint64) << np.uint64(group_bits)
        keys |= np.repeat(labels, pools.ravel())
        keys.sort()
        keys &= np.uint64((1 << group_bits) - 1)
        dealt = np.bincount(places + keys.view(np.int64), minlength=len(totals) * shape[1])
        return dealt.reshape(-1, shape[1])

    return deal


def cellwise(table: Integers, strata: Integers, rng: np.random.Generator, size: int) -> Integers:
    """Draw tables (groups, outcomes, size) with the sums of `table` in each stratum.

    The outcomes of each stratum are halved until each is alone, and all halves of a step are drawn
    at once: the rows of each group in the first half, without replacement, group after group.
    """
    totals = table.sum(axis=1)
    kind = np.int32 if totals.sum() < _FLOAT32 else np.int64
    order = np.lexsort((totals, strata))
    before = np.append(0, np.cumsum(totals[order])).astype(kind)
    counts = np.empty((*table.T.shape, size), dtype=kind)
    # What a part has stands at its first outcome.
    ends = np.append(0, np.cumsum(np.bincount(strata)))
    counts[:, order[ends[:-1]]] = _sums(table, strata).T[..., None]
    while (wide := np.diff(ends) > 1).any():
        start, stop = ends[:-1][wide], ends[1:][wide]
        middle = (start + stop + 1) // 2
        parent = counts.take(order[start], axis=1)
        first = _split(parent, before[middle] - before[start], rng)
        counts[:, order[start]] = first
        counts[:, order[middle]] = np.subtract(parent, first, out=parent)
        ends = np.sort(np.append(ends, middle))
    return counts


def _split(counts: Integers, n_drawn: Integers, rng: np.random.Generator) -> Integers:
    """Draw how many of `wanted` rows of each pool are of each group, (groups, pools, size)."""
    not_in_group, drawn_counts = counts.sum(axis=0, dtype=counts.dtype), np.empty_like(counts)
    remaining = np.broadcast_to(n_drawn[:, None], not_in_group.shape).copy()
    for group, in_group in enumerate(counts[:-1]):
        not_in_group -= in_group
        drawn_counts[group] = hypergeometric(in_group.T, not_in_group.T, remaining.T, rng).T
        remaining -= drawn_counts[group]
    drawn_counts[-1] = remaining
    return drawn_counts


def hypergeometric(
    good: Integers, bad: Integers, n_drawn: Integers, rng: np.random.Generator
) -> Integers:
    """Return how many of `n_drawn` rows are good, all arrays of shape (size, columns).

    Rows are drawn without replacement. Where many are drawn, columns with a variance of about
    `_NORMAL` or more are rounded normal numbers with the distribution's mean, variance, skewness
    and kurtosis (Cornish and Fisher 1938), several times as fast. Their tails of 1e-4 are within
    5 % of the exact ones. Numbers of 32 bits are computed with as many; columns are
    quickest where each is contiguous.
    """
    if good.size < _WORTH:
        return rng.hypergeometric(good, bad, n_drawn)
    pools = [array.T for array in (good, bad, n_drawn)]
    spread, skew, peak = _moments(*(pool[:, :_SEEN].mean(axis=1) for pool in pools))
    large = spread >= _NORMAL
    if large.all():
        return _rounded_normal(pools, skew, peak, rng).T
    counts = np.empty_like(pools[0])
    for selected, draw in ((~large, rng.hypergeometric), (large, partial(hypergeometric, rng=rng))):
        columns = np.flatnonzero(selected)
        counts[columns] = draw(*(pool.take(columns, axis=0).T for pool in pools)).T
    return counts.T


def _rounded_normal(
    pools: Sequence[AnyArray], skew: Floats, peak: Floats, rng: np.random.Generator
) -> AnyArray:
    """Draw counts (columns, size) with a skewness and an excess kurtosis per column.

    `pools` are the good, the bad and the drawn.
    """
    good, bad, n_drawn = pools
    real: DTypeLike = np.float32 if good.dtype == np.int32 else np.float64
    line = (1.0 - peak / 8.0 + skew**2 / 7.2).astype(real)[:, None]
    cube = (peak / 24.0 - skew**2 / 18.0).astype(real)[:, None]
    bend = (skew / 6.0).astype(real)[:, None]
    total: AnyArray = (good + bad).astype(real)
    share = n_drawn.astype(real) / total
    middle = share * good.astype(real)
    total -= 1.0
    sd = middle * bad.astype(real)
    sd /= total
    sd *= np.subtract(1.0, share, out=share)
    sd -= _ROUNDED
    np.sqrt(np.maximum(sd, 0.0, out=sd), out=sd)
    z: AnyArray = rng.standard_normal(good.shape, dtype=real)  # type: ignore[arg-type]
    square = np.multiply(z, z, out=total)
    # Both expansions by powers of z, gathered.
    z *= np.add(np.multiply(square, cube, out=share), line, out=share)
    square -= 1.0
    square *= bend
    z += square
    z *= sd
    z += middle
    counts = np.rint(z, out=z).astype(good.dtype)
    np.maximum(counts, n_drawn - bad, out=counts)
    np.maximum(counts, 0, out=counts)
    np.minimum(counts, good, out=counts)
    return np.asarray(np.minimum(counts, n_drawn, out=counts))


def _moments(good: Floats, bad: Floats, n_drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """Return variance, skewness and excess kurtosis of counts; the latter two of many rows."""
    n, n_left = np.maximum(good + bad, 4.0), good + bad - n_drawn
    sides, ends = good * bad, n_drawn * n_left
    with unwarned():
        spread = sides * ends / (n**2 * (n - 1.0))
        skew = (bad - good) * (n_left - n_drawn) * np.sqrt((n - 1.0) / (ends * sides)) / (n - 2.0)
        peak = (n - 1.0) * n**2 * (n * (n + 1.0) - 6.0 * sides - 6.0 * ends)
        peak += 6.0 * ends * sides * (5.0 * n - 6.0)
        return spread, skew, peak / (ends * sides * (n - 2.0) * (n - 3.0))


def _sums(table: Integers, strata: Integers) -> Integers:
    """Sum the outcomes of each stratum that occurs."""
    present, place = np.unique(strata, return_inverse=True)
    sums = np.zeros((len(present), table.shape[1]), dtype=np.int64)
    np.add.at(sums, place, table)
    return sums


# What moving a row costs, in draws of one cell.
_ROW_EFFORT = 25

# Numbers that one block of drawn tables may hold: bounds the memory, fixed so that the same
# data give the same blocks on every machine.
_BLOCK_CELLS = 1 << 19
_MAX_BLOCK = 1024
# Replicates that are worth more memory: sums over fewer are slow.
_FEW, _FEW_CELLS = 16, 1 << 22

# Measured costs in nanoseconds: of drawing one cell, of drawing one row, and of the calls that
# draw the rows of a replicate.
_CELL, _ROW, _CALLS = 50, 5, 20_000


@record
class Blocks:
    """Tables to draw, in blocks of replicates that have streams of their own.

    Attributes
    ----------
    sizes : sequence of (int, int)
        Index of the first replicate, and how many replicates, of each block.
    draw : callable
        From both to tables of shape (replicates, outcomes, groups).
    """

    sizes: Sequence[tuple[int, int]]
    draw: Callable[[int, int], Floats]

    def __iter__(self) -> Iterator[Floats]:
        return (self.draw(*block) for block in self.sizes)

    def each(self, function: Callable[[int, Floats], Result]) -> list[Result]:
        """Apply a function to the first replicate and the tables of each block, in threads."""
        return each(lambda block: function(block[0], self.draw(*block)), self.sizes)

    def __len__(self) -> int:
        """Return the number of replicates."""
        return sum(size for _, size in self.sizes)


@record
class TableSampler:
    """Draws for independent rows of unit weight.

    Attributes
    ----------
    table : ndarray, shape (outcomes, groups)
        Observed counts.
    """

    table: Floats

    @property
    def effort(self) -> int:
        """One draw a cell."""
        return self.table.size

    @cached_property
    def _order(self) -> Integers:
        return group_order(self.table)

    def bootstrap(self, replicates: int, seed: Seed) -> Blocks:
        """Return blocks (replicates, outcomes, groups) with the observed total."""
        flat = integers(self.table[:, self._order].ravel())
        small_cells = (flat > 0) & (_ROW * flat < _CELL)
        # Cells are drawn as such, and of the small ones the rows, all together.
        if _CELL * small_cells.sum() - _ROW * flat[small_cells].sum() < _CALLS:
            small_cells[:] = False
        large, small = np.flatnonzero((flat > 0) & ~small_cells), np.flatnonzero(small_cells)
        rows, total = np.repeat(np.arange(len(small)), flat[small]), flat.sum()
        shares = np.append(flat[large], len(rows)) / total

        def draw(start: int, size: int) -> Floats:
            rng = stream(seed, "bootstrap", start)
            draws = np.zeros((flat.size, size))
            cells = rng.multinomial(total, shares, size=size)
            draws[large] = cells[:, :-1].T
            if len(rows):
                for replicate, n_rows in zip(draws.T, cells[:, -1].tolist(), strict=True):
                    drawn_rows = rows[rng.integers(0, len(rows), n_rows)]
                    replicate[small] = np.bincount(drawn_rows, minlength=len(small))
            return self._restore(draws.reshape(*self.table.shape, size).swapaxes(0, 1))

        return Blocks(block_sizes(replicates, self.table.size), draw)

    def permute(self, strata: Integers, replicates: int, seed: Seed) -> Blocks:
        """Return blocks of hypergeometric draws with the margins of each stratum kept."""
        tables = fixed_margins(integers(self.table[:, self._order]), strata)

        def draw(start: int, size: int) -> Floats:
            return self._restore(tables(stream(seed, "permutation", start), size))

        return Blocks(block_sizes(replicates, self.table.size), draw)

    def exchanges(self, strata: Integers, replicates: int, seed: Seed) -> list[Blocks]:
        """Return the blocks of `permute`: rows that are independent exchange in one way."""
        return [self.permute(strata, replicates, seed)]

    def _restore(self, drawn_tables: Floats | Integers) -> Floats:
        """Return tables (groups, outcomes, replicates) as (replicates, outcomes, groups).

        Replicates stay next to each other in memory: sums over outcomes or groups are of long
        stretches.
        """
        tables = np.empty((*self.table.shape, drawn_tables.shape[2]))
        for place, group in enumerate(self._order.tolist()):
            tables[:, group] = drawn_tables[place]
        return tables.transpose(2, 0, 1)


def group_order(table: Floats) -> Integers:
    """Order groups by their counts, so that renaming groups does not change a draw."""
    return np.lexsort(table[::-1])


@record
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

    outcome: Integers
    item: Integers
    weight: Floats
    group: Integers
    unit: Integers
    keys: Words
    shape: tuple[int, int]

    @property
    def effort(self) -> int:
        """Every row is moved and counted again: longer than a draw.

        Of mixed units these are the cells, and all rows take about as long once more.
        """
        n_items = len(self.group)
        if self.mixed:
            cells = (self.unit * self.shape[1] + self.group)[self.item]
            n_items = 2 * len(np.unique(cells * self.shape[0] + self.outcome))
        return self.shape[0] * self.shape[1] + _ROW_EFFORT * n_items

    @cached_property
    def mixed(self) -> bool:
        """Whether any unit has rows of several groups."""
        return bool(varies(self.unit, self.group).any())

    @cached_property
    def table(self) -> Floats:
        """Observed weights, shape (outcomes, groups)."""
        return self._count(self.group, self.weight)

    def bootstrap(self, replicates: int, seed: Seed) -> Blocks:
        """Return blocks in which each unit counts a Poisson(1) number of times."""
        unit = self.unit[self.item]

        def draw(start: int, size: int) -> Floats:
            times = unit_counts(seed, self.keys, range(start, start + size))
            return np.stack([self._count(self.group, self.weight * row[unit]) for row in times])

        cells = max(math.prod(self.shape), len(self.keys))
        return Blocks(block_sizes(replicates, cells), draw)

    def permute(self, strata: Integers, replicates: int, seed: Seed) -> Blocks:
        """Return blocks with groups permuted between rows, units, or cells of mixed units.

        See `Exchange.of` and `UnitTables`. A row whose weight is spread over several strata belongs
        to the one of its largest weight.
        """
        exchange = Exchange.of(self.group, self.unit, self._main(strata))
        if not self.mixed:
            # Units of one group are independent of each other, and need no standard errors.
            return self._permuted(exchange.shuffle, replicates, seed)
        entries = self.item, self.outcome, self.weight
        tables = UnitTables.of(exchange, self.unit, entries, strata, self.shape[1])
        return self._blocks(tables.draw, replicates, seed, "permutation")

    def exchanges(self, strata: Integers, replicates: int, seed: Seed) -> list[Blocks]:
        """Return the blocks of `permute` and, for units of several groups, those of rows.

        Cells of a unit may be independent of each other, or its rows (`RowExchange`): nothing in
        the data tells which. The larger p-value is right in both cases.
        """
        blocks = [self.permute(strata, replicates, seed)]
        if self.mixed:
            exchange = RowExchange.of(self.group, self.unit, self._main(strata))
            blocks.append(self._permuted(exchange.shuffle, replicates, seed, "rows permuted"))
        return blocks

    def _main(self, strata: Integers) -> Integers:
        """Return the stratum of each row's largest weight, of equal ones the first."""
        # Written last is what stays.
        order = np.lexsort((-np.arange(len(self.weight)), self.weight))
        main = np.empty(len(self.group), dtype=np.int64)
        main[self.item[order]] = strata[self.outcome[order]]
        return main

    def _permuted(
        self,
        shuffle: Callable[[Integers, np.random.Generator], Integers],
        replicates: int,
        seed: Seed,
        name: str = "permutation",
    ) -> Blocks:
        """Return blocks of tables, the groups of rows shuffled by a function."""

        def draw_table(rng: np.random.Generator) -> Floats:
            return self._count(shuffle(self.group, rng), self.weight)

        return self._blocks(draw_table, replicates, seed, name)

    def _blocks(
        self,
        draw_table: Callable[[np.random.Generator], Floats],
        replicates: int,
        seed: Seed,
        name: str,
    ) -> Blocks:
        """Return blocks of tables, with a stream for each table."""

        def draw(start: int, size: int) -> Floats:
            rngs = (stream(seed, name, start + step) for step in range(size))
            return np.stack([draw_table(rng) for rng in rngs])

        cells = max(math.prod(self.shape), len(self.group))
        return Blocks(block_sizes(replicates, cells), draw)

    def _count(self, group: Integers, weight: Floats) -> Floats:
        flat = self._cells + group[self.item]
        counted = np.bincount(flat, weight, minlength=math.prod(self.shape))
        return floats(counted).reshape(self.shape)

    @cached_property
    def _cells(self) -> Integers:
        """First cell of the outcome of each entry."""
        return self.outcome * self.shape[1]


Sampler = TableSampler | ItemSampler
"""Draws tables like an observed one."""


def block_sizes(replicates: int, cells: int) -> list[tuple[int, int]]:
    """Return the start and size of blocks of replicates that bound the memory of drawn tables."""
    cells = max(cells, 1)
    size = max(_BLOCK_CELLS // cells, min(_FEW, _FEW_CELLS // cells), 1)
    size = min(size, _MAX_BLOCK)
    return [(start, min(size, replicates - start)) for start in range(0, replicates, size)]
