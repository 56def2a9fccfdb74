"""Models of predictions, compared image by image: paired differences, rankings, disagreements."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import scipy

from equipoise.audits import group_sizes
from equipoise.audits.columns import Row
from equipoise.audits.comparison import (
    difference,
    model_names,
    one_model_only,
    prefixed,
    worse_model,
)
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    conclude,
    fact_of,
    judge_by_interval,
    manifest_of,
    untested,
    without_verdict,
)
from equipoise.audits.group_sources import (
    are_predicted,
    notes_on_changes,
    predicted_attributes,
    withhold_changes,
)
from equipoise.audits.labels.designs import (
    groups_of,
    one_group,
    with_folds,
    without_repeats,
)
from equipoise.audits.labels.predictions.changes import (
    EXTREME_METHOD,
    UNTESTED,
    Changes,
    is_extreme,
)
from equipoise.audits.labels.predictions.config import EffectSizeOptions
from equipoise.audits.labels.predictions.effects import main_options
from equipoise.audits.labels.predictions.mistakes import describe_labels
from equipoise.audits.labels.predictions.rate_changes import RateChanges, gaps_of, rates_left
from equipoise.audits.notes import Note, merged
from equipoise.core import (
    Aggregate,
    AuditResult,
    ComparedTo,
    DataError,
    Fact,
    Family,
    Finding,
    Floats,
    Groups,
    IntervalKind,
    Manifest,
    NullHypothesis,
    Part,
    Progress,
    Verdict,
    table_of,
    with_progress,
)
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.data import Coded, PredictionData
from equipoise.data.problems import match
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.accuracy import Accuracy
from equipoise.metrics.labels.answer_rates import unanswered_rate
from equipoise.metrics.labels.confusion_rates import accuracy
from equipoise.metrics.labels.metric import measures_of
from equipoise.metrics.labels.paired import Joint, Pair, Seen, join
from equipoise.metrics.labels.rate import Rate
from equipoise.metrics.labels.rates import rates_of_classes
from equipoise.metrics.labels.unanswered import UNANSWERED, Unanswered
from equipoise.metrics.measure import Measure
from equipoise.metrics.spec import spec_for
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import Result
from equipoise.report.selecting import between_groups, measure_of
from equipoise.report.text import count
from equipoise.report.words import COMPARISON, pair_of, place_text, spec_of_shown
from equipoise.report.words import Pair as ModelPair
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile

if TYPE_CHECKING:
    from equipoise.audits.labels.predictions.config import Config

Runs = Mapping[str, "tuple[Config, PredictionData]"]
Numbers = dict[Fact, Floats]
"""Numbers by what they state, shape (tables,); of subject "" is the whole."""

_NOTHING = np.zeros(0)
_RANKING = {
    **dict.fromkeys(("metric", "aggregate", "compared_to", "groups", "model"), TEXT),
    "value": NUMBER, "rank": INTEGER,
    **dict.fromkeys(("rank_low", "rank_high", "share_best"), NUMBER),
}  # fmt: skip
_DISAGREEMENTS = dict.fromkeys(
    ("groups", "metric_a", "aggregate_a", "group_a", "metric_b", "aggregate_b", "group_b",
     "model_a", "model_b", "sentence"), TEXT,
)  # fmt: skip


class MeasuredCounts(NamedTuple):
    """Joint counts of models by groups, and the measures to take of them.

    Attributes
    ----------
    groups : str
        Name of the groups; "" without groups.
    joint : Joint
    measures : sequence of Measure
    rates : mapping of str to Rate
        Rates that no other measure compares.
    """

    groups: str
    joint: Joint
    measures: Sequence[Measure]
    rates: Mapping[str, Rate] = {}


Contrast = tuple[UncorrectedFinding, Hashable]
"""The difference of two models, and what it was read from: equal ones are equal comparisons."""


def compare(runs: Runs, *, progress: Progress | None = None) -> AuditResult:
    """Compare the models of one run, or of several runs about the same images.

    Each pair is compared on the images that both models answered, so that each difference is
    paired: intervals resample rows (or units) for both at once, tests exchange their answers on a
    row. How often they answer is compared, too. Models are ranked on the images that all
    answered. Groups, metrics, seed and thresholds are those of the first run. As in an audit, what
    the groups' base rates decide or another finding says already is shown without a verdict.

    Parameters
    ----------
    runs : mapping of str to (Config, PredictionData)
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    AuditResult
        One finding per metric, class, groups and pair of models: the second minus the first,
        with both values among its parameters. Tables `ranking`, `disagreements` and
        `group_sizes`.

    Raises
    ------
    DataError
        When runs have no image in common with the first or label one differently, there is one
        model only, or no image has answers of two models.
    """
    started = perf_counter()
    config, data = next(iter(runs.values()))
    models, states = _align_models(runs)
    joints: list[MeasuredCounts] = []
    of_labels: list[MeasuredCounts] = []
    sets: dict[int, list[str]] = {}
    for names in _list_model_sets(models):
        of_labels = [*_count_jointly(config, data, {name: models[name] for name in names})]
        n = max((round(counted.joint.counts.table.sum()) for counted in of_labels), default=0)
        sets.setdefault(n, []).append(" and ".join(names) if len(names) == 2 else "the ranking")
        joints += of_labels
        if config.metrics.has(unanswered_rate):
            answer_states = {name: states[name] for name in names}
            joints += _count_jointly(config, data, answer_states, answers=False)
    if not any(sets):
        raise DataError(
            f"no image has a label and answers of two models: {', '.join(models)}",
            expected="models that answered the same images",
            fix="leave out the model whose answers are missing, or audit it on the same images",
        )
    contrasts: list[Contrast] = []
    ranking: list[Row] = []
    for counted in with_progress(joints, progress, "comparing"):
        model_contrasts, ranking_rows = _compare_models(counted, config)
        contrasts += model_contrasts
        ranking += ranking_rows if len(counted.joint.models) == len(models) else []
    drafts = [
        draft
        for draft in without_repeats(contrasts)
        if config.metrics.reports(fact_of(draft.finding))
    ]
    predicted = predicted_attributes(config for config, _ in runs.values())
    tested = withhold_changes(map(_without_test, drafts), predicted)
    findings = conclude(tested, config.testing)
    manifest = _manifest(runs, sets, predicted, perf_counter() - started)
    manifest = replace(manifest, notes=(*manifest.notes, *merged(_without_group(of_labels))))
    sizes = (
        row for counted in of_labels if counted.groups
        for row in group_sizes.sizes_of(counted.joint.counts.groups)
    )  # fmt: skip
    rankable = [
        row for row in _rankable(ranking, drafts) if not are_predicted(row["groups"], predicted)
    ]
    tables = {
        **_tables(findings, rankable),
        "group_sizes": group_sizes.table(sizes),
    }
    return Result(findings, manifest, tables, conclusions_of(findings))


def _without_group(counted: Iterable[MeasuredCounts]) -> Iterator[Note]:
    """Yield a note on the compared rows that are in no group, for each choice of groups."""
    by_groups = {choice.groups: round(choice.joint.counts.table.sum()) for choice in counted}
    total = max(by_groups.values(), default=0)
    for name, n in by_groups.items():
        if name and n < total:
            yield group_sizes.without_group(name, total - n, "rows")


def contrast(config: Config, data: PredictionData, pair: tuple[Finding, Finding]) -> Finding | None:
    """Compare one number of two models over the images that both answered.

    Parameters
    ----------
    config : Config
    data : PredictionData
    pair : tuple of Finding
        The number of both models, over all classes.

    Returns
    -------
    Finding or None
        The second minus the first; None of numbers that are not compared.
    """
    models, _ = _align_models({"": (config, data)})
    names = [finding.model for finding in pair]
    if not {*names} <= {*models}:
        return None
    number, groups = measure_of(pair[0]), pair[0].groups
    labels = {name: models[name] for name in names}
    for counted in _count_jointly(config, data, labels, groups=groups):
        matching = [
            measure for measure in counted.measures
            if measure.facts(counted.joint.counts)[0] == Fact(*number[:2], "", number[2])
        ]  # fmt: skip
        if matching:
            alone = counted._replace(measures=matching[:1], rates={})
            (draft, _), *_ = _compare_models(alone, config)[0]
            if matching[0].extreme is not None and is_extreme(fact_of(draft.finding)):
                return judge_by_interval(draft, config.testing)
            (finding,) = conclude([draft], config.testing)
            return finding
    return None


def _list_model_sets(models: Iterable[str]) -> list[list[str]]:
    """Return every pair of models, and all of them where there are more than two."""
    names = [*models]
    sets = [[*pair] for pair in combinations(names, 2)]
    if len(names) > 2:
        sets.append(names)
    return sets


def _align_models(runs: Runs) -> tuple[dict[str, Coded], dict[str, Coded]]:
    """Return each model's best predictions of the first run's images, and whether it gave any.

    -1 where its run lacks the image or its label, or the model has no output.
    """
    (first_run, (_, data)), *other_runs = runs.items()
    labelled = data.coded_target.codes >= 0
    rows = {first_run: np.where(labelled, np.arange(len(labelled)), -1)}
    for name, (_, other) in other_runs:
        positions = match(pl.Series(data.ids.astype(str)), pl.Series(other.ids.astype(str)))
        if (positions < 0).all():
            raise DataError(
                f"runs {first_run} and {name} have no image in common",
                expected="runs about the same images",
                fix="audit the models on the same table of labels",
            )
        first_labels, run_labels = data.target, other.target[positions]
        conflicts = np.flatnonzero((positions >= 0) & (first_labels != run_labels))
        if len(conflicts):
            row = conflicts[0]
            raise DataError(
                f"runs {first_run} and {name} label images differently ({len(conflicts)}), first "
                f"{data.ids[row]!r}: {first_labels[row]!r} and {run_labels[row]!r}",
                expected="the same label for the same image",
                fix="audit both models against the same labels and class mapping",
            )
        rows[name] = np.where(labelled, positions, -1)
    models, states = {}, {}
    names = model_names({run: data.models for run, (_, data) in runs.items()})
    for (run, model), name in names.items():
        predictions = runs[run][1].models[model]
        state = predictions.coded_state.take(rows[run])
        missing = (rows[run] < 0) | state.equals("unmatched")
        answered = np.where(missing, -1, state.equals("answered")).astype(np.int32)
        for version, labels in predictions.versions_with_verdicts.items():
            full_name = (
                name if len(predictions.versions_with_verdicts) == 1 else f"{name} ({version})"
            )
            codes = np.where(missing, -1, labels.coded.codes[rows[run]])
            models[full_name] = Coded(codes.astype(np.int32), labels.coded.vocabulary)
            states[full_name] = Coded(answered, (UNANSWERED, "answered"))
    if len(models) < 2:
        raise one_model_only(models)
    return models, states


def _count_jointly(
    config: Config,
    data: PredictionData,
    labels: Mapping[str, Coded],
    *,
    answers: bool = True,
    groups: str | None = None,
) -> Iterator[MeasuredCounts]:
    """Yield counts and measures without groups, then for each choice of groups.

    Of the rows that all models have labels of; without `answers`, these are whether they gave any.
    With `groups`, of the groups of this name alone; "" is without groups.
    """
    rows = np.flatnonzero(np.all([coded.codes >= 0 for coded in labels.values()], axis=0))
    answered_labels = {name: coded.take(rows) for name, coded in labels.items()}
    unit = data.coded_unit
    truth = data.coded_target.take(rows)
    if not answers:
        truth = Coded(np.zeros_like(rows), (UNANSWERED,))
    if not len(rows) or not (
        answers or any((coded.codes == 0).any() for coded in answered_labels.values())
    ):
        return
    units = None if unit is None else unit.take(rows)
    count = partial(join, truth, answered_labels, units=units)
    if groups in (None, ""):
        everyone = replace(
            one_group(len(rows)), min_size=config.data.min_group_size,
            units=None if units is None else units.codes,
        )  # fmt: skip
        joint = count(groups=everyone)
        rates = _rates_left(config, list_measures(config, joint.counts)) if answers else {}
        overall_measures = list[Measure]()
        if not answers:
            overall_measures.append(Unanswered())
        elif config.metrics.has(accuracy):
            overall_measures.append(Accuracy(Aggregate.VALUE, None))
        yield MeasuredCounts("", joint, overall_measures, rates)
    for row_groups in groups_of(config.data, data):
        if groups not in (None, row_groups.name):
            continue
        joint = count(groups=row_groups.take(rows))
        measures = list_measures(config, joint.counts) if answers else [Unanswered()]
        rates = _rates_left(config, measures) if answers else {}
        compared = [measure for measure in measures if measure.facts(joint.counts)]
        yield MeasuredCounts(row_groups.name, joint, [*compared, *gaps_of(rates)], rates)


def _rates_left(config: Config, measures: Iterable[Measure]) -> dict[str, Rate]:
    """Return the rates that are on and that no measure compares."""
    if config.metrics.options("rates") is None:
        return {}
    names = [
        name for name in rates_of_classes()
        if config.metrics.reports(Fact(name, Aggregate.DIFFERENCE))
    ]  # fmt: skip
    return rates_left(names, measures)


def list_measures(config: Config, counts: Counts) -> list[Measure]:
    """Return every metric of labels by group that is switched on."""
    switches = config.metrics.measured
    for name, options in config.metrics:
        if isinstance(options, EffectSizeOptions):
            switches[name] = main_options(options).model_dump()
    return measures_of(counts, switches, config.audit)


def _counts_read(joint: Joint, measure: Measure) -> tuple[bytes, ...]:
    """Return the counts that a measure reads; equal counts give equal values.

    Measures that condition on the true class see how the rows of each class fall into groups, not
    which group of one class goes with which of another.
    """
    truth, cells = joint.truth, []
    by_class = measure.reads_classes_apart(joint.counts)
    for rows in [truth == place for place in np.unique(truth)] if by_class else [truth >= 0]:
        table = joint.counts.table[rows][:, joint.counts.groups.usable]
        nonempty = table.any(axis=1)
        outcomes = np.column_stack([truth[rows][nonempty], joint.labels[rows][nonempty]])
        groups = table[nonempty][:, table.any(axis=0)]
        # The groups' counts of the outcomes, whatever their order.
        cells += [outcomes.tobytes(), *sorted(column.tobytes() for column in groups.T)]
    return tuple(cells)


def _measure(
    measures: Sequence[Measure], views: Sequence[Seen], blocks: Iterable[Floats]
) -> list[Numbers]:
    """Return the numbers of every view, block by block: all tables may not fit."""
    blocks_by_view: list[dict[Fact, list[Floats]]] = [{} for _ in views]
    for block in blocks:
        for view, blocks_by_fact in zip(views, blocks_by_view, strict=True):
            tables = view.tables(block)
            for measure in measures:
                # Columns that no key names are of classes without a number.
                values = zip(
                    measure.facts(view.counts), measure(view.counts, tables).T, strict=False
                )
                for key, block_values in values:
                    blocks_by_fact.setdefault(key, []).append(block_values)
    numbers = list[Numbers]()
    for blocks_by_fact in blocks_by_view:
        numbers.append({fact: np.concatenate(block) for fact, block in blocks_by_fact.items()})
    return numbers


def _compare_models(
    counted: MeasuredCounts, config: Config
) -> tuple[list[Contrast], Iterator[Row]]:
    """Measure all models, and the difference of two; replicates are drawn once for all.

    Also returns the ranks of the models, which are worked out where they are read.
    """
    name, joint, measures, rates = counted
    options, sampler = config.resampling, joint.counts.sampler
    resampled = options.method != "none"
    views = [joint.alone(model) for model in range(len(joint.models))]
    blocks = sampler.bootstrap(options.replicates, options.seed) if resampled else ()
    observed = _measure(measures, views, [joint.counts.table[None]])
    boot = _measure(measures, views, blocks)
    contrasts: list[Contrast] = []
    if len(views) == 2:
        pair, changes = joint.pair(0, 1), Changes(joint, options.level)
        tested = [measure for measure in measures if not is_extreme(measure.facts(joint.counts)[0])]
        swaps = pair.swapped(options.replicates, options.seed) if resampled and tested else ()
        numbers = observed, boot, _measure(tested, pair.views, swaps)
        for measure in measures:
            contrasts += _contrasts(name, joint, measure, pair, numbers, changes, config)
        by_group = [*changes.findings(measures, name)] if name and resampled else []
        if rates and not (name and joint.counts.determines_target):
            rate_changes = RateChanges(
                joint, pair, options.level, options.replicates if resampled else 0, options.seed
            )
            by_group += rate_changes.findings(rates, name, config.data.positive)
        if by_group:
            counts_read = _counts_read(joint, measures[0]) if measures else ()
            contrasts += [(draft, (key, joint.models, counts_read)) for draft, key in by_group]
        if too_few := _too_few(joint.counts.groups):
            contrasts = [(untested(draft, too_few), key) for draft, key in contrasts]
    return contrasts, _ranks(name, joint, measures, observed, boot)


def _ranks(
    name: str,
    joint: Joint,
    measures: Sequence[Measure],
    observed: Sequence[Numbers],
    boot: Sequence[Numbers],
) -> Iterator[Row]:
    """Yield the rank of each model by each measure."""
    counts = joint.alone(0).counts
    for measure in measures:
        overall_fact, *_ = measure.facts(counts)
        values = np.array([model_numbers[overall_fact][0] for model_numbers in observed])
        replicates = np.stack(
            [model_numbers.get(overall_fact, _NOTHING) for model_numbers in boot], axis=1
        )
        ranking_key = {
            "metric": overall_fact.metric, "aggregate": overall_fact.aggregate.value,
            "compared_to": overall_fact.compared_to, "groups": name,
        }  # fmt: skip
        lower_is_worse = (
            spec_for(
                overall_fact.metric, overall_fact.aggregate, overall_fact.compared_to
            ).value_harm
            == "lower"
        )
        yield from _ranking(ranking_key, joint.models, values, replicates, lower=lower_is_worse)


def _too_few(groups: Groups) -> str:
    """Say why the images that two models share decide nothing; "" where they are enough."""
    if groups.usable.any():
        return group_sizes.few_units(groups)
    n = count(len(groups.codes))
    return f"a verdict needs {groups.min_size} images that both models answered, and they share {n}"


def _contrasts(
    name: str,
    joint: Joint,
    measure: Measure,
    pair: Pair,
    numbers: Sequence[list[Numbers]],
    changes: Changes,
    config: Config,
) -> Iterator[Contrast]:
    """Yield the difference of two models as a whole, and per class where there are classes.

    `numbers` has those of the two models: observed, resampled, and with their labels swapped.
    """
    class_codes = np.union1d(pair.counts.truth, pair.counts.prediction)
    classes = tuple(pair.counts.classes[place] for place in class_codes)
    names = joint.models[0], joint.models[1]
    determined, counts_read = joint.counts.determines_target, _counts_read(joint, measure)
    overall_fact, *class_facts = facts = measure.facts(pair.counts)
    resampled = config.resampling.method != "none"
    extreme = resampled and measure.extreme is not None and is_extreme(overall_fact)
    ends = dict(zip(facts, changes.ends(measure), strict=True)) if extreme else {}
    for fact in [overall_fact, *(key for key in class_facts if key.subject in classes)]:
        # A model has no number of classes that it doesn't show.
        paired = []
        for first, second in numbers:
            missing = np.nan * first.get(overall_fact, _NOTHING)
            other_missing = np.nan * second.get(overall_fact, _NOTHING)
            paired.append([first.get(fact, missing), second.get(fact, other_missing)])
        (before, after), boot, null = paired
        metric, subject = fact.metric, fact.subject
        values = float(before[0]), float(after[0])
        if subject and np.isnan(values).all():
            continue
        worse = worse_model(fact, values, names)
        unestimated = [
            model for model, value in zip(names, values, strict=True) if math.isnan(value)
        ]
        reason = measure.no_test
        if unestimated:
            reason = f"no value of {', '.join(unestimated)}, as the audit explains"
        usable = joint.counts.groups.usable
        n = round(joint.counts.table[:, usable if usable.any() else ~usable].sum())
        part = Part(
            metric, subject, values[1] - values[0], n=n, reason=reason, aggregate=fact.aggregate
        )
        models_pair = ModelPair(*names, values, worse)
        place = Place(COMPARISON, models_pair.name, name, "default", config.resampling.level)
        if extreme:
            draft = _extreme_draft(part, models_pair, place, ends[fact], joint, fact.compared_to)
        else:
            draft = _draft(
                part, models_pair, place, unit=joint.counts.unit, boot=boot[1] - boot[0],
                null=null[1] - null[0], compared_to=fact.compared_to,
                described=bool(measure.no_test),
            )  # fmt: skip
        (draft,) = with_folds([draft], classes=classes, determined=determined)
        if worse and measure.of_mistakes and not measure.no_test:
            of_worse = numbers[0][names.index(worse)]
            draft = draft.changed(beside=_name_mistakes(joint, worse, fact, of_worse))
        yield draft, (fact, names, counts_read)


def _name_mistakes(joint: Joint, model: str, fact: Fact, numbers: Numbers) -> str:
    """Name a model's wrong labels by group, in a class or that of its largest effect."""
    by_class = {
        key.subject: float(values[0])
        for key, values in numbers.items()
        if key.subject and not math.isnan(values[0])
    }
    subject = fact.subject or max(by_class, key=lambda name: by_class[name], default="")
    counts = joint.alone(joint.models.index(model)).counts
    text = describe_labels(counts, subject) if subject in counts.classes else ""
    return f"{model}: {text}." if text else ""


def _extreme_draft(
    part: Part,
    pair: ModelPair,
    place: Place,
    ends: tuple[float, float],
    joint: Joint,
    compared_to: ComparedTo,
) -> UncorrectedFinding:
    """Return the finding of an extreme's change, with its interval and without a test."""
    if not math.isnan(part.value):
        part = replace(part, low=ends[0], high=ends[1], chance=0.0)
    unit = joint.counts.unit
    return difference(
        part, pair, place, family=Family.LEAF if part.subject else Family.COMPOSITE, unit=unit,
        method=f"{EXTREME_METHOD}; over {unit}s", null=NullHypothesis.NONE, null_drawn="",
        compared_to=compared_to, interval=IntervalKind.SIMULTANEOUS,
    )  # fmt: skip


def _without_test(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Describe the change of an extreme; other drafts keep their test."""
    return without_verdict(draft, UNTESTED) if is_extreme(fact_of(draft.finding)) else draft


def _rankable(ranking: Iterable[Row], drafts: Iterable[UncorrectedFinding]) -> list[Row]:
    """Leave out metrics that repeat others, or follow from base rates."""
    repeats = {
        (*measure_of(draft.finding), draft.finding.groups)
        for draft in drafts
        if draft.finding.family is Family.DESCRIPTIVE
        and draft.finding.interval is not IntervalKind.SPREAD
        and not draft.finding.subject
    }
    places = ("metric", "aggregate", "compared_to", "groups")
    return [row for row in ranking if tuple(row[name] for name in places) not in repeats]


def _draft(
    part: Part,
    pair: ModelPair,
    place: Place,
    *,
    unit: str,
    boot: Floats,
    null: Floats,
    compared_to: ComparedTo,
    described: bool,
) -> UncorrectedFinding:
    """Return the finding of a difference: its paired interval, and a test of no difference."""
    estimable = not math.isnan(part.value)
    method, text = f"paired percentile bootstrap over {unit}s, {len(boot)} replicates", ""
    kind = IntervalKind.SPREAD if described else IntervalKind.PERCENTILE
    if not len(boot):
        method = "none: resampling is off"
    elif described:
        method = (
            f"resampling spread: percentiles of {len(boot)} paired bootstrap replicates over "
            f"{unit}s; not a confidence interval"
        )
    if len(boot) and estimable:
        # Replicates of a value near its limit, such as an effect size of 0, lie above it.
        low, high = (float(end) for end in percentile(boot, place.level))
        part = replace(part, low=min(low, part.value), high=max(high, part.value))
    if len(null) and estimable and not described:
        # Swapping all rows turns the sign, so the mean over all swaps is 0, whatever was drawn.
        chance_band, p = band(null), p_value(null, part.value, "either")
        part = replace(
            part, chance=0.0, chance_low=chance_band.low, chance_high=chance_band.high,
            p_value=p.value, p_at_most=p.at_most,
        )  # fmt: skip
        text = f"the two models are exchangeable on each {unit}; {len(null)} swaps"
    exchanged = NullHypothesis.MODELS if text else NullHypothesis.NONE
    family = Family.LEAF if part.subject else Family.COMPOSITE
    family = Family.DESCRIPTIVE if described else family
    return difference(
        part, pair, place, family=family, unit=unit, method=method,
        null=exchanged, null_drawn=text,
        compared_to=compared_to, interval=kind,
    )  # fmt: skip


def _manifest(
    runs: Runs, sets: Mapping[int, Sequence[str]], predicted: Collection[str], seconds: float
) -> Manifest:
    """Describe the comparison: settings of the first run, inputs of all."""
    first, (config, data) = next(iter(runs.items()))
    notes = ["Each pair of models is compared on the images that both answered."]
    notes += [
        f"{', '.join(models)}: {n} of {len(data.ids)} labelled images have answers of all."
        if n else f"{', '.join(models)}: no image has answers of all, so nothing is compared."
        for n, models in sets.items()
    ]  # fmt: skip
    inputs, counts = data.inputs, data.counts
    if len(runs) > 1:
        notes.append(f"Groups, metrics, thresholds and seed come from run {first}.")
        inputs = prefixed({run: run_data.inputs for run, (_, run_data) in runs.items()})
        counts = {run: run_data.counts for run, (_, run_data) in runs.items()}
    return manifest_of(
        **config.record, base=Path(), inputs=inputs, counts=counts, seconds=seconds,
        notes=(*notes, *merged(notes_on_changes(predicted))),
    )  # fmt: skip


def _tables(findings: Sequence[Finding], ranking: Sequence[Row]) -> dict[str, pa.Table]:
    """Return the tables `ranking` and `disagreements`."""
    findings_by_pair = [
        (finding, pair) for finding in between_groups(findings) if (pair := pair_of(finding))
    ]
    return {
        "ranking": table_of(ranking, _RANKING),
        "disagreements": table_of(_disagreements(findings_by_pair), _DISAGREEMENTS),
    }


def _ranking(
    ranking_key: Row, models: Sequence[str], values: Floats, replicates: Floats, *, lower: bool
) -> Iterator[Row]:
    """Yield the rank of each model by its value, and the ranks of paired replicates.

    `lower` says that lower values are worse.
    """
    sign = -1 if lower else 1
    # 1 is best; ties share the best rank, NaN has none.
    all_ranks = scipy.stats.rankdata(
        sign * np.concatenate([values[None], replicates]),
        method="min", axis=1, nan_policy="omit",
    )  # fmt: skip
    ranks, replicate_ranks = all_ranks[0], all_ranks[1:]
    for place in np.argsort(ranks, kind="stable").tolist():
        model_ranks = replicate_ranks[:, place]
        estimable_ranks = model_ranks[~np.isnan(model_ranks)]
        low, high, share_best = math.nan, math.nan, math.nan
        if len(estimable_ranks):
            low, high = np.quantile(estimable_ranks, (0.025, 0.975)).tolist()
            share_best = float((estimable_ranks == 1).mean())
        yield ranking_key | {
            "model": models[place],
            "value": float(values[place]),
            "rank": None if math.isnan(ranks[place]) else int(ranks[place]),
            "rank_low": low,
            "rank_high": high,
            "share_best": share_best,
        }


def _disagreements(compared: Sequence[tuple[Finding, ModelPair]]) -> Iterator[Row]:
    """Yield pairs of metrics that call opposite models better, both with a verdict of difference.

    Accuracy over all images is held against every set of groups, other metrics against those of
    their own groups.
    """
    disparities = [
        (finding, pair)
        for finding, pair in compared
        if finding.tested and finding.verdict is Verdict.DISPARITY and not finding.subject
    ]
    for (a, first), (b, second) in combinations(disparities, 2):
        same_comparison = a.model == b.model and a.groups in ("", b.groups)
        if same_comparison and first.worse != second.worse:
            yield {
                "groups": b.groups,
                "metric_a": a.metric,
                "aggregate_a": a.aggregate.value,
                "group_a": a.group,
                "metric_b": b.metric,
                "aggregate_b": b.aggregate.value,
                "group_b": b.group,
                "model_a": first.first,
                "model_b": first.second,
                "sentence": f"{_describe_preference(a, first)}; {_describe_preference(b, second)}.",
            }


def _describe_preference(finding: Finding, pair: ModelPair) -> str:
    over = place_text(finding)
    sides = zip((pair.first, pair.second), pair.values, strict=True)
    (better, value), (_, other) = sorted(sides, key=lambda side: side[0] == pair.worse)
    return (
        f"{spec_of_shown(finding).label}{over} prefers {better} ({value:.3f} against {other:.3f})"
    )
