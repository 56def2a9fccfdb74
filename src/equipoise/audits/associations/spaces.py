"""What a model says of the members of sets: their embeddings, or its scores of pairs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.associations.loading import AssociationData
from equipoise.audits.taking import rows_of
from equipoise.core.errors import DataError
from equipoise.metrics.associations.space import Similarity
from equipoise.metrics.chosen_rows import Table

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_NUMBERS_AT_ONCE = 1 << 20

MODALITIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "II": ("image", "image"),
        "ITP": ("image", "text"),
        "ITA": ("text", "image"),
        "TT": ("text", "text"),
    }
)
"""Kind of the attributes and kind of the targets."""


@dataclass(frozen=True, eq=False)
class Side:
    """The members of a set that are of one kind and that a model knows.

    Attributes
    ----------
    name : str
        Of the set.
    things : ndarray or ChosenRows
        What the metrics take: embeddings (n, d), or numbers of items for scores of pairs.
    ids : tuple of str
    units : tuple of str
        Unit of each member; itself where it has none. None at all where no table has units.
    without : int
        Members that the model gave nothing for.
    clustered : bool
        Whether a column names units.
    places : ndarray of int
        Number of each member over the items of all tables; none of what is no item.
    shared : int
        Members left out because they are targets, too.
    """

    name: str
    things: Table = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    units: tuple[str, ...] = field(repr=False)
    without: int
    clustered: bool = False
    places: Indices = field(default_factory=lambda: np.arange(0), repr=False)
    shared: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, kept: Indices) -> Side:
        """Return some of the members."""
        ids = tuple(self.ids[row] for row in kept.tolist())
        units = tuple(self.units[row] for row in kept.tolist()) if self.units else ()
        places = self.places[kept] if len(self.places) else self.places
        return replace(self, things=self.things[kept], ids=ids, units=units, places=places)


@dataclass(frozen=True, eq=False)
class Space:
    """One model over the items of an audit.

    Attributes
    ----------
    model : str
    data : AssociationData
    """

    model: str
    data: AssociationData

    @property
    def similarity(self) -> Similarity | None:
        """How the model compares: its scores of pairs, or None for the cosine."""
        return None if self.model in self.data.vectors else self._score

    def tables(self, name: str, kind: str) -> tuple[str, ...]:
        """Return the tables of one kind that a set has members in and the model knows."""
        chosen = self.data.sets[name]
        return tuple(t for t in chosen if self.data.kinds[t] == kind and self._known(t) is not None)

    def side(self, name: str, kind: str) -> Side | None:
        """Return the members of a set of one kind, None where the model knows none of them."""
        chosen = self.data.sets[name]
        parts = [self._part(table, chosen[table]) for table in self.tables(name, kind)]
        if not sum(len(part) for part in parts):
            return None
        if len(parts) == 1:
            return replace(parts[0], name=name)
        return Side(
            name,
            np.concatenate([part.things for part in parts]),
            tuple(one for part in parts for one in part.ids),
            tuple(one for part in parts for one in part.units),
            sum(part.without for part in parts),
            any(part.clustered for part in parts),
            np.concatenate([part.places for part in parts]),
        )

    def chosen(self, name: str, kind: str) -> Side:
        """Return the members of a set of one kind.

        Raises
        ------
        DataError
            When the model has a usable vector or score of none of them.
        """
        found = self.side(name, kind)
        if found is not None and len(self.usable(found)):
            return found
        why = "has an embedding or scores" if found is None else "has a finite vector other than 0"
        raise DataError(
            f"{self.model}: none of the {kind}s of the set {name!r} {why}",
            expected="at least one that can be used",
            fix="embed them again, or leave the set out",
        )

    def usable(self, side: Side) -> Side:
        """Return the members whose vectors are finite and not 0; all, of scores of pairs."""
        if self.model not in self.data.vectors:
            return side
        kept = np.flatnonzero(_usable(side.things))
        return side if len(kept) == len(side) else side.only(kept)

    def meet(self, targets: str, target_kind: str, attributes: str, attribute_kind: str) -> bool:
        """Whether the model compares the targets with the attributes."""
        rows, columns = (
            [*self.tables(name, kind)]
            for name, kind in ((targets, target_kind), (attributes, attribute_kind))
        )
        if not rows or not columns:
            return False
        return all(self.compares(row, column) for row in rows for column in columns)

    def knows(self, table: str) -> bool:
        """Whether the model gave anything for a table."""
        return self._known(table) is not None

    def compares(self, rows: str, columns: str) -> bool:
        """Whether the model compares the items of two tables that it knows."""
        if self.model in self.data.vectors:
            return True
        given = self.data.pairs[self.model]
        return (rows, columns) in given or (columns, rows) in given

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return self._part(table, self.places(table))

    def places(self, table: str) -> Indices:
        """Return which items of a table the model has a usable vector or scores of."""
        known = self._known(table)
        assert known is not None  # noqa: S101 - asked only of tables that the model knows
        if self.model in self.data.vectors:
            known = self.data.vectors[self.model][table].usable
        return np.flatnonzero(known)

    def count(self, name: str, kind: str) -> int:
        """Count the members of a set of one kind that the model has a usable vector of."""
        chosen = self.data.sets[name]
        return sum(
            int(np.isin(chosen[table], self.places(table)).sum())
            for table in self.tables(name, kind)
        )

    def unusable(self, table: str) -> int:
        """Count the items of a table that the model has no usable vector or scores of."""
        return len(self.data.items[table]) - len(self.places(table))

    def unknown(self, table: str, members: Indices) -> int:
        """Count members that the model gave nothing for."""
        known = self._known(table)
        return 0 if known is None else int((~known[members]).sum())

    def units(self, table: str, kept: Indices) -> tuple[str, ...]:
        """Return the unit of items of a table: a column's, or the item itself."""
        items = self.data.items[table]
        ids = items.ids[kept].tolist()
        unit = self.data.units.get(table)
        named = [None] * len(ids) if unit is None else items.columns[unit][kept].tolist()
        return tuple(
            f"{table}: {one}" if known is None else known
            for one, known in zip(ids, named, strict=True)
        )

    def _part(self, table: str, members: Indices) -> Side:
        known = self._known(table)
        kept = members if known is None else members[known[members]]
        return Side(
            table,
            self._things(table, kept),
            tuple(self.data.items[table].ids[kept].tolist()),
            self.units(table, kept) if self.data.units else (),
            len(members) - len(kept),
            table in self.data.units,
            kept + self._start(table),
        )

    def _things(self, table: str, kept: Indices) -> Table:
        if self.model in self.data.vectors:
            return rows_of(self.data.vectors[self.model][table], kept)
        return np.asarray(kept + self._start(table))

    def _known(self, table: str) -> npt.NDArray[np.bool_] | None:
        """Which items of a table the model gave something for; None where it knows no table."""
        if self.model in self.data.vectors:
            found = self.data.vectors[self.model].get(table)
            return None if found is None else found.rows >= 0
        for (rows, columns), matrix in self.data.pairs[self.model].items():
            if rows == table:
                return np.asarray(matrix.rows >= 0)
            if columns == table:
                return np.isin(self.data.items[table].ids, matrix.names)
        return None

    def _score(self, targets: Any, attributes: Any) -> Floats:
        """Return scores of items, given by number over all tables."""
        rows, columns = np.asarray(targets), np.asarray(attributes)
        scores = np.empty((len(rows), len(columns)))
        for table, here in self._split(rows):
            for other, there in self._split(columns):
                block = self._block(table, rows[here], other, columns[there])
                scores[np.ix_(here, there)] = block
        return scores

    def _split(self, numbers: Indices) -> list[tuple[str, Indices]]:
        ends = np.cumsum([len(one) for one in self.data.items.values()])
        places = np.searchsorted(ends, numbers, side="right")
        names = [*self.data.items]
        return [(names[p], np.flatnonzero(places == p)) for p in np.unique(places)]

    def _block(self, table: str, rows: Indices, other: str, columns: Indices) -> Floats:
        given = self.data.pairs[self.model]
        if (table, other) not in given:
            return self._block(other, columns, table, rows).T
        first, second = (
            numbers - self._start(name) for name, numbers in ((table, rows), (other, columns))
        )
        matrix = given[table, other]
        names = self.data.items[other].ids[second].tolist()
        return np.asarray(matrix.take(names)[first], dtype=np.float64)

    def _start(self, table: str) -> int:
        names = [*self.data.items]
        return sum(len(self.data.items[name]) for name in names[: names.index(table)])


def _usable(vectors: Table) -> npt.NDArray[np.bool_]:
    """Return which vectors are finite and not 0, looked at some at a time."""
    step = max(1, _NUMBERS_AT_ONCE // vectors.shape[1])
    found = np.empty(len(vectors), dtype=bool)
    for start in range(0, len(vectors), step):
        rows = vectors[start : start + step]
        found[start : start + step] = np.isfinite(rows).all(axis=1) & (rows != 0).any(axis=1)
    return found


def spaces_of(data: AssociationData) -> list[Space]:
    """Return every model."""
    return [Space(model, data) for model in (*data.vectors, *data.pairs)]


def units_of(
    sides: Mapping[str, Side], exchanged: Sequence[tuple[str, ...]]
) -> dict[str, tuple[str, ...]] | None:
    """Return units of the members by part, where members repeat within units.

    Parameters
    ----------
    sides : mapping of str to Side
        By the part that a set plays.
    exchanged : sequence of tuple of str
        Parts that exchange members: units of all of them or of none.
    """
    found: dict[str, tuple[str, ...]] = {}
    for parts in exchanged:
        every = [unit for part in parts for unit in sides[part].units]
        clustered = any(sides[part].clustered for part in parts)
        if clustered and len(set(every)) < len(every):
            found |= {part: sides[part].units for part in parts}
    return found or None
