"""The audit of associations: sets of images and texts that a model places close to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
from scipy.special import ndtri

from equipoise.audits import group_sizes
from equipoise.audits.associations.config import Config
from equipoise.audits.associations.reading import load, members_of_sets
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.config import resampling_of
from equipoise.audits.engines.associations import images, sets
from equipoise.audits.engines.associations.config import MeasureConfig
from equipoise.audits.engines.associations.results import Question, Result, measured
from equipoise.audits.engines.associations.spaces import (
    AssociationData,
    Case,
    Indices,
    Space,
    cases_of,
    check_apart,
    compared_together,
    tests_between,
    tests_of,
)
from equipoise.audits.findings import UncorrectedFinding
from equipoise.core.errors import DataError
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.metrics.vectors.partitions import count_partitions

if TYPE_CHECKING:
    from equipoise.audits.failures import Members
    from equipoise.audits.outputs import Models
    from equipoise.data.coded import Coded
    from equipoise.stats.resampling import Resampling

_MEASURES: Mapping[str, Callable[[Question], Iterator[Result]]] = MappingProxyType(
    {
        "association_score": sets.measure_scores,
        "weat": sets.measure_weat,
        "sc_weat": sets.measure_sc_weat,
        "differential_association": sets.measure_differential,
        "mcas": sets.measure_mcas,
        "xmcas": sets.measure_xmcas,
        "predicted_label_weat": images.measure_label_weat,
        "label_concentration": images.measure_concentration,
        "trend": images.measure_trend,
        "gender_difference": images.measure_gender_difference,
        "alignment": sets.measure_alignment,
        "correlation": sets.measure_correlation,
    }
)
_POWER = 0.8
# Seconds of a draw for one member of a set, and of a number whatever its sets: rough guides, from
# the example.
_SECONDS_PER_MEMBER, _SECONDS_PER_CASE = 1.7e-8, 7e-3
_SETS = pa.schema(
    [("set", pa.string()), ("kind", pa.string()), ("table", pa.string()), ("members", pa.int64()),
     ("model", pa.string()), ("embedded", pa.int64())]
)  # fmt: skip
# Below so many members a bootstrap interval is too short.
FEW = 10
_LISTED = 10
_NO_ROWS = np.empty(0, dtype=np.int64)
_LEFT_OUT = {
    "not_finite": ("vector holds NaN or an infinity", "vectors hold NaN or an infinity"),
    "zero": ("vector is zero", "vectors are zero"),
    "items_without_row": ("item has no vector", "items have no vector"),
}
Fact = TypeVar("Fact")


@dataclass(frozen=True, eq=False)
class Design:
    """One entry of `measure`, for one model.

    Attributes
    ----------
    index : int
        Of the entry.
    options : MeasureConfig
    space : Space
    """

    index: int
    options: MeasureConfig
    space: Space

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.space.model

    @property
    def groups(self) -> Groups:
        """Groups of no items: sets are compared, and images of groups of any size."""
        return Groups((self.options.group_text,), (), np.empty(0, dtype=np.int32))

    @property
    def lacking(self) -> Mapping[str, int]:
        """Items in no group: none."""
        return {}

    @property
    def cases(self) -> list[Case]:
        """The numbers that are measured."""
        return cases_of(self.options, self.space)

    @property
    def tests(self) -> int:
        """How many tests the design makes."""
        return tests_of(self.options, self.space)

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        data, table = self.space.data, self.options.images
        members = sum(
            len(rows)
            for case in self.cases
            for name in (*case.targets, *self.options.attributes)
            for rows in data.sets[name].values()
        )
        if table is not None:
            members = len(self.cases) * len(data.items[table])
        return _SECONDS_PER_CASE * len(self.cases) + _SECONDS_PER_MEMBER * draws * members


@audit_kind("associations")
class Associations(Audit[Config, AssociationData, Design]):
    """Audits of associations."""

    items = "images"

    def load(self, config: Config, models: Models) -> AssociationData:
        """Read items, sets and external figures, and read or run each model."""
        return load(config, models)

    def groups(self, config: Config, data: AssociationData) -> list[Groups]:
        """Return no groups of all items: each table has its own."""
        return []

    def designs(self, config: Config, data: AssociationData) -> list[Design]:
        """Return every measurement of every model; refuse one that no model allows."""
        designs = []
        for index, options in enumerate(config.measure):
            own = [Design(index, options, space) for space in data.spaces]
            _check_measurable(index, options, own)
            designs += own
        for design in designs:
            if design.cases:
                _check(design.options, design.space)
        return designs

    def measure(
        self,
        config: Config,
        data: AssociationData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one entry of `measure` for one model."""
        question = Question(
            self.name, design.options, design.space, resampling, config.resampling.seed,
            config.resampling.level, data.outside.get(design.index, {}),
        )  # fmt: skip
        if design.options.metric == "total_absolute_association":
            return sets.measure_totals(question)
        return measured(_MEASURES[design.options.metric](question))

    def combine(
        self, config: Config, data: AssociationData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Compare totals of models, show what several questions share once, and add the sets."""
        tests = sum(tests_between(options, data.spaces) for options in config.measure)
        differences: list[Result] = []
        for options in config.measure:
            totals = [
                each
                for each in measured_designs
                if isinstance(each, sets.MeasuredTotals) and each.question.options is options
            ]
            differences += sets.compare_totals(totals, resampling_of(config, tests))
        every = Measured.together([*measured_designs, measured(differences)])
        tables = {**every.tables, **_tables(config, data)}
        for name in {"words", "labels"} & every.tables.keys():
            # Questions about the same images and words give the same rows.
            frame = pl.DataFrame(tables[name]).unique(maintain_order=True)
            tables[name] = frame.to_arrow().cast(tables[name].schema)
        return replace(every, findings=tuple(_once(every.findings)), tables=tables)

    def details(
        self,
        config: Config,
        data: AssociationData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return items, sets, models and measurements, and the smallest effects to be seen.

        Per WEAT: the smallest p-value that its sizes allow, and about the smallest effect size
        that would show with a power of 80 %.
        """
        tables = []
        for name, items in data.items.items():
            unit = data.units.get(name)
            units = None if unit is None else len(items.coded[unit].vocabulary)
            tables.append(
                {"table": name, "kind": data.kinds[name], "items": len(items), "units": units}
            )
        members = [
            {"set": name}
            | {
                f"{kind}s": sum(len(rows) for t, rows in own.items() if data.kinds[t] == kind)
                for kind in ("image", "text")
            }
            for name, own in data.sets.items()
        ]
        models = [
            {"model": space.model, "table": table, "usable": int(usable.sum()),
             "without": space.unusable(table)}
            for space in data.spaces
            for table, usable in _in_order(space.usable, data)
        ]  # fmt: skip
        questions = [
            {
                "question": f"{design.index}: {design.options.metric}",
                "model": design.model,
                "groups": design.options.group_text,
                "numbers": len(design.cases),
                "modalities": [*dict.fromkeys(c.modality for c in design.cases if c.modality)],
                "tests": design.tests,
            }
            for design in designs
        ]
        detectable = [
            row
            for design in designs
            if design.options.metric == "weat"
            for row in _detectable(design, config.testing.alpha / max(tests[design.model], 1))
        ]
        return {
            "tables": tables, "sets": members, "models": models, "questions": questions,
            "detectable": detectable,
        }  # fmt: skip

    def notes(
        self, config: Config, data: AssociationData, designs: Sequence[Design]
    ) -> Iterator[str]:
        """Yield the notes on embeddings and sets."""
        yield "Sets are chosen words and images: others would give other numbers."
        for space in data.spaces:
            yield from _embeddings(space)
        yield from _sets(config, data)
        for index, options in enumerate(config.measure):
            lacking = [
                design.model
                for design in designs
                if design.options is options
                and options.model in (None, design.model)
                and not design.cases
            ]
            if lacking:
                yield (
                    f"measure[{index}] ({options.metric}) isn't measured for "
                    f"{', '.join(lacking)}: it lacks embeddings or scores."
                )

    def sizes(self, config: Config, data: AssociationData) -> Iterator[group_sizes.Row]:
        """Yield the groups of images that are compared."""
        named = dict.fromkeys((options.images, options.groups) for options in config.measure)
        for table, column in named:
            if table is not None and column is not None:
                coded = data.items[table].coded[column]
                counts = np.bincount(coded.codes[coded.codes >= 0], minlength=len(coded.vocabulary))
                for name, n in zip(coded.vocabulary, counts.tolist(), strict=True):
                    yield group_sizes.size(column, name, n, levels=[name], usable=True)

    def members(self, config: Config, data: AssociationData, on: str) -> Members:
        """Return the items of a table in every set, and in every group of its images."""
        return members_of_sets(config, data, on)


def _in_order(by_table: Mapping[str, Fact], data: AssociationData) -> list[tuple[str, Fact]]:
    return [(table, by_table[table]) for table in data.items if table in by_table]


def _check(options: MeasureConfig, space: Space) -> None:
    """Refuse words that are positive and negative, other than two groups, and targets alone."""
    if options.metric in ("trend", "gender_difference"):
        images.words_of(options, space)
    elif options.metric == "predicted_label_weat":
        images.two_groups(options, space)
    check_apart(options, space)


def _check_measurable(index: int, options: MeasureConfig, designs: Iterable[Design]) -> None:
    """Refuse a measurement that no model has embeddings or scores for."""
    if any(design.cases for design in designs):
        return
    named = ", ".join(name for names in options.set_names.values() for name in names)
    needs = f"targets and attributes out of {named} that one model compares"
    if options.images is not None:
        needs = f"embeddings of {options.images} and of texts of {named} by one model"
    elif options.is_composite:
        needs = f"images and texts of each of {named}, embedded by one model"
    raise DataError(
        f"measure[{index}] ({options.metric}): no model has embeddings or scores of all it needs",
        expected=needs,
        fix="add members of that kind to the sets, or embeddings of their table to a model",
    )


def _once(findings: Sequence[UncorrectedFinding]) -> Iterator[UncorrectedFinding]:
    """Leave out a part of one measurement that another measurement tests."""
    keys = [
        (f.model, f.metric, f.subject, f.groups, f.version) for f in (e.finding for e in findings)
    ]
    descriptive = [each.finding.family is Family.DESCRIPTIVE for each in findings]
    tested = {key for key, described in zip(keys, descriptive, strict=True) if not described}
    for each, key, described in zip(findings, keys, descriptive, strict=True):
        if not (described and key in tested):
            yield each


def _tables(config: Config, data: AssociationData) -> dict[str, pa.Table]:
    rows = [
        {
            "set": name, "kind": data.kinds[table], "table": table, "members": len(members),
            "model": space.model, "embedded": int(space.known[table][members].sum()),
        }
        for space in data.spaces
        for name, by_table in data.sets.items()
        for table, members in by_table.items()
        if table in space.known
    ]  # fmt: skip
    tables = {"sets": pa.Table.from_pylist(rows, schema=_SETS)}
    categories = {t: c for options in config.measure for t, c in options.categories.items() if c}
    if categories:
        columns = {"target": [*categories], "category": [*categories.values()]}
        tables["target_categories"] = pa.table(columns)
    return tables


def _detectable(design: Design, alpha: float) -> Iterator[dict[str, Any]]:
    """Yield the smallest p-value and effect that one-sided comparisons of means show.

    The effect is in units of the joint spread; None where the sizes allow no p below alpha.
    """
    for case in design.cases:
        n, m = (len(design.space.chosen(name, case.kinds[1])) for name in case.targets)
        gap = float(ndtri(1 - alpha) + ndtri(_POWER)) * sqrt(1 / n + 1 / m)
        effect = round(gap / sqrt(1 + gap**2 * n * m / (n + m) ** 2), 3)
        partitions = count_partitions(n, m)
        yield {
            "targets": " against ".join(case.targets),
            "model": design.model,
            "modality": case.modality,
            "smallest_p": float(f"{1 / partitions:.3g}"),
            "effect_size": None if partitions < 1 / alpha else effect,
        }


def _embeddings(space: Space) -> Iterator[str]:
    vectors_of = {} if space.model in space.data.planned else space.data.vectors
    for table, vectors in vectors_of.get(space.model, {}).items():
        where, counts = f"{space.model}, {table}", vectors.counts
        if vectors.rescaled:
            known = int(vectors.usable.sum())
            yield f"{where}: the {known} vectors are not all of length 1, and were normalised."
        if vectors.dtype.itemsize == 2:
            yield f"{where}: vectors are stored as float16, and were computed with in float64."
        numbers = {**counts, "items_without_row": vectors.unmatched}
        for key, (singular, plural) in _LEFT_OUT.items():
            if n := numbers.get(key, 0):
                what = f"{plural}, and are" if n > 1 else f"{singular}, and is"
                yield f"{where}: {n} {what} left out of every set{_examples(counts, key)}."
        if n := counts.get("rows_without_item", 0):
            what = "vectors have no item, and are" if n > 1 else "vector has no item, and is"
            yield f"{where}: {n} {what} not used{_examples(counts, 'rows_without_item')}."


def _examples(counts: Mapping[str, Iterable[object]], key: str) -> str:
    named = ", ".join(map(str, counts.get(f"{key}_examples", ())))
    return f" ({named})" if named else ""


def _sets(config: Config, data: AssociationData) -> Iterator[str]:
    used = {name for each in config.measure for names in each.set_names.values() for name in names}
    if unused := [name for name in data.sets if name not in used]:
        yield f"No measurement names the sets {', '.join(unused)}."
    sizes = [
        (n, f"{name} ({kind if n == 1 else f'{n} {kind}s'}{where})")
        for name in data.sets
        if name in used
        for kind in dict.fromkeys(data.kinds[table] for table in data.sets[name])
        for n, where in _by_fact({s.model: s.count(name, kind) for s in data.spaces})
    ]
    if ones := [text for n, text in sizes if n == 1]:
        yield f"Sets of one, which no interval resamples: {_cut(ones)}."
    if few := [text for n, text in sizes if 1 < n < FEW]:
        yield f"Sets of fewer than {FEW}, whose intervals are too short: {_cut(few)}."
    for options in config.measure:
        yield from _shared_members(data, options)
        yield from _unequal(options, data.spaces)
        yield from _cells(data, options)
    for name, items in data.items.items():
        for column, n in items.counts["missing"].items():
            if n:
                yield f"{name}: {n} items have no {column}, and are in no set or group by it."


def _by_fact(facts: Mapping[str, Fact]) -> Iterator[tuple[Fact, str]]:
    """Yield facts with their models, which are named where these are not all."""
    by_fact: dict[Fact, list[str]] = {}
    for model, fact in facts.items():
        by_fact.setdefault(fact, []).append(model)
    for fact, models in by_fact.items():
        yield fact, "" if len(by_fact) == 1 else f" of {' and '.join(models)}"


def _shared_members(data: AssociationData, options: MeasureConfig) -> Iterator[str]:
    """Yield notes on members that two sets of one measurement share."""
    every = {*data.kinds.values()}
    cases = [case for space in data.spaces for case in cases_of(options, space)]
    apart = sorted({kind for case in cases for kind in case.shared_kinds})
    pairs = [(pair, every) for pair in (options.attributes, options.target_names) if len(pair) == 2]
    attributes = (*options.attributes, *options.further)
    against = [(target, name) for target in options.target_names for name in attributes]
    for (first, second), kinds in (*pairs, *((pair, every - {*apart}) for pair in against)):
        if both := _both(data, first, second, kinds):
            yield (
                f"{first} and {second} share {len(both)} of their members, which stay in both: "
                f"{_cut(both)}."
            )
    for target, name in against:
        for kind in apart:
            yield from _left_out(data, options, target, name, kind)


def _left_out(
    data: AssociationData, options: MeasureConfig, target: str, name: str, kind: str
) -> Iterator[str]:
    """Yield notes on members of attributes that are targets, and on the members left."""
    if both := _both(data, target, name, {kind}):
        size = sum(len(rows) for t, rows in data.sets[name].items() if data.kinds[t] == kind)
        which = "each by itself " if options.metric == "sc_weat" else ""
        yield (
            f"{len(both)} of the {size} {kind}s of {name} are in {target}, too. None is compared "
            f"with itself: they are left out of {name} {which}where {target} is a target: "
            f"{_cut(both)}."
        )
    targets = compared_together(options, target)
    sizes = {s.model: (s.count(name, kind), s.count(name, kind, targets)) for s in data.spaces}
    for (usable, rest), where in _by_fact(sizes) if options.metric != "sc_weat" else ():
        if 0 < rest < min(usable, FEW):
            many = f"1 {kind} is" if rest == 1 else f"{rest} {kind}s are"
            what = "no interval resamples it" if rest == 1 else "intervals are too short"
            yield (
                f"Only {many} left in {name}{where} where {' and '.join(targets)} "
                f"{'is a target' if len(targets) == 1 else 'are targets'}: {what}."
            )
    yield from _units(data, targets, target, name, kind)


def _units(
    data: AssociationData, targets: Sequence[str], target: str, name: str, kind: str
) -> Iterator[str]:
    """Count units, such as people, with some items in a target and others in the attributes."""
    of_target, of_attributes = set[str](), set[str]()
    for table, column in data.units.items():
        if data.kinds[table] == kind:
            rows = {each: own.get(table, _NO_ROWS) for each, own in data.sets.items()}
            rest = np.setdiff1d(rows[name], np.concatenate([rows[each] for each in targets]))
            units = data.items[table].columns[column]
            of_target |= {*units[rows[target]]} - {None}
            of_attributes |= {*units[rest]} - {None}
    if both := sorted(of_target & of_attributes):
        yield (
            f"{len(both)} of the {len(of_target)} units of {target} have other {kind}s in {name}, "
            f"which stay there. Where {kind}s of one unit are alike, this alone draws {target} "
            f"to {name}: {_cut(both)}."
        )


def _both(data: AssociationData, first: str, second: str, kinds: set[str]) -> list[str]:
    return [
        str(data.items[table].ids[row])
        for table, rows in data.sets[first].items()
        if data.kinds[table] in kinds
        for row in rows[np.isin(rows, data.sets[second].get(table, _NO_ROWS))]
    ]


def _unequal(options: MeasureConfig, spaces: Sequence[Space]) -> Iterator[str]:
    for kind in ("image", "text") if options.metric == "weat" else ():
        first, second = options.target_names
        sizes = {each.model: (each.count(first, kind), each.count(second, kind)) for each in spaces}
        for (x, y), where in _by_fact(sizes):
            if x != y and x and y:
                yield (
                    f"{first} and {second} have {x} and {y} {kind}s{where}: partitions keep these "
                    "sizes."
                )


def _cells(data: AssociationData, options: MeasureConfig) -> Iterator[str]:
    """Yield notes on regions with few images of a group."""
    table = options.images
    if table is None or options.groups is None or options.regions is None:
        return
    coded = data.items[table].coded
    group, region = coded[options.groups], coded[options.regions]
    cells = {
        space.model: _few(group, region, np.flatnonzero(space.usable[table]))
        for space in data.spaces
        if table in space.usable
    }
    for few, where in _by_fact(cells):
        if few:
            yield f"Fewer than {FEW} images{where}, whose intervals are too short: {_cut(few)}."


def _few(group: Coded, region: Coded, usable: Indices) -> tuple[str, ...]:
    """Return the regions and groups with few images, with their sizes."""
    groups, regions = group.codes[usable], region.codes[usable]
    known, n = (groups >= 0) & (regions >= 0), len(group.vocabulary)
    cells = regions[known].astype(int) * n + groups[known]
    sizes = np.bincount(cells, minlength=n * len(region.vocabulary))
    return tuple(
        f"{group.vocabulary[cell % n]} in {region.vocabulary[cell // n]} ({sizes[cell]})"
        for cell in np.flatnonzero(sizes < FEW)
    )


def _cut(names: Sequence[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")
