"""Effect sizes without a test: further statistics, versions and correlations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from equipoise.audits.columns import Row
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.labels.designs import LabelDesign, MeasuredLabels
from equipoise.audits.labels.predictions.config import (
    EffectSizeOptions,
    EffectVersionOptions,
    SkewSizeOptions,
)
from equipoise.core import Estimate, Family, Finding, Part, table_of
from equipoise.core.columns import INTEGER, NUMBER, TEXT, Columns
from equipoise.core.finding import plain_parameters, schema_of
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.effect_profile import CORRELATES
from equipoise.metrics.labels.effect_sizes import EffectSizes, SkewSize
from equipoise.metrics.labels.metric import switches_about
from equipoise.metrics.measure import Topic, measure
from equipoise.metrics.rankings.subjects import correlation
from equipoise.metrics.spec import band_of, records, spec_of_finding
from equipoise.stats.intervals import divide
from equipoise.stats.resampling import Resampling

if TYPE_CHECKING:
    import pyarrow as pa

OF_VERSION = "a version of the effect sizes: the main one is tested"
FEWEST_CORRELATED = 4
"""Classes that a correlation with an interval needs."""
LEAST_MODELS = 3
"""Models that a correlation over models needs."""
OF_CLASSES = "descriptive: this run's classes aren't a sample of classes"
OF_STATISTIC = "another statistic of the same tables, whose first statistic is tested"


def main_options(options: EffectSizeOptions) -> SkewSizeOptions:
    """Return the options of the effect sizes that are tested."""
    statistic, *_ = options.statistic
    return SkewSizeOptions(
        statistic=statistic,
        min_expected=options.min_expected,
        yates=options.yates,
        formulation=options.formulation,
    )


def effect_sizes(options: EffectSizeOptions) -> EffectSizes:
    """Return the measure of the tested effect sizes, by the first statistic."""
    return EffectSizes(**main_options(options).model_dump())


def list_versions(options: EffectSizeOptions) -> dict[str, SkewSizeOptions]:
    """Return the options of further versions by name: the sweep, then named ones."""
    main = main_options(options)
    changes = {
        f"minimum expected count {value:g}": EffectVersionOptions(min_expected=value)
        for value in options.sweep
    }
    return {
        name: main.model_copy(update=change.model_dump(exclude_none=True))
        for name, change in (changes | dict(options.versions)).items()
    }


def describe_effects(
    design: LabelDesign,
    place: Place,
    options: EffectSizeOptions,
    resampling: Resampling | None,
    seed: int,
) -> Iterator[UncorrectedFinding]:
    """Yield further findings on effect sizes, without verdicts."""
    counts, main = design.counts, effect_sizes(options)
    for statistic in options.statistic[1:]:
        (estimate,) = measure(counts, [replace(main, statistic=statistic)], resampling, seed)
        yield from _describe_classes(estimate, place, OF_STATISTIC)
    for name, version in list_versions(options).items():
        version_place = replace(place, version=f"{place.version}, {name}")
        yield from _describe_version(
            counts, version_place, version, resampling, seed, by_class=name in options.versions
        )


def _describe_version(
    counts: Counts,
    place: Place,
    options: SkewSizeOptions,
    resampling: Resampling | None,
    seed: int,
    *,
    by_class: bool,
) -> Iterator[UncorrectedFinding]:
    """Yield the mean effect size and SkewSize of a version, and the effect size of each class."""
    effects = EffectSizes(**options.model_dump())
    mean, skewsize = measure(counts, [effects, SkewSize(**effects.params)], resampling, seed)
    mean_fact, *_ = effects.facts(counts)
    described = whole(mean, place, Family.DESCRIPTIVE, metric=mean_fact.metric)
    yield without_verdict(described, OF_VERSION)
    yield whole(skewsize, place, Family.DESCRIPTIVE)
    if by_class:
        yield from _describe_classes(mean, place, OF_VERSION)


def _describe_classes(
    estimate: Estimate, place: Place, reason: str
) -> Iterator[UncorrectedFinding]:
    """Yield the effect size of each class that can be estimated."""
    for draft in parts(estimate, place):
        if not math.isnan(draft.finding.value):
            yield without_verdict(draft, reason)


@dataclass(frozen=True)
class ClassNumbers:
    """Numbers of a class, as columns of the table `classes`."""

    n: int
    accuracy: float
    worst_group: str
    worst_group_accuracy: float
    gap: float
    effect_size: float
    effect_low: float
    effect_high: float
    effect_chance: float
    band: str
    columns_dropped: int
    rows_dropped: int
    reason: str


def columns_of_classes() -> Columns:
    """Return the columns of the table `classes`: its numbers, and a gap of each metric."""
    gaps = dict.fromkeys(switches_about(Topic.GAPS), NUMBER)
    return {"class": TEXT, **columns_of(ClassNumbers), **gaps}


def columns_of(row: type) -> Columns:
    """Return the columns of rows of a type."""
    return {field.name: field.type for field in schema_of(row)}


def rows_of_classes(
    design: LabelDesign, measured: MeasuredLabels, dropped: Mapping[str, tuple[int, int]]
) -> Iterator[Row]:
    """Yield the row of each class; `dropped` are labels and rows that its effect size lacks."""
    counts = design.counts
    hits, totals = counts.hits(counts.observed)[0], counts.by_truth(counts.observed)[0]
    shares, n = divide(hits, totals), totals.sum(axis=1)
    accuracy, lowest = divide(hits.sum(axis=1), n), np.fmin.reduce(shares, axis=1)
    worst = np.where(np.isnan(shares), np.inf, shares).argmin(axis=1)
    effects = {part.subject: part for part in measured.effects}
    no_effect = Part("", "", math.nan, reason="effect sizes are switched off")
    gaps = {
        metric: {part.subject: part.value for part in measured.gaps.get(metric, ())}
        for metric in switches_about(Topic.GAPS)
    }
    for index in counts.targets.tolist():
        name = counts.classes[index]
        effect = effects.get(name, no_effect)
        columns, rows = dropped.get(name, (0, 0))
        numbers = ClassNumbers(
            n=round(n[index]), accuracy=accuracy[index],
            worst_group=counts.groups.names[worst[index]] if n[index] else "",
            worst_group_accuracy=lowest[index], gap=accuracy[index] - lowest[index],
            effect_size=effect.value, effect_low=effect.low, effect_high=effect.high,
            effect_chance=effect.chance, band=band_of(effect.value), columns_dropped=columns,
            rows_dropped=rows, reason=effect.reason,
        )  # fmt: skip
        by_metric = {metric: values.get(name, math.nan) for metric, values in gaps.items()}
        yield {"class": name, **vars(numbers), **by_metric}


def describe_correlations(
    classes: Sequence[Row], place: Place, level: float
) -> Iterator[UncorrectedFinding]:
    """Yield the correlation, over classes, of the effect size with each other number."""
    for other, estimate in _correlate(classes, level):
        if estimate.parts[0].n < FEWEST_CORRELATED:
            continue
        draft = whole(estimate, place, Family.DESCRIPTIVE, metric=CORRELATES[other])
        parameters = plain_parameters({"p_value": estimate.p_value})
        yield without_verdict(draft.changed(parameters=parameters), OF_CLASSES)


@dataclass(frozen=True)
class Correlations:
    """Correlations over classes, as a row of the table `correlations`."""

    x: str
    y: str
    classes: int
    pearson: float
    pearson_low: float
    pearson_high: float
    pearson_p: float
    spearman: float
    spearman_p: float
    reason: str


def rows_of_correlations(classes: Sequence[Row], level: float) -> Iterator[Row]:
    """Yield the same correlations as rows of a table, with Spearman's."""
    for other, estimate in _correlate(classes, level):
        pearson, spearman = estimate.parts
        if pearson.n < FEWEST_CORRELATED:
            reason = f"fewer than {FEWEST_CORRELATED} classes"
            pearson, spearman = (Part("", "", math.nan, n=pearson.n, reason=reason),) * 2
        row = Correlations(
            x="effect_size", y=other, classes=pearson.n, pearson=pearson.value,
            pearson_low=pearson.low, pearson_high=pearson.high, pearson_p=pearson.p_value,
            spearman=spearman.value, spearman_p=spearman.p_value, reason=pearson.reason,
        )  # fmt: skip
        yield vars(row)


def _correlate(classes: Sequence[Row], level: float) -> Iterator[tuple[str, Estimate]]:
    effects = [row["effect_size"] for row in classes]
    for other in CORRELATES:
        yield other, correlation(effects, [row[other] for row in classes], level=level)


_PLACE = ("model", "groups", "version")
_CORRELATION_COLUMNS = {
    "groups": TEXT,
    "version": TEXT,
    "x": TEXT,
    "y": TEXT,
    "models": INTEGER,
    "pearson": NUMBER,
    "pearson_low": NUMBER,
    "pearson_high": NUMBER,
    "pearson_p": NUMBER,
    "reason": TEXT,
}


class Profile(NamedTuple):
    """Columns of numbers in a model's profile.

    Attributes
    ----------
    shapes : list of str
        Of numbers that describe the shape of the effect sizes; their ends have columns, too.
    accuracies : list of str
        Of shares of right rows, which shapes are correlated with over models.
    others : list of str
    """

    shapes: list[str]
    accuracies: list[str]
    others: list[str]

    @classmethod
    def of_records(cls) -> Profile:
        """Return the columns that records name."""
        profile = cls([], [], [])
        for spec in records():
            if spec.profile:
                untested = profile.shapes if spec.threshold is None else profile.others
                columns = profile.accuracies if spec.of_answered else untested
                columns.append(spec.profile)
        return profile

    @property
    def columns(self) -> Columns:
        """All columns, with the place of the numbers."""
        shapes = [f"{name}{end}" for name in self.shapes for end in ("", "_low", "_high")]
        names = [*shapes, *self.others, *self.accuracies]
        return dict.fromkeys(_PLACE, TEXT) | dict.fromkeys(names, NUMBER)


def tables_of_models(findings: Iterable[Finding], level: float) -> dict[str, pa.Table]:
    """Return shapes of effect sizes and accuracies by model, and their correlations."""
    profile = Profile.of_records()
    profiles: dict[tuple[str, str, str], Row] = {}
    overall: dict[tuple[str, str], Row] = {}
    for finding in findings:
        column = "" if finding.subject else spec_of_finding(finding).profile
        if column and not finding.groups:
            overall.setdefault((finding.model, finding.version), {})[column] = finding.value
        elif column:
            place = finding.model, finding.groups, finding.version
            row = profiles.setdefault(place, dict(zip(_PLACE, place, strict=True)))
            row[column] = finding.value
            if column in profile.shapes:
                row |= {f"{column}_low": finding.ci_low, f"{column}_high": finding.ci_high}
    unknown = dict.fromkeys([*profile.others, *profile.accuracies], math.nan)
    rows = [
        {**unknown, **row, **overall[model, version]}
        for (model, _, version), row in profiles.items()
        if (model, version) in overall and {*profile.shapes} & {*row}
    ]
    related = _correlate_models(rows, profile, level)
    return {
        "model_profiles": table_of(rows, profile.columns),
        "model_correlations": table_of(related, _CORRELATION_COLUMNS),
    }


def _correlate_models(rows: Sequence[Row], profile: Profile, level: float) -> Iterator[Row]:
    by_place: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_place.setdefault((row["groups"], row["version"]), []).append(row)
    for (groups, version), panel in by_place.items():
        pairs = product(profile.shapes, profile.accuracies)
        for names in pairs if len(panel) >= LEAST_MODELS else ():
            first, second = ([row[name] for row in panel] for name in names)
            pearson = correlation(first, second, level=level).parts[0]
            yield {
                "groups": groups, "version": version, "x": names[0], "y": names[1],
                "models": pearson.n, "pearson": pearson.value, "pearson_low": pearson.low,
                "pearson_high": pearson.high, "pearson_p": pearson.p_value,
                "reason": pearson.reason,
            }  # fmt: skip
