"""The audit of predictions: labels of models against true classes, by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.audits.audit import Audit, Measured, audit_kind
from equipoise.audits.config import resampling_of
from equipoise.audits.engines.labels import (
    LabelDesign,
    check_groups,
    findings_of,
    groups_by,
    hit_rate_findings,
    same_numbers_once,
    state_gap,
    without_mirrors,
)
from equipoise.audits.findings import UncorrectedFinding, whole
from equipoise.audits.predictions import tables
from equipoise.audits.predictions.config import Config
from equipoise.audits.predictions.outputs import predict_labels
from equipoise.audits.predictions.tables import effect_sizes, measures_of
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.data import PredictionData, join_predictions, read_predictions
from equipoise.data.labels import read_labels
from equipoise.data.problems import listed
from equipoise.metrics.counts import count
from equipoise.metrics.counts.accuracy import Accuracy
from equipoise.metrics.counts.effect_sizes import SkewSize
from equipoise.metrics.measure import Measure, measure
from equipoise.stats.power import (
    minimum_difference,
    minimum_effect_size,
    sample_size_for_difference,
)

if TYPE_CHECKING:
    from equipoise.audits.kinds import Progress
    from equipoise.audits.outputs import Models
    from equipoise.core.result import AuditResult
    from equipoise.data import Reading
    from equipoise.data.outputs import Outputs
    from equipoise.stats.resampling import Resampling

Row = dict[str, Any]

# Seconds for one cell of a resampled table, all metrics together, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_CELL, _SECONDS_PER_DESIGN = 2e-7, 0.1
# Classes that a note lists.
_LISTED = 5


@dataclass(frozen=True, eq=False)
class Design(LabelDesign):
    """One model's predictions in one version, compared between one set of groups.

    Attributes
    ----------
    first : bool
        Whether these are the first groups of the model and version.
    """

    first: bool = False

    @property
    def tests(self) -> int:
        """About how many tests the design makes; findings that repeat another aren't counted."""
        classes = len(self.data.classes)
        if self.counts.determines_target:
            return (1 if classes == 2 else classes) + 2
        return (10 if classes == 2 else 9 * classes) + 7

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        return _SECONDS_PER_DESIGN + self.counts.table.size * draws * _SECONDS_PER_CELL


@audit_kind("predictions")
class Predictions(Audit[Config, PredictionData, Design]):
    """Audits of predictions."""

    def load(self, config: Config, models: Models) -> PredictionData:
        """Read the labels, read or run each model, and join them by id."""
        data = config.data
        images = models.read_images(data.pictures, data.columns)
        labels = data.labels(images.source(models.base))
        outputs: dict[str, tuple[Outputs, Reading]] = {}
        for name, section in config.models.items():
            if section.model is None:
                source = section.source(
                    models.base, prediction=section.prediction, top=section.top,
                    probabilities=section.probabilities, rank=section.rank,
                )  # fmt: skip
                read = read_predictions(source, model=name, id_column=labels.id)
            else:
                read = predict_labels(models, name, section, images.need_pictures(name))
            # Labels may be any text: answers, and labels that aren't known yet.
            unknown = read.planned and read.choices is None
            free = section.open_vocabulary or read.content == "answers" or unknown
            maps = dict(section.every_map)
            outputs[name] = read, section.reading(name, open_vocabulary=free, maps=maps)
        truth = models.once("labels", lambda: read_labels(labels))
        return join_predictions(truth, outputs, max_unmatched=data.max_unmatched)

    def groups(self, config: Config, data: PredictionData) -> list[Groups]:
        """Return the groups of all labelled images."""
        return [
            groups_by(attributes, data, config.data.min_group_size)
            for attributes in config.data.groups
        ]

    def designs(self, config: Config, data: PredictionData) -> list[Design]:
        """Return every combination of model, version and groups."""
        designs = []
        for model in config.models:
            rows = data.models[model].state != "unmatched"
            groups = [
                groups_by(attributes, data, config.data.min_group_size, rows)
                for attributes in config.data.groups
            ]
            designs += [
                Design(model, version, each, data, rows, first=each is groups[0])
                for version in data.models[model].versions
                for each in groups
            ]
        check_groups((design.groups for design in designs), data)
        return designs

    def measure(
        self,
        config: Config,
        data: PredictionData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design with everything that the config asks for."""
        metrics, seed, level = config.metrics, config.resampling.seed, config.resampling.level
        place = design.place(self.name, level)
        counts = design.counts
        findings = [*self._accuracy(config, design)]
        measures = [*measures_of(config, counts)]
        tested, parts = findings_of(counts, measures, place, resampling, seed)
        findings += without_mirrors(
            tested, classes=counts.classes, determined=counts.determines_target
        )
        if metrics.effect_sizes is not None:
            effects = effect_sizes(metrics.effect_sizes)
            for version, ranked in design.ranked():
                there = design.place(self.name, level, version)
                both: list[Measure] = [effects, SkewSize(**effects.params)]
                findings += findings_of(ranked, both, there, resampling, seed)[0]
        if metrics.hit_rate is not None:
            findings += hit_rate_findings(design, metrics.hit_rate.k, place, resampling, seed)
        if metrics.unanswered_rate is not None:
            states = np.where(design.state == "answered", "answered", "unanswered")
            if "unanswered" in states:
                rows = count(np.full(len(states), "any"), states, design.groups, units=design.units)
                gap = state_gap(rows, "unanswered", "unanswered_rate", place, resampling, seed)
                findings.append(gap)
        return Measured(tuple(findings), tables.of_design(design, parts, config))

    def _accuracy(self, config: Config, design: Design) -> Iterator[UncorrectedFinding]:
        """Measure a model's accuracy over all its labelled rows, whatever their groups."""
        if config.metrics.accuracy is None or not design.first:
            return
        measures = [Accuracy("accuracy", None)]
        resampling, seed = resampling_of(config, 1), config.resampling.seed
        estimate = measure(design.overall, measures, resampling, seed)[0]
        place = design.place(self.name, config.resampling.level)
        yield whole(estimate, replace(place, groups=""), Family.DESCRIPTIVE)

    def combine(
        self, config: Config, data: PredictionData, measured: Sequence[Measured]
    ) -> Measured:
        """Show numbers that several groups share once, and count the states of all rows."""
        states = Measured(tables={"states": tables.states_of_models(data)})
        every = Measured.together([states, *measured])
        return replace(every, findings=tuple(same_numbers_once(every.findings)))

    def details(
        self,
        config: Config,
        data: PredictionData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return rows, classes, rows of each model, and the smallest effects to be seen.

        Per model, version and groups: the smallest difference in accuracy and the smallest
        Cramér's V within a class that the two smallest groups, or the smallest class, would show
        with a power of 80 %; and the rows per group that the practical threshold asks for.
        """
        return {
            "rows": len(data.ids),
            "classes": len(data.classes),
            "models": [_model(name, data) for name in data.models],
            "detectable": [_detectable(each, config, tests[each.model]) for each in designs],
        }

    def notes(
        self, config: Config, data: PredictionData, designs: Sequence[Design]
    ) -> Iterable[str]:
        """Return the notes on the data and on how groups and classes go together."""
        yield from _rows_left_out(data)
        yield from _unused(data)
        for design in designs:
            yield from _of_groups(design, config.data.target)
        for design in designs:
            yield from _may_be_outside(design, config.data.target)

    def save(self, folder: Path, data: PredictionData) -> None:
        """Write the labels and predictions of every image, which `compare` pairs."""
        from equipoise.evidence import write_predictions

        write_predictions(folder, data)

    def compare(
        self,
        runs: Mapping[str, AuditResult],
        folders: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> AuditResult:
        """Compare models image by image."""
        from equipoise.audits.config import parse_config
        from equipoise.audits.predictions.comparison import compare
        from equipoise.evidence import read_predictions

        pairs = {}
        for name, run in runs.items():
            config = parse_config(
                run.manifest.resolved, source=str(folders[name] / "manifest.json")
            )
            assert isinstance(config, Config)  # noqa: S101 - the kind decides the schema
            pairs[name] = config, read_predictions(folders[name])
        return compare(pairs, progress=progress)


def _model(name: str, data: PredictionData) -> Row:
    state = data.models[name].state
    answered, unmatched = int((state == "answered").sum()), int((state == "unmatched").sum())
    return {
        "model": name,
        "answered": answered,
        "unanswered": len(state) - answered - unmatched,
        "without_prediction": unmatched,
        "without_label": data.models[name].without_label,
        "versions": [*data.models[name].versions],
    }


def _detectable(design: LabelDesign, config: Config, tests: int) -> Row:
    alpha, accuracy = config.testing.alpha, _accuracy(design)
    sizes = np.sort(design.groups.counts[design.groups.usable]).tolist()
    threshold, apart, wanted = config.testing.threshold("accuracy_gap") or 0.05, None, None
    if len(sizes) > 1:
        apart = minimum_difference(sizes[0], sizes[1], accuracy, alpha=alpha, tests=tests)
        wanted = sample_size_for_difference(accuracy, threshold, alpha=alpha, tests=tests)
    return {
        "model": design.model, "version": design.version, "groups": design.groups.name,
        "accuracy_difference": apart, "rows_per_group_wanted": wanted,
        "cramers_v": _detectable_v(design, alpha, tests) if len(sizes) > 1 else None,
    }  # fmt: skip


def _accuracy(design: LabelDesign) -> float:
    counts = design.overall
    right = counts.table[counts.truth == counts.prediction].sum()
    # Away from 0 and 1, where a difference could go one way only.
    return float(np.clip(right / counts.table.sum(), 0.05, 0.95))


def _detectable_v(design: LabelDesign, alpha: float, tests: int) -> float | None:
    counts = design.counts
    by_class = counts.by_truth(counts.table[None])[0][counts.targets]
    n, groups = by_class.sum(axis=1), (by_class > 0).sum(axis=1)
    place = int(n.argmin())
    labels = min(len(counts.targets), len(counts.classes))
    if groups[place] < 2 or labels < 2:
        return None
    df, divisor = (int(groups[place]) - 1) * (labels - 1), min(int(groups[place]), labels) - 1
    return minimum_effect_size(int(n[place]), df, divisor, alpha=alpha, tests=tests)


def _may_be_outside(design: LabelDesign, target: str) -> Iterator[str]:
    """Say that a model that is yet to run knows classes that the data do not have."""
    counts = design.data.counts["models"][design.model]["versions"][design.version]
    outside = counts.get("choices_outside", ())
    if outside:
        yield (
            f"{design.model}: no row has {listed(outside, _LISTED)} as data.target, {target}, "
            "and these are classes of the model. Where it predicts one, the audit stops after "
            f"it has run: map them under models.{design.model}.map, or set "
            f"models.{design.model}.open_vocabulary: true."
        )


def _of_groups(design: LabelDesign, target: str) -> Iterator[str]:
    # Who is misgendered is asked by groups of the very gender that is predicted.
    if target in design.groups.attributes:
        yield (
            f"{design.groups.name}: {target} is the target and makes groups, so differences "
            "between these say which classes are found less often. That is bias against people "
            f"only where {target} is an attribute of people, such as gender."
        )
    if design.counts.determines_target:
        yield (
            f"{design.groups.name}: the groups determine the target, so accuracy is tested over "
            "all rows only, not also within each true class."
        )


def _rows_left_out(data: PredictionData) -> Iterator[str]:
    for name, model in data.models.items():
        if model.without_label:
            yield f"{name}: {model.without_label} predictions have no label and are not used."
        for state, what in _STATES.items():
            if n := model.rows(state):
                yield f"{name}: {n} labelled rows {what}."


def _unused(data: PredictionData) -> Iterator[str]:
    """Name entries of class mappings that no row used: perhaps a typing error."""
    facts_of = {"data": data.counts["labels"]}
    for model, counts in data.counts["models"].items():
        for version, facts in counts["versions"].items():
            facts_of[f"{model}, {version}"] = facts
    for where, facts in facts_of.items():
        if labels := facts.get("map_unused"):
            yield f"{where}: no row has the label of map entries {', '.join(labels)}."


_STATES = {
    "unmatched": "have no prediction row and are not used",
    "missing": "have an empty prediction and are left out of accuracy",
    "unknown": 'were answered with "unknown" and are left out of accuracy',
    "refused": "were refused and are left out of accuracy",
}
