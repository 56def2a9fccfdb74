"""The audit of predictions: labels of models against true classes, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.audits.against_rest import against_rest
from equipoise.audits.broken import broken, trivial_hits
from equipoise.audits.cells import Cell, Mix, Outcomes
from equipoise.audits.columns import Row, placed, tables_of
from equipoise.audits.config import group_name, resampling_of
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    rate_and_gap,
    whole,
    without_verdict,
)
from equipoise.audits.kind import Audit, Measured, audit_kind
from equipoise.audits.labels.absent_states import (
    UNANSWERED,
    absent_gaps,
    counted_rows,
    unanswered_share,
)
from equipoise.audits.labels.answer_levels import one_answer
from equipoise.audits.labels.designs import (
    LabelDesign,
    MeasuredLabels,
    findings_of,
    groups_of,
    list_comparisons,
    notes_left_out,
    notes_of_rows,
    notes_of_targets,
    notes_of_texts,
    right_or_wrong,
    with_folds,
)
from equipoise.audits.labels.mix import mix_of
from equipoise.audits.labels.predictions.comparison import (
    compare,
    contrast,
    list_measures,
)
from equipoise.audits.labels.predictions.config import Config, ModelConfig
from equipoise.audits.labels.predictions.effects import (
    Correlations,
    columns_of,
    columns_of_classes,
    describe_correlations,
    describe_effects,
    effect_sizes,
    main_options,
    rows_of_classes,
    rows_of_correlations,
    tables_of_models,
)
from equipoise.audits.labels.predictions.leveling import level_data, outcomes_of, sample_data
from equipoise.audits.labels.predictions.levels import pooled_rates
from equipoise.audits.labels.predictions.mistakes import describe_mistakes, with_mistakes
from equipoise.audits.labels.predictions.parity import beside_labels
from equipoise.audits.labels.predictions.score_metrics import COLUMNS as SCORE_COLUMNS
from equipoise.audits.labels.predictions.score_metrics import (
    ScoredDesign,
    metrics_of_scores,
    notes_of_scores,
)
from equipoise.audits.labels.predictions.scores import (
    ModelScores,
    curves,
    note_of,
    read_scores,
    verdict_ranges,
)
from equipoise.audits.labels.unresolved import with_unresolved, worksheet_of
from equipoise.audits.limits import Assumed, Limit, limit_of_mistakes
from equipoise.audits.notes import Note
from equipoise.audits.outputs import NOT_YET_KNOWN, Models, average_prompts
from equipoise.audits.ratios import with_ratios
from equipoise.core import (
    Aggregate,
    AnyArray,
    AuditResult,
    ConfigError,
    Facts,
    Family,
    Fields,
    Finding,
    Floats,
    Groups,
    Progress,
    Strings,
    record,
    table_of,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.data import (
    Coded,
    ModelPredictions,
    PredictionData,
    Reading,
    join_predictions,
    read_predictions,
)
from equipoise.data.labels import Choices, Outputs, read_labels
from equipoise.data.problems import listed
from equipoise.evidence.examples import NO_ANSWER
from equipoise.evidence.zero_shot import best, prompts, zero_shot
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.accuracy import Accuracy, HitRate, hits
from equipoise.metrics.labels.confusion_rates import accuracy
from equipoise.metrics.labels.effect_sizes import (
    MEV_SWEEP,
    SkewSize,
    dropped_columns,
    mev_sweep,
)
from equipoise.metrics.labels.rates import rates
from equipoise.metrics.measure import Measure, measure
from equipoise.metrics.spec import SPECS
from equipoise.models.protocols import DESCRIPTIONS
from equipoise.stats import minimum_effect_size, sample_size_for_difference
from equipoise.stats.threads import each

if TYPE_CHECKING:
    from equipoise.evidence import Pictures
    from equipoise.stats.resampling import Resampling

# Seconds for one cell of a resampled table, all metrics together, and for a design whatever its
# size: rough guides, from the example.
_SECONDS_PER_CELL, _SECONDS_PER_DESIGN = 2e-7, 0.1
# Classes that a note lists.
_LISTED = 5
# Beyond this many classes only wrong predictions are listed: right ones are n minus their sum.
_ALL_CELLS = 200
_MOST_CELLS_OF_TEXTS = 20_000
"""Cells of a table of raw texts by group for which replicates are drawn."""
_COLUMNS = {
    "confusions": {
        "class": TEXT,
        "group": TEXT,
        "prediction": TEXT,
        "count": INTEGER,
        "n": INTEGER,
    },
    "threshold_curves": {
        "model": TEXT,
        "groups": TEXT,
        "group": TEXT,
        "metric": TEXT,
        "threshold": NUMBER,
        "value": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "n": INTEGER,
    },
    "threshold_verdicts": {
        "model": TEXT,
        "groups": TEXT,
        "metric": TEXT,
        "verdict": TEXT,
        "threshold": NUMBER,
        "low": NUMBER,
        "high": NUMBER,
        "least": NUMBER,
        "most": NUMBER,
    },
}
_COLUMNS |= SCORE_COLUMNS
_STATES = {"model": TEXT, "state": TEXT, "count": INTEGER}


@record
class ScoredData(PredictionData):
    """Labels and predictions, with the scores that predictions were made of.

    Attributes
    ----------
    scores : mapping of str to ModelScores
        By model.
    """

    scores: Mapping[str, ModelScores]


@record
class Design(LabelDesign):
    """One model's predictions in one version, compared between one set of groups.

    Attributes
    ----------
    all_groups : sequence of Groups
        Groups of the same rows by each choice of attributes.
    first : bool
        Whether these are the first groups of the model and version.
    score_metrics : int
        Metrics of scores that are measured.
    """

    all_groups: Sequence[Groups] = ()
    first: bool = False
    score_metrics: int = 0

    @property
    def resolved_tests(self) -> int:
        """Tests for which p-values are drawn finely enough."""
        classes = len(self.data.classes)
        if self.wording:
            return 0
        if self.counts.determines_target:
            return (1 if classes == 2 else classes) + 2
        labels = (10 if classes == 2 else 9 * classes) + 7
        groups = int(self.groups.usable.sum())
        return labels + self.score_metrics * (1 + (groups if groups > 2 else 0))

    def seconds(self, draws: int) -> float:
        """About how long it takes to measure."""
        size = 0 if self.wording else self.counts.table.size
        return _SECONDS_PER_DESIGN + size * draws * _SECONDS_PER_CELL


@audit_kind("predictions")
class Predictions(Audit[Config, ScoredData, Design]):
    """Audits of predictions."""

    def load(self, config: Config, models: Models) -> ScoredData:
        """Read the labels, read or run each model, and join them by id."""
        data = config.data
        images = models.read_images(data.pictures, data.columns)
        labels = data.labels(models.source(images, data.columns))
        tables = {
            name: section.source(
                models.base, prediction=section.prediction, top=section.top,
                probabilities=section.probabilities,
            )
            for name, section in config.models.items()
            if section.score is None and section.model is None
        }  # fmt: skip
        reads: list[Callable[[], Any]] = [
            partial(models.once, "labels", lambda: read_labels(labels)),
            *(partial(read_predictions, table, model=name, id_column=labels.id)
              for name, table in tables.items()),
        ]  # fmt: skip
        truth, *table_outputs = each(lambda read: read(), reads)
        from_tables = dict(zip(tables, table_outputs, strict=True))
        outputs: dict[str, tuple[Outputs, Reading]] = {}
        scores: dict[str, ModelScores] = {}
        for name, section in config.models.items():
            if section.score is not None:
                outputs_read, scores[name] = read_scores(
                    name, section, truth, data.positive, models.base
                )
            elif section.model is None:
                outputs_read = from_tables[name]
            else:
                outputs_read = predict_labels(models, name, section, images.need_pictures(name))
            # Labels may be any text: answers, and labels that aren't known yet.
            unknown = outputs_read.planned and outputs_read.choices is None
            free = section.open_vocabulary or outputs_read.content == "answers" or unknown
            outputs[name] = (
                outputs_read,
                section.reading(name, models.base, open_vocabulary=free, maps=section.every_map),
            )
        classes = truth.target.vocabulary
        if data.positive is not None and (data.positive not in classes or len(classes) > 2):
            raise ConfigError(
                f"data.positive: given {data.positive!r}; expected one of two classes, and "
                f"{data.target} has {listed(classes, _LISTED)}"
            )
        joined = join_predictions(truth, outputs, max_unmatched=data.max_unmatched)
        return ScoredData(**vars(joined), scores=scores)

    def groups(self, config: Config, data: ScoredData) -> list[Groups]:
        """Return the groups of all labelled images."""
        return groups_of(config.data, data)

    def designs(self, config: Config, data: ScoredData) -> list[Design]:
        """Return every combination of model, version and groups."""
        first_groups = group_name(config.data.groups[0])
        score_metrics = {
            name: len(metrics_of_scores(scores.values, config.metrics.measured))
            for name, scores in data.scores.items()
        }
        return [
            Design(
                model,
                version,
                groups,
                data,
                rows,
                all_groups=all_groups,
                first=groups.name == first_groups,
                score_metrics=score_metrics.get(model, 0),
            )
            for model, version, groups, all_groups, rows in list_comparisons(config.data, data)
        ]

    def measure(
        self,
        config: Config,
        data: ScoredData,
        design: Design,
        resampling: Resampling | None,
    ) -> Measured:
        """Measure one design with everything that the config asks for."""
        metrics, place = config.metrics, design.place(self.name, config.resampling.level)
        if design.wording:
            return _measure_wording(design, config, place, resampling)
        findings = [*_describe_levels(design, config, replace(place, groups=""))]
        gaps, measured = self._gaps(config, data, design, resampling)
        findings += gaps
        absent = () if metrics.only else {UNANSWERED} - {draft.finding.metric for draft in gaps}
        findings += absent_gaps(
            absent, counted_rows(design), design.groups, design.units, place, resampling
        )
        if design.first and not metrics.only:
            findings.append(unanswered_share(design, replace(place, groups=""), resampling))
        tables, classes = _tables_of(design, measured, config)
        findings += _score_findings(design, data, config, place, resampling)
        tables |= _tables_over_thresholds(design, data, config, place)
        findings += _describe_classes(design, config, place, classes, resampling)
        notes = tuple(notes_left_out(place, measured.left_out))
        compared = tuple(with_ratios(findings, design.by_class.classes))
        return Measured(compared, tables | worksheet_of(design), notes)

    def recount(
        self, config: Config, data: ScoredData, design: Design
    ) -> Iterator[UncorrectedFinding]:
        """Yield the values of one design in which groups are compared."""
        place = design.place(self.name, config.resampling.level)
        if design.wording:
            yield from _measure_wording(design, config, place, None).findings
            return
        gaps, _ = self._gaps(config, data, design, None)
        gaps += _score_findings(design, data, config, place, None)
        yield from with_ratios(gaps, design.by_class.classes)

    def _gaps(
        self,
        config: Config,
        data: ScoredData,
        design: Design,
        resampling: Resampling | None,
    ) -> tuple[list[UncorrectedFinding], MeasuredLabels]:
        """Compare groups in one design by every metric of labels."""
        metrics, seed, level = config.metrics, config.resampling.seed, config.resampling.level
        place, counts = design.place(self.name, level), design.counts
        by_class = design.by_class
        measured = findings_of(
            by_class, list_measures(config, by_class), place, resampling, seed, texts=counts,
            positive=config.data.positive,
        )  # fmt: skip
        equivalent_groups = next(
            (
                other_groups.name
                for other_groups in design.all_groups
                if design.splits_as(other_groups)
            ),
            "",
        )
        folds: Fields = {"determined": design.determined, "equivalent_groups": equivalent_groups}
        gaps = [*with_folds(measured.findings, classes=by_class.classes, **folds)]
        candidates: Iterable[UncorrectedFinding] = [*gaps, *against_rest(gaps, by_class)]
        if not by_class.determines_target:
            required = config.parity == "required"
            candidates = beside_labels(
                candidates, by_class, testing=config.testing, level=level, required=required
            )
        findings = [*with_mistakes(with_unresolved(candidates, by_class), counts)]
        if metrics.effect_sizes is not None:
            effects = effect_sizes(metrics.effect_sizes)
            for version, ranked in design.ranked():
                ranked_place = design.place(self.name, level, version)
                association_measures: list[Measure] = [effects, SkewSize(**effects.params)]
                ranks = findings_of(ranked, association_measures, ranked_place, resampling, seed)
                folded = with_folds(ranks.findings, classes=ranked.classes, **folds)
                findings += with_mistakes(with_unresolved([*folded], ranked), ranked)
        findings += _hit_findings(design, data, config, place, resampling)
        gaps = right_or_wrong(design, place, resampling, seed)
        findings += with_unresolved([*gaps, *against_rest(gaps)], by_class)
        return findings, measured

    def outcomes(self, design: Design) -> Outcomes | None:
        """Count right predictions by group and true class; None of raw texts."""
        return outcomes_of(design)

    def mix(self, config: Config, design: Design) -> Mix:
        """Return the rates over all rows, and the classes and attributes of the rows."""
        version = design.place(self.name, config.resampling.level).version
        return mix_of(design, version=version, state_version=version, with_subject=True)

    def level(self, data: ScoredData, design: Design, cell: Cell) -> ScoredData:
        """Return data in which a model's rows of a cell have the outcomes of the other groups."""
        return level_data(data, design, cell)

    def sample(self, data: ScoredData, share: float, seed: int) -> ScoredData:
        """Return data of a random share of the rows, in which causes are examined."""
        return sample_data(data, share, seed)

    def combine(self, config: Config, data: ScoredData, measured: Sequence[Measured]) -> Measured:
        """Add the counts of row states, and SkewSize over models, to the results of all designs."""
        findings = (draft.finding for part in measured for draft in part.findings)
        tables = tables_of_models(findings, config.resampling.level)
        tables["states"] = _table_of_states(data)
        return Measured.together([Measured(tables=tables), *measured])

    def details(
        self,
        config: Config,
        data: ScoredData,
        designs: Sequence[Design],
        tests: Mapping[str, int],
    ) -> Facts:
        """Return rows, classes, rows of each model, and the smallest effects to be seen.

        Per model, version and groups: the smallest difference in accuracy and the smallest
        Cramér's V within a class that the two smallest groups, or the smallest class, would show
        with a power of 80 %; and the rows per group that the practical threshold asks for.
        """
        return {
            "rows": len(data.ids),
            "classes": len(data.classes),
            "models": [
                {
                    "model": name,
                    "answered": predictions.rows("answered"),
                    "unanswered": sum(map(predictions.rows, ("missing", "unknown", "refused"))),
                    "without_prediction": int(predictions.coded_state.equals("unmatched").sum()),
                    "without_label": predictions.without_label,
                    "versions": [*predictions.versions],
                }
                for name, predictions in data.models.items()
            ],
            "detectable": [
                _smallest_effects(design, config, max(tests[design.model], 1))
                for design in designs
                if not design.wording
            ],
        }

    def limits(
        self, config: Config, data: ScoredData, designs: Sequence[Design], assumed: Assumed
    ) -> Iterator[Limit | None]:
        """Yield how common mistakes must be for effect sizes, of each model and its groups."""
        options = config.metrics.effect_sizes
        if options is None or options.formulation != "separation":
            return
        for design in designs:
            if design.wording:
                continue
            counts, least = design.counts, options.min_expected
            cells = counts.by_truth(counts.observed)[0][counts.targets]
            at_hand = config.models[design.model].model is None
            yield limit_of_mistakes(
                f"{design.model}, {design.groups.name}", cells[:, counts.groups.usable], least,
                assumed, common=_second_shares(counts) if at_hand else None,
            )  # fmt: skip

    def notes(
        self, config: Config, data: ScoredData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return the notes on the data and on how groups and classes go together."""
        yield from notes_of_rows(data.models)
        yield from notes_of_targets(designs)
        yield from notes_of_texts(data.models)
        yield from _notes_of_unused_maps(data)
        for name, model_scores in data.scores.items():
            yield note_of(name, model_scores, str(config.data.positive))
            yield from notes_of_scores(name, model_scores.values, config.metrics.measured)
        for design in designs:
            facts = data.counts["models"][design.model]["versions"][design.version]
            if outside := facts.get("choices_outside"):
                key = f"models.{design.model}"
                yield Note(
                    design.model,
                    f"no row has {listed(outside, _LISTED)} as data.target, "
                    f"{config.data.target}, and these are classes of the model. If it predicts "
                    f"one of them, the audit stops after the model has run. Map them under "
                    f"{key}.map, or set {key}.open_vocabulary: true.",
                )

    def warnings(
        self, config: Config, data: ScoredData, designs: Sequence[Design]
    ) -> Iterable[Note | str]:
        """Return models that are constant, at chance, or fail in one group."""
        yield from broken(designs)
        if (rate := config.metrics.hit_rate) is None:
            return
        for design in designs:
            if design.first and (k := _hits_at(design, data, rate.k)):
                yield from trivial_hits(design.model, k, _n_classes(design, data))

    def save(self, folder: Path, data: ScoredData) -> None:
        """Write the labels and predictions of every image, which `compare` pairs."""
        from equipoise.evidence import write_predictions

        write_predictions(folder, data)

    def examples(self, config: Config, data: ScoredData) -> dict[str, pl.DataFrame]:
        """Return hits of each class, and wrong predictions of both classes that they are about."""
        return {
            name: _examples_of_model(data.coded_target, predictions)
            for name, predictions in data.models.items()
        }

    def contrast(
        self,
        config: Config,
        data: PredictionData,
        findings: Sequence[Finding],
        pair: tuple[Finding, Finding],
    ) -> Finding | None:
        """Compare one number of two models over the images that both answered."""
        return contrast(config, data, pair)

    def compare(
        self,
        runs: Mapping[str, AuditResult],
        folders: Mapping[str, Path],
        progress: Progress | None = None,
    ) -> AuditResult:
        """Compare models image by image."""
        from equipoise.audits.config import parse_config
        from equipoise.evidence import read_predictions

        pairs = {}
        for name, run in runs.items():
            config = parse_config(
                run.manifest.resolved, source=str(folders[name] / "manifest.json")
            )
            assert isinstance(config, Config)  # noqa: S101 - the kind decides the schema
            pairs[name] = config, read_predictions(folders[name])
        return compare(pairs, progress=progress)


def _measure_wording(
    design: Design, config: Config, place: Place, resampling: Resampling | None
) -> Measured:
    """Describe how texts as they are written depend on the group.

    Texts may be as many as rows: of large tables no replicates are drawn.
    """
    effects = [measure for measure in list_measures(config, design.counts) if measure.of_mistakes]
    if design.counts.table.size > _MOST_CELLS_OF_TEXTS:
        resampling = None
    seed = config.resampling.seed
    measured = findings_of(design.counts, effects, place, resampling, seed)
    reason = "wording: the content of the texts is tested instead"
    described = (
        without_verdict(draft, reason) for draft in measured.findings if not draft.finding.subject
    )
    return Measured(tuple(described), _tables_of(design, measured, config)[0])


def _scored(design: Design, data: ScoredData, config: Config) -> ScoredDesign | None:
    """Return the scores of a design; None of labels."""
    scores = data.scores.get(design.model)
    if scores is None:
        return None
    positive = str(config.data.positive)
    return ScoredDesign(design, scores.values, positive, config.metrics.measured)


def _score_findings(
    design: Design,
    data: ScoredData,
    config: Config,
    place: Place,
    resampling: Resampling | None,
) -> Iterator[UncorrectedFinding]:
    """Yield what metrics of scores say; nothing of labels."""
    scored_design = _scored(design, data, config)
    if scored_design is not None:
        seed = config.resampling.seed
        yield from scored_design.findings(place, resampling, seed, first=design.first)


def _tables_over_thresholds(
    design: Design, data: ScoredData, config: Config, place: Place
) -> dict[str, pa.Table]:
    """Return the rates of each group over thresholds, and where verdicts hold; none of labels."""
    model_scores, scored_design = data.scores.get(design.model), _scored(design, data, config)
    if model_scores is None or scored_design is None:
        return {}
    positive, costs = str(config.data.positive), config.models[design.model].costs
    rows: dict[str, Iterable[Row]] = {
        "threshold_curves": curves(design, model_scores, positive, costs, place.level),
        "threshold_verdicts": verdict_ranges(
            design, model_scores, positive, config.testing, place, config.resampling.seed
        ),
        "calibration": scored_design.calibration(place.level),
        "calibrated": scored_design.calibrated(),
    }
    return tables_of(rows, _COLUMNS)


def _n_classes(design: Design, data: PredictionData) -> int:
    """Count the classes of the target and of the model's ranked labels."""
    top = design.predictions.coded_top
    return len({*data.classes, *(top.vocabulary if top is not None else ())})


def _hits_at(design: Design, data: PredictionData, k: int) -> int:
    """Return the `k` of a hit rate below the number of classes; 0 if none is above 1."""
    top, classes = design.predictions.coded_top, _n_classes(design, data)
    if top is None or classes <= 2:
        return 0
    return min(k, int(top.codes.shape[1]), classes - 1)


def _hit_findings(
    design: Design,
    data: PredictionData,
    config: Config,
    place: Place,
    resampling: Resampling | None,
) -> Iterator[UncorrectedFinding]:
    """Yield hit rates; none for two classes, where k = 1 is accuracy and k = 2 always hits."""
    rate, top = config.metrics.hit_rate, design.predictions.coded_top
    if rate is None or top is None or not (k := _hits_at(design, data, rate.k)):
        return
    labels = top.take(design.rows).values
    counted = hits(design.target.values, labels, design.groups, k=k, units=design.units)
    measured = measure(counted, [HitRate(k)], resampling, config.resampling.seed)
    findings = [*rate_and_gap(measured[0], place)]
    yield from (*findings, *against_rest(findings))


def _describe_levels(design: Design, config: Config, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield accuracy and rates over all labelled rows, whatever their groups, once."""
    if not design.first:
        return
    yield from one_answer(design, place)
    if config.metrics.has(accuracy):
        resampling, seed = resampling_of(config, 1), config.resampling.seed
        estimate = measure(design.overall, [Accuracy(Aggregate.VALUE, None)], resampling, seed)[0]
        yield whole(estimate, place, Family.DESCRIPTIVE)
    if config.metrics.has(rates):
        yield from pooled_rates(design.overall, place, config.data.positive)


def _describe_classes(
    design: LabelDesign,
    config: Config,
    place: Place,
    classes: Sequence[Row],
    resampling: Resampling | None,
) -> Iterator[UncorrectedFinding]:
    """Yield descriptive findings of the classes: effect sizes and wrong labels."""
    metrics, seed = config.metrics, config.resampling.seed
    if metrics.effect_sizes is not None:
        yield from describe_effects(design, place, metrics.effect_sizes, resampling, seed)
        yield from describe_correlations(classes, place, place.level)
    if metrics.mistake_rate is not None:
        yield from describe_mistakes(design, metrics.mistake_rate, place, resampling, seed)


def _smallest_effects(design: LabelDesign, config: Config, tests: int) -> Row:
    alpha, overall, counts = config.testing.alpha, design.overall, design.counts
    right = overall.table[overall.truth == overall.prediction].sum() / overall.table.sum()
    # Away from 0 and 1, where a difference could go one way only.
    accuracy = float(np.clip(right, 0.05, 0.95))
    shares_of_right = (spec for spec in SPECS.values() if spec.of_answered)
    threshold, effect = config.testing.threshold(next(shares_of_right)) or 0.05, None
    by_class = counts.by_truth(counts.table[None])[0][counts.targets]
    n, groups = by_class.sum(axis=1), (by_class > 0).sum(axis=1)
    place, labels = int(n.argmin()), len(counts.targets)
    if min(labels, smallest := int(groups[place])) > 1:
        df, divisor = (smallest - 1) * (labels - 1), min(smallest, labels) - 1
        effect = minimum_effect_size(int(n[place]), df, divisor, alpha=alpha, tests=tests)
    return {
        "model": design.model, "version": design.version, "groups": design.groups.name,
        "accuracy_difference": design.detectable(accuracy, alpha, tests),
        "rows_per_group_wanted": sample_size_for_difference(
            accuracy, threshold, alpha=alpha, tests=tests
        ),
        "cramers_v": effect,
    }  # fmt: skip


def _notes_of_unused_maps(data: PredictionData) -> Iterator[Note | str]:
    """Name entries of class mappings that no row used: perhaps a typing error."""
    facts_of = {"data": data.counts["labels"]}
    for model, counts in data.counts["models"].items():
        facts_of |= {f"{model}, {name}": facts for name, facts in counts["versions"].items()}
    for section, facts in facts_of.items():
        if labels := facts.get("map_unused"):
            yield Note(section, f"no row has the label of map entries {', '.join(labels)}.")


def _second_shares(counts: Counts) -> Floats:
    """Return the share of each class's rows that its second most common label has."""
    rows = counts.observed[0][:, counts.groups.usable].sum(axis=1)
    shares = []
    for target in counts.targets.tolist():
        *_, second, first = sorted((0.0, 0.0, *rows[counts.truth == target].tolist()))
        total = float(rows[counts.truth == target].sum())
        shares.append(second / total if first else 0.0)
    return np.array(shares)


def _tables_of(
    design: LabelDesign, measured: MeasuredLabels, config: Config
) -> tuple[dict[str, pa.Table], list[Row]]:
    """Return the tables of one design by name, see docs/run-directory.md, and its classes."""
    place = {"model": design.model, "groups": design.groups.name, "version": design.version}
    effect_options = config.metrics.effect_sizes
    dropped = dict[str, tuple[int, int]]()
    tables = dict[str, pa.Table]()
    if effect_options is not None:
        options = main_options(effect_options).model_dump()
        dropped = dropped_columns(design.counts, **options)
        options.pop("min_expected")
        tables["mev_sweep"] = mev_sweep(design.counts, effect_options.sweep or MEV_SWEEP, **options)
    classes = [*rows_of_classes(design, measured, dropped)]
    rows: dict[str, Iterable[Row]] = {
        "classes": classes,
        "confusions": _rows_of_confusions(design),
        "correlations": rows_of_correlations(classes, config.resampling.level),
    }
    columns = _COLUMNS | {
        "classes": columns_of_classes(),
        "correlations": columns_of(Correlations),
    }
    by_name = {name: table_of(table_rows, columns[name]) for name, table_rows in rows.items()}
    return {name: placed(table, place) for name, table in (by_name | tables).items()}, classes


def _rows_of_confusions(design: LabelDesign) -> Iterator[Row]:
    counts = design.counts
    totals = counts.by_truth(counts.table[None])[0]
    everything = len(counts.classes) <= _ALL_CELLS
    for outcome, group in np.argwhere(counts.table).tolist():
        truth, predicted = counts.truth[outcome], counts.prediction[outcome]
        if everything or truth != predicted:
            yield {
                "class": counts.classes[truth],
                "group": counts.groups.names[group],
                "prediction": counts.classes[predicted],
                "count": round(counts.table[outcome, group]),
                "n": round(totals[truth, group]),
            }


def _table_of_states(data: PredictionData) -> pa.Table:
    """Return the states of all rows of each model, as the table `states`."""
    rows: list[Row] = []
    for name, model in data.models.items():
        states = model.coded_state.sizes() | {"without label": model.without_label}
        rows += [{"model": name, "state": state, "count": n} for state, n in states.items() if n]
    return table_of(rows, _STATES)


def predict_labels(models: Models, name: str, section: ModelConfig, pictures: Pictures) -> Outputs:
    """Run a model, and rank the labels of each image, or take its answers.

    Raises
    ------
    ConfigError
        When the model lacks the vocabulary or the question that it needs.
    """
    if section.question is not None:
        outputs = models.answer(name, section, pictures, section.question)
        return replace(outputs, source=f"models.{name}.question", rows=len(outputs.ids))
    if section.vocabulary is None:
        # The last three only to say what they lack.
        offer = models.capability(name, section, "classifier", "encoder", "scorer", "answerer")
        if offer != "classifier":
            lacks = "question" if offer == "answerer" else "vocabulary"
            raise ConfigError(
                f"models.{name}: {section.called} is {DESCRIPTIONS[offer]} and needs a {lacks!r}. "
                "To do: add the question about each image, or list the classes that it "
                "chooses between"
            )
        outputs = models.predict(name, section, pictures)
        return _rank_labels(outputs, outputs.names, section.k, "model")
    words, top = prompts(section.vocabulary, section.templates), None
    if models.capability(name, section, "encoder", "scorer") == "encoder":
        outputs = models.embed_images(name, section, pictures)
        classes = models.embed_texts(name, section, words, on="vocabulary")
        if not outputs.planned:
            # Only the order counts, so the scale doesn't.
            top = zero_shot(outputs.numbers, classes.numbers, scale=1.0, k=section.k).top
    else:
        pairs = models.score_pairs(name, section, pictures, words.texts)
        outputs = average_prompts(pairs, words)
    return _rank_labels(outputs, words.names, section.k, "vocabulary", top)


def _rank_labels(
    outputs: Outputs, names: Strings, k: int, key: str, top: AnyArray | None = None
) -> Outputs:
    """Return outputs as labels by rank: from the places of the best names, else from the scores.

    Of a planned run random names stand for those that aren't known yet.
    """
    choices = None
    if outputs.planned:
        k = min(k, len(names) or 1)
        first = np.random.default_rng(0).integers(len(names) or 1, size=(len(outputs.ids), 1))
        top = (first + np.arange(k)) % (len(names) or 1)
        choices = Choices(names, k, listed=key == "vocabulary") if names else None
    elif top is None:
        top = best(outputs.numbers, k)
    # Two classes may share a name, so texts are coded anew.
    codes = Coded.of(pl.Series("", names or (NOT_YET_KNOWN,), dtype=pl.String))
    return replace(
        outputs,
        content="labels",
        source=f"models.{outputs.model}.{key}",
        labels=Coded(codes.codes[top], codes.vocabulary),
        values=None,
        names=(),
        rows=len(outputs.ids),
        choices=choices,
    )


def _examples_of_model(target: Coded, model: ModelPredictions) -> pl.DataFrame:
    """Return images by true class, and wrong predictions again by the class predicted."""
    labels = next(iter(model.versions.values()))
    rows = pl.DataFrame(
        {
            "place": np.arange(len(target.codes), dtype=np.uint32),
            "subject": pl.Series(target.values.tolist(), dtype=pl.String),
            "label": pl.Series(labels.coded.values.tolist(), dtype=pl.String),
            "score": None if labels.probabilities is None else labels.probabilities.max(axis=1),
        }
    ).filter(pl.col("subject").is_not_null())
    right, unanswered = pl.col("subject") == pl.col("label"), pl.col("label").is_null()
    by_class = rows.with_columns(
        outcome=pl.when(unanswered)
        .then(pl.lit(NO_ANSWER))
        .when(right)
        .then(pl.lit("true positive"))
        .otherwise(pl.lit("miss"))
    )
    wrong = rows.filter(~right).with_columns(
        outcome=pl.lit("false alarm"), subject=pl.col("label"), label=pl.col("subject")
    )
    return pl.concat([by_class, wrong.select(by_class.columns)])
