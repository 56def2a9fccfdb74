"""The space of a model: embeddings of the members of sets, or scores of pairs of them.

Also which numbers a question takes from a space: over which sets, in which modality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, product
from types import MappingProxyType
from typing import Any

import numpy as np

from equipoise.audits.columns import rows_of
from equipoise.audits.engines.associations.config import MeasureConfig
from equipoise.core.arrays import Booleans, Floats, Integers, Objects
from equipoise.core.errors import DataError
from equipoise.data import Items, Matrix, Vectors
from equipoise.metrics.vector_rows import Table
from equipoise.metrics.vectors.sets import Similarity

MODALITIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "II": ("image", "image"),
        "ITP": ("image", "text"),
        "ITA": ("text", "image"),
        "TT": ("text", "text"),
    }
)
"""Kind of the attributes and kind of the targets."""

PAIRS = ("weat", "differential_association")
_TOGETHER = ("total_absolute_association", "alignment", "correlation")


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
    sets: Mapping[str, Mapping[str, Integers]]
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

    def units_of(self, table: str, rows: Integers) -> tuple[str, ...]:
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
    numbers : ndarray of int
        Number of each member over the items of all tables.
    units : tuple of str
        Unit of each member, itself where it has none; () where no table has units.
    clustered : bool
        Whether a column names units.
    excluded : mapping of str to int
        Members that are left out, by reason.
    """

    name: str
    things: Table = field(repr=False)
    ids: tuple[str, ...] = field(repr=False)
    numbers: Integers = field(default_factory=lambda: np.arange(0), repr=False)
    units: tuple[str, ...] = field(default=(), repr=False)
    clustered: bool = False
    excluded: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def only(self, kept: Booleans) -> Side:
        """Return some of the members."""
        return replace(
            self,
            things=self.things[np.flatnonzero(kept)],
            ids=tuple(compress(self.ids, kept)),
            numbers=self.numbers[kept],
            units=tuple(compress(self.units, kept)),
        )


@dataclass(frozen=True, eq=False)
class Space:
    """One model over the items of an audit."""

    model: str
    data: AssociationData

    @property
    def vectors(self) -> Mapping[str, Vectors] | None:
        """Embeddings by table; None where the model scores pairs."""
        return self.data.vectors.get(self.model)

    @property
    def similarity(self) -> Similarity | None:
        """The model's scores of pairs; None for the cosine of its embeddings."""
        return self._score if self.vectors is None else None

    @cached_property
    def known(self) -> Mapping[str, Booleans]:
        """Items that the model has an embedding or scores of, by table that it knows."""
        if self.vectors is not None:
            return {table: each.rows >= 0 for table, each in self.vectors.items()}
        known: dict[str, Booleans] = {}
        for (rows, columns), matrix in self.data.pairs[self.model].items():
            known.setdefault(rows, matrix.rows >= 0)
            known.setdefault(columns, np.isin(self.data.items[columns].ids, matrix.names))
        return known

    @cached_property
    def usable(self) -> Mapping[str, Booleans]:
        """Known items whose vectors are finite and not 0; all known items of scores of pairs."""
        if self.vectors is None:
            return self.known
        return {table: each.usable for table, each in self.vectors.items()}

    def members(self, name: str, kind: str) -> dict[str, Integers]:
        """Return the members of a set of one kind, by table that the model knows."""
        data = self.data
        of_set = data.sets[name].items()
        return {t: rows for t, rows in of_set if data.kinds[t] == kind and t in self.known}

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return self._side(table, {table: np.flatnonzero(self.usable[table])})

    def _side(self, name: str, rows: Mapping[str, Integers]) -> Side:
        data = self.data
        numbers = np.concatenate([own + data.starts[table] for table, own in rows.items()])
        things: Table = numbers
        if self.vectors is not None:
            blocks = [rows_of(self.vectors[table], own) for table, own in rows.items()]
            things = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        units = [u for t, own in rows.items() for u in data.units_of(t, own)] if data.units else ()
        ids, clustered = tuple(data.ids[numbers].tolist()), not data.units.keys().isdisjoint(rows)
        return Side(name, things, ids, numbers, tuple(units), clustered)

    def chosen(self, name: str, kind: str, targets: Sequence[Side] = ()) -> Side:
        """Return the members of a set of one kind that are not among the targets.

        An item has similarity 1 with itself, which says nothing of its set. Leaving out these
        pairs alone would leave the two sets of a question dependent, and p-values too small: see
        docs/decisions/0015-targets-are-left-out-of-attributes.md.

        Raises
        ------
        DataError
            When none of the members can be used.
        """
        members = self.members(name, kind)
        if members:
            kept = {table: rows[self.known[table][rows]] for table, rows in members.items()}
            side = self._side(name, kept)
            lost = {"no embedding or score": sum(map(len, members.values())) - len(side)}
            shared = np.isin(side.numbers, [n for each in targets for n in each.numbers.tolist()])
            if shared.any():
                side, lost["also a target"] = side.only(~shared), int(shared.sum())
            if len(self.only_usable(side)):
                return replace(side, excluded=lost)
        raise DataError(
            f"{self.model}: the set {name!r} has no {kind} that can be used",
            expected=f"a {kind} with a finite vector other than 0 that is not among the targets",
            fix="add members or embed them again, or leave the set out",
        )

    def only_usable(self, side: Side) -> Side:
        """Return the members whose vectors are finite and not 0."""
        starts = self.data.starts
        usable = [np.flatnonzero(own) + starts[table] for table, own in self.usable.items()]
        kept = np.isin(side.numbers, np.concatenate(usable))
        return side if kept.all() else side.only(kept)

    def compares(self, rows: Iterable[str], columns: Iterable[str]) -> bool:
        """Whether the model compares the items of tables; not where there are none."""
        pairs = self.data.pairs.get(self.model, {})
        every = [*product(rows, columns)]
        known = (self.vectors is not None or {each, each[::-1]} & pairs.keys() for each in every)
        return bool(every) and all(known)

    def _score(self, targets: Any, attributes: Any) -> Floats:
        """Return scores of items, which are numbers over all tables."""
        scores, pairs = np.empty((len(targets), len(attributes))), self.data.pairs[self.model]
        for table, here, rows in self._split(np.asarray(targets)):
            for other, there, columns in self._split(np.asarray(attributes)):
                of_rows = (table, other) in pairs
                between = (table, other) if of_rows else (other, table)
                first, second = (rows, columns) if of_rows else (columns, rows)
                names = self.data.items[between[1]].ids[second].tolist()
                block = np.asarray(pairs[between].take(names)[first], dtype=np.float64)
                scores[np.ix_(here, there)] = block if of_rows else block.T
        return scores

    def _split(self, numbers: Integers) -> Iterator[tuple[str, Integers, Integers]]:
        """Yield tables, with positions among the numbers and rows of the table."""
        for table, start in self.data.starts.items():
            inside = (numbers >= start) & (numbers < start + len(self.data.items[table]))
            if inside.any():
                yield table, np.flatnonzero(inside), numbers[inside] - start


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
            if all(
                space.compares(space.members(name, own), space.members(group, other))
                for other, own in kinds
                for group in groups
            )
        )
        if options.metric in (*PAIRS, *_TOGETHER):
            whole = len(known) == 2 if options.metric in PAIRS else known
            cases += [Case(modality, known)] if whole else []
        else:
            cases += [Case(modality, (name,)) for name in known]
    return cases


def _knows_images(options: MeasureConfig, space: Space) -> bool:
    """Whether a model compares the images of a table with the texts that a question names."""
    images = options.images or ""
    if options.metric == "label_concentration" and options.label_column is not None:
        return True
    words = [*options.labels, *filter(None, (options.positive, options.negative))]
    compared = all(space.compares([images], space.members(word, "text")) for word in words)
    known = all(space.members(name, "text") for name in options.attributes)
    return images in space.known and compared and known


def tests_of(options: MeasureConfig, space: Space) -> int:
    """Return how many tests a question makes of one model."""
    cases = cases_of(options, space)
    if options.metric == "sc_weat":
        members = (space.members(case.targets[0], case.kinds[1]) for case in cases)
        return sum(int(space.known[t][own].sum()) for each in members for t, own in each.items())
    if options.metric == "xmcas":
        return 0
    if options.metric not in ("trend", "gender_difference"):
        return len(cases)
    coded, figures = space.data.items[options.images or ""].coded, options.outside is not None
    if options.metric == "trend":
        return len(cases) * figures * len(coded[options.groups or ""].vocabulary)
    regions = 1 if options.regions is None else len(coded[options.regions].vocabulary)
    return len(cases) * (regions * (regions > 1) + 1 + figures)
