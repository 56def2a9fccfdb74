"""Effect sizes without a test: further statistics, versions and correlations."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from equipoise.audits.columns import Row
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    fact_of,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.labels.designs import LabelDesign
from equipoise.audits.labels.predictions.config import (
    EffectSizeOptions,
    EffectVersionOptions,
    SkewSizeOptions,
)
from equipoise.core import Aggregate, Estimate, Fact, Family, Finding, Part, table_of
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.finding import plain_parameters
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.effect_profile import CORRELATES
from equipoise.metrics.labels.effect_sizes import EffectSizes, SkewSize
from equipoise.metrics.measure import measure
from equipoise.metrics.rankings.subjects import correlation
from equipoise.metrics.spec import band_of
from equipoise.stats.intervals import divide
from equipoise.stats.resampling import Resampling

OF_VERSION = "a version of the effect sizes: the main one is tested"
FEWEST_CORRELATED = 4
"""Classes that a correlation with an interval needs."""
LEAST_MODELS = 3
"""Models that a correlation over models needs."""
OF_CLASSES = "descriptive: the classes are those of this run, no sample of classes"
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
    described = whole(mean, place, Family.DESCRIPTIVE, metric="effect_size_mean")
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


def rows_of_classes(
    design: LabelDesign,
    parts: Mapping[str, tuple[Part, ...]],
    dropped: Mapping[str, tuple[int, int]],
) -> Iterator[Row]:
    """Yield the row of each class; `dropped` are labels and rows that its effect size lacks."""
    counts = design.counts
    hits, totals = counts.hits(counts.observed)[0], counts.by_truth(counts.observed)[0]
    shares, n = divide(hits, totals), totals.sum(axis=1)
    accuracy, lowest = divide(hits.sum(axis=1), n), np.fmin.reduce(shares, axis=1)
    worst = np.where(np.isnan(shares), np.inf, shares).argmin(axis=1)
    effects, parity, odds = (
        {part.subject: part for part in parts.get(metric, ())}
        for metric in ("effect_sizes", "demographic_parity", "equalized_odds")
    )
    no_effect = Part("", "", math.nan, reason="effect sizes are switched off")
    for index in counts.targets.tolist():
        name = counts.classes[index]
        effect = effects.get(name, no_effect)
        columns, rows = dropped.get(name, (0, 0))
        yield {
            "class": name,
            "n": round(n[index]),
            "accuracy": accuracy[index],
            "worst_group": counts.groups.names[worst[index]] if n[index] else "",
            "worst_group_accuracy": lowest[index],
            "gap": accuracy[index] - lowest[index],
            "effect_size": effect.value,
            "effect_low": effect.low,
            "effect_high": effect.high,
            "effect_chance": effect.chance,
            "band": band_of(effect.value),
            "columns_dropped": columns,
            "rows_dropped": rows,
            "reason": effect.reason,
            "demographic_parity": parity.get(name, no_effect).value,
            "equalized_odds": odds.get(name, no_effect).value,
        }


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


def rows_of_correlations(classes: Sequence[Row], level: float) -> Iterator[Row]:
    """Yield the same correlations as rows of a table, with Spearman's."""
    for other, estimate in _correlate(classes, level):
        pearson, spearman = estimate.parts
        if pearson.n < FEWEST_CORRELATED:
            reason = f"fewer than {FEWEST_CORRELATED} classes"
            pearson, spearman = (Part("", "", math.nan, n=pearson.n, reason=reason),) * 2
        yield {
            "x": "effect_size",
            "y": other,
            "classes": pearson.n,
            "pearson": pearson.value,
            "pearson_low": pearson.low,
            "pearson_high": pearson.high,
            "pearson_p": pearson.p_value,
            "spearman": spearman.value,
            "spearman_p": spearman.p_value,
            "reason": pearson.reason,
        }


def _correlate(classes: Sequence[Row], level: float) -> Iterator[tuple[str, Estimate]]:
    effects = [row["effect_size"] for row in classes]
    for other in CORRELATES:
        yield other, correlation(effects, [row[other] for row in classes], level=level)


PROFILE_COLUMNS = {
    "model_profiles": {
        "model": TEXT,
        "groups": TEXT,
        "version": TEXT,
        "skewsize": NUMBER,
        "skewsize_low": NUMBER,
        "skewsize_high": NUMBER,
        "mean_effect_size": NUMBER,
        "accuracy": NUMBER,
        "worst_group_accuracy": NUMBER,
        "accuracy_gap": NUMBER,
    },
    "model_correlations": {
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
    },
}
_PROFILE: Mapping[Fact, str] = {
    Fact("skewsize", Aggregate.VALUE): "skewsize",
    Fact("effect_size_mean", Aggregate.VALUE): "mean_effect_size",
    Fact("accuracy", Aggregate.VALUE): "accuracy",
    Fact("accuracy", Aggregate.WORST_GROUP): "worst_group_accuracy",
    Fact("accuracy", Aggregate.DIFFERENCE, "", "overall"): "accuracy_gap",
}
_ACCURACIES = ("accuracy", "worst_group_accuracy", "accuracy_gap")


def tables_of_models(findings: Iterable[Finding], level: float) -> dict[str, pa.Table]:
    """Return SkewSize and metrics of accuracy by model, and their correlations."""
    profiles: dict[tuple[str, str, str], Row] = {}
    overall: dict[tuple[str, str], float] = {}
    for finding in findings:
        column = _PROFILE.get(fact_of(finding))
        if column == "accuracy" and not finding.groups:
            overall[finding.model, finding.version] = finding.value
        elif column is not None and finding.groups:
            place = finding.model, finding.groups, finding.version
            row = profiles.setdefault(place, dict(zip(_PROFILE_KEYS, place, strict=True)))
            row[column] = finding.value
            if column == "skewsize":
                row |= {"skewsize_low": finding.ci_low, "skewsize_high": finding.ci_high}
    rows = [
        {**dict.fromkeys(_PROFILE.values(), math.nan), **row,
         "accuracy": overall[model, version]}
        for (model, _, version), row in profiles.items()
        if (model, version) in overall and "skewsize" in row
    ]  # fmt: skip
    tables = {"model_profiles": rows, "model_correlations": [*_correlate_models(rows, level)]}
    return {name: table_of(tables[name], columns) for name, columns in PROFILE_COLUMNS.items()}


_PROFILE_KEYS = ("model", "groups", "version")


def _correlate_models(profiles: Sequence[Row], level: float) -> Iterator[Row]:
    by_place: dict[tuple[str, str], list[Row]] = {}
    for row in profiles:
        by_place.setdefault((row["groups"], row["version"]), []).append(row)
    for (groups, version), panel in by_place.items():
        for other in _ACCURACIES if len(panel) >= LEAST_MODELS else ():
            values = [[row[name] for row in panel] for name in ("skewsize", other)]
            pearson = correlation(*values, level=level).parts[0]
            yield {
                "groups": groups, "version": version, "x": "skewsize", "y": other,
                "models": pearson.n, "pearson": pearson.value, "pearson_low": pearson.low,
                "pearson_high": pearson.high, "pearson_p": pearson.p_value,
                "reason": pearson.reason,
            }  # fmt: skip
