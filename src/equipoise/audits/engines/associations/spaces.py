"""The space of a model: embeddings of the members of sets, or scores of pairs of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.taking import rows_of
from equipoise.core.errors import DataError
from equipoise.data import Items, Matrix, Vectors
from equipoise.metrics.chosen_rows import Table
from equipoise.metrics.vectors.sets import Similarity

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Members = Mapping[str, Indices]

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
class AssociationData:
    """What an audit of associations measures.

    Attributes
    ----------
    items : mapping of str to Items
        By table.
    kinds : mapping of str to str
        "image" or "text", by table.
    units : mapping of str to str
        Column of the unit, by table that has one.
    sets : mapping of str to mapping of str to ndarray of int
        Members of every set, by table.
    vectors : mapping of str to mapping of str to Vectors
        By model that has embeddings, and table.
    pairs : mapping of str to mapping of (str, str) to Matrix
        By model that scores pairs, and tables of rows and columns.
    outside : mapping of int to mapping of str to float
        External figures by subject, by place of the question.
    planned : frozenset of str
        Models that have yet to run: what they have are stand-ins.
    inputs, counts : mapping
        Of every file read.
    """

    items: Mapping[str, Items]
    kinds: Mapping[str, str]
    units: Mapping[str, str]
    sets: Mapping[str, Members]
    vectors: Mapping[str, Mapping[str, Vectors]]
    pairs: Mapping[str, Mapping[tuple[str, str], Matrix]]
    outside: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    planned: frozenset[str] = frozenset()
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ids(self) -> npt.NDArray[np.object_]:
        """Ids of the items of all tables."""
        return np.concatenate([items.ids for items in self.items.values()])

    @property
    def spaces(self) -> list[Space]:
        """The space of every model."""
        return [Space(model, self) for model in (*self.vectors, *self.pairs)]


@dataclass(frozen=True, eq=False)
class Side:
    """The members of a set that are of one kind and that a model knows.

    Attributes
    ----------
    name : str
        Of the set.
    things : ndarray or ChosenRows
        What metrics take: embeddings (n, d), or numbers of items for scores of pairs.
    ids : tuple of str
    units : tuple of str
        Unit of each member, itself where it has none; () where no table has units.
    without : int
        Members that the model has no embedding or score of.
    clustered : bool
        Whether a column names units.
    places : ndarray of int
        Number of each member over the items of all tables.
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
    """One model over the items of an audit."""

    model: str
    data: AssociationData

    @property
    def similarity(self) -> Similarity | None:
        """The model's scores of pairs; None for the cosine of its embeddings."""
        return None if self.model in self.data.vectors else self._score

    def tables(self, name: str, kind: str) -> tuple[str, ...]:
        """Return the tables of one kind that a set has members in and the model knows."""
        return tuple(
            table
            for table in self.data.sets[name]
            if self.data.kinds[table] == kind and self.knows(table)
        )

    def side(self, name: str, kind: str) -> Side | None:
        """Return the members of a set of one kind; None where the model knows none of them."""
        members = self.data.sets[name]
        parts = [self._part(table, members[table]) for table in self.tables(name, kind)]
        if not sum(len(part) for part in parts):
            return None
        if len(parts) == 1:
            return replace(parts[0], name=name)
        return Side(
            name,
            np.concatenate([part.things for part in parts]),
            tuple(member for part in parts for member in part.ids),
            tuple(unit for part in parts for unit in part.units),
            sum(part.without for part in parts),
            any(part.clustered for part in parts),
            np.concatenate([part.places for part in parts]),
        )

    def chosen(self, name: str, kind: str) -> Side:
        """Return the members of a set of one kind; refuse a set of which none is usable."""
        side = self.side(name, kind)
        if side is not None and len(self.usable(side)):
            return side
        why = "has an embedding or scores" if side is None else "has a finite vector other than 0"
        raise DataError(
            f"{self.model}: none of the {kind}s of the set {name!r} {why}",
            expected="at least one that can be used",
            fix="embed them again, or leave the set out",
        )

    def apart(self, name: str, kind: str, targets: Sequence[Side]) -> Side:
        """Return the members of a set of attributes that are not among the targets."""
        return self.without_targets(self.chosen(name, kind), kind, targets)

    def without_targets(self, side: Side, kind: str, targets: Sequence[Side]) -> Side:
        """Return the members that are not among the targets; refuse a set of targets alone.

        An item has similarity 1 with itself, which says nothing of its set. Leaving out these
        pairs alone would leave the two sets of a question dependent, and p-values too small: see
        docs/decisions/0015-targets-are-left-out-of-attributes.md.
        """
        places = np.concatenate([target.places for target in targets])
        kept = np.flatnonzero(~np.isin(side.places, places))
        if len(kept) == len(side):
            return side
        rest = replace(side.only(kept), shared=len(side) - len(kept))
        if not len(self.usable(rest)):
            raise targets_alone(self.model, kind, side.name, [target.name for target in targets])
        return rest

    def usable(self, side: Side) -> Side:
        """Return the members whose vectors are finite and not 0; all, of scores of pairs."""
        if self.model not in self.data.vectors or not len(side):
            return side
        kept = np.flatnonzero(_usable(side.things))
        return side if len(kept) == len(side) else side.only(kept)

    def usable_apart(self, name: str, kind: str, targets: Sequence[str]) -> tuple[int, int]:
        """Count the usable members of a set, and those of them that are no targets."""
        usable = apart = 0
        sets = self.data.sets
        for table in self.tables(name, kind):
            members = np.intersect1d(sets[name][table], self.places(table))
            others = [sets[target][table] for target in targets if table in sets[target]]
            usable += len(members)
            apart += int((~np.isin(members, np.concatenate([[], *others]))).sum())
        return usable, apart

    def meet(self, targets: str, target_kind: str, attributes: str, attribute_kind: str) -> bool:
        """Whether the model compares the targets with the attributes."""
        rows, columns = self.tables(targets, target_kind), self.tables(attributes, attribute_kind)
        compared = all(self.compares(row, column) for row in rows for column in columns)
        return bool(rows and columns) and compared

    def knows(self, table: str) -> bool:
        """Whether the model has embeddings or scores of a table."""
        return self._known(table) is not None

    def compares(self, rows: str, columns: str) -> bool:
        """Whether the model compares the items of two tables that it knows."""
        if self.model in self.data.vectors:
            return True
        pairs = self.data.pairs[self.model]
        return (rows, columns) in pairs or (columns, rows) in pairs

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return self._part(table, self.places(table))

    def places(self, table: str) -> Indices:
        """Return which items of a table the model has a usable vector or scores of."""
        known = self._known(table)
        assert known is not None  # noqa: S101 - only of tables that the model knows
        if self.model in self.data.vectors:
            known = self.data.vectors[self.model][table].usable
        return np.flatnonzero(known)

    def count(self, name: str, kind: str) -> int:
        """Count the members of a set of one kind that the model has a usable vector of."""
        members = self.data.sets[name]
        return sum(
            int(np.isin(members[table], self.places(table)).sum())
            for table in self.tables(name, kind)
        )

    def unusable(self, table: str) -> int:
        """Count the items of a table that the model has no usable vector or scores of."""
        return len(self.data.items[table]) - len(self.places(table))

    def known(self, table: str, members: Indices) -> int:
        """Count members that the model has an embedding or scores of."""
        known = self._known(table)
        return 0 if known is None else int(known[members].sum())

    def units(self, table: str, kept: Indices) -> tuple[str, ...]:
        """Return the unit of items of a table: a column's, or the item itself."""
        items, unit = self.data.items[table], self.data.units.get(table)
        ids = items.ids[kept].tolist()
        named = [None] * len(ids) if unit is None else items.columns[unit][kept].tolist()
        return tuple(
            f"{table}: {item}" if unit is None else unit
            for item, unit in zip(ids, named, strict=True)
        )

    def _part(self, table: str, members: Indices) -> Side:
        known = self._known(table)
        kept = members if known is None else members[known[members]]
        places = kept + self._start(table)
        vectors = self.data.vectors.get(self.model)
        return Side(
            table,
            places if vectors is None else rows_of(vectors[table], kept),
            tuple(self.data.items[table].ids[kept].tolist()),
            self.units(table, kept) if self.data.units else (),
            len(members) - len(kept),
            table in self.data.units,
            places,
        )

    def _known(self, table: str) -> npt.NDArray[np.bool_] | None:
        """Return which items of a table the model knows; None where it knows no such table."""
        if self.model in self.data.vectors:
            vectors = self.data.vectors[self.model].get(table)
            return None if vectors is None else vectors.rows >= 0
        for (rows, columns), matrix in self.data.pairs[self.model].items():
            if rows == table:
                return np.asarray(matrix.rows >= 0)
            if columns == table:
                return np.isin(self.data.items[table].ids, matrix.names)
        return None

    def _score(self, targets: Any, attributes: Any) -> Floats:
        """Return scores of items, which are numbers over all tables."""
        rows, columns = np.asarray(targets), np.asarray(attributes)
        scores = np.empty((len(rows), len(columns)))
        for table, here in self._split(rows):
            for other, there in self._split(columns):
                block = self._block(table, rows[here], other, columns[there])
                scores[np.ix_(here, there)] = block
        return scores

    def _split(self, numbers: Indices) -> list[tuple[str, Indices]]:
        ends = np.cumsum([len(items) for items in self.data.items.values()])
        tables = np.searchsorted(ends, numbers, side="right")
        names = [*self.data.items]
        return [(names[place], np.flatnonzero(tables == place)) for place in np.unique(tables)]

    def _block(self, table: str, rows: Indices, other: str, columns: Indices) -> Floats:
        pairs = self.data.pairs[self.model]
        if (table, other) not in pairs:
            return self._block(other, columns, table, rows).T
        matrix = pairs[table, other]
        names = self.data.items[other].ids[columns - self._start(other)].tolist()
        return np.asarray(matrix.take(names)[rows - self._start(table)], dtype=np.float64)

    def _start(self, table: str) -> int:
        names = [*self.data.items]
        return sum(len(self.data.items[name]) for name in names[: names.index(table)])


def targets_alone(model: str, kind: str, name: str, targets: Sequence[str]) -> DataError:
    """Return the error of a set of attributes of which targets alone can be used."""
    return DataError(
        f"{model}: every usable {kind} of the set {name!r} is in "
        f"{' or '.join(dict.fromkeys(targets))}, too, and would be compared with itself",
        expected=f"{kind}s that stand for {name} alone: targets are left out of attributes",
        fix=f"add {kind}s to {name!r} that are in no target, or measure fewer targets at once",
    )


def _usable(vectors: Table) -> npt.NDArray[np.bool_]:
    """Return which vectors are finite and not 0, looked at some at a time."""
    step = max(1, _NUMBERS_AT_ONCE // vectors.shape[1])
    usable = np.empty(len(vectors), dtype=bool)
    for start in range(0, len(vectors), step):
        rows = vectors[start : start + step]
        usable[start : start + step] = np.isfinite(rows).all(axis=1) & (rows != 0).any(axis=1)
    return usable


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
    units: dict[str, tuple[str, ...]] = {}
    for parts in exchanged:
        every = [unit for part in parts for unit in sides[part].units]
        clustered = any(sides[part].clustered for part in parts)
        if clustered and len(set(every)) < len(every):
            units |= {part: sides[part].units for part in parts}
    return units or None
