"""The space of a model: embeddings of the members of sets, or scores of pairs of them.

Also which numbers a question takes from a space: over which sets, in which modality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, product
from operator import attrgetter
from typing import Any

import numpy as np

from equipoise.audits.associations.config import MeasureConfig
from equipoise.audits.columns import rows_of
from equipoise.audits.findings import Place, UncorrectedFinding, estimable, numbers_of, whole
from equipoise.audits.kind import Measured
from equipoise.audits.notes import Note
from equipoise.core import (
    Booleans,
    DataError,
    Estimate,
    Excluded,
    Family,
    Floats,
    Groups,
    GroupValue,
    Integers,
    Objects,
    Part,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT, Columns
from equipoise.core.sentences import EMPTY, Sentence, named
from equipoise.core.types import FileFacts
from equipoise.data import Items, Matrix, Vectors
from equipoise.metrics.measure import Drawing
from equipoise.metrics.vectors.sets import DROPPED, Similarity, dropped_of, unit_members
from equipoise.metrics.vectors.sets import Members as SetMembers
from equipoise.stats import Resampling

MODALITIES: Mapping[str, tuple[str, str]] = {
    "II": ("image", "image"),
    "ITP": ("image", "text"),
    "ITA": ("text", "image"),
    "TT": ("text", "text"),
}
"""Kind of the attributes and kind of the targets."""

# Sets whose vectors are kept for the next question.
_SIDES = 8


@record
class AssociationData:
    """The embeddings, groups and prompts that an association audit measures.

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
    questions : sequence of MeasureConfig
        What is asked of these sets.
    outside : mapping of int to mapping of str to float
        External figures by subject, by index of the question.
    inputs, counts : mapping
        Of every file read.
    """

    items: Mapping[str, Items]
    kinds: Mapping[str, str]
    units: Mapping[str, str]
    sets: Mapping[str, Mapping[str, Integers]]
    vectors: Mapping[str, Mapping[str, Vectors]]
    pairs: Mapping[str, Mapping[tuple[str, str], Matrix]]
    questions: Sequence[MeasureConfig] = ()
    outside: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    inputs: Mapping[str, FileFacts] = field(default_factory=dict)
    counts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def ids(self) -> Objects:
        """Ids of the items of all tables: their position is an item's number."""
        return np.concatenate([items.ids for items in self.items.values()])

    @cached_property
    def starts(self) -> Mapping[str, int]:
        """Number of the first item of each table."""
        sizes = map(len, self.items.values())
        return dict(zip(self.items, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def spaces(self) -> list[Space]:
        """The space of every model."""
        return [Space(model, self) for model in (*self.vectors, *self.pairs)]

    def split(self, numbers: Integers) -> Iterator[tuple[str, Integers, Integers]]:
        """Yield the tables of items, with positions among the numbers and rows of the table."""
        starts = [*self.starts.values()]
        tables = np.searchsorted(starts, numbers, side="right") - 1
        for code in dict.fromkeys(tables.tolist()):
            positions = np.flatnonzero(tables == code)
            yield [*self.items][code], positions, numbers[positions] - starts[code]


@record
class Side:
    """The members of a set that are of one kind and that a model knows.

    Attributes
    ----------
    space : Space
    name : str
        Of the set.
    numbers : ndarray of int
        Number of each member over the items of all tables.
    excluded : mapping of str to int
        Members that are left out, by reason.
    """

    space: Space
    name: str
    numbers: Integers
    excluded: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def ids(self) -> tuple[str, ...]:
        """Id of each member."""
        return tuple(self.space.data.ids[self.numbers].tolist())

    @cached_property
    def things(self) -> SetMembers | Integers:
        """What metrics take: embeddings, or numbers of items for scores of pairs."""
        vectors = self.space.vectors
        if vectors is None:
            return self.numbers
        split = self.space.data.split(self.numbers)
        blocks = [rows_of(vectors[table], rows) for table, _, rows in split]
        table = blocks[0] if len(blocks) == 1 else np.concatenate(blocks)
        return unit_members(table, self.name)

    @property
    def clustered(self) -> bool:
        """Whether a column names units."""
        data = self.space.data
        return any(table in data.units for table, _, _ in data.split(self.numbers))

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each member: a column's, or the member itself."""
        data, units = self.space.data, list[str]()
        for table, _, rows in data.split(self.numbers):
            items, column = data.items[table], data.units.get(table)
            named = [None] * len(rows) if column is None else items.columns[column][rows].tolist()
            ids = items.ids[rows].tolist()
            for item, unit in zip(ids, named, strict=True):
                units.append(f"{table}: {item}" if unit is None else unit)
        return tuple(units)

    def only(self, mask: Booleans) -> Side:
        """Return some of the members."""
        return replace(self, numbers=self.numbers[mask])


@record
class Space:
    """One model over the items of an audit."""

    model: str
    data: AssociationData

    @property
    def vectors(self) -> Mapping[str, Vectors] | None:
        """Embeddings by table, or None if the model scores pairs."""
        return self.data.vectors.get(self.model)

    @property
    def similarity(self) -> Similarity | None:
        """The model's scores of pairs; None for the cosine of its embeddings."""
        return self._score if self.vectors is None else None

    @cached_property
    def known(self) -> Mapping[str, Booleans]:
        """Items that the model has an embedding or scores of, by table that it knows."""
        if self.vectors is not None:
            return {table: vectors.rows >= 0 for table, vectors in self.vectors.items()}
        scored_items: dict[str, Booleans] = {}
        for (rows, columns), matrix in self.data.pairs[self.model].items():
            scored_items.setdefault(rows, matrix.rows >= 0)
            scored_items.setdefault(columns, np.isin(self.data.items[columns].ids, matrix.names))
        return scored_items

    @cached_property
    def usable(self) -> Mapping[str, Booleans]:
        """Items with finite nonzero vectors, or all items with scores of pairs."""
        if self.vectors is None:
            return self.known
        return {table: vectors.usable for table, vectors in self.vectors.items()}

    def members(self, name: str, kind: str) -> dict[str, Integers]:
        """Return the members of one kind of a set, by table with a usable member."""
        kinds, usable, members = self.data.kinds, self.usable, dict[str, Integers]()
        for table, rows in self.data.sets[name].items():
            if kinds[table] == kind and table in usable and usable[table][rows].any():
                members[table] = rows
        return members

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return Side(self, table, np.flatnonzero(self.usable[table]) + self.data.starts[table])

    def chosen(self, name: str, kind: str, targets: Sequence[Side] = ()) -> Side:
        """Return the members of a set of one kind that are not among the targets.

        An item has similarity 1 with itself, which says nothing of its set. Leaving out these
        pairs alone would leave the two sets of a question dependent, and p-values too small: see
        docs/statistics.md.

        Raises
        ------
        DataError
            When none of the members can be used.
        """
        side = self._whole(name, kind)
        shared = np.zeros(len(side), dtype=bool)
        for target in targets:
            shared |= np.isin(side.numbers, target.numbers)
        if shared.any():
            excluded = {**side.excluded, "also a target": int(shared.sum())}
            side = replace(side.only(~shared), excluded=excluded)
        if len(self.only_usable(side)):
            return side
        raise DataError(
            f"{self.model}: the set {name!r} has no {kind} that can be used",
            expected=f"a {kind} with a finite vector other than 0 that is not among the targets",
            fix="add members or embed them again, or leave the set out",
        )

    @cached_property
    def _whole(self) -> Callable[[str, str], Side]:
        """Function of a set's name and a kind that returns the members of that kind.

        Questions in a row are about the same sets, whose vectors are normalised once.
        """

        def whole(name: str, kind: str) -> Side:
            members, starts = self.members(name, kind), self.data.starts
            by_table = [np.zeros(0, np.int64)]
            for table, rows in members.items():
                by_table.append(rows[self.known[table][rows]] + starts[table])
            numbers = np.concatenate(by_table)
            excluded = {"no embedding or score": sum(map(len, members.values())) - len(numbers)}
            return Side(self, name, numbers, excluded)

        return lru_cache(_SIDES)(whole)

    @cached_property
    def _usable_numbers(self) -> Booleans:
        """Whether the vector of each item of all tables is usable."""
        mask = np.zeros(len(self.data.ids), dtype=bool)
        for table, usable in self.usable.items():
            mask[self.data.starts[table] :][: len(usable)] = usable
        return mask

    def only_usable(self, side: Side) -> Side:
        """Return the members that have finite, nonzero vectors."""
        usable = self._usable_numbers[side.numbers]
        return side if usable.all() else side.only(usable)

    def compares(self, rows: Iterable[str], columns: Iterable[str]) -> bool:
        """Whether the model compares the items of tables; not where there are none."""
        pairs = self.data.pairs.get(self.model, {})
        table_pairs = [*product(rows, columns)]
        comparable = (
            self.vectors is not None or {table_pair, table_pair[::-1]} & pairs.keys()
            for table_pair in table_pairs
        )
        return bool(table_pairs) and all(comparable)

    def _score(self, targets: Any, attributes: Any) -> Floats:
        """Return scores of items, which are numbers over all tables."""
        scores, pairs = np.empty((len(targets), len(attributes))), self.data.pairs[self.model]
        for table, row_positions, rows in self.data.split(np.asarray(targets)):
            for column_table, column_positions, columns in self.data.split(np.asarray(attributes)):
                of_rows = (table, column_table) in pairs
                stored_pair = (table, column_table) if of_rows else (column_table, table)
                stored_rows, stored_columns = (rows, columns) if of_rows else (columns, rows)
                names = self.data.items[stored_pair[1]].ids[stored_columns].tolist()
                block = np.asarray(pairs[stored_pair].take(names)[stored_rows], dtype=np.float64)
                scores[np.ix_(row_positions, column_positions)] = block if of_rows else block.T
        return scores


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
        if any(sides[part].clustered for part in parts):
            part_units = {part: sides[part].units for part in parts}
            member_units = [*chain.from_iterable(part_units.values())]
            units |= part_units if len({*member_units}) < len(member_units) else {}
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


def tests_of_cases(question: Question) -> int:
    """Return one test for each case."""
    return len(question.cases)


# Seconds of a draw for one member of a set, and of a number whatever its sets: rough guides, from
# the example.
_SECONDS_PER_MEMBER, _SECONDS_PER_CASE = 1.7e-8, 7e-3


@record
class Question:
    """One entry of `measure` for one model.

    Attributes
    ----------
    audit : str
        Kind of the audit.
    options : MeasureConfig
    space : Space
    seed : int
    level : float
    resampling : Resampling or None
    figures : mapping of str to float
        External figures by subject.
    lacking : mapping of str to int
        Items in no group: none.
    spaces : sequence of Space
        Of single encoders, whose diffusion bias and amplification are averaged.
    fixed_texts : bool
        Whether no texts are exchanged, for chance levels and tests.
    count_tests : callable
        From the question to its tests; by default one for each case.
    """

    audit: str
    options: MeasureConfig
    space: Space
    seed: int
    level: float
    resampling: Resampling | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)
    spaces: Sequence[Space] = ()
    fixed_texts: bool = False
    count_tests: Callable[[Question], int] = tests_of_cases

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.space.model

    @property
    def groups(self) -> Groups:
        """Groups of no items: sets are compared, and images of groups of any size."""
        return Groups((self.options.group_text,), (), np.empty(0, dtype=np.int32))

    @cached_property
    def cases(self) -> list[Case]:
        """Cases to measure; empty where the model can't compare the sets."""
        options = self.options
        if options.images is not None:
            return [Case("")] if self._knows_images else []
        modalities: dict[str, list[tuple[str, str]]] = {"": [*MODALITIES.values()]}
        if not options.in_all_modalities:
            modalities = {m: [MODALITIES[m]] for m in options.modalities or MODALITIES}
        cases, together = [], options.spec.targets
        for modality, kinds in modalities.items():
            comparable_targets = tuple(
                name for name in options.target_names if self._compares_target(name, kinds)
            )
            if together in ("two", "all"):
                complete = comparable_targets if together == "all" else len(comparable_targets) == 2
                cases += [Case(modality, comparable_targets)] if complete else []
            else:
                cases += [Case(modality, (name,)) for name in comparable_targets]
        return cases

    def _compares_target(self, target: str, kinds: Iterable[tuple[str, str]]) -> bool:
        """Whether the model compares a target with all groups, in pairs of their kinds."""
        space, groups = self.space, (*self.options.attributes, *self.options.further)
        for (group_kind, target_kind), group in product(kinds, groups):
            members = space.members(target, target_kind)
            if not space.compares(members, space.members(group, group_kind)):
                return False
        return True

    @property
    def _knows_images(self) -> bool:
        """Whether the model compares the images of a table with the texts that are named."""
        options, space = self.options, self.space
        words = [*options.labels, *filter(None, (options.positive, options.negative))]
        texts = {name: space.members(name, "text") for name in (*words, *options.attributes)}
        images = [self.table] if self.table in space.usable else []
        for word in words:
            if not space.compares(images, texts[word]):
                return False
            for name in options.attributes:
                if not space.compares(texts[word], texts[name]):
                    return False
        return True

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        return self.count_tests(self)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        data, cases, members = self.space.data, self.cases, 0
        for case in cases:
            for name in (*case.targets, *self.options.attributes):
                members += sum(map(len, data.sets[name].values()))
        if self.table:
            members = len(cases) * len(data.items[self.table])
        return _SECONDS_PER_CASE * len(cases) + _SECONDS_PER_MEMBER * draws * members

    @property
    def drawn(self) -> Drawing:
        """The arguments that every metric takes."""
        return {"resampling": self.resampling, "rng": self.seed}

    @property
    def pair(self) -> tuple[str, str]:
        """The two sets of attributes."""
        first, second = self.options.attributes
        return first, second

    @property
    def table(self) -> str:
        """Name of the table of images; "" of questions about sets."""
        return self.options.images or ""

    def place(self, modality: str = "") -> Place:
        """Return where a number was measured."""
        version = ", ".join(filter(None, (modality, self.options.version))) or "default"
        options = self.options
        return Place(
            self.audit, self.model, options.group_text, version, self.level, sides=options.sides
        )


SCHEMAS: Mapping[str, Columns] = {
    "mcas_parts": {
        "target": TEXT,
        "category": TEXT,
        "part": TEXT,
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
    },
    "amplification": {
        "target": TEXT,
        "category": TEXT,
        "diffusion_bias": NUMBER,
        "diffusion_low": NUMBER,
        "diffusion_high": NUMBER,
        "bias_amplification": NUMBER,
        "amplification_low": NUMBER,
        "amplification_high": NUMBER,
        "fitted": NUMBER,
        "reason": TEXT,
    },
    "xmcas": {
        "target": TEXT,
        "part": TEXT,
        "group": TEXT,
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "theta": NUMBER,
        "neutral": NUMBER,
    },
    "score_summaries": {
        "metric": TEXT,
        "category": TEXT,
        "direction": TEXT,
        "declared": TEXT,
        "targets": INTEGER,
        "mean": NUMBER,
        "sd": NUMBER,
        "minimum": NUMBER,
        "maximum": NUMBER,
    },
    "labels": {
        "region": TEXT,
        "group": TEXT,
        "label": TEXT,
        "count": INTEGER,
        "share": NUMBER,
    },
    "label_scores": {"label": TEXT, "set": TEXT, "value": NUMBER},
    "words": {
        "region": TEXT,
        "group": TEXT,
        "word": TEXT,
        "kind": TEXT,
        "similarity": NUMBER,
        "n": INTEGER,
    },
    "word_sums": {
        "region": TEXT,
        "group": TEXT,
        "kind": TEXT,
        "similarity": NUMBER,
        "n": INTEGER,
    },
    "outside": {
        "metric": TEXT,
        "figure": TEXT,
        "subject": TEXT,
        "outside": NUMBER,
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
    },
    "outside_correlations": {
        "metric": TEXT,
        "figure": TEXT,
        "kind": TEXT,
        "n": INTEGER,
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "p_value": NUMBER,
        "reason": TEXT,
    },
}
"""Columns by table after `PLACE`; docs/audits/associations.md explains them."""
PLACE = {"model": TEXT, "groups": TEXT, "version": TEXT}


@dataclass(frozen=True)
class Row:
    """A row of a table that the page draws on; values that the table lacks are left out."""

    table: str
    place: Place
    values: Mapping[str, Any]


Result = UncorrectedFinding | Row | Note | str
"""A finding, a row of a table, or a note."""


def finding_of(  # noqa: PLR0913 - one keyword for each field
    estimate: Estimate,
    place: Place,
    family: Family,
    part: Part | None = None,
    *,
    subject: str = "",
    direction: Sentence = EMPTY,
    names: Mapping[str, str] = {},
    by_group: Iterable[GroupValue] = (),
    excluded: tuple[Excluded, ...] = (),
) -> UncorrectedFinding:
    """Return the finding of an estimate or a part of it, with sets in place of their parts.

    Parameters
    ----------
    estimate : Estimate
    place : Place
    family : Family
    part : Part, optional
        Whose numbers the finding has.
    subject : str
    direction : Sentence
    names : mapping of str to str
        Set by the part that it plays in the metric.
    by_group : iterable of GroupValue
    excluded : tuple of Excluded
        Beside what the metric left out.
    """
    params = {**estimate.params, "sets": dict(names)} if names else estimate.params
    base = whole(replace(estimate, params=params), place, family)
    reasons = {
        dropped_of(part_name, reason): dropped_of(name, reason)
        for part_name, name in names.items()
        for reason in DROPPED
    }
    named_exclusions = [
        replace(exclusion, reason=reasons.get(exclusion.reason, exclusion.reason))
        for exclusion in base.finding.excluded
    ]
    finding = replace(
        base.finding,
        subject=subject,
        direction=direction,
        by_group=tuple(_named_by_set(group_value, names) for group_value in by_group),
        excluded=(*named_exclusions, *excluded),
    )
    if part is not None:
        part_numbers = numbers_of(part)
        finding = replace(finding, **part_numbers, metric=part.metric, reason=part.reason)
    return replace(base, finding=finding)


def _named_by_set(group_value: GroupValue, names: Mapping[str, str]) -> GroupValue:
    """Return a value of a part under the name of its set."""
    name = names.get(group_value.group)
    return group_value if name is None else replace(group_value, group=name, levels=(name,))


def about(sides: Mapping[str, Side]) -> dict[str, Any]:
    """Return the sets of a finding by part, and their members that are not used."""
    exclusions = []
    for side in sides.values():
        for reason, n in side.excluded.items():
            if n:
                exclusions.append(Excluded(f"{side.name}: {reason}", n))
    names = {part: side.name for part, side in sides.items()}
    return {"names": names, "excluded": tuple(exclusions)}


def closer(subject: str, value: float, pair: tuple[str, str]) -> Sentence:
    """Say which of two sets a subject is closer to."""
    if math.isnan(value) or value == 0:
        return Sentence()
    closer_set, farther_set = pair if value > 0 else pair[::-1]
    return Sentence(
        f"{subject} is closer to ", named(closer_set), " than to ", named(farther_set)
    )  # fmt: skip


def crossed(targets: Sequence[str], means: Sequence[float], pair: tuple[str, str]) -> Sentence:
    """Say which of two targets goes more with which of two sets.

    Both may lean to the same set, and still differ.
    """
    first, second = means
    if math.isnan(first) or math.isnan(second) or first == second:
        return Sentence()
    closer_set = pair[first < second]
    return Sentence(
        f"stronger association of {targets[0]} with ", named(closer_set), f" than of {targets[1]}"
    )  # fmt: skip


def extremes(subject: str, by_group: Sequence[GroupValue]) -> Sentence:
    """Say which group is closest to something and which is farthest from it."""
    groups, by_value = estimable(by_group), attrgetter("value")
    if len(groups) < 2:
        return Sentence()
    low, high = min(groups, key=by_value), max(groups, key=by_value)
    if low.value == high.value:
        return Sentence()
    return Sentence(f"{subject}: ", named(high.group), " more than ", named(low.group))


def measured(results: Iterable[Result], schemas: Mapping[str, Columns] = SCHEMAS) -> Measured:
    """Return results as an audit collects them, with the tables that have rows."""
    findings, notes = list[UncorrectedFinding](), list[Note | str]()
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        match result:
            case Row():
                rows.setdefault(result.table, []).append({**vars(result.place), **result.values})
            case UncorrectedFinding():
                findings.append(result)
            case Note() | str():
                notes.append(result)
    tables = {
        name: table_of(rows[name], {**PLACE, **columns})
        for name, columns in schemas.items()
        if name in rows
    }
    return Measured(tuple(findings), tables, tuple(notes))
