"""The space of a model: embeddings of the members of sets, or scores of pairs of them.

Also which numbers a question takes from a space: over which sets, in which modality.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.audits.engines.associations.config import MeasureConfig
from equipoise.audits.rows import rows_of
from equipoise.core.errors import DataError
from equipoise.data import Items, Matrix, Vectors
from equipoise.metrics.vector_rows import Table
from equipoise.metrics.vectors.sets import Similarity

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Objects = npt.NDArray[np.object_]

MODALITIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "II": ("image", "image"),
        "ITP": ("image", "text"),
        "ITA": ("text", "image"),
        "TT": ("text", "text"),
    }
)
"""Kind of the attributes and kind of the targets."""

_PAIRS = ("weat", "differential_association")
_TOGETHER = ("total_absolute_association", "alignment", "correlation")
# Metrics that compare several targets with the same members of a set.
_SHARED_ATTRIBUTES = (*_PAIRS, "total_absolute_association")
# Kinds that targets and attributes share, by modality.
_SHARED_KINDS = MappingProxyType({"": ("image", "text"), "II": ("image",), "TT": ("text",)})


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
        External figures by subject, by index of the question.
    planned : frozenset of str
        Models that have yet to run: their outputs are stand-ins.
    inputs, counts : mapping
        Of every file read.
    """

    items: Mapping[str, Items]
    kinds: Mapping[str, str]
    units: Mapping[str, str]
    sets: Mapping[str, Mapping[str, Indices]]
    vectors: Mapping[str, Mapping[str, Vectors]]
    pairs: Mapping[str, Mapping[tuple[str, str], Matrix]]
    outside: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    planned: frozenset[str] = frozenset()
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def ids(self) -> Objects:
        """Ids of the items of all tables: their position is an item's number."""
        return np.concatenate([items.ids for items in self.items.values()])

    @cached_property
    def starts(self) -> Mapping[str, int]:
        """Number of the first item of each table."""
        sizes = [len(items) for items in self.items.values()]
        return dict(zip(self.items, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def spaces(self) -> list[Space]:
        """The space of every model."""
        return [Space(model, self) for model in (*self.vectors, *self.pairs)]

    def units_of(self, table: str, rows: Indices) -> tuple[str, ...]:
        """Return the unit of items of a table: a column's, or the item itself."""
        items, column = self.items[table], self.units.get(table)
        ids = items.ids[rows].tolist()
        units = [None] * len(ids) if column is None else items.columns[column][rows].tolist()
        return tuple(
            f"{table}: {item}" if unit is None else unit
            for item, unit in zip(ids, units, strict=True)
        )


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
    numbers : ndarray of int
        Number of each member over the items of all tables.
    shared : int
        Members left out because they are targets, too.
    """

    name: str
    things: Table = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    units: tuple[str, ...] = field(default=(), repr=False)
    without: int = 0
    clustered: bool = False
    numbers: Indices = field(default_factory=lambda: np.arange(0), repr=False)
    shared: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, kept: Indices) -> Side:
        """Return some of the members."""
        return replace(
            self,
            things=self.things[kept],
            ids=tuple(self.ids[row] for row in kept.tolist()),
            units=tuple(self.units[row] for row in kept.tolist()) if self.units else (),
            numbers=self.numbers[kept],
        )


@dataclass(frozen=True, eq=False)
class Space:
    """One model over the items of an audit."""

    model: str
    data: AssociationData

    @property
    def similarity(self) -> Similarity | None:
        """The model's scores of pairs; None for the cosine of its embeddings."""
        return None if self.model in self.data.vectors else self._score

    @cached_property
    def known(self) -> Mapping[str, Bools]:
        """Items that the model has an embedding or scores of, by table that it knows."""
        if self.model in self.data.vectors:
            vectors = self.data.vectors[self.model]
            return {table: each.rows >= 0 for table, each in vectors.items()}
        known: dict[str, Bools] = {}
        for (rows, columns), matrix in self.data.pairs[self.model].items():
            known.setdefault(rows, matrix.rows >= 0)
            known.setdefault(columns, np.isin(self.data.items[columns].ids, matrix.names))
        return known

    @cached_property
    def usable(self) -> Mapping[str, Bools]:
        """Known items whose vectors are finite and not 0; all known items of scores of pairs."""
        vectors = self.data.vectors.get(self.model)
        if vectors is None:
            return self.known
        return {table: each.usable for table, each in vectors.items()}

    @cached_property
    def _usable_numbers(self) -> Indices:
        starts = self.data.starts
        return np.concatenate([np.flatnonzero(m) + starts[t] for t, m in self.usable.items()])

    def tables(self, name: str, kind: str) -> tuple[str, ...]:
        """Return the tables of one kind that a set has members in and the model knows."""
        kinds = self.data.kinds
        return tuple(t for t in self.data.sets[name] if kinds[t] == kind and t in self.known)

    def side(self, name: str, kind: str) -> Side | None:
        """Return the members of a set of one kind; None where the model knows none of them."""
        members = {table: self.data.sets[name][table] for table in self.tables(name, kind)}
        kept = {table: rows[self.known[table][rows]] for table, rows in members.items()}
        n = sum(map(len, kept.values()))
        return self._side(name, kept, sum(map(len, members.values())) - n) if n else None

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return self._side(table, {table: np.flatnonzero(self.usable[table])})

    def _side(self, name: str, rows: Mapping[str, Indices], without: int = 0) -> Side:
        data, vectors = self.data, self.data.vectors.get(self.model)
        numbers = np.concatenate([own + data.starts[table] for table, own in rows.items()])
        things: Table = numbers
        if vectors is not None:
            blocks = [rows_of(vectors[table], own) for table, own in rows.items()]
            things = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        units = [u for t, own in rows.items() for u in data.units_of(t, own)] if data.units else ()
        clustered = any(table in data.units for table in rows)
        ids = tuple(data.ids[numbers].tolist())
        return Side(name, things, ids, tuple(units), without, clustered, numbers)

    def chosen(self, name: str, kind: str) -> Side:
        """Return the members of a set of one kind; refuse a set of which none is usable."""
        side = self.side(name, kind)
        if side is not None and len(self.only_usable(side)):
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
        numbers = np.concatenate([target.numbers for target in targets])
        kept = np.flatnonzero(~np.isin(side.numbers, numbers))
        if len(kept) == len(side):
            return side
        rest = replace(side.only(kept), shared=len(side) - len(kept))
        if not len(self.only_usable(rest)):
            raise _targets_alone(self.model, kind, side.name, [target.name for target in targets])
        return rest

    def only_usable(self, side: Side) -> Side:
        """Return the members whose vectors are finite and not 0."""
        kept = np.flatnonzero(np.isin(side.numbers, self._usable_numbers))
        return side if len(kept) == len(side) else side.only(kept)

    def count(self, name: str, kind: str, targets: Iterable[str] = ()) -> int:
        """Count the usable members of a set of one kind that are in none of the targets."""
        sets, n = self.data.sets, 0
        for table in self.tables(name, kind):
            others = [sets[target][table] for target in targets if table in sets[target]]
            rows = sets[name][table]
            apart = ~np.isin(rows, np.concatenate([[], *others]))
            n += int((apart & self.usable[table][rows]).sum())
        return n

    def meet(self, targets: str, target_kind: str, attributes: str, attribute_kind: str) -> bool:
        """Whether the model compares the targets with the attributes."""
        rows, columns = self.tables(targets, target_kind), self.tables(attributes, attribute_kind)
        compared = all(self.compares(row, column) for row in rows for column in columns)
        return bool(rows and columns) and compared

    def compares(self, rows: str, columns: str) -> bool:
        """Whether the model compares the items of two tables that it knows."""
        if self.model in self.data.vectors:
            return True
        pairs = self.data.pairs[self.model]
        return (rows, columns) in pairs or (columns, rows) in pairs

    def unusable(self, table: str) -> int:
        """Count the items of a table that the model has no usable vector or scores of."""
        return int((~self.usable[table]).sum())

    def _score(self, targets: Any, attributes: Any) -> Floats:
        """Return scores of items, which are numbers over all tables."""
        scores = np.empty((len(targets), len(attributes)))
        for table, here, rows in self._split(np.asarray(targets)):
            for other, there, columns in self._split(np.asarray(attributes)):
                scores[np.ix_(here, there)] = self._block(table, rows, other, columns)
        return scores

    def _split(self, numbers: Indices) -> Iterator[tuple[str, Indices, Indices]]:
        """Yield tables, with positions among the numbers and rows of the table."""
        for table, start in self.data.starts.items():
            inside = (numbers >= start) & (numbers < start + len(self.data.items[table]))
            if inside.any():
                yield table, np.flatnonzero(inside), numbers[inside] - start

    def _block(self, table: str, rows: Indices, other: str, columns: Indices) -> Floats:
        pairs = self.data.pairs[self.model]
        if (table, other) not in pairs:
            return self._block(other, columns, table, rows).T
        names = self.data.items[other].ids[columns].tolist()
        return np.asarray(pairs[table, other].take(names)[rows], dtype=np.float64)


def _targets_alone(model: str, kind: str, name: str, targets: Sequence[str]) -> DataError:
    return DataError(
        f"{model}: every usable {kind} of the set {name!r} is in "
        f"{' or '.join(dict.fromkeys(targets))}, too, and would be compared with itself",
        expected=f"{kind}s that stand for {name} alone: targets are left out of attributes",
        fix=f"add {kind}s to {name!r} that are in no target, or measure fewer targets at once",
    )


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


@dataclass(frozen=True)
class Case:
    """One number, or one for each target.

    Attributes
    ----------
    modality : str
        II, ITP, ITA or TT; "" for metrics over all four and for those of groups of images.
    targets : tuple of str
    """

    modality: str
    targets: tuple[str, ...] = ()

    @property
    def kinds(self) -> tuple[str, str]:
        """Kind of the attributes and kind of the targets."""
        return MODALITIES[self.modality]

    @property
    def shared_kinds(self) -> tuple[str, ...]:
        """Kinds of both targets and attributes."""
        return _SHARED_KINDS.get(self.modality, ()) if self.targets else ()


def cases_of(options: MeasureConfig, space: Space) -> list[Case]:
    """Return what a question asks of a model; nothing where the model cannot answer it."""
    if options.model not in (None, space.model):
        return []
    if options.images is not None:
        return [Case("")] if _knows_images(options, space) else []
    modalities: dict[str, list[tuple[str, str]]] = {"": [*MODALITIES.values()]}
    if not options.is_composite:
        modalities = {m: [MODALITIES[m]] for m in options.modalities or MODALITIES}
    groups = (*options.attributes, *options.further)
    cases = []
    for modality, kinds in modalities.items():
        known = tuple(
            name
            for name in options.target_names
            if all(space.meet(name, own, group, other) for other, own in kinds for group in groups)
        )
        if options.metric in _PAIRS:
            cases += [Case(modality, known)] if len(known) == 2 else []
        elif options.metric in _TOGETHER:
            cases += [Case(modality, known)] if known else []
        else:
            cases += [Case(modality, (name,)) for name in known]
    return cases


def _knows_images(options: MeasureConfig, space: Space) -> bool:
    """Whether a model compares the images of a table with the texts that a question names."""
    images = options.images or ""
    if options.metric == "label_concentration" and options.label_column is not None:
        return True
    words = [*options.labels, *filter(None, (options.positive, options.negative))]
    tables = {name: space.tables(name, "text") for name in (*words, *options.attributes)}
    compared = (space.compares(images, table) for word in words for table in tables[word])
    return images in space.known and all(tables.values()) and all(compared)


def tests_of(options: MeasureConfig, space: Space) -> int:
    """Return how many tests a question makes of one model."""
    cases = cases_of(options, space)
    if options.metric == "sc_weat":
        sides = (space.side(case.targets[0], case.kinds[1]) for case in cases)
        return sum(len(side) for side in sides if side is not None)
    if options.metric == "xmcas":
        return 0
    if options.metric not in ("trend", "gender_difference"):
        return len(cases)
    coded, figures = space.data.items[options.images or ""].coded, options.outside is not None
    if options.metric == "trend":
        return len(cases) * figures * len(coded[options.groups or ""].vocabulary)
    regions = 1 if options.regions is None else len(coded[options.regions].vocabulary)
    return len(cases) * (regions * (regions > 1) + 1 + figures)


def tests_between(options: MeasureConfig, spaces: Iterable[Space]) -> int:
    """Return about how many tests a question makes of differences between models."""
    if options.metric != "total_absolute_association":
        return 0
    models = Counter(case.modality for space in spaces for case in cases_of(options, space))
    return sum(n * (n - 1) // 2 for n in models.values())


def compared_together(options: MeasureConfig, target: str) -> tuple[str, ...]:
    """Return the targets that are left out of the attributes where one is a target."""
    return options.target_names if options.metric in _SHARED_ATTRIBUTES else (target,)


def check_apart(options: MeasureConfig, space: Space) -> None:
    """Refuse a question whose targets are all that a model can use of a set of attributes."""
    for case in cases_of(options, space) if options.metric != "sc_weat" else ():
        together = options.metric in _SHARED_ATTRIBUTES
        for targets in [case.targets] if together else [(target,) for target in case.targets]:
            for kind in case.shared_kinds:
                for name in (*options.attributes, *options.further):
                    if space.count(name, kind) and not space.count(name, kind, targets):
                        raise _targets_alone(space.model, kind, name, targets)
