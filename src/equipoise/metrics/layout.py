"""Which outcomes make up the contingency tables of a formulation, group by label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.metrics.counts import Counts

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Formulation = Literal["separation", "sufficiency", "independence"]

# Cells that stay in the cache with what is made of them.
_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False)
class Layout:
    """How outcomes make up contingency tables.

    Attributes
    ----------
    order : ndarray of int64, shape (outcomes,)
        Outcomes sorted by stratum, then by label.
    column : ndarray of int64, shape (columns,)
        Where in `order` each column (a stratum with a label) begins.
    stratum : ndarray of int64, shape (strata,)
        Where in `column` each stratum begins.
    subject : ndarray of int64, shape (strata,)
        Class of each stratum; -1 for the whole table.
    groups : ndarray of int64
        Groups that are compared.
    """

    order: Indices
    column: Indices
    stratum: Indices
    subject: Indices
    groups: Indices

    @classmethod
    def of(cls, counts: Counts, formulation: Formulation) -> Layout:
        """Find the tables of a formulation, over the groups that are large enough."""
        stratum, label = {
            "separation": (counts.truth, counts.prediction),
            "sufficiency": (counts.prediction, counts.truth),
            "independence": (np.full_like(counts.truth, -1), counts.prediction),
        }[formulation]
        order = np.lexsort((label, stratum))
        strata, labels = stratum[order], label[order]
        new_stratum = np.diff(strata, prepend=-2) != 0
        column = np.flatnonzero(new_stratum | (np.diff(labels, prepend=-2) != 0))
        first = np.flatnonzero(new_stratum[column])
        groups = np.flatnonzero(counts.groups.usable)
        return cls(order, column, first, strata[column[first]], groups)

    def cells(self, tables: Floats) -> Floats:
        """Arrange tables (r, outcomes, groups) as (r, columns, groups compared)."""
        if len(self.groups) < tables.shape[2]:
            tables = tables[:, :, self.groups]
        if (np.diff(self.order) != 1).any():
            tables = tables[:, self.order]
        if len(self.column) < len(self.order):
            tables = np.add.reduceat(tables, self.column, axis=1)
        return tables

    @property
    def begins(self) -> Indices:
        """Where each stratum begins, and where the last one ends."""
        return np.append(self.stratum, len(self.column))

    def chunks(self, cells: Floats) -> Iterator[tuple[Layout, Floats]]:
        """Cut cells (r, columns, groups compared) between strata, each part with its layout."""
        begins, many = self.begins, max(1, cells.size // _CHUNK)
        near = np.searchsorted(begins, np.linspace(0, len(self.column), many + 1))
        for first, last in pairwise(np.unique(near).tolist()):
            part, strata = slice(begins[first], begins[last]), slice(first, last)
            layout = replace(
                self,
                column=self.column[part],
                stratum=self.stratum[strata] - part.start,
                subject=self.subject[strata],
            )
            yield layout, cells[:, part]

    def sum(self, columns: Floats) -> Floats:
        """Sum columns (r, columns, ...) within strata: (r, strata, ...)."""
        return np.add.reduceat(columns, self.stratum, axis=1)

    def spread(self, strata: Floats) -> Floats:
        """Repeat numbers of strata (r, strata) for their columns: (r, columns)."""
        return np.repeat(strata, np.diff(self.begins), axis=1)
