"""The audit of associations: sets of images and texts that a model places close to each other."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations, count, product
from math import sqrt
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from scipy.special import ndtri

from equipoise.audits import group_sizes
from equipoise.audits.associations import measures
from equipoise.audits.associations.associations.config import Config, ModelConfig
from equipoise.audits.associations.config import MeasureConfig
from equipoise.audits.associations.spaces import (
    AssociationData,
    Question,
    Space,
    measured,
)
from equipoise.audits.columns import check_one_space
from equipoise.audits.findings import UncorrectedFinding
from equipoise.audits.group_sizes import Members, members_of
from equipoise.audits.images import AuditImages
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.notes import Note
from equipoise.audits.outputs import Models, average_prompts, prompts_of
from equipoise.config.fields import OutsideConfig
from equipoise.core import DataError, Family, Integers, table_of
from equipoise.core.columns import INTEGER, TEXT
from equipoise.core.types import FileFacts, Json
from equipoise.data import (
    ArraySource,
    Items,
    Matrix,
    Outputs,
    Vectors,
    load_items,
    load_matrix,
    load_vectors,
)
from equipoise.data.problems import listed, nearest, show
from equipoise.metrics.vectors.resampling import count_partitions
from equipoise.models.protocols import Offer
from equipoise.stats import Resampling

_LOADS: Mapping[int, tuple[str, Callable[..., Vectors | Matrix]]] = {
    1: ("embeddings", load_vectors),
    2: ("scores", load_matrix),
}
"""What outputs of a table, or of a pair of tables, are."""
_SAME = ("model", "metric", "subject", "groups", "version")
_POWER = 0.8
# With fewer targets WEAT's interval may be too short.
FEW_TARGETS = 50
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
        """Read items, sets and external figures, and read or run each model.

        Raises
        ------
        ConfigError
            When nothing says where the pictures are, or a model lacks the capability.
        DataError
            When a file cannot be used, a set names something that is not there, or the vectors of
            a model have different lengths.
        """
        images = {
            name: models.read_images(section, config.columns(name), name=name, place=f"data.{name}")
            for name, section in config.data.items()
            if section.kind == "image"
        }
        items = models.once("items", lambda: _read_items(config, images, models.base))
        read: dict[str, Items | Vectors | Matrix] = {**items}
        vectors, pairs = dict[str, Any](), dict[str, Any]()
        for model, section in config.models.items():
            loaded: dict[tuple[str, ...], Any] = {}
            for tables, source in _sources(config, model, section, models, images).items():
                kind, load = _LOADS[len(tables)]
                name = " and ".join(tables)
                read[f"{model}, {name}"] = loaded[tables] = load(
                    source,
                    items[tables[0]],
                    subject=f"{kind} of {name} by {model}",
                    max_unmatched=config.data[tables[0]].max_unmatched,
                )
            if all(len(tables) == 1 for tables in loaded):
                vectors[model] = {
                    table: table_vectors for (table,), table_vectors in loaded.items()
                }
                check_one_space(*vectors[model].values())
            else:
                pairs[model] = loaded
        sets, questions = _resolve_questions(config, items)
        outside = {}
        for index, options in enumerate(questions):
            if options.figures is not None:
                series = _read_figures(options, options.figures, items, models.base)
                read[f"measure[{index}]"] = series
                numbers = series.column(series.names[0]).tolist()
                outside[index] = dict(zip(series.ids.tolist(), numbers, strict=True))
        inputs: dict[str, FileFacts] = {}
        for source_read in read.values():
            inputs |= source_read.inputs
        return AssociationData(
            items=items,
            kinds={name: section.kind for name, section in config.data.items()},
            units={
                name: section.unit
                for name, section in config.data.items()
                if section.unit is not None
            },
            sets=sets,
            questions=questions,
            vectors=vectors,
            pairs=pairs,
            outside=outside,
            inputs=inputs,
            counts={name: dict(source.counts) for name, source in read.items()},
        )

    def designs(self, config: Config, data: AssociationData) -> list[Question]:
        """Return every measurement of every model; refuse one that no model allows."""
        draws, designs = config.resampling, list[Question]()
        for index, options in enumerate(data.questions):
            figures = data.outside.get(index, {})
            model_questions = [
                Question(
                    self.name,
                    options,
                    space,
                    draws.seed,
                    draws.level,
                    figures=figures,
                    count_tests=measures.procedure_of(options.metric).count_tests,
                )
                for space in data.spaces
            ]
            if not any(question.cases for question in model_questions):
                named = chain.from_iterable(options.set_names.values())
                raise DataError(
                    f"measure[{index}] ({options.metric}): no model has embeddings or scores of "
                    "all it needs",
                    expected=f"images and texts of {', '.join(named)} that one model compares",
                    fix="add members to the sets, or embeddings of their table to a model",
                )
            designs += model_questions
        return designs

    def measure(
        self,
        config: Config,
        data: AssociationData,
        design: Question,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one entry of `measure` for one model."""
        if not design.cases:
            return measured(())
        procedure = measures.procedure_of(design.options.metric)
        results = procedure.measure(replace(design, resampling=resampling))
        return results if isinstance(results, Measured) else measured(results)

    def combine(
        self, config: Config, data: AssociationData, measured_designs: Sequence[Measured]
    ) -> Measured:
        """Compare totals of models, drop repeated rows, and add the sets."""
        differences = measured(measures.compare_totals(measured_designs, config))
        together = Measured.together([*measured_designs, differences])
        tables = {**together.tables, "sets": _size_table(data, config.sets)}
        for name in {"words", "labels"} & together.tables.keys():
            # Questions about the same images and words give the same rows.
            frame = pl.DataFrame(tables[name]).unique(maintain_order=True)
            tables[name] = frame.to_arrow().cast(tables[name].schema)
        return replace(together, findings=tuple(_without_repeats(together.findings)), tables=tables)

    def details(
        self,
        config: Config,
        data: AssociationData,
        designs: Sequence[Question],
        tests: Mapping[str, int],
    ) -> Mapping[str, Json]:
        """Return sets and measurements, and the smallest effects to be seen.

        Per WEAT: the smallest p-value that its sizes allow, and about the smallest effect size
        that would show with a power of 80 %.
        """
        detectable: list[Json] = []
        for design in designs:
            if measures.procedure_of(design.options.metric).exchanges_targets:
                alpha = config.testing.alpha / max(tests[design.model], 1)
                detectable += _smallest_effects(design, alpha)
        return {
            "sets": [
                {"set": name, **_set_sizes(data, name)}
                for name in data.sets if name in config.sets
            ],
            "questions": [
                {"question": design.options.metric, "model": design.model,
                 "groups": design.options.group_text, "numbers": len(design.cases),
                 "modalities": [*dict.fromkeys(c.modality for c in design.cases if c.modality)]}
                for design in designs
            ],
            "detectable": detectable,
        }  # fmt: skip

    def notes(
        self, config: Config, data: AssociationData, designs: Sequence[Question]
    ) -> Iterator[Note | str]:
        """Yield the notes on embeddings and sets."""
        yield "Sets are chosen words and images: others would give other numbers."
        for space in data.spaces:
            yield from _embedding_notes(space)
        yield from _set_notes(data)
        for design in designs:
            measured = set[str]()
            for case in design.cases:
                measured.update(case.targets)
            lacking = [name for name in design.options.target_names if name not in measured]
            if lacking or not design.cases:
                yield Note(
                    design.model,
                    f"{design.options.metric} of {design.options.group_text} isn't "
                    f"measured{f' for {listed(lacking)}' if lacking else ''}, because the model "
                    "lacks usable embeddings or scores.",
                )

    def sizes(self, config: Config, data: AssociationData) -> Iterator[group_sizes.Row]:
        """Yield the groups of images that are compared."""
        named = dict.fromkeys((options.images, options.groups) for options in config.measure)
        for table, column in named:
            if table is not None and column is not None:
                coded = data.items[table].coded[column]
                counts = np.bincount(coded.codes[coded.codes >= 0], minlength=len(coded.vocabulary))
                for name, n in zip(coded.vocabulary, counts.tolist(), strict=True):
                    yield group_sizes.size([column], name, n, levels=[name], usable=True)

    def members(self, config: Config, data: AssociationData, on: str) -> Members:
        """Return the items of a table in every set, and in every group of its images."""
        items = data.items[on]
        of_sets = {
            name: frozenset(items.ids[members[on]].tolist())
            for name, members in data.sets.items()
            if on in members
        }
        groups = dict[tuple[str], None]()
        for question in config.measure:
            if question.images == on and question.groups is not None:
                groups[question.groups,] = None
        return {"sets": of_sets, **members_of(items.ids, items.columns, [*groups])}


def _set_sizes(data: AssociationData, name: str) -> dict[str, int]:
    """Count the images and texts of a set."""
    sizes = {"images": 0, "texts": 0}
    for table, rows in data.sets[name].items():
        sizes[f"{data.kinds[table]}s"] += len(rows)
    return sizes


def _without_repeats(findings: Sequence[UncorrectedFinding]) -> Iterator[UncorrectedFinding]:
    """Leave out a part of one measurement that another measurement tests."""
    key = attrgetter(*(f"finding.{name}" for name in _SAME))
    tested = {key(draft) for draft in findings if draft.finding.family is not Family.DESCRIPTIVE}
    for draft in findings:
        if draft.finding.family is not Family.DESCRIPTIVE or key(draft) not in tested:
            yield draft


def _size_table(data: AssociationData, declared: Container[str]) -> pa.Table:
    rows = []
    for space, (name, by_table) in product(data.spaces, data.sets.items()):
        if name not in declared:
            continue
        for table, members in by_table.items():
            if table in space.known:
                rows.append({
                    "set": name, "kind": data.kinds[table], "table": table,
                    "members": len(members), "model": space.model,
                    "embedded": int(space.known[table][members].sum()),
                })  # fmt: skip
    return table_of(
        rows,
        {
            "set": TEXT,
            "kind": TEXT,
            "table": TEXT,
            "members": INTEGER,
            "model": TEXT,
            "embedded": INTEGER,
        },
    )


def _smallest_effects(design: Question, alpha: float) -> Iterator[dict[str, Any]]:
    """Yield the smallest p-value and effect that comparisons of means show.

    The effect is in units of the joint spread; None where the sizes allow no p below alpha.
    """
    sides = 2 if design.options.alternative == "two-sided" else 1
    for case in design.cases:
        n, m = (len(design.space.chosen(name, case.kinds[1])) for name in case.targets)
        gap = float(ndtri(1 - alpha / sides) + ndtri(_POWER)) * sqrt(1 / n + 1 / m)
        effect = round(gap / sqrt(1 + gap**2 * n * m / (n + m) ** 2), 3)
        smallest = min(sides / count_partitions(n, m), 1.0)
        yield {
            "targets": " against ".join(case.targets),
            "model": design.model,
            "modality": case.modality,
            "smallest_p": float(f"{smallest:.3g}"),
            "effect_size": None if smallest > alpha else effect,
        }


def _embedding_notes(space: Space) -> Iterator[Note | str]:
    for table, vectors in (space.vectors or {}).items():
        where = f"{space.model}, {table}"
        if vectors.rescaled:
            yield Note(where, "the vectors are not all of length 1, and were normalised.")
        numbers = {**vectors.counts, "items_without_row": vectors.unmatched}
        for key, problem in _LEFT_OUT.items():
            if n := numbers.get(key, 0):
                named = listed(numbers.get(f"{key}_examples", ()))
                yield Note(where, f"{n} {problem}{f' ({named})' if named else ''}.")


def _small_targets(data: AssociationData) -> set[str]:
    """Return the sets of targets of WEAT that are too small, with their sizes."""
    small = set[str]()
    for space, options in product(data.spaces, data.questions):
        if not measures.procedure_of(options.metric).exchanges_targets:
            continue
        for case in Question("", options, space, 0, 0.95).cases:
            for name in case.targets:
                n = len(space.chosen(name, case.kinds[1]))
                if n < FEW_TARGETS:
                    small.add(f"{name} ({n})")
    return small


def _set_notes(data: AssociationData) -> Iterator[Note | str]:
    """Yield the notes on unused and small sets, and on members that sets share."""
    if small := _small_targets(data):
        yield (
            f"WEAT with fewer than {FEW_TARGETS} targets a set is imprecise, and its interval too "
            f"short where scores are skewed: {listed(sorted(small))}."
        )
    pairs = dict[tuple[str, str], None]()
    for options in data.questions:
        attributes = (*options.attributes, *options.further)
        pairs |= dict.fromkeys(product(options.target_names, attributes))
        pairs |= dict.fromkeys(combinations(attributes, 2))
    for first, second in pairs:
        shared_ids = list[str]()
        for table, rows in data.sets[first].items():
            shared_rows = _shared_rows(rows, data.sets[second].get(table))
            shared_ids += data.items[table].ids[shared_rows].tolist()
        if shared_ids:
            yield (
                f"{first} and {second} share {len(shared_ids)} of their members. No target is "
                f"compared with itself: {listed(shared_ids)}."
            )
    for name, items in data.items.items():
        for column, n in items.counts["missing"].items():
            if n:
                yield Note(name, f"{n} items have no {column}, and are in no set or group by it.")


def _shared_rows(rows: Integers, other_rows: Integers | None) -> Integers:
    """Return the rows of both, in order."""
    if other_rows is None:
        return rows[:0]
    member = np.zeros(max(rows.max(initial=0), other_rows.max(initial=0)) + 1, dtype=bool)
    member[rows] = True
    return np.unique(other_rows[member[other_rows]])


def _read_items(config: Config, images: Mapping[str, AuditImages], base: Path) -> dict[str, Items]:
    """Return the items of each table; columns whose values are groups have sentinels."""
    items = dict[str, Items]()
    for name, section in config.data.items():
        source = images.get(name, section).source(base, tuple(config.columns(name)))
        groups, levels = config.grouping_columns(name), config.named_levels(name)
        items[name] = load_items(replace(source, attributes=groups, levels=levels), subject=name)
    return items


def _sources(
    config: Config,
    name: str,
    section: ModelConfig,
    models: Models,
    images: Mapping[str, AuditImages],
) -> Mapping[tuple[str, ...], ArraySource | Outputs]:
    """Return a model's embeddings by table, or its scores by pair of tables."""
    if section.model is None:
        return dict(_stored_sources(section, models.base))
    texts = {table: section for table, section in config.data.items() if section.kind == "text"}
    allowed: list[Offer] = ["encoder"]
    # A classifier embeds images only; a model of pairs needs both sides.
    allowed += ["classifier"] if images else []
    allowed += ["scorer"] if images and texts else []
    capability = models.capability(name, section, *allowed)
    pictures = {
        on: table_images.need_pictures(name, place=f"data.{on}")
        for on, table_images in images.items()
    }
    outputs: dict[tuple[str, ...], Outputs] = {}
    if capability == "classifier":
        texts = {}
    prompts = {
        on: prompts_of(table, models.base, subject=f"data.{on}") for on, table in texts.items()
    }
    if capability == "scorer":
        for (table, words), on in product(prompts.items(), pictures):
            scores = models.score_pairs(name, section, pictures[on], words.texts, on=on)
            outputs[on, table] = average_prompts(scores, words)
        return outputs
    for on, table_pictures in pictures.items():
        outputs[on,] = models.embed_images(name, section, table_pictures, on=on)
    for on, table_prompts in prompts.items():
        outputs[on,] = models.embed_texts(name, section, table_prompts, on=on)
    return outputs


def _stored_sources(
    section: ModelConfig, base: Path
) -> Iterator[tuple[tuple[str, ...], ArraySource]]:
    """Yield the files of a model's embeddings by table, and of its scores by pair of tables."""
    for table, array in section.embeddings.items():
        yield (table,), array.source(base)
    for scores in section.pairs:
        yield scores.between, scores.source(base)


def _read_figures(
    options: MeasureConfig, section: OutsideConfig, items: Mapping[str, Items], base: Path
) -> Matrix:
    """Read the external figures of a measurement, by target or region."""
    subjects = options.target_names
    if options.regions is not None and options.images is not None:
        subjects = (*items[options.images].coded[options.regions].vocabulary,)
    ids = np.array(subjects, dtype=object)
    subject_items = Items(
        f"subjects of {options.metric}", "subject", ids, {}, {}, {"rows": len(ids)}
    )
    # A series of all occupations or nations has more than the subjects, or fewer.
    return load_matrix(
        section.source(base), subject_items, subject=section.value, max_unmatched=1.0
    )


def _resolve_sets(config: Config, items: Mapping[str, Items]) -> dict[str, dict[str, Integers]]:
    """Return the members of every set by table, in the order of its ids or of the table."""
    places = cache(lambda table: dict(zip(items[table].ids, count())))
    sets: dict[str, dict[str, Integers]] = {}
    for name, by_table in config.sets.items():
        rows = sets[name] = {}
        for table, members in by_table.items():
            file = items[table]
            if isinstance(members, Mapping):
                rows[table] = _rows_with_values(name, members, file)
            else:
                rows[table] = _rows_of_values(name, members, places(table), file, file.id)
    return sets


def _resolve_questions(
    config: Config, items: Mapping[str, Items]
) -> tuple[dict[str, dict[str, Integers]], list[MeasureConfig]]:
    """Return the sets and the questions; members that are targets of their own are sets, too.

    Raises
    ------
    DataError
        When a member has the name of a set that is not this member alone.
    """
    sets, questions = _resolve_sets(config, items), list[MeasureConfig]()
    for options in config.measure:
        if not options.each_member:
            questions.append(options)
            continue
        targets = dict[str, tuple[str, ...]]()
        for name in options.target_names:
            single = _single_members(sets[name], items)
            for member, member_rows in single.items():
                if sets.setdefault(member, member_rows).keys() != member_rows.keys() or any(
                    sets[member][table].tolist() != rows.tolist()
                    for table, rows in member_rows.items()
                ):
                    raise DataError(
                        f"a member of the set {name!r} is called {member!r}, and so is a set",
                        expected="other names of sets where 'each_member' is true",
                        fix="rename the set",
                    )
            targets[name] = tuple(single)
        questions.append(options.model_copy(update={"targets": targets}))
    return sets, questions


def _single_members(
    rows_by_table: Mapping[str, Integers], items: Mapping[str, Items]
) -> dict[str, dict[str, Integers]]:
    """Return a set of each member of a set, by the member's id."""
    single: dict[str, dict[str, Integers]] = {}
    for table, rows in rows_by_table.items():
        for member, row in zip(items[table].ids[rows].tolist(), rows.tolist(), strict=True):
            single[member] = {table: np.array([row])}
    return single


def _rows_of_values(
    name: str, values: tuple[str, ...], positions: Mapping[str, int], items: Items, column: str
) -> Integers:
    for value in values:
        if value not in positions:
            close = nearest(value, positions)
            hint = f"; did you mean {show(close)}?" if close else ""
            raise DataError(
                f"the set {name!r} names {show(value)}, which no row has{hint}",
                file=items.name,
                column=column,
                expected=f"some of {listed([*positions])}",
                fix="name one of these",
            )
    return np.array([positions[value] for value in values], dtype=np.int64)


def _rows_with_values(
    name: str, values_by_column: Mapping[str, tuple[str, ...]], items: Items
) -> Integers:
    matches = np.ones(len(items), dtype=bool)
    for column, values in values_by_column.items():
        coded = items.coded[column]
        codes = _rows_of_values(name, values, dict(zip(coded.vocabulary, count())), items, column)
        matches &= np.isin(coded.codes, codes)
    if not matches.any():
        conditions = " and ".join(
            f"{column} {' or '.join(v)}" for column, v in values_by_column.items()
        )
        raise DataError(
            f"the set {name!r} is empty: no row has {conditions}",
            file=items.name,
            expected="at least one row",
        )
    return np.flatnonzero(matches)
