"""The audit of associations: sets of images and texts that a model places close to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from scipy.special import ndtri

from equipoise.audits import group_sizes
from equipoise.audits.associations.config import Config
from equipoise.audits.associations.notes import notes_of
from equipoise.audits.associations.reading import load, members_of_sets
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.drawing import resampling_of
from equipoise.audits.engines.associations.cases import (
    Case,
    cases_of,
    check_apart,
    tests_between,
    tests_of,
)
from equipoise.audits.engines.associations.composites import measure_mcas, measure_xmcas
from equipoise.audits.engines.associations.images import (
    measure_concentration,
    measure_gender_difference,
    measure_label_weat,
    measure_trend,
    two_groups,
    words_of,
)
from equipoise.audits.engines.associations.results import Note, Question, Result, Row, tables_of
from equipoise.audits.engines.associations.scores import (
    compared_totals,
    measure_alignment,
    measure_correlation,
    measure_differential,
    measure_sc_weat,
    measure_scores,
    measure_weat,
    total_results,
    totals_of,
)
from equipoise.audits.engines.associations.spaces import AssociationData, Space
from equipoise.audits.findings import UncorrectedFinding
from equipoise.core.errors import DataError
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.metrics.vectors.partitions import count_partitions

if TYPE_CHECKING:
    from equipoise.audits.config_associations import MeasureConfig
    from equipoise.audits.outputs import Models
    from equipoise.audits.running.failed import Members
    from equipoise.core.estimate import Estimate
    from equipoise.stats.resampling import Resampling

_MEASURES: Mapping[str, Callable[[Question], Iterator[Result]]] = MappingProxyType(
    {
        "association_score": measure_scores,
        "weat": measure_weat,
        "sc_weat": measure_sc_weat,
        "differential_association": measure_differential,
        "mcas": measure_mcas,
        "xmcas": measure_xmcas,
        "predicted_label_weat": measure_label_weat,
        "label_concentration": measure_concentration,
        "trend": measure_trend,
        "gender_difference": measure_gender_difference,
        "alignment": measure_alignment,
        "correlation": measure_correlation,
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


@dataclass(frozen=True, eq=False)
class Design:
    """One entry of `measure`, for one model.

    Attributes
    ----------
    index : int
        Place of the entry.
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
        members = sum(self._members(case) for case in self.cases)
        return _SECONDS_PER_CASE * len(self.cases) + _SECONDS_PER_MEMBER * draws * members

    def _members(self, case: Case) -> int:
        data = self.space.data
        if self.options.images is not None:
            return len(data.items[self.options.images])
        names = (*case.targets, *self.options.attributes)
        return sum(len(rows) for name in names for rows in data.sets[name].values())


@dataclass(frozen=True, kw_only=True)
class MeasuredTotals(Measured):
    """Total absolute associations of one model, which are compared between models."""

    index: int
    question: Question
    totals: Mapping[Case, Estimate]


@audit_kind("associations")
class Associations(Audit[Config, AssociationData, Design]):
    """Audits of associations."""

    items = "images"

    def load(self, config: Config, models: Models) -> AssociationData:
        """Read items, sets and external figures, and read or run each model."""
        return load(config, models)

    def groups(
        self,
        config: Config,
        data: AssociationData,
    ) -> list[Groups]:
        """Return no groups of all items: each table has its own."""
        return []

    def designs(self, config: Config, data: AssociationData) -> list[Design]:
        """Return every measurement of every model; refuse one that no model allows."""
        spaces = data.spaces
        designs = [
            Design(index, options, space)
            for index, options in enumerate(config.measure)
            for space in spaces
        ]
        for index, options in enumerate(config.measure):
            _check_measurable(index, options, spaces)
        for design in designs:
            if design.cases:
                _check(design)
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
        if design.options.metric != "total_absolute_association":
            return _measured(_MEASURES[design.options.metric](question))
        totals = totals_of(question)
        measured = _measured(total_results(question, totals))
        return MeasuredTotals(
            findings=measured.findings,
            tables=measured.tables,
            index=design.index,
            question=question,
            totals={case: estimate for case, (_, estimate) in totals.items()},
        )

    def combine(
        self, config: Config, data: AssociationData, measured: Sequence[Measured]
    ) -> Measured:
        """Compare totals of models, show what several questions share once, and add the sets."""
        tests = sum(tests_between(options, data.spaces) for options in config.measure)
        totals: dict[int, dict[str, MeasuredTotals]] = {}
        for each in measured:
            if isinstance(each, MeasuredTotals):
                totals.setdefault(each.index, {})[each.question.space.model] = each
        differences = [
            result
            for models in totals.values()
            for result in compared_totals(
                {model: each.question for model, each in models.items()},
                {model: each.totals for model, each in models.items()},
                resampling_of(config, tests),
            )
        ]
        every = Measured.together([*measured, _measured(differences)])
        # Questions about the same images and words give the same rows.
        shared = {
            name: _distinct(every.tables[name])
            for name in ("words", "labels")
            if name in every.tables
        }
        tables = {**every.tables, **shared, **_tables(config, data)}
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
        return {
            "tables": [_table(name, data) for name in data.items],
            "sets": [_set(name, data) for name in data.sets],
            "models": [row for space in data.spaces for row in _model(space)],
            "questions": [_question(design) for design in designs],
            "detectable": [
                row
                for design in designs
                for row in _detectable(design, config.testing.alpha, tests[design.model])
            ],
        }

    def notes(
        self,
        config: Config,
        data: AssociationData,
        designs: Sequence[Design],
    ) -> Iterable[str]:
        """Return the notes on embeddings and sets."""
        return notes_of(config, data)

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


def _measured(results: Iterable[Result]) -> Measured:
    every = [*results]
    return Measured(
        tuple(each for each in every if isinstance(each, UncorrectedFinding)),
        tables_of(each for each in every if isinstance(each, Row)),
        tuple(each.text for each in every if isinstance(each, Note)),
    )


def _check(design: Design) -> None:
    """Refuse words that are positive and negative, other than two groups, and targets alone."""
    if design.options.metric in ("trend", "gender_difference"):
        words_of(design.options, design.space)
    elif design.options.metric == "predicted_label_weat":
        two_groups(design.options, design.space)
    check_apart(design.options, design.space)


def _check_measurable(index: int, options: MeasureConfig, spaces: Iterable[Space]) -> None:
    """Refuse a measurement that no model has embeddings or scores for."""
    if any(cases_of(options, space) for space in spaces):
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


def _once(findings: Iterable[UncorrectedFinding]) -> Iterator[UncorrectedFinding]:
    """Leave out a part of one measurement that another measurement tests."""
    every = [*findings]
    tested = {_key(each) for each in every if each.finding.family is not Family.DESCRIPTIVE}
    for each in every:
        if each.finding.family is not Family.DESCRIPTIVE or _key(each) not in tested:
            yield each


def _key(result: UncorrectedFinding) -> tuple[str, ...]:
    finding = result.finding
    return finding.model, finding.metric, finding.subject, finding.groups, finding.version


def _distinct(table: pa.Table) -> pa.Table:
    frame = pl.DataFrame(table).unique(maintain_order=True)
    return frame.to_arrow().cast(table.schema)


def _tables(config: Config, data: AssociationData) -> dict[str, pa.Table]:
    sets = [
        {
            "set": name, "kind": data.kinds[table], "table": table, "members": len(members),
            "model": space.model, "embedded": space.known(table, members),
        }
        for space in data.spaces
        for name, by_table in data.sets.items()
        for table, members in by_table.items()
        if space.knows(table)
    ]  # fmt: skip
    tables = {"sets": pa.Table.from_pylist(sets, schema=_SETS)}
    categories = {
        target: category
        for options in config.measure
        for target, category in options.categories.items()
        if category
    }
    if categories:
        columns = {"target": [*categories], "category": [*categories.values()]}
        tables["target_categories"] = pa.table(columns)
    return tables


def _table(name: str, data: AssociationData) -> dict[str, Any]:
    items, unit = data.items[name], data.units.get(name)
    units = None if unit is None else len(items.coded[unit].vocabulary)
    return {"table": name, "kind": data.kinds[name], "items": len(items), "units": units}


def _set(name: str, data: AssociationData) -> dict[str, Any]:
    sizes = {"image": 0, "text": 0}
    for table, rows in data.sets[name].items():
        sizes[data.kinds[table]] += len(rows)
    return {"set": name, "images": sizes["image"], "texts": sizes["text"]}


def _model(space: Space) -> Iterator[dict[str, Any]]:
    for table, items in space.data.items.items():
        if space.knows(table):
            without = space.unusable(table)
            usable = len(items) - without
            yield {"model": space.model, "table": table, "usable": usable, "without": without}


def _question(design: Design) -> dict[str, Any]:
    modalities = dict.fromkeys(case.modality for case in design.cases if case.modality)
    return {
        "question": f"{design.index}: {design.options.metric}",
        "model": design.model,
        "groups": design.options.group_text,
        "numbers": len(design.cases),
        "modalities": [*modalities],
        "tests": design.tests,
    }


def _detectable(design: Design, alpha: float, tests: int) -> Iterator[dict[str, Any]]:
    if design.options.metric != "weat":
        return
    for case in design.cases:
        sides = (design.space.chosen(name, case.kinds[1]) for name in case.targets)
        first, second = (len(side) for side in sides)
        yield {
            "targets": " against ".join(case.targets),
            "model": design.model,
            "modality": case.modality,
            "smallest_p": float(f"{1 / count_partitions(first, second):.3g}"),
            "effect_size": _smallest(first, second, alpha / max(tests, 1)),
        }


def _smallest(first: int, second: int, alpha: float) -> float | None:
    """Effect size that a one-sided comparison of means shows, in units of the joint spread."""
    if count_partitions(first, second) < 1 / alpha:
        return None
    apart = float(ndtri(1 - alpha) + ndtri(_POWER)) * sqrt(1 / first + 1 / second)
    shares = first * second / (first + second) ** 2
    return round(apart / sqrt(1 + apart**2 * shares), 3)
