"""The space of a model: embeddings of the members of sets, or scores of pairs of them.

Also which numbers a question takes from a space: over which sets, in which modality.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np

from equipoise.audits.columns import rows_of
from equipoise.audits.engines.associations.config import PAIRS, MeasureConfig
from equipoise.audits.findings import Place, UncorrectedFinding, numbers_of, whole
from equipoise.audits.kind import Measured
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
from equipoise.core.types import FileFacts
from equipoise.data import Items, Matrix, Vectors
from equipoise.metrics.measure import Drawing
from equipoise.metrics.vectors.sets import Members as SetMembers
from equipoise.metrics.vectors.sets import Similarity, unit_members
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
_TOGETHER = ("total_absolute_association", "alignment", "correlation")


@record
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
        sizes = [len(items) for items in self.items.values()]
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
            here = np.flatnonzero(tables == code)
            yield [*self.items][code], here, numbers[here] - starts[code]


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
            units += [
                f"{table}: {item}" if unit is None else unit
                for item, unit in zip(ids, named, strict=True)
            ]
        return tuple(units)

    def only(self, kept: Booleans) -> Side:
        """Return some of the members."""
        return replace(self, numbers=self.numbers[kept])


@record
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
        """Return the members of a set of one kind, by table of which the model can use some."""
        kinds, usable, of_set = self.data.kinds, self.usable, self.data.sets[name].items()
        return {t: r for t, r in of_set if kinds[t] == kind and t in usable and usable[t][r].any()}

    def images(self, table: str) -> Side:
        """Return the items of a table that the model has a usable vector of."""
        return Side(self, table, np.flatnonzero(self.usable[table]) + self.data.starts[table])

    def chosen(self, name: str, kind: str, targets: Sequence[Side] = ()) -> Side:
        """Return the members of a set of one kind that are not among the targets.

        An item has similarity 1 with itself, which says nothing of its set. Leaving out these
        pairs alone would leave the two sets of a question dependent, and p-values too small: see
        docs/nulls-and-intervals.md.

        Raises
        ------
        DataError
            When none of the members can be used.
        """
        side = self._whole(name, kind)
        shared = np.isin(side.numbers, [n for each in targets for n in each.numbers.tolist()])
        if shared.any():
            lost = {**side.excluded, "also a target": int(shared.sum())}
            side = replace(side.only(~shared), excluded=lost)
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
            kept = [rows[self.known[on][rows]] + starts[on] for on, rows in members.items()]
            numbers = np.concatenate(kept) if kept else np.zeros(0, np.int64)
            lost = {"no embedding or score": sum(map(len, members.values())) - len(numbers)}
            return Side(self, name, numbers, lost)

        return lru_cache(_SIDES)(whole)

    @cached_property
    def _usable_numbers(self) -> Booleans:
        """Whether the vector of each item of all tables is usable."""
        found = np.zeros(len(self.data.ids), dtype=bool)
        for table, own in self.usable.items():
            found[self.data.starts[table] :][: len(own)] = own
        return found

    def only_usable(self, side: Side) -> Side:
        """Return the members whose vectors are finite and not 0."""
        kept = self._usable_numbers[side.numbers]
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
        for table, here, rows in self.data.split(np.asarray(targets)):
            for other, there, columns in self.data.split(np.asarray(attributes)):
                of_rows = (table, other) in pairs
                between = (table, other) if of_rows else (other, table)
                first, second = (rows, columns) if of_rows else (columns, rows)
                names = self.data.items[between[1]].ids[second].tolist()
                block = np.asarray(pairs[between].take(names)[first], dtype=np.float64)
                scores[np.ix_(here, there)] = block if of_rows else block.T
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
            own = {part: sides[part].units for part in parts}
            every = [unit for named in own.values() for unit in named]
            units |= own if len({*every}) < len(every) else {}
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


# Seconds of a draw for one member of a set, and of a number whatever its sets: rough guides, from
# the example.
_SECONDS_PER_MEMBER, _SECONDS_PER_CASE = 1.7e-8, 7e-3


@record
class Question:
    """One entry of `measure`, asked of one model.

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
    """

    audit: str
    options: MeasureConfig
    space: Space
    seed: int
    level: float
    resampling: Resampling | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    lacking: Mapping[str, int] = field(default_factory=dict)

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
        """The numbers that are measured; none where the model can't give them."""
        options, space = self.options, self.space
        if options.images is not None:
            return [Case("")] if self._knows_images else []
        modalities: dict[str, list[tuple[str, str]]] = {"": [*MODALITIES.values()]}
        if options.metric not in ("mcas", "xmcas") and options.of != "mcas":
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

    @property
    def _knows_images(self) -> bool:
        """Whether the model compares the images of a table with the texts that are named."""
        options, space = self.options, self.space
        words = [*options.labels, *filter(None, (options.positive, options.negative))]
        texts = {name: space.members(name, "text") for name in (*words, *options.attributes)}
        images = [self.table] if self.table in space.usable else []
        return all(space.compares(images, texts[word]) for word in words) and all(
            space.compares(texts[word], texts[name])
            for word in words
            for name in options.attributes
        )

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        options, space, cases = self.options, self.space, self.cases
        if options.metric == "sc_weat":
            members = (space.members(case.targets[0], case.kinds[1]) for case in cases)
            every = (own for each in members for own in each.items())
            return sum(int(space.known[table][own].sum()) for table, own in every)
        if options.metric not in ("trend", "gender_difference"):
            # MCAS is tested with texts as given, and with texts resampled.
            twice = options.metric == "mcas" and not options.resample_texts
            return len(cases) * (options.metric != "xmcas") * (1 + twice)
        coded, figures = space.data.items[self.table].coded, options.outside is not None
        if options.metric == "trend":
            return len(cases) * figures * len(coded[options.groups or ""].vocabulary)
        regions = 1 if options.regions is None else len(coded[options.regions].vocabulary)
        return len(cases) * (regions * (regions > 1) + 1 + figures)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        data, cases = self.space.data, self.cases
        named = [name for case in cases for name in (*case.targets, *self.options.attributes)]
        members = sum(len(rows) for name in named for rows in data.sets[name].values())
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
        return Place(self.audit, self.model, self.options.group_text, version, self.level)


SCHEMAS: Mapping[str, str] = {
    "mcas_parts": "target category part #value #low #high",
    "amplification": "target category #diffusion_bias #diffusion_low #diffusion_high "
    "#bias_amplification #amplification_low #amplification_high #fitted reason",
    "xmcas": "target part group #value #low #high #theta #neutral",
    "score_summaries": "metric category direction +targets #mean #sd",
    "labels": "group label +count #share",
    "label_scores": "label set #value",
    "words": "region group word kind #similarity +n",
    "outside": "metric figure subject #outside #value #low #high",
    "outside_correlations": "metric figure kind +n #value #low #high #p_value reason",
}
"""Columns by table after `PLACE`; docs/audits/associations.md explains them."""
PLACE = "model groups version "


@dataclass(frozen=True)
class Row:
    """A row of a table that the page draws on; values that the table lacks are left out."""

    table: str
    place: Place
    values: Mapping[str, Any]


Result = UncorrectedFinding | Row | str
"""A finding, a row of a table, or a note."""


def finding_of(  # noqa: PLR0913 - one keyword for each field
    estimate: Estimate,
    place: Place,
    family: Family,
    part: Part | None = None,
    *,
    subject: str = "",
    direction: str = "",
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
    subject, direction : str
    names : mapping of str to str
        Set by the part that it plays in the metric.
    by_group : iterable of GroupValue
    excluded : tuple of Excluded
        Beside what the metric left out.
    """
    params = {**estimate.params, "sets": dict(names)} if names else estimate.params
    base = whole(replace(estimate, params=params), place, family)
    named = []
    for each in base.finding.excluded:
        part_name, separator, why = each.reason.partition(": ")
        reason = f"{names.get(part_name, part_name)}{separator}{why}"
        named.append(replace(each, reason=reason))
    finding = replace(
        base.finding,
        subject=subject,
        direction=direction,
        by_group=tuple(
            replace(each, group=names[each.group], levels=(names[each.group],))
            if each.group in names
            else each
            for each in by_group
        ),
        excluded=(*named, *excluded),
    )
    if part is not None:
        known = numbers_of(part)
        finding = replace(finding, **known, metric=part.metric, reason=part.reason)
    return replace(base, finding=finding)


def about(sides: Mapping[str, Side]) -> dict[str, Any]:
    """Return the sets of a finding by part, and their members that are not used."""
    lost = [(f"{s.name}: {why}", n) for s in sides.values() for why, n in s.excluded.items()]
    return {
        "names": {part: side.name for part, side in sides.items()},
        "excluded": tuple(Excluded(reason, n) for reason, n in lost if n),
    }


def closer(subject: str, value: float, pair: tuple[str, str]) -> str:
    """Say which of two sets a subject is closer to."""
    if math.isnan(value) or value == 0:
        return ""
    near, far = pair if value > 0 else pair[::-1]
    return f"{subject} is closer to {near} than to {far}"


def crossed(targets: Sequence[str], means: Sequence[float], pair: tuple[str, str]) -> str:
    """Say which of two targets goes more with which of two sets.

    Both may lean to the same set, and still differ.
    """
    first, second = means
    if math.isnan(first) or math.isnan(second) or first == second:
        return ""
    near = pair[first < second]
    return f"stronger association of {targets[0]} with {near} than of {targets[1]}"


def extremes(what: str, by_group: Sequence[GroupValue]) -> str:
    """Say which group is closest to something and which is farthest from it."""
    known = [each for each in by_group if not math.isnan(each.value)]
    if len(known) < 2:
        return ""
    low, high = (pick(known, key=lambda each: each.value) for pick in (min, max))
    return "" if low.value == high.value else f"{what}: {high.group} more than {low.group}"


def measured(results: Iterable[Result], schemas: Mapping[str, str] = SCHEMAS) -> Measured:
    """Return results as an audit collects them, with the tables that have rows."""
    every = [*results]
    split: dict[str, list[Mapping[str, Any]]] = {}
    for row in every:
        if isinstance(row, Row):
            split.setdefault(row.table, []).append({**vars(row.place), **row.values})
    return Measured(
        tuple(each for each in every if isinstance(each, UncorrectedFinding)),
        {
            name: table_of(split[name], PLACE + columns)
            for name, columns in schemas.items()
            if name in split
        },
        tuple(each for each in every if isinstance(each, str)),
    )
