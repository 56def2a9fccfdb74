"""Models of audits other than predictions, compared over the subjects that they share.

What such a run keeps of a model is a number per subject: a query, a concept, a target. Two models,
or a model before and after it was mitigated, are held against each other subject by subject. Where
a subject has several numbers, of its parts, their mean is what is paired. A query asked within the
values of another attribute has a number for each of them, and a concept one for each pair of its
sets of images: parts of one subject, which depend on each other and are no pairs of their own.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from equipoise.audits.columns import Row, stacked
from equipoise.audits.config import AuditConfig, parse_config
from equipoise.audits.findings import Place, UncorrectedFinding, conclude, numbers_of
from equipoise.audits.group_sources import (
    notes_on_changes,
    predicted_attributes,
    withhold_changes,
)
from equipoise.audits.notes import merged
from equipoise.core import (
    TESTED,
    AuditResult,
    ComparedTo,
    DataError,
    Excluded,
    Fact,
    Family,
    Finding,
    IntervalKind,
    NullHypothesis,
    Part,
    Verdict,
    table_of,
)
from equipoise.core.columns import NUMBER, TEXT
from equipoise.core.finding import plain_parameters
from equipoise.core.sentences import Sentence
from equipoise.metrics.spec import SPECS, spec_for
from equipoise.report.blocks import rows
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import Result
from equipoise.report.selecting import measure_of
from equipoise.report.words import COMPARISON, Pair
from equipoise.stats.chance import sign_flips
from equipoise.stats.intervals import mean_t

BySubject = dict[str, Finding]
"""The findings of one metric, groups and version."""
FindingPair = tuple[Finding, Finding]
"""Findings of two models about one subject, or a part of it."""

FLIPS = 100_000
FEWEST = 6
"""Pairs from which on flipped signs can reach p 0.05: of 5 the smallest p is 2 / 32."""


def one_model_only(models: Iterable[str]) -> DataError:
    """Return the error of a comparison without a second model."""
    return DataError(
        f"{', '.join(models)}: one model only",
        expected="at least two models to compare",
        fix="name several runs, or audit several models in one",
    )


def compare_results(runs: Mapping[str, AuditResult]) -> AuditResult:
    """Compare the models of finished audits of one kind, over the subjects that they share.

    Parameters
    ----------
    runs : mapping of str to AuditResult
        By name; as `equipoise.report.read` returns them. Audits of predictions are compared
        image by image instead, by `compare`.

    Returns
    -------
    AuditResult
        Per pair of models and measure the mean over subjects of how much farther from 0 the
        second model is, with Student's interval and a sign-flip test over subjects, each of which
        is one pair whatever parts it has; a measure of fewer than 6 subjects is described. The
        table `changes` has, per pair, measure and subject or part of one, both numbers, both
        verdicts, and whether the disparity went, came or stayed.

    Raises
    ------
    DataError
        When there are fewer than two models, or two have no measure in common.
    """
    started = perf_counter()
    name, first = next(iter(runs.items()))
    configs = [
        parse_config(run.manifest.resolved, source=f"{run_name}/manifest.json")
        for run_name, run in runs.items()
    ]
    config, predicted = configs[0], predicted_attributes(configs)
    models = findings_by_model(runs)
    if len(models) < 2:
        raise one_model_only(models)
    groups = {row["group"] for run in runs.values() for row in rows(run, "group_sizes")}
    drafts: list[UncorrectedFinding] = []
    changes: list[Row] = []
    unpaired: list[str] = []
    for pair in combinations(models, 2):
        first_measures = _group_by_measure(models[pair[0]])
        second_measures = _group_by_measure(models[pair[1]])
        shared_measures = [
            _pair_findings(first_measures[measure], second_measures[measure])
            for measure in first_measures
            if measure in second_measures
        ]
        compared = [(parts, n_lost) for parts, n_lost in shared_measures if parts]
        if not compared:
            unpaired.append(" and ".join(pair))
        for parts, n_lost in compared:
            drafts.append(_compare_parts(pair, parts, n_lost, groups, config))
            changes += [_describe_change(pair, before, after) for before, after in parts]
    if not drafts:
        _check_shared(models)
    manifest = replace(
        first.manifest,
        inputs=prefixed({run: result.manifest.inputs for run, result in runs.items()}),
        counts={run: result.manifest.counts for run, result in runs.items()},
        models=prefixed({run: result.manifest.models for run, result in runs.items()}),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        seconds=round(perf_counter() - started, 3),
        notes=(
            "Compared subject by subject: each number is how far a model is from 0, where there "
            "is no disparity, on average over the subjects that both models have. The tests speak "
            "of subjects like these, not of these images.",
            "That a disparity went or came is a change of its verdict, and no test of the change.",
            f"Level, thresholds and seed come from run {name}.",
            *(f"Not compared, without a tested measure in common: {names}." for names in unpaired),
            *merged(notes_on_changes(predicted)),
        ),
    )
    tables = {"changes": table_of(changes, CHANGES)}
    findings = conclude(withhold_changes(drafts, predicted), config.testing)
    return Result(findings, manifest, tables, conclusions_of(findings))


def _check_shared(models: Mapping[str, Sequence[Finding]]) -> None:
    """Refuse models that share no measure, tested or not.

    Raises
    ------
    DataError
        With the first two.
    """
    measures = [
        {(finding.metric, finding.groups, finding.subject) for finding in findings}
        for findings in models.values()
    ]
    if not any(first & second for first, second in combinations(measures, 2)):
        first, second, *_ = models
        raise DataError(
            f"{first} and {second} have no measure of the same subjects in common",
            expected="runs with the same metrics, groups and subjects",
            fix="audit both models with one configuration",
        )


def model_names(runs: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], str]:
    """Return a name for each run and model: the model's, after the run's where runs share it."""
    models = [(run, model) for run, run_models in runs.items() for model in run_models]
    n_runs_by_model = Counter(model for _, model in models)
    return {
        (run, model): model if n_runs_by_model[model] == 1 else f"{run}: {model}"
        for run, model in models
    }


Facts = TypeVar("Facts")


def prefixed(
    by_run: Mapping[str, Mapping[str, Facts]],
) -> dict[str, Facts]:
    """Return files or models of runs as one mapping, named after their run."""
    return {
        f"{run}: {name}": facts
        for run, facts_by_name in by_run.items()
        for name, facts in facts_by_name.items()
    }


def findings_by_model(runs: Mapping[str, AuditResult]) -> dict[str, list[Finding]]:
    """Return the findings of each model.

    Findings about the images themselves are of no model, and compared with nothing.
    """
    models = {
        run: dict.fromkeys(f.model for f in result.findings if f.model)
        for run, result in runs.items()
    }
    return {
        name: [finding for finding in runs[run].findings if finding.model == model]
        for (run, model), name in model_names(models).items()
    }


def _group_by_measure(findings: Sequence[Finding]) -> dict[Hashable, BySubject]:
    """Return the tested findings by measure, groups and version."""
    by_measure: dict[Hashable, BySubject] = {}
    for finding in findings:
        if finding.family in TESTED and not finding.group:
            measure = (*measure_of(finding), finding.groups, finding.version)
            by_measure.setdefault(measure, {})[finding.subject] = finding
    return by_measure


def _pair_findings(
    first_findings: BySubject, second_findings: BySubject
) -> tuple[list[FindingPair], int]:
    """Return the finite numbers that both models have, and of how many one has none.

    The number of a whole counts only where there are no parts.
    """
    names = ({*first_findings} | {*second_findings}) - {""} or {""}
    parts = [
        (before, second_findings[name]) for name, before in first_findings.items()
        if name in names and name in second_findings
        and math.isfinite(before.value) and math.isfinite(second_findings[name].value)
    ]  # fmt: skip
    return parts, len(names) - len(parts)


def contrast_subjects(
    findings: Sequence[Finding],
    pair: tuple[Finding, Finding],
    groups: set[str],
    config: AuditConfig,
) -> Finding | None:
    """Return how much farther from 0 the second model is than the first, over shared subjects.

    None where the numbers of the pair are no means over subjects that both models have.
    """
    first, second = pair
    (measure,) = _group_by_measure([first])
    first_measures, second_measures = (
        _group_by_measure([finding for finding in findings if finding.model == model])
        for model in (first.model, second.model)
    )
    parts, n_lost = _pair_findings(first_measures[measure], second_measures[measure])
    if not parts:
        return None
    draft = _compare_parts((first.model, second.model), parts, n_lost, groups, config)
    values = draft.finding.parameters["value_a"], draft.finding.parameters["value_b"]
    if not np.allclose(values, (first.value, second.value), rtol=1e-9):
        return None
    (finding,) = conclude([draft], config.testing)
    return finding


def _describe_change(models: tuple[str, str], before: Finding, after: Finding) -> Row:
    """Return the row of `changes`: both numbers, both verdicts, and the change."""
    were_disparities = before.verdict is Verdict.DISPARITY, after.verdict is Verdict.DISPARITY
    return {
        "model_a": models[0], "model_b": models[1], "metric": before.metric,
        "aggregate": before.aggregate.value,
        "groups": before.groups, "version": before.version, "subject": before.subject,
        "value_a": before.value, "value_b": after.value,
        "verdict_a": str(before.verdict), "verdict_b": str(after.verdict),
        "change": _CHANGES[were_disparities],
    }  # fmt: skip


_CHANGES = {
    (True, True): "stayed", (True, False): "went", (False, True): "came",
    (False, False): "never there",
}  # fmt: skip


CHANGES = {
    "model_a": TEXT,
    "model_b": TEXT,
    "metric": TEXT,
    "aggregate": TEXT,
    "groups": TEXT,
    "version": TEXT,
    "subject": TEXT,
    "value_a": NUMBER,
    "value_b": NUMBER,
    "verdict_a": TEXT,
    "verdict_b": TEXT,
    "change": TEXT,
}
"""Columns of the table `changes`."""


def _compare_parts(
    models: tuple[str, str],
    parts: Sequence[FindingPair],
    n_lost: int,
    groups: set[str],
    config: AuditConfig,
) -> UncorrectedFinding:
    """Return how much farther the second model is from 0, on average over subjects."""
    first_finding, level = parts[0][0], config.resampling.level
    names = [_subject_of(before) for before, _ in parts]
    untested = _reason_untested({before.subject for before, _ in parts}, names, groups)
    # In an order of their own, so that naming the other model first doesn't change a draw.
    subjects = np.unique(names, return_inverse=True)[1]
    values = np.abs([[before.value, after.value] for before, after in parts]).T
    distances = np.stack([np.bincount(subjects, row) for row in values]) / np.bincount(subjects)
    differences, n = distances[1] - distances[0], distances.shape[1]
    mean = float(differences.mean())
    excluded = (Excluded("subjects or parts without a number of both models", n_lost),)
    part = Part(
        first_finding.metric, "", mean, n=n, excluded=excluded if n_lost else (), reason=untested,
        aggregate=first_finding.aggregate,
    )  # fmt: skip
    method, null, null_text = "", NullHypothesis.NONE, ""
    if not untested:
        # An interval stays within what the metric can differ by.
        bounds = SPECS[first_finding.metric].bounds if first_finding.metric in SPECS else None
        largest = max(map(abs, bounds)) if bounds else math.inf
        low, high = (float(np.clip(end, -largest, largest)) for end in mean_t(differences, level))
        flipped = sign_flips(differences, permutations=FLIPS, seed=config.resampling.seed)
        part = replace(part, low=low, high=high, chance=0.0, p_value=flipped.value)
        part = replace(part, p_at_most=flipped.at_most)
        null = NullHypothesis.SIGNS
        null_text = f"signs of the differences are exchangeable over subjects; {flipped.method}"
        averaged = f", {len(parts)} parts averaged by subject" if len(parts) > n else ""
        method = f"Student's t over {n} subjects, paired{averaged}"
    first, second = distances.mean(axis=1).tolist()
    pair = Pair(*models, (first, second), models[mean > 0] if mean else "")
    better = int((differences > 0).sum()), int((differences < 0).sum())
    family = Family.DESCRIPTIVE if untested else Family.COMPOSITE
    place = Place(
        COMPARISON, pair.name, first_finding.groups, first_finding.version, level,
        sides=first_finding.sides,
    )  # fmt: skip
    return difference(
        part, pair, place, family=family, unit="subject", method=method, null=null,
        null_drawn=null_text, compared_to=first_finding.compared_to, better_on=better,
    )  # fmt: skip


def _reason_untested(names: set[str], subjects: Sequence[str], groups: set[str]) -> str:
    """Return why nothing is tested over the subjects of parts; "" where they are."""
    if len(subjects) > 1 and names <= groups:
        return "the numbers of the groups depend on each other, so none is tested"
    n_subjects = len({*subjects})
    if n_subjects >= FEWEST:
        return ""
    n_text = "one subject is" if n_subjects == 1 else f"{n_subjects} subjects are"
    return (
        f"{n_text} too few to test over, {FEWEST} or more are needed; read the "
        "intervals of both in their own reports"
    )


def difference(  # noqa: PLR0913 - one keyword for each field
    part: Part,
    pair: Pair,
    place: Place,
    *,
    family: Family,
    unit: str,
    method: str,
    null: NullHypothesis,
    null_drawn: str,
    compared_to: ComparedTo = "",
    interval: IntervalKind = IntervalKind.CONFIDENCE,
    better_on: tuple[int, int] | None = None,
    group: str = "",
) -> UncorrectedFinding:
    """Return the finding of two models' difference, the second minus the first, uncorrected.

    `better_on` counts the subjects on which the first and the second are better; `group` is the
    group whose values they are.
    """
    # JSON has no NaN.
    first, second = (None if math.isnan(value) else value for value in pair.values)
    parameters = {
        "model_a": pair.first, "model_b": pair.second, "value_a": first, "value_b": second,
        "worse": pair.worse,
    }  # fmt: skip
    if better_on is not None:
        parameters |= {"over": part.n, "better_a": better_on[0], "better_b": better_on[1]}
    over = f" over {place.groups}" if place.groups else ""
    over = f" for {group}" if group else over
    qualifier = f" of {part.subject}{over}" if part.subject else over
    label = spec_for(part.metric, part.aggregate, compared_to).label
    worse = f"{label}{qualifier} is worse for {pair.worse}" if pair.worse else ""
    finding = Finding(
        **vars(place), **numbers_of(part), metric=part.metric, aggregate=part.aggregate,
        compared_to=compared_to, change_from=pair.first, subject=part.subject,
        group=group,
        family=family, excluded=part.excluded, unit=unit, interval=interval,
        method=method, null=null, null_drawn=null_drawn,
        parameters=plain_parameters(parameters), direction=Sentence(worse), reason=part.reason,
    )  # fmt: skip
    return UncorrectedFinding(finding, "either")


def _subject_of(finding: Finding) -> str:
    """Return the subject that a finding is about, whole or in part."""
    return finding.subject if finding.part_of is None else finding.part_of


def together(results: Sequence[AuditResult]) -> AuditResult:
    """Put comparisons of several kinds into one result; each keeps its own families of tests."""
    first, *further_results = results
    if not further_results:
        return first
    note = "Runs of several kinds: q-values are corrected within each kind."
    inputs, counts, models = dict[str, Any](), dict[str, Any](), dict[str, Any]()
    notes, findings = dict[str, None](), list[Finding]()
    for result in results:
        inputs |= result.manifest.inputs
        counts |= result.manifest.counts
        models |= result.manifest.models
        notes |= dict.fromkeys(result.manifest.notes)
        findings += result.findings
    manifest = replace(
        first.manifest,
        inputs=inputs,
        counts=counts,
        models=models,
        seconds=round(sum(result.manifest.seconds for result in results), 3),
        notes=(*notes, note),
    )
    tables = stacked([result.tables for result in results])
    return Result(tuple(findings), manifest, tables, conclusions_of(findings))


def worse_model(fact: Fact, values: tuple[float, float], names: Sequence[str]) -> str:
    """Return the model with the worse value; "" where they are alike."""
    if not (values[0] < values[1] or values[1] < values[0]):
        return ""
    lower = spec_for(fact.metric, fact.aggregate, fact.compared_to).value_harm == "lower"
    return names[(values[1] < values[0]) == lower]
