"""Tables of rows that repeat within units, with groups exchanged: the null of clustered counts.

The rows of a unit in one group, a cell, move together: a person is of one group however many images
there are. Cells differ in size, and larger groups may have larger ones, so the spread of exchanged
tables isn't that of the observed table. Each draw's deviations from independence are therefore
rescaled, by stratum and group, to the observed standard error over units: what is compared with
the observed number is in its standard errors, whatever statistic is made of the table
(Janssen 1997, Statistics & Probability Letters 36; Chung and Romano 2013, Annals of Statistics 41).
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy

from equipoise.core import Floats, Integers, floats, integers, numbered, record
from equipoise.stats.exchange import Exchange

# Variances below are rounding, relative to the sum of squared deviations.
_FLAT = 1e-12


@record
class UnitTables:
    """Cells that exchange groups, with their counts.

    Attributes
    ----------
    exchange : Exchange
        Its carriers are the cells.
    unit : ndarray of int64, shape (cells,)
    counts : sparse array, shape (cells, outcomes)
    strata : ndarray of int64, shape (outcomes,)
        Deviations are from independence within a stratum of outcomes.
    groups : int
    """

    exchange: Exchange
    unit: Integers
    counts: scipy.sparse.csr_array
    strata: Integers
    groups: int

    @classmethod
    def of(
        cls,
        exchange: Exchange,
        unit: Integers,
        entries: tuple[Integers, Integers, Floats],
        strata: Integers,
        groups: int,
    ) -> UnitTables:
        """Count entries by cell.

        Parameters
        ----------
        exchange : Exchange
        unit : ndarray of int64, shape (rows,)
        entries : tuple of ndarray
            Row, outcome and weight of each entry.
        strata : ndarray of int64, shape (outcomes,)
        groups : int
        """
        row, outcome, weight = entries
        shape = len(exchange.pool), len(strata)
        of_cells = np.zeros(shape[0], dtype=np.int64)
        of_cells[exchange.carrier] = unit
        counts = scipy.sparse.coo_array(
            (weight, (exchange.carrier[row], outcome)), shape=shape
        ).tocsr()
        return cls(exchange, of_cells, counts, numbered(strata), groups)

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return a table (outcomes, groups) with groups exchanged, in observed standard errors."""
        group = self.exchange.groups(rng)
        sizes = self._sizes(group)
        deviations = self._table(group) - self._shares[:, None] * sizes[self.strata]
        variance = self._variance(group, sizes)
        factor = np.ones_like(variance)
        spread = variance > self._least
        np.sqrt(np.divide(self._observed, variance, out=factor, where=spread), out=factor)
        table = self._expected + factor[self.strata] * deviations
        if (table < 0.0).any():
            # Shares end at 0; groups keep their sizes.
            np.maximum(table, 0.0, out=table)
            sums = np.zeros_like(sizes)
            np.add.at(sums, self.strata, table)
            scale = np.divide(self._observed_sizes, sums, out=np.ones_like(sums), where=sums > 0.0)
            table *= scale[self.strata]
        return floats(table)

    def _table(self, group: Integers) -> Floats:
        """Count the outcomes of each group."""
        places = self.counts.indices * self.groups + group[self._owner]
        shape = len(self.strata), self.groups
        counted = np.bincount(places, self.counts.data, minlength=math.prod(shape))
        return floats(counted).reshape(shape)

    def _by_stratum(self, group: Integers, values: Floats) -> Floats:
        """Sum values of the parts of cells by stratum and group."""
        shape = self._strata, self.groups
        places = self._stratum * self.groups + group[self._cell]
        return floats(np.bincount(places, values, minlength=math.prod(shape))).reshape(shape)

    def _sizes(self, group: Integers) -> Floats:
        return self._by_stratum(group, self._size)

    def _variance(self, group: Integers, sizes: Floats) -> Floats:
        """Return the squared standard errors of groups' deviations over units, by stratum.

        Of a group, a unit's deviation is that of its rows in the group, less the group's share of
        that of all its rows; squares are added up over units and outcomes.
        """
        first, second = self._pair
        of_first, of_second = group[self._cell[first]], group[self._cell[second]]
        shape = self._strata, self.groups
        crossed = np.bincount(
            self._stratum[first] * self.groups + of_first,
            np.where(of_first == of_second, 2.0 * self._crossed, 0.0),
            minlength=math.prod(shape),
        ).reshape(shape)
        totals = self._stratum_sizes
        share = np.divide(sizes, totals, out=np.zeros_like(sizes), where=totals > 0.0)
        within_unit = self._by_stratum(group, self._with_unit)
        of_units = np.bincount(self._stratum, self._with_unit, minlength=shape[0])[:, None]
        squares = self._by_stratum(group, self._squares) + crossed
        return floats(np.maximum(squares - 2.0 * share * within_unit + share**2 * of_units, 0.0))

    @cached_property
    def _owner(self) -> Integers:
        """Cell of each entry of `counts`."""
        return np.repeat(np.arange(len(self.unit)), np.diff(self.counts.indptr))

    @cached_property
    def _strata(self) -> int:
        return int(self.strata.max()) + 1

    @cached_property
    def _keys(self) -> tuple[Integers, Integers]:
        """Parts of cells, in a stratum each, and the part of each entry of `counts`."""
        keys = self._owner * self._strata + self.strata[self.counts.indices]
        parts, place = np.unique(keys, return_inverse=True)
        return integers(parts), integers(place)

    @cached_property
    def _cell(self) -> Integers:
        return self._keys[0] // self._strata

    @cached_property
    def _stratum(self) -> Integers:
        return self._keys[0] % self._strata

    @cached_property
    def _part_counts(self) -> scipy.sparse.csr_array:
        """Counts of each part, shape (parts, outcomes)."""
        entries = self.counts.data, (self._keys[1], self.counts.indices)
        shape = len(self._keys[0]), len(self.strata)
        return scipy.sparse.coo_array(entries, shape=shape).tocsr()

    @cached_property
    def _size(self) -> Floats:
        return floats(np.bincount(self._keys[1], self.counts.data))

    @cached_property
    def _stratum_sizes(self) -> Floats:
        """Rows of each stratum, shape (strata, 1)."""
        return floats(np.bincount(self._stratum, self._size, minlength=self._strata))[:, None]

    @cached_property
    def _shares(self) -> Floats:
        """Share of each outcome in its stratum."""
        totals = floats(self.counts.sum(axis=0)).ravel()
        sizes = self._stratum_sizes[self.strata, 0]
        return floats(np.divide(totals, sizes, out=np.zeros_like(totals), where=sizes > 0.0))

    @cached_property
    def _pair(self) -> tuple[Integers, Integers]:
        """Parts of different cells of one unit in one stratum, each two once."""
        block = self.unit[self._cell] * self._strata + self._stratum
        order = np.argsort(block, kind="stable")
        ordered = block[order]
        last = np.searchsorted(ordered, ordered, side="right")
        followers = last - 1 - np.arange(len(order))
        first = np.repeat(np.arange(len(order)), followers)
        step = np.arange(len(first)) - np.repeat(np.cumsum(followers) - followers, followers)
        return integers(order[first]), integers(order[first + 1 + step])

    def _products(self, first: Integers, second: Integers) -> Floats:
        """Sum products of the deviations of parts from their stratum's shares over outcomes."""
        counts, sizes, shares = self._part_counts, self._size, self._shares
        together = floats((counts[first] * counts[second]).sum(axis=1)).ravel()
        expected = floats(counts @ shares)
        squared = np.bincount(self.strata, shares**2, minlength=self._strata)[self._stratum[first]]
        together -= sizes[first] * expected[second] + sizes[second] * expected[first]
        return floats(together + sizes[first] * sizes[second] * squared)

    @cached_property
    def _crossed(self) -> Floats:
        return self._products(*self._pair)

    @cached_property
    def _squares(self) -> Floats:
        parts = np.arange(len(self._cell))
        return self._products(parts, parts)

    @cached_property
    def _with_unit(self) -> Floats:
        """Products of each part with all of its unit in the stratum."""
        first, second = self._pair
        crossed = (
            np.bincount(places, self._crossed, minlength=len(self._cell))
            for places in (first, second)
        )
        return floats(self._squares + sum(crossed))

    @cached_property
    def _least(self) -> Floats:
        sums = np.bincount(self._stratum, self._squares, minlength=self._strata)
        return floats(_FLAT * np.maximum(sums, 0.0))[:, None]

    @cached_property
    def _observed_sizes(self) -> Floats:
        return self._sizes(self.exchange.group)

    @cached_property
    def _expected(self) -> Floats:
        return floats(self._shares[:, None] * self._observed_sizes[self.strata])

    @cached_property
    def _observed(self) -> Floats:
        return self._variance(self.exchange.group, self._observed_sizes)
