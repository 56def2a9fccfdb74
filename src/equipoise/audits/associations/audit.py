"""The audit of associations: sets of images and texts that a model places close to each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import sqrt
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from scipy.special import ndtri

from equipoise.audits import group_sizes
from equipoise.audits.associations.config import Config
from equipoise.audits.associations.reading import load
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.columns import table_of
from equipoise.audits.config import resampling_of
from equipoise.audits.engines.associations import images, sets
from equipoise.audits.engines.associations.results import Question, Result, measured
from equipoise.audits.engines.associations.spaces import AssociationData, Space
from equipoise.audits.findings import UncorrectedFinding
from equipoise.audits.group_sizes import members_of
from equipoise.core.errors import DataError
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.data.problems import listed
from equipoise.metrics.vectors.partitions import count_partitions

if TYPE_CHECKING:
    from equipoise.audits.group_sizes import Members
    from equipoise.audits.outputs import Models
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
        "trend": images.measure_regions,
        "gender_difference": images.measure_regions,
        "alignment": sets.measure_related,
        "correlation": sets.measure_related,
    }
)
_POWER = 0.8
# Below so many members a bootstrap interval is too short.
FEW = 10
_LEFT_OUT = {
    "not_finite": "have a vector with NaN or an infinity, and are left out of every set",
    "zero": "have a vector of zeros, and are left out of every set",
    "items_without_row": "have no vector, and are left out of every set",
    "rows_without_item": "are vectors without an item, and aren't used",
}


@audit_kind("associations")
class Associations(Audit[Config, AssociationData, Question]):
    """Audits of associations."""

    items = "images"

    def load(self, config: Config, models: Models) -> AssociationData:
        """Read items, sets and external figures, and read or run each model."""
        return load(config, models)

    def groups(self, config: Config, data: AssociationData) -> list[Groups]:
        """Return no groups of all items: each table has its own."""
        return []

    def designs(self, config: Config, data: AssociationData) -> list[Question]:
        """Return every measurement of every model; refuse one that no model allows."""
        draws, designs = config.resampling, list[Question]()
        for index, options in enumerate(config.measure):
            figures = data.outside.get(index, {})
            own = [
                Question(self.name, options, space, draws.seed, draws.level, figures=figures)
                for space in data.spaces
            ]
            if not any(question.cases for question in own):
                named = [name for names in options.set_names.values() for name in names]
                raise DataError(
                    f"measure[{index}] ({options.metric}): no model has embeddings or scores of "
                    "all it needs",
                    expected=f"images and texts of {', '.join(named)} that one model compares",
                    fix="add members to the sets, or embeddings of their table to a model",
                )
            designs += own
        return designs

    def measure(
        self,
        config: Config,
        data: AssociationData,
        design: Question,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one entry of `measure` for one model."""
        question, metric = replace(design, resampling=resampling), design.options.metric
        if metric == "total_absolute_association":
            return sets.measure_totals(question)
        return measured(_MEASURES[metric](question))

    def combine(
        self, config: Config, data: AssociationData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Compare totals of models, show what several questions share once, and add the sets."""
        every = [each for each in measured_designs if isinstance(each, sets.MeasuredTotals)]
        cases = Counter(
            (id(each.question.options), c.modality) for each in every for c in each.totals
        )
        resampling = resampling_of(config, sum(n * (n - 1) // 2 for n in cases.values()))
        differences = [
            difference
            for options in config.measure
            for difference in sets.compare_totals(
                [each for each in every if each.question.options is options], resampling
            )
        ]
        whole = Measured.together([*measured_designs, measured(differences)])
        tables = {**whole.tables, **_tables(config, data)}
        for name in {"words", "labels"} & whole.tables.keys():
            # Questions about the same images and words give the same rows.
            frame = pl.DataFrame(tables[name]).unique(maintain_order=True)
            tables[name] = frame.to_arrow().cast(tables[name].schema)
        return replace(whole, findings=tuple(_once(whole.findings)), tables=tables)

    def details(
        self,
        config: Config,
        data: AssociationData,
        designs: Sequence[Question],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return sets and measurements, and the smallest effects to be seen.

        Per WEAT: the smallest p-value that its sizes allow, and about the smallest effect size
        that would show with a power of 80 %.
        """
        return {
            "sets": [
                {"set": name} | {
                    f"{kind}s": sum(len(rows) for t, rows in own.items() if data.kinds[t] == kind)
                    for kind in ("image", "text")
                }
                for name, own in data.sets.items()
            ],
            "questions": [
                {"question": design.options.metric, "model": design.model,
                 "groups": design.options.group_text, "numbers": len(design.cases),
                 "modalities": [*dict.fromkeys(c.modality for c in design.cases if c.modality)],
                 "tests": design.tests}
                for design in designs
            ],
            "detectable": [
                row
                for design in designs
                if design.options.metric == "weat"
                for row in _detectable(design, config.testing.alpha / max(tests[design.model], 1))
            ],
        }  # fmt: skip

    def notes(
        self, config: Config, data: AssociationData, designs: Sequence[Question]
    ) -> Iterator[str]:
        """Yield the notes on embeddings and sets."""
        yield "Sets are chosen words and images: others would give other numbers."
        for space in data.spaces:
            if space.model not in data.planned:
                yield from _embeddings(space)
        yield from _sets(config, data)
        for design in designs:
            if design.options.model in (None, design.model) and not design.cases:
                yield (
                    f"{design.options.metric} of {design.options.group_text} isn't measured for "
                    f"{design.model}, which lacks embeddings or scores."
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
        items = data.items[on]
        of_sets = {
            name: frozenset(items.ids[members[on]].tolist())
            for name, members in data.sets.items()
            if on in members
        }
        columns = dict.fromkeys(each.groups for each in config.measure if each.images == on)
        groups = [(column,) for column in columns if column is not None]
        return {"sets": of_sets, **members_of(items.ids, items.columns, groups)}


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
    columns = "set kind table members model embedded"
    tables = {"sets": table_of(rows, columns, whole="members embedded")}
    categories = {t: c for options in config.measure for t, c in options.categories.items() if c}
    if categories:
        pairs = [{"target": name, "category": own} for name, own in categories.items()]
        tables["target_categories"] = table_of(pairs, "target category")
    return tables


def _detectable(design: Question, alpha: float) -> Iterator[dict[str, Any]]:
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
    for table, vectors in (space.vectors or {}).items():
        where = f"{space.model}, {table}"
        if vectors.rescaled:
            yield f"{where}: the vectors are not all of length 1, and were normalised."
        if vectors.dtype.itemsize == 2:
            yield f"{where}: vectors are stored as float16, and were computed with in float64."
        numbers = {**vectors.counts, "items_without_row": vectors.unmatched}
        for key, what in _LEFT_OUT.items():
            if n := numbers.get(key, 0):
                named = listed(numbers.get(f"{key}_examples", ()))
                yield f"{where}: {n} {what}{f' ({named})' if named else ''}."


def _sets(config: Config, data: AssociationData) -> Iterator[str]:
    """Yield the notes on unused and small sets, and on members that sets share."""
    used = {name for each in config.measure for names in each.set_names.values() for name in names}
    if unused := [name for name in data.sets if name not in used]:
        yield f"No measurement names the sets {', '.join(unused)}."
    few = {
        f"{name} ({n} {kind}s)"
        for space in data.spaces
        for name in used
        for kind in ("image", "text")
        for members in [space.members(name, kind)]
        for n in [sum(int(space.usable[table][own].sum()) for table, own in members.items())]
        if 0 < n < FEW
    }
    if few:
        yield f"Sets of fewer than {FEW}, whose intervals are too short: {listed(sorted(few))}."
    pairs = dict.fromkeys(
        pair
        for options in config.measure
        for attributes in [(*options.attributes, *options.further)]
        for pair in [*product(options.target_names, attributes), *combinations(attributes, 2)]
    )
    for first, second in pairs:
        both = [
            str(data.items[table].ids[row])
            for table, rows in data.sets[first].items()
            for row in np.intersect1d(rows, data.sets[second].get(table, [])).astype(int)
        ]
        if both:
            yield (
                f"{first} and {second} share {len(both)} of their members. No target is compared "
                f"with itself: {listed(both)}."
            )
    for name, items in data.items.items():
        for column, n in items.counts["missing"].items():
            if n:
                yield f"{name}: {n} items have no {column}, and are in no set or group by it."
