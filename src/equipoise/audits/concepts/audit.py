"""The audit of concepts: scores of multi-label classifiers by group, under several choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.concepts import results
from equipoise.audits.concepts.config import Config, Version
from equipoise.audits.concepts.data import ConceptData, load
from equipoise.audits.concepts.results import Run
from equipoise.audits.config import group_name
from equipoise.audits.findings import rate_and_gap
from equipoise.core.arrays import Booleans, Integers, Integers32
from equipoise.core.errors import DataError
from equipoise.core.groups import Groups
from equipoise.metrics.scores.cells import Metric
from equipoise.metrics.scores.disparity import concept_hit_rate, concept_metrics, summarise
from equipoise.metrics.scores.measure import Choices, permutations_of, reasons_of
from equipoise.report.text import listed
from equipoise.stats.power import minimum_difference
from equipoise.stats.resampling import Bootstrap

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import RowsConfig
    from equipoise.audits.concepts.data import Rows
    from equipoise.audits.findings import UncorrectedFinding
    from equipoise.audits.group_sizes import Row
    from equipoise.audits.outputs import Models
    from equipoise.data import Coded
    from equipoise.metrics.scores.measure import ConceptResults
    from equipoise.stats.resampling import Resampling

Key = tuple[object, ...]

# Why rows take no part: those that only scores decide, and those that the base counts.
_UNSCORED, _NO_GROUP = "no row of scores", "no group"
# Metrics that hold for any prevalence: only [Hall]'s samples give other numbers.
_ANY_PREVALENCE = ("auroc", "true_positive_rate", "false_positive_rate")
# Seconds for a row of a concept in one replicate of a metric, and shuffled once: rough guides. The
# first from 300 concepts of 100,000 images in three versions (docs/audits/concepts.md).
_SECONDS_PER_ROW, _SECONDS_PER_SHUFFLED = 1.5e-9, 1e-8
# The true positive rate of the smallest differences of a plan.
_RATE = 0.8
# Names that a note lists.
_LISTED = 8


@dataclass(frozen=True, eq=False)
class Cut:
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
        """Groups of the rows that take part, and of those that lack an attribute alone."""
        codes = self.groups.codes[self.groups.codes >= 0]
        none = np.full(self.excluded.get(_NO_GROUP, 0), -1, dtype=np.int32)
        return replace(self.groups, codes=np.concatenate([codes, none]))


@dataclass(frozen=True, eq=False)
class Design:
    """One model in one version, compared between one set of groups.

    Attributes
    ----------
    config : Config
    model : str
    version : Version
    baseline, cut : Cut
        The rows of the baseline, and of this version.
    metrics : mapping of Metric to Key
        Metrics of the version, the one that stands for it first; equal keys have equal numbers.
    measured : tuple of Metric
        Those that no earlier version has measured.
    concepts : int
    """

    config: Config
    model: str
    version: Version
    baseline: Cut
    cut: Cut
    metrics: Mapping[Metric, Key]
    measured: tuple[Metric, ...]
    concepts: int

    @property
    def groups(self) -> Groups:
        """Groups of the baseline."""
        return self.baseline.labelled

    @property
    def lacking(self) -> Mapping[str, int]:
        """Rows that take no part in the baseline, by reason."""
        return self.baseline.excluded

    @property
    def tests(self) -> int:
        """About how many tests of concepts the baseline makes; versions aren't tested."""
        if self.version.changed:
            return 0
        pairs = self._pairs
        return len(self.config.metrics) * self.concepts * (pairs if pairs < 2 else 1 + pairs)

    @property
    def _pairs(self) -> int:
        usable = int(self.cut.groups.usable.sum())
        return usable * (usable - 1) // 2

    @property
    def resampling(self) -> Bootstrap | None:
        """Resampling that is fine enough for the tests of concepts that are corrected together.

        Those of the baseline are one family over groups and metrics; a version's are corrected by
        themselves, in the table of choices.
        """
        tests = self.tests * len(self.config.data.groups) or self.concepts * self._pairs
        return resampling_of(self.config, tests)

    def seconds(self, _: int) -> float:
        """About how long it takes to measure."""
        resampling = self.resampling
        if resampling is None:
            return 0.0
        rows, shuffled = int((self.cut.groups.codes >= 0).sum()), 0
        if self.version.choices.prevalence != "hall":
            shuffled = permutations_of(resampling, rows=rows, concepts=self.concepts)
        drawn = self.config.resampling.replicates * _SECONDS_PER_ROW
        passes = 1.0 + 0.2 * (len(self.metrics) - 1)
        return rows * self.concepts * passes * (drawn + shuffled * _SECONDS_PER_SHUFFLED)


@dataclass(frozen=True)
class MeasuredVersion(Measured):
    """What a design gave: the results of each metric by key, and the findings of hit rates."""

    design: Design | None = None
    results: Mapping[Key, ConceptResults] = field(default_factory=dict)


@audit_kind("concepts")
class Concepts(Audit[Config, ConceptData, Design]):
    """Audits of concepts."""

    def load(self, config: Config, models: Models) -> ConceptData:
        """Read images, labels and every model's scores."""
        return load(config, models)

    def groups(self, config: Config, data: ConceptData) -> list[Groups]:
        """Return the groups of all rows in the baseline."""
        baseline = config.every_version[0]
        return [_groups(config, data, group, baseline) for group in config.data.groups]

    def designs(self, config: Config, data: ConceptData) -> list[Design]:
        """Return every combination of model, groups and version.

        Raises
        ------
        DataError
            When fewer than two groups of a baseline can be compared, or a version has no row.
        """
        file, designs = data.rows.items.name, []
        for model, scores in data.models.items():
            for attributes in config.data.groups:
                seen: set[Key] = set()
                baseline: Cut | None = None
                for version in config.every_version:
                    cut = _cut(config, data, model, attributes, version)
                    if baseline is None:
                        baseline = cut
                        name = f"groups {group_name(attributes)}: fewer than two groups"
                        others = "groups or terms"
                        group_sizes.check_two(cut.groups, name, "rows", file=file, others=others)
                    _check_rows(cut, version, file)
                    keys = _metrics(config, version, model, attributes)
                    fresh = tuple(metric for metric in keys if keys[metric] not in seen)
                    seen |= {*keys.values()}
                    concepts = len(scores.concepts)
                    designs.append(
                        Design(config, model, version, baseline, cut, keys, fresh, concepts)
                    )
        return designs

    def measure(
        self,
        config: Config,
        data: ConceptData,
        design: Design,
        resampling: Resampling | None,
    ) -> MeasuredVersion:
        """Measure a version with every metric whose numbers no earlier version has."""
        if not design.measured:
            return MeasuredVersion(design=design)
        version, model, cut = design.version, data.models[design.model], design.cut
        labels = data.labels.by_image(model.concepts, version.choices.map)
        scores = model.by_image(version.choices.map)
        if data.rows.items is not data.rows.images:
            labels, scores = labels[data.rows.image], scores[data.rows.image]
        units = None if data.rows.units is None else data.rows.units.values
        findings: list[UncorrectedFinding] = []
        if config.hit_rate is not None and not version.changed:
            tests = len(config.models) * len(config.data.groups)
            estimate = concept_hit_rate(
                scores, labels, cut.groups, k=config.hit_rate, units=units,
                resampling=resampling_of(config, tests), rng=config.resampling.seed,
            )  # fmt: skip
            findings += rate_and_gap(estimate, results.place_of(design, "default"))
        measured = concept_metrics(
            scores,
            labels,
            cut.groups,
            design.measured,
            choices_of(config, version),
            unlabelled=version.choices.unlabelled,
            concepts=model.concepts,
            units=units,
            resampling=design.resampling,
            rng=config.resampling.seed,
        )
        numbers = {
            design.metrics[metric]: replace(one, excluded=_excluded(one, cut))
            for metric, one in measured.items()
        }
        return MeasuredVersion(tuple(findings), design=design, results=numbers)

    def combine(self, config: Config, data: ConceptData, measured: Sequence[Measured]) -> Measured:
        """Compare versions with the baseline, and models with each other."""
        versions = [one for one in measured if isinstance(one, MeasuredVersion)]
        runs = [*_runs(config, versions)]
        tables = results.tables(config, runs)
        findings = [*results.findings(config, runs)]
        findings += [finding for one in versions for finding in one.findings]
        notes = [
            "Only the baseline is tested. Versions show what other choices would find.",
            *(note for one in versions if one.design for note in _left_out(one.design)),
            *_notes_of_runs(runs),
        ]
        return Measured(tuple(findings), tables, tuple(notes))

    def details(
        self,
        config: Config,
        data: ConceptData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return images, rows, concepts of each model, versions, and the smallest differences.

        Per version and groups: concepts that can be compared, and those too rare. Per groups: the
        positives of the median concept in the two smallest groups, and the smallest difference of
        two true positive rates, from 80 % down, that they would show with a power of 80 %.
        """
        first = [one for one in designs if one.model == next(iter(data.models))]
        positives = [(one, _positives(data, one)) for one in first]
        most = max(tests.values())
        return {
            "images": len(data.rows.images),
            "rows": len(data.rows),
            "models": [
                {
                    "model": name,
                    "concepts": len(one.concepts),
                    "images_without_scores": int(one.without.sum()),
                }
                for name, one in data.models.items()
            ],
            "versions": [_version(one, some) for one, some in positives],
            "detectable": [
                _detectable(one, some, most) for one, some in positives if not one.version.changed
            ],
        }

    def notes(self, config: Config, data: ConceptData, designs: Sequence[Design]) -> Iterator[str]:
        """Return, for each model, the labelled concepts that it does not score."""
        wanted = config.concepts or sorted(data.labels.known)
        for model, scores in data.models.items():
            lacking = [name for name in wanted if name not in scores.concepts]
            if lacking:
                yield f"{model}: labelled concepts without scores: {listed(lacking, _LISTED)}."

    def sizes(self, config: Config, data: ConceptData) -> Iterator[Row]:
        """Return the sizes of the groups of the baseline, of the first model."""
        model, baseline = next(iter(config.models)), config.every_version[0]
        for attributes in config.data.groups:
            cut = _cut(config, data, model, attributes, baseline)
            why = "; ".join(f"{reason}: {n}" for reason, n in cut.excluded.items())
            yield from group_sizes.sizes_of(cut.groups, missing=why)


def resampling_of(config: Config, tests: int) -> Bootstrap | None:
    """Return the resampling object of a config, fine enough for the tests."""
    options = config.resampling
    if options.method == "none":
        return None
    finest = config.testing.alpha / (10 * max(tests, 1))
    if options.permutations is not None:
        finest = max(finest, 1.0 / options.permutations)
    return Bootstrap(options.replicates, options.permutations or 1000, options.level, finest)


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


def _metrics(
    config: Config, version: Version, model: str, attributes: tuple[str, ...]
) -> dict[Metric, Key]:
    """Return the metrics of a version, the one that stands for it first, with their keys."""
    choices = version.choices
    rest = tuple(one for one in config.metrics if one != config.primary)
    if version.changed == ("metric",):
        # A version that is another metric says nothing about the others.
        rest = ()
    first = choices.metric or config.primary
    terms = tuple(
        (name, choices.columns.get(name, name), tuple(choices.terms.get(name, {}).items()))
        for name in attributes
    )
    sample = (model, choices.map, choices.unlabelled, tuple(choices.where.items()), terms)
    names = (first, *(one for one in rest if one != first))
    return {metric: (*sample, _comparable(choices_of(config, version), metric)) for metric in names}


def _comparable(choices: Choices, metric: Metric) -> Choices:
    """Return choices that are equal where the numbers of a metric are."""
    choices = replace(choices, metric=metric)
    if choices.prevalence == "weighted" and metric in _ANY_PREVALENCE:
        choices = replace(choices, prevalence="observed")
    if choices.prevalence == "observed":
        choices = replace(choices, prevalence_ratio=1)
    return replace(choices, validation=0.5) if choices.ranked else choices


def _runs(config: Config, measured: Sequence[MeasuredVersion]) -> Iterator[Run]:
    """Yield every metric of every design; equal numbers are summarised once."""
    known: dict[Key, Run] = {}
    for one in measured:
        if one.design is None:
            continue
        design = one.design
        for place, (metric, key) in enumerate(design.metrics.items()):
            against = metric if place else config.primary
            if key in one.results:
                found = one.results[key]
                known[key] = Run(design, metric, against, found, summarise(found))
                yield known[key]
            else:
                first = known[key]
                name = first.design.version.name
                yield Run(design, metric, against, first.results, first.estimate, name)


def _excluded(found: ConceptResults, cut: Cut) -> dict[str, int]:
    """Say why rows have no group, in place of that they have none."""
    rest = {name: n for name, n in found.excluded.items() if name != "missing group"}
    return {**cut.excluded, **rest}


def _groups(
    config: Config, data: ConceptData, attributes: Sequence[str], version: Version
) -> Groups:
    labels: dict[str, Any] = {name: _levels(data.rows, name, version) for name in attributes}
    return Groups.of(labels, min_size=config.data.min_group_size)


def _levels(rows: Rows, attribute: str, version: Version) -> Coded:
    column = rows.items.coded[version.choices.columns.get(attribute, attribute)]
    terms = version.choices.terms.get(attribute)
    if not terms:
        return column
    group = {value: name for name, values in terms.items() for value in values}
    return column.relabel([group.get(value) for value in column.vocabulary])


def _cut(
    config: Config, data: ConceptData, model: str, attributes: tuple[str, ...], version: Version
) -> Cut:
    """Return the groups of the rows that take part in a version."""
    rows = data.rows
    groups = _groups(config, data, attributes, version)
    out = {
        "no row of labels": data.labels.without[rows.image],
        _UNSCORED: data.models[model].without[rows.image],
        **{
            f"{column} out of the range asked for": ~_inside(rows, column, bounds)
            for column, bounds in version.choices.where.items()
        },
        _NO_GROUP: groups.codes < 0,
    }
    counts = {}
    taken: Booleans = np.ones(len(rows), dtype=np.bool_)
    for reason, left in out.items():
        counts[reason] = int((left & taken).sum())
        taken &= ~left
    again = _repeats(rows, groups.codes, taken)
    counts["the image is in the group already"] = int(again.sum())
    codes = np.where(taken & ~again, groups.codes, -1).astype(np.int32)
    return Cut(
        replace(groups, codes=codes),
        {reason: count for reason, count in counts.items() if count},
    )


def _inside(rows: Rows, column: str, bounds: RowsConfig) -> Booleans:
    """Return the rows whose cell is inside the bounds; a missing cell is not."""
    coded = rows.items.coded[column]
    if bounds.values:
        allowed = [text in bounds.values for text in coded.vocabulary]
    elif bounds.min is None and bounds.max is None:
        return np.ones(len(rows), dtype=np.bool_)
    else:
        low = -np.inf if bounds.min is None else bounds.min
        high = np.inf if bounds.max is None else bounds.max
        allowed = [low <= number <= high for number in _numbers(rows, column)]
    return np.array([*allowed, False])[coded.codes]


def _numbers(rows: Rows, column: str) -> Iterator[float]:
    coded = rows.items.coded[column]
    for code, text in enumerate(coded.vocabulary):
        try:
            yield float(text)
        except ValueError:
            raise DataError(
                f"{text!r} is no number",
                file=rows.items.name,
                column=column,
                row=int(np.argmax(coded.codes == code)) + 1,
                expected="a number, because 'where' has a bound on the column",
                fix="correct the cell, list its text under data.images.missing, or name the "
                "texts allowed under 'values'",
            ) from None


def _repeats(rows: Rows, codes: Integers32, taken: Booleans) -> Booleans:
    """Return rows of an image that has an earlier row in the same group."""
    repeated: Booleans = np.zeros(len(rows), dtype=np.bool_)
    if rows.items is rows.images:
        return repeated
    places = np.flatnonzero(taken)
    pairs = rows.image[places] * (int(codes.max(initial=0)) + 1) + codes[places]
    _, first = np.unique(pairs, return_index=True)
    repeated[places] = True
    repeated[places[first]] = False
    return repeated


def _check_rows(cut: Cut, version: Version, file: str) -> None:
    """Refuse a version in which no row takes part."""
    if (cut.groups.codes >= 0).any():
        return
    why = ", ".join(f"{reason}: {count}" for reason, count in cut.excluded.items())
    raise DataError(
        f"groups {cut.groups.name}, version {version.name!r}: no row is left ({why})",
        file=file,
        expected="rows that take part in every version",
        fix=f"change what the version changes ({version.description}), or remove it",
    )


def _positives(data: ConceptData, design: Design) -> Integers:
    """Count positives by concept and group, shape (concepts, groups)."""
    concepts, name = data.models[design.model].concepts, design.version.choices.map
    labels = data.labels.by_image(concepts, name)[data.rows.image]
    groups = design.cut.groups
    inside = groups.codes >= 0
    counted = (np.bincount(groups.codes[inside & one], minlength=len(groups)) for one in labels.T)
    return np.stack([*counted])


def _version(design: Design, positives: Integers) -> Row:
    groups, choices = design.cut.groups, choices_of(design.config, design.version)
    compared = sum("" in reasons_of(groups, one, choices) for one in positives)
    return {
        "version": design.version.name,
        "groups": groups.name,
        "changes": design.version.description,
        "rows": int((groups.codes >= 0).sum()),
        "groups_compared": int(groups.usable.sum()),
        "concepts_compared": compared,
        "concepts_too_rare": len(positives) - compared,
    }


def _detectable(design: Design, positives: Integers, tests: int) -> Row:
    groups = design.cut.groups
    sizes = np.sort(positives[:, groups.usable], axis=1)
    row: Row = {"groups": groups.name, "positives": None, "true_positive_rate_difference": None}
    if sizes.shape[1] < 2:
        return row
    middle = sizes[np.argsort(sizes[:, 0], kind="stable")[len(sizes) // 2]]
    smallest = int(middle[0]), int(middle[1])
    if not smallest[0]:
        return row
    share, alpha = 1 - design.version.choices.validation, design.config.testing.alpha
    difference = minimum_difference(
        smallest[0] * share, smallest[1] * share, _RATE, alpha=alpha, tests=tests
    )
    return row | {"positives": [*smallest], "true_positive_rate_difference": difference}


def _left_out(design: Design) -> Iterator[str]:
    """Say which rows and groups a version leaves out; the base says it of the baseline's groups."""
    version, groups = design.version, design.cut.groups
    for reason, count in design.cut.excluded.items():
        if reason != _NO_GROUP or version.changed:
            model = f"{design.model}, " if reason == _UNSCORED else ""
            yield f"{model}{groups.name}, {version.name}: {count} rows left out ({reason})."
    few = [name for name, usable in zip(groups.names, groups.usable, strict=True) if not usable]
    if few and version.changed:
        yield f"{groups.name}, {version.name}: too few rows to compare: {listed(few, _LISTED)}."


def _notes_of_runs(runs: Sequence[Run]) -> Iterator[str]:
    for run in runs:
        found = run.results
        none = np.isnan(found.observed[:, found.groups.usable]).all(axis=1)
        lacking = [found.names[place] for place in np.flatnonzero(none)]
        if lacking and run.metric == run.against:
            yield (
                f"{run.design.model}, {run.design.groups.name}, {run.design.version.name}: in "
                f"{len(lacking)} of {len(found.names)} concepts fewer than two groups take part, "
                f"and they are not compared: {listed(lacking, _LISTED)}."
            )
    if any(run.results.hall for run in runs):
        yield (
            "Under the protocol of fixed samples (hall) a difference is significant where its "
            "interval excludes 0: the rule of its source, without a p-value."
        )
