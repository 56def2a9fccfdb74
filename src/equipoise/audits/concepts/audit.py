"""The audit of concepts: scores of multi-label classifiers by group, under several choices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.against_rest import leaf
from equipoise.audits.broken import trivial_hits
from equipoise.audits.columns import Row, placed
from equipoise.audits.concepts.config import BASELINE, Config, Version, in_version
from equipoise.audits.concepts.data import ConceptData, Scores, load
from equipoise.audits.concepts.steps import VersionStep, steps_of, table_of_steps
from equipoise.audits.config import resampling_of as usual_resampling
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    estimable,
    rate_and_gap,
    whole,
    without_verdict,
)
from equipoise.audits.findings import (
    parts as part_findings,
)
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.limits import Assumed, Limit, limit_of_concepts
from equipoise.audits.notes import Note
from equipoise.config.fields import where_of
from equipoise.core import (
    Aggregate,
    Booleans,
    DataError,
    Estimate,
    Facts,
    Family,
    Fields,
    Groups,
    GroupValue,
    Integers,
    NullHypothesis,
    Objects,
    Strings,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence, named
from equipoise.metrics.concepts.cells import Metric
from equipoise.metrics.concepts.choices import design_choices, model_order, robust_conclusions
from equipoise.metrics.concepts.disparity import (
    CENTRED,
    HALL_RULE,
    Choices,
    ConceptResults,
    concept_hit_rate,
    concept_metrics,
    null_of,
    permutations_of,
    reasons_of,
    summarise,
)
from equipoise.metrics.spec import spec_of
from equipoise.report.text import listed
from equipoise.stats import Bootstrap, Resampling, minimum_difference

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models
    from equipoise.evidence import Pictures

Key = tuple[object, ...]

# Why rows take no part: those that only scores decide, and those that the base counts.
_UNSCORED, _NO_GROUP = "no row of scores", "no group"
# Seconds for a row of a concept in one replicate of a metric, and shuffled once, and for a shuffle
# whatever its rows: rough guides. The first from 300 concepts of 100,000 images in three versions
# (docs/audits/concepts.md).
_SECONDS_PER_ROW, _SECONDS_PER_SHUFFLED, _SECONDS_PER_SHUFFLE = 1.5e-9, 1e-8, 1.1e-4
# The true positive rate of the smallest differences of a plan.
_RATE = 0.8
# Names that a note lists.
_LISTED = 8
_VERSION_REASON = (
    "a version of the baseline's comparison, which is tested; see its change in "
    "tables/choices.parquet"
)
_GROUP_COLUMNS = {
    "model": TEXT,
    "groups": TEXT,
    "version": TEXT,
    "metric": TEXT,
    "concept": TEXT,
    "group": TEXT,
    "value": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "prevalence": NUMBER,
    "positives": INTEGER,
    "n": INTEGER,
    "threshold": NUMBER,
    "reason": TEXT,
}


@record
class Selection:
    """The rows of one version that take part.

    Attributes
    ----------
    groups : Groups
        Of all rows; -1 where a row takes no part.
    excluded : dict of str to int
        Rows that take no part, by the first reason that applies.
    """

    groups: Groups
    excluded: dict[str, int]

    @property
    def labelled(self) -> Groups:
        """Groups of the rows that take part or lack only an attribute."""
        codes = self.groups.codes[self.groups.codes >= 0]
        none = np.full(self.excluded.get(_NO_GROUP, 0), -1, dtype=np.int32)
        return replace(self.groups, codes=np.concatenate([codes, none]))


@record
class Design:
    """One model in one version, compared between one set of groups.

    Attributes
    ----------
    config : Config
    model : str
    version : Version
    baseline, selection : Selection
        The rows of the baseline, and of this version.
    concepts : int
    measured : dict of Key to Run
        What earlier versions of the model and groups have measured.
    """

    config: Config
    model: str
    version: Version
    baseline: Selection
    selection: Selection
    concepts: int
    measured: dict[Key, Run]

    @property
    def groups(self) -> Groups:
        """Groups of the baseline."""
        return self.baseline.labelled

    @property
    def lacking(self) -> Mapping[str, int]:
        """Rows that take no part in the baseline, by reason."""
        return self.baseline.excluded

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        if self.version.changes:
            return 0
        pairs, groups = self._pairs, int(self.selection.groups.usable.sum())
        tests_of_concept = pairs if pairs < 2 else 1 + pairs + groups
        return len(self.config.metrics.names) * self.concepts * tests_of_concept

    @property
    def _pairs(self) -> int:
        usable = int(self.selection.groups.usable.sum())
        return usable * (usable - 1) // 2

    @property
    def resampling(self) -> Bootstrap | None:
        """Resampling that is fine enough for the tests of concepts that are corrected together.

        Those of the baseline are one family over groups and metrics; a version's are corrected by
        themselves, in the table of choices.
        """
        tests = self.resolved_tests * len(self.config.data.groups) or self.concepts * self._pairs
        return resampling_of(self.config, tests)

    def seconds(self, _: int) -> float:
        """About how long it takes to measure."""
        resampling, rows = self.resampling, int((self.selection.groups.codes >= 0).sum())
        if resampling is None:
            return 0.0
        shuffled = permutations_of(resampling, rows=rows, concepts=self.concepts)
        replicate_seconds = resampling.replicates * rows * _SECONDS_PER_ROW
        shuffling = shuffled * (_SECONDS_PER_SHUFFLE + rows * _SECONDS_PER_SHUFFLED)
        return self.concepts * (replicate_seconds + shuffling)

    @property
    def keys(self) -> dict[Metric, Key]:
        """Metrics, the one that stands for the version first; equal keys have equal numbers."""
        choices, version = self.version.choices, self.version
        # A version that is another metric says nothing about the others.
        metrics = () if [*version.changes] == ["metric"] else self.config.metrics.names
        other_metrics = (metric for metric in metrics if metric != self.config.primary)
        terms = tuple(
            (name, choices.columns.get(name, name), tuple(choices.terms.get(name, {}).items()))
            for name in self.baseline.groups.attributes
        )
        sample = (choices.map, choices.unlabelled, tuple(choices.where.items()), terms)
        return {
            metric: (*sample, _comparable_choices(choices_of(self.config, version), metric))
            for metric in dict.fromkeys((version.metric, *other_metrics))
        }


@record
class Run:
    """One metric of one design."""

    design: Design
    results: ConceptResults
    estimate: Estimate

    @property
    def metric(self) -> Metric:
        """The metric."""
        return self.results.choices.metric

    @property
    def against(self) -> Metric:
        """The metric of the baseline that it is compared with."""
        first = self.metric == self.design.version.metric
        return self.design.config.primary if first else self.metric


@dataclass(frozen=True)
class MeasuredVersion(Measured):
    """The results of a design, with a run for each of its metrics."""

    runs: tuple[Run, ...] = ()


@audit_kind("concepts")
class Concepts(Audit[Config, ConceptData, Design]):
    """Audits of concepts."""

    def load(self, config: Config, models: Models) -> ConceptData:
        """Read images, labels and every model's scores."""
        return load(config, models)

    def groups(self, config: Config, data: ConceptData) -> list[Groups]:
        """Return the groups of all rows in the baseline."""
        baseline = config.every_version[0]
        return [_make_groups(config, data, group, baseline) for group in config.data.groups]

    def pictured(
        self, config: Config, data: ConceptData, models: Models
    ) -> tuple[Objects, Sequence[Groups], Sequence[Pictures]]:
        """Return ids, groups and pictures; also the groups of versions that group otherwise."""
        ids, groups, pictures = super().pictured(config, data, models)
        regrouped, model = list[Groups](), next(iter(config.models))
        for attributes in config.data.groups:
            baseline, *later = (
                _select_rows(config, data, model, attributes, version).groups
                for version in config.every_version
            )
            for version, version_groups in zip(config.every_version[1:], later, strict=True):
                codes = version_groups.codes
                if version_groups.levels == baseline.levels and (codes == baseline.codes).all():
                    continue
                attribute = in_version(version_groups.name, version.name)
                levels = tuple((name,) for name in version_groups.names)
                regrouped.append(replace(version_groups, attributes=(attribute,), levels=levels))
        return ids, (*groups, *regrouped), pictures

    def examples(self, config: Config, data: ConceptData) -> dict[str, pl.DataFrame]:
        """Return the hits, misses and false alarms of each concept."""
        mapping = config.every_version[0].choices.map
        return {name: _examples(data, scores, mapping) for name, scores in data.models.items()}

    def designs(self, config: Config, data: ConceptData) -> list[Design]:
        """Return every combination of model, groups and version."""
        designs = list[Design]()
        for model, scores in data.models.items():
            for attributes in config.data.groups:
                measured: dict[Key, Run] = {}
                baseline: Selection | None = None
                for version in config.every_version:
                    selection = _select_rows(config, data, model, attributes, version)
                    baseline = baseline or selection
                    n_concepts = len(scores.concepts)
                    designs.append(
                        Design(config, model, version, baseline, selection, n_concepts, measured)
                    )
        return designs

    def check(self, config: Config, data: ConceptData, design: Design) -> None:
        """Refuse fewer than two groups of the baseline, and a version without a row.

        Raises
        ------
        DataError
            With the sizes of the groups, or the version.
        """
        file, groups, version = data.images.name, design.selection.groups, design.version
        name = f"groups {groups.name}: fewer than two groups"
        remedies = "groups or terms"
        group_sizes.check_two(design.baseline.groups, name, "rows", file=file, alternative=remedies)
        if not (groups.codes >= 0).any():
            reasons = ", ".join(f"{reason}: {n}" for reason, n in design.selection.excluded.items())
            raise DataError(
                f"{groups.name}, version {version.name!r}: no row is left ({reasons})",
                file=file,
                expected="rows that take part in every version",
                fix=f"correct the version ({version.description}), or remove it",
            )

    def warnings(
        self, config: Config, data: ConceptData, designs: Sequence[Design]
    ) -> Iterator[Note]:
        """Yield a warning for each model with a trivial hit rate."""
        for name, scores in data.models.items() if config.hit_rate else ():
            classes = len(scores.concepts) + len(scores.other_classes(config.choices.map))
            yield from trivial_hits(name, config.hit_rate or 0, classes)

    def measure(
        self,
        config: Config,
        data: ConceptData,
        design: Design,
        resampling: Resampling | None,
    ) -> MeasuredVersion:
        """Measure a version; reuse the numbers of equal earlier versions."""
        keys = design.keys
        fresh = [metric for metric, key in keys.items() if key not in design.measured]
        hit_rate = _measure(data, design, fresh) if fresh else []
        runs = tuple(replace(design.measured[key], design=design) for key in keys.values())
        findings, rows = list[UncorrectedFinding](), list[Row]()
        for run in runs:
            findings += _findings(run)
            rows += _group_rows(run)
        tables, notes = (
            {"concept_groups": table_of(rows, _GROUP_COLUMNS)},
            tuple(_excluded_notes(design)),
        )
        return MeasuredVersion((*findings, *hit_rate), tables, notes, runs)

    def combine(self, config: Config, data: ConceptData, measured: Sequence[Measured]) -> Measured:
        """Compare versions with the baseline, and models with each other."""
        together = Measured.together(measured)
        runs = list[Run]()
        for design_result in measured:
            if isinstance(design_result, MeasuredVersion):
                runs += design_result.runs
        note = "Only the baseline is tested. Versions show the effect of other choices."
        tables = {**together.tables, **_comparisons(config, runs)}
        return replace(together, tables=tables, notes=(note, *together.notes))

    def details(
        self,
        config: Config,
        data: ConceptData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return images, rows, concepts of each model, versions, and the smallest differences.

        Per version and groups: concepts that can be compared, and those too rare. Per groups: the
        positives of the median concept in the two smallest groups, and the smallest difference of
        two true positive rates, from 80 % down, that they would show with a power of 80 %.
        """
        versions, detectable = [], []
        for design in designs:
            if design.model != designs[0].model:
                continue
            groups, positives = design.selection.groups, _count_positives(data, design)
            choices = choices_of(config, design.version)
            compared = sum("" in reasons_of(groups, counts, choices) for counts in positives)
            versions.append({
                "version": design.version.name,
                "groups": groups.name,
                "rows": int((groups.codes >= 0).sum()),
                "concepts_compared": compared,
                "concepts_too_rare": len(positives) - compared,
            })  # fmt: skip
            if not design.version.changes:
                detectable.append(_smallest_differences(design, positives, max(1, *tests.values())))
        models = [
            {
                "model": name,
                "concepts": len(scores.concepts),
                "concepts_without_scores": len({*data.labels.labelled} - {*scores.concepts}),
                "images_without_scores": int(scores.without.sum()),
            }
            for name, scores in data.models.items()
        ]
        return {
            "images": len(data.images), "rows": len(data.images), "models": models,
            "versions": versions, "detectable": detectable,
        }  # fmt: skip

    def limits(
        self, config: Config, data: ConceptData, designs: Sequence[Design], assumed: Assumed
    ) -> Iterator[Limit | None]:
        """Yield how many concepts have enough labelled images in every group, by version."""
        for design in designs:
            positives = _count_positives(data, design)[:, design.selection.groups.usable]
            place = f"{design.model}, {design.groups.name}, {design.version.name}"
            yield limit_of_concepts(place, positives, design.version.choices.min_positives)

    def notes(
        self, config: Config, data: ConceptData, designs: Sequence[Design]
    ) -> Iterator[Note | str]:
        """Return what is not measured: labels, concepts of a model, and groups in no concept."""
        if absent := data.labels.absent:
            yield f"Labels of a mapping that no image has: {_counted(absent)}."
        labelled = config.concepts or sorted(data.labels.labelled)
        for model, scores in data.models.items():
            lacking = [name for name in labelled if name not in scores.concepts]
            if lacking:
                yield Note(model, f"labelled concepts without scores: {_counted(lacking)}.")
        for design in designs:
            if not design.version.changes:
                yield from _uncompared_groups(config, data, design)

    def sizes(self, config: Config, data: ConceptData) -> Iterator[Row]:
        """Return the sizes of the groups of the baseline, of the first model."""
        model, baseline = next(iter(config.models)), config.every_version[0]
        for attributes in config.data.groups:
            selection = _select_rows(config, data, model, attributes, baseline)
            reasons = "; ".join(f"{reason}: {n}" for reason, n in selection.excluded.items())
            yield from group_sizes.sizes_of(selection.groups, missing=reasons)


def _counted(names: Sequence[str]) -> str:
    return f"{len(names)} ({listed(names, _LISTED)})"


def resampling_of(config: Config, tests: int) -> Bootstrap | None:
    """Return the resampling object of a config, fine enough for the tests."""
    usual = usual_resampling(config, tests)
    if not isinstance(usual, Bootstrap):
        return None
    return replace(usual, permutations=config.resampling.permutations or 1000)


def choices_of(config: Config, version: Version) -> Choices:
    """Return the choices of a version for the functions that measure."""
    choices = version.choices
    return Choices(
        prevalence=choices.prevalence,
        prevalence_ratio=choices.ratio,
        min_positives=choices.min_positives,
        replicates=config.resampling.replicates,
        validation=choices.validation,
        incomplete=choices.incomplete,
    )


def _measure(
    data: ConceptData, design: Design, metrics: Sequence[Metric]
) -> list[UncorrectedFinding]:
    """Keep the runs of some metrics, and return the findings of the baseline's hit rate."""
    config, version, selection = design.config, design.version, design.selection
    model, seed = data.models[design.model], config.resampling.seed
    labels = data.labels.by_image(model.concepts, version.choices.map)
    scores = model.by_image(version.choices.map)
    measured = concept_metrics(
        scores,
        labels,
        selection.groups,
        metrics,
        choices_of(config, version),
        unlabelled=version.choices.unlabelled,
        concepts=model.concepts,
        units=data.units,
        resampling=design.resampling,
        rng=seed,
    )
    for metric, results in measured.items():
        # The selection says why rows have no group.
        excluded = {**selection.excluded, **results.excluded}
        excluded.pop("missing group", None)
        numbers = replace(results, excluded=excluded)
        design.measured[design.keys[metric]] = Run(design, numbers, summarise(numbers))
    if config.hit_rate is None or not {*version.changes} <= {"map"}:
        return []
    hit_resampling = resampling_of(config, len(config.models) * len(config.data.groups))
    estimate = concept_hit_rate(
        scores, labels, selection.groups, k=config.hit_rate,
        others=map(model.matrix.column, model.other_classes(version.choices.map)), units=data.units,
        resampling=hit_resampling, rng=seed,
    )  # fmt: skip
    rates = rate_and_gap(estimate, _place(design, version.name if version.changes else "default"))
    return [without_verdict(rate, _VERSION_REASON) for rate in rates] if version.changes else rates


def _comparable_choices(choices: Choices, metric: Metric) -> Choices:
    """Return choices that are equal where the numbers of a metric are."""
    choices = replace(choices, metric=metric)
    # A metric that compares groups within each class holds for any prevalence: only [Hall]'s
    # samples give other numbers.
    within_class = null_of(metric, Choices(prevalence="observed")) == "class"
    if choices.prevalence == "weighted" and within_class:
        choices = replace(choices, prevalence="observed")
    if choices.prevalence == "observed":
        choices = replace(choices, prevalence_ratio=1)
    return replace(choices, validation=0.5) if choices.ranked else choices


def _make_groups(
    config: Config, data: ConceptData, attributes: Sequence[str], version: Version
) -> Groups:
    labels: Fields = {}
    for name in attributes:
        column = data.images.coded[version.choices.columns.get(name, name)]
        if terms := version.choices.terms.get(name):
            group = {value: term for term, values in terms.items() for value in values}
            column = column.relabel([group.get(value) for value in column.vocabulary])
        labels[name] = column
    least = config.data.min_group_size
    return group_sizes.groups_by([[*labels]], labels, min_size=least, units=data.units)[0]


def _select_rows(
    config: Config, data: ConceptData, model: str, attributes: Strings, version: Version
) -> Selection:
    """Return the groups of the rows that take part in a version."""
    groups = _make_groups(config, data, attributes, version)
    out = {"no row of labels": data.labels.without, _UNSCORED: data.models[model].without}
    for column, condition in where_of(version.choices.where).items():
        cells = pl.Series(column, data.images.columns[column].tolist(), pl.String)
        in_range = condition.keeps(cells, data.images.name).to_numpy()
        out[f"{column} out of the chosen range"] = ~in_range
    out[_NO_GROUP] = groups.codes < 0
    counts = dict[str, int]()
    remaining: Booleans = np.ones(len(data.images), dtype=np.bool_)
    for reason, excluded in out.items():
        if n := int((excluded & remaining).sum()):
            counts[reason] = n
        remaining &= ~excluded
    codes = np.where(remaining, groups.codes, -1).astype(np.int32)
    return Selection(replace(groups, codes=codes), counts)


def _count_positives(data: ConceptData, design: Design) -> Integers:
    """Count positives by concept and group, shape (concepts, groups)."""
    concepts, name = data.models[design.model].concepts, design.version.choices.map
    labels = data.labels.by_image(concepts, name)
    groups = design.selection.groups
    inside = groups.codes >= 0
    counts = np.zeros((len(concepts), len(groups)), dtype=np.int64)
    for concept, has_concept in enumerate(labels.T):
        counts[concept] = np.bincount(groups.codes[inside & has_concept], minlength=len(groups))
    return counts


def _uncompared_groups(config: Config, data: ConceptData, design: Design) -> Iterator[Note | str]:
    """Name groups that are large enough and yet compared in no concept, with their positives."""
    groups, positives = design.selection.groups, _count_positives(data, design)
    choices = choices_of(config, design.version)
    reasons = np.array([reasons_of(groups, counts, choices) for counts in positives])
    for place in np.flatnonzero(groups.usable & (reasons != "").all(axis=0)):
        best = int(positives[:, place].argmax())
        concept = data.models[design.model].concepts[best]
        yield Note(
            f"{design.model}, {groups.name}",
            f"{groups.names[place]} ({groups.counts[place]} rows) "
            f"is compared in no concept. Its most frequent one, {concept}: {reasons[best, place]}. "
            "Lower `choices.min_positives`, or add images of this group.",
        )


def _smallest_differences(design: Design, positives: Integers, tests: int) -> Row:
    groups, options = design.selection.groups, design.config.testing
    sizes = np.sort(positives[:, groups.usable], axis=1)
    smallest = sizes[np.argsort(sizes[:, 0], kind="stable")[len(sizes) // 2], :2]
    row: Row = {"groups": groups.name, "positives": None, "true_positive_rate_difference": None}
    if smallest[0]:
        first, second = (smallest * (1 - design.version.choices.validation)).tolist()
        difference = minimum_difference(first, second, _RATE, alpha=options.alpha, tests=tests)
        row |= {"positives": smallest.tolist(), "true_positive_rate_difference": difference}
    return row


def _excluded_notes(design: Design) -> Iterator[Note | str]:
    """Say which rows a version leaves out; the base says which of the baseline have no group."""
    version = design.version
    for reason, count in design.selection.excluded.items():
        if reason != _NO_GROUP or version.changes:
            model = f"{design.model}, " if reason == _UNSCORED else ""
            yield Note(
                f"{model}{design.groups.name}, {version.name}", f"{count} rows left out ({reason})."
            )


def _place(design: Design, version: str) -> Place:
    """Return the place of a design's findings."""
    level = design.config.resampling.level
    return Place("concepts", design.model, design.groups.name, version, level)


def _findings(run: Run) -> Iterator[UncorrectedFinding]:
    """Yield the mean over concepts and its pairs of groups, then each concept and its pairs.

    Last each group against all others, where three or more are compared.
    """
    results, place = run.results, _place(run.design, run.design.version.name)
    drafts, pairs = part_findings(run.estimate, place), len(results.pairs)
    means = [draft.finding for draft in drafts[:pairs] if not math.isnan(draft.finding.value)]
    widest = max(means, key=lambda finding: abs(finding.value), default=None)
    by_group = widest.by_group if widest else ()
    yield _complete_finding(
        run, whole(run.estimate, place, Family.COMPOSITE, metric=run.metric, by_group=by_group)
    )
    # The only pair of groups repeats its concept, and adds the sign.
    for draft in drafts[:pairs]:
        pair = _pair_finding(run, draft, "", Family.COMPOSITE)
        yield _complete_finding(run, pair, pairs == 1)
    for index in range(len(results.names)):
        concept, *pair_drafts = drafts[pairs + index * (pairs + 1) :][: pairs + 1]
        tests = _null_fields(run, index)
        compared = results.positives[index][~np.isnan(results.observed[index])]
        sizes = {"fewest_positives": int(compared.min())} if len(compared) else {}
        parameters = plain_parameters({**concept.finding.parameters, **sizes})
        concept = concept.changed(parameters=parameters)
        repeats = int((~np.isnan(results.observed[index])).sum()) == 2
        yield _complete_finding(run, concept.changed(**tests))
        for draft in pair_drafts:
            pair = _pair_finding(run, draft, concept.finding.subject, Family.LEAF)
            yield _complete_finding(run, pair.changed(**tests), repeats)
    for draft in drafts:
        against_rest = draft.finding.aggregate is Aggregate.AGAINST_REST
        # Versions have it for the mean alone.
        if against_rest and not (run.design.version.changes and draft.finding.subject):
            yield _complete_finding(run, _leaf_finding(run, draft))


def _leaf_finding(run: Run, draft: UncorrectedFinding) -> UncorrectedFinding:
    """Return the finding of a group against all others, of a concept or their mean."""
    finding, names = draft.finding, run.results.names
    concept = names.index(finding.subject) if finding.subject else None
    family = Family.COMPOSITE if concept is None else Family.LEAF
    return leaf(draft, spec_of(run.metric), family=family, **_null_fields(run, concept))


def _null_fields(run: Run, concept: int | None) -> Fields:
    """Return the null hypothesis of a concept or of the mean, and its method."""
    method = run.results.null_differences(concept)[1]
    within_class = null_of(run.metric, run.results.choices) == "class"
    permuted = NullHypothesis.WITHIN_CLASS if within_class else NullHypothesis.ROWS
    kind = NullHypothesis.REPLICATES if method == CENTRED else permuted
    return {"null": kind if method else NullHypothesis.NONE, "null_drawn": method}


def _pair_finding(
    run: Run, draft: UncorrectedFinding, concept: str, family: Family
) -> UncorrectedFinding:
    """Name the metric of a pair, where several metrics have pairs of one name."""
    subject = draft.finding.subject
    if run.metric != run.design.config.primary:
        subject = f"{subject} ({spec_of(run.metric).in_audit('concepts').label})"
    # The sign says which group has the larger value: neither side is harmless.
    finding = replace(draft.finding, subject=subject, part_of=concept, family=family)
    return UncorrectedFinding(finding, "either")


def _complete_finding(
    run: Run, draft: UncorrectedFinding, repeats: bool = False
) -> UncorrectedFinding:
    """Set the direction of a finding; leave versions and repeats untested."""
    finding = draft.finding
    draft = draft.changed(direction=_direction(run, finding.by_group))
    if run.results.hall:
        reason = HALL_RULE
    elif run.design.version.changes:
        reason = _VERSION_REASON
    elif math.isnan(finding.value):
        return draft
    elif math.isnan(finding.p_value):
        reason = "no null hypothesis was drawn: resampling.method is none"
    elif repeats:
        reason = "the same comparison as that of the concept or the mean, which is tested"
    else:
        return draft
    return without_verdict(draft, reason)


def _direction(run: Run, by_group: Sequence[GroupValue]) -> Sentence:
    """Name the worse-off group, with the concept's prevalence and the metric."""
    groups = sorted(
        estimable(by_group),
        key=lambda group: group.value,
        reverse=spec_of(run.metric).harm == "higher",
    )
    if len(groups) < 2 or groups[0].value == groups[-1].value:
        return Sentence()
    worst, best = groups[0], groups[-1]
    text = f"{spec_of(run.metric).in_audit('concepts').label} {worst.value:.3f}"
    if worst.note != best.note:
        text += f" ({worst.note})"
    return Sentence(
        "worse for ", named(worst.group), f": {text} against {best.value:.3f} for ",
        named(best.group), f" ({best.note})",
    )  # fmt: skip


def _comparisons(config: Config, runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Return the tables of versions and of their effect on disparities."""
    config_versions = config.every_version
    changes = [
        {"version": version.name, "changes": version.description} for version in config_versions
    ]
    parts: dict[str, list[pa.Table]] = {
        "versions": [table_of(changes, {"version": TEXT, "changes": TEXT})]
    }
    by_groups: dict[tuple[str, str], dict[str, dict[str, ConceptResults]]] = {}
    for run in runs if config.resampling.method != "none" and len(config_versions) > 1 else ():
        models = by_groups.setdefault((run.design.groups.name, run.against), {})
        models.setdefault(run.design.model, {})[run.design.version.name] = run.results
    alpha, steps = config.testing.alpha, steps_of(config)
    if by_groups:
        parts["steps"] = [table_of_steps(steps)]
    for (groups, metric), models in by_groups.items():
        place = {"groups": groups, "metric": metric}
        for model, versions in models.items():
            compared = [*_compare_steps(steps, versions, alpha)]
            compared.append(("robust", robust_conclusions(versions, BASELINE, alpha=alpha)))
            for name, table in compared:
                parts.setdefault(name, []).append(placed(table, {"model": model} | place))
        if len(models) > 1:
            order = model_order(models, BASELINE, alpha=alpha)
            parts.setdefault("model_order", []).append(placed(order, place))
    return {name: pa.concat_tables(tables) for name, tables in parts.items()}


def _compare_steps(
    steps: Sequence[VersionStep], versions: Mapping[str, ConceptResults], alpha: float
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the effects of each step on differences, where both versions have the metric."""
    for step in steps:
        pair = {name: versions[name] for name in step.names if name in versions}
        if len(pair) == len(step.names):
            yield "choices", design_choices(pair, step.baseline.name, alpha=alpha)


def _group_rows(run: Run) -> Iterator[Row]:
    """Yield the value and prevalence of each concept and group."""
    design, results = run.design, run.results
    concept_parts = (
        part
        for part in run.estimate.parts
        if part.metric == run.metric and part.aggregate is Aggregate.DIFFERENCE
    )
    for concept, part in enumerate(concept_parts):
        for group, group_value in enumerate(part.by_group):
            positives, n = int(results.positives[concept, group]), int(results.groups.counts[group])
            yield {
                "model": design.model, "groups": design.groups.name,
                "version": design.version.name, "metric": run.metric, "concept": part.subject,
                "group": group_value.group, "value": group_value.value, "low": group_value.low,
                "high": group_value.high,
                "prevalence": positives / n if n else math.nan, "positives": positives, "n": n,
                "threshold": float(results.thresholds[concept]),
                "reason": results.reasons[concept][group],
            }  # fmt: skip


def _examples(data: ConceptData, model: Scores, mapping: str | None) -> pl.DataFrame:
    """Return the labelled images of each concept, and the others that the model takes for it.

    A model recognises the images with the highest scores, as many as have the label; ties are
    on one side.
    """
    labels = data.labels.by_image(model.concepts, mapping)
    scores = model.by_image(mapping)
    parts = []
    for column, concept in enumerate(model.concepts):
        score = scores[:, column].astype(np.float32)
        scored_images = pl.DataFrame(
            {
                "place": np.arange(len(labels), dtype=np.uint32),
                "has": labels[:, column],
                "score": score,
            }
        ).filter(pl.col("score").is_finite())
        high = pl.col("score").rank("average", descending=True) <= pl.col("has").sum()
        outcome = pl.when("has").then(
            pl.when(high).then(pl.lit("true positive")).otherwise(pl.lit("miss"))
        )
        outcomes = scored_images.with_columns(
            subject=pl.lit(concept),
            outcome=outcome.otherwise(pl.when(high).then(pl.lit("false alarm"))),
        )
        parts.append(outcomes.drop_nulls("outcome"))
    return pl.concat(parts)
