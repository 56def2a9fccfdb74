"""Metrics of runs that a comparison of models can't pair: the numbers of each run, and why."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from equipoise.audits.comparison import difference, findings_by_model, worse_model
from equipoise.audits.config import TestingConfig
from equipoise.audits.findings import Place, UncorrectedFinding, conclude, fact_of
from equipoise.core import (
    TESTED,
    AuditResult,
    Family,
    Finding,
    IntervalKind,
    NullHypothesis,
    Part,
)
from equipoise.metrics.labels.rates import rate_named
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.scores import ScoreMetric
from equipoise.metrics.spec import SPECS, spec_for, spec_of
from equipoise.report.concluding import conclusions_of
from equipoise.report.text import listed
from equipoise.report.words import COMPARISON, Pair

_Place = tuple[str, str, str, str, str]
_Key = tuple[str, str, str, str, str, str]
_MOST_SUBJECTS = 60
_SCORES = "runs keep labels and no scores, so two models can't be paired"
_EITHER = "neither a high nor a low value is worse, so no model is"
_DESCRIBED = "the runs describe these numbers and don't test them"
_UNPAIRED = "two models share no numbers of these metrics that could be paired"


def with_uncompared(
    result: AuditResult, runs: Mapping[str, AuditResult], testing: TestingConfig
) -> AuditResult:
    """Return a comparison with the metrics that it left out: their numbers, and why.

    Parameters
    ----------
    result : AuditResult
        The comparison of the runs.
    runs : mapping of str to AuditResult
        By name.
    testing : TestingConfig
        Of the first run.

    Returns
    -------
    AuditResult
        Metrics of scores are described by the numbers of both models, without an interval; of a
        comparison without findings all metrics are. Notes name every metric that was left out,
        with the reason.
    """
    models = findings_by_model(runs)
    uncompared = _metrics_left(result.findings, models)
    if not uncompared:
        return result
    described = {metric for metric, reason in uncompared.items() if reason == _SCORES}
    if not result.findings:
        described = {*uncompared}
    drafts = [
        draft
        for first, second in combinations(models, 2)
        for draft in _describe(
            (first, second), models[first], models[second], uncompared, described
        )
    ]
    findings = (*result.findings, *conclude(drafts, testing))
    notes = (*result.manifest.notes, *_notes(uncompared))
    return replace(
        result,
        findings=findings,
        manifest=replace(result.manifest, notes=notes),
        conclusions=conclusions_of(findings),
    )


def _metrics_left(
    compared: Iterable[Finding], models: Mapping[str, Sequence[Finding]]
) -> dict[str, str]:
    """Return the metrics of two models or more that aren't compared, with the reason."""
    covered = set[str]()
    for metric in {finding.metric for finding in compared}:
        spec = SPECS.get(metric)
        covered |= {metric, *(() if spec is None else (*spec.combines, spec.rest_metric))} - {""}
    n_models = dict[str, int]()
    tested = set[str]()
    for findings in models.values():
        for metric in dict.fromkeys(finding.metric for finding in findings):
            n_models[metric] = n_models.get(metric, 0) + 1
        tested |= {finding.metric for finding in findings if finding.family in TESTED}
    return {
        metric: _reason(metric, is_tested=metric in tested)
        for metric, n in n_models.items()
        if n > 1 and metric not in covered and not _is_repeated(metric, covered)
    }


def _is_repeated(metric: str, covered: set[str]) -> bool:
    """Whether a metric states the fact of a compared one, or of several."""
    rate = rate_named(metric)
    return (rate is not None and rate.repeats) or (
        metric in SPECS and SPECS[metric].fold in covered
    )


def _reason(metric: str, *, is_tested: bool) -> str:
    """Return why a metric isn't compared."""
    if metric in metrics_of(ScoreMetric):
        return _SCORES
    if not is_tested:
        return _DESCRIBED
    is_worse = metric not in SPECS or spec_of(metric).harm != "either"
    return _UNPAIRED if is_worse else _EITHER


def _notes(uncompared: Mapping[str, str]) -> Iterator[str]:
    """Yield a note for each reason, with the metrics that it is the reason of."""
    for reason in dict.fromkeys(uncompared.values()):
        metrics = [metric for metric, own_reason in uncompared.items() if own_reason == reason]
        labels = [*dict.fromkeys(SPECS[m].label if m in SPECS else m for m in metrics)]
        yield f"Not compared: {listed(labels, len(labels))}. The reason: {reason}."


def _describe(
    names: tuple[str, str],
    first: Sequence[Finding],
    second: Sequence[Finding],
    uncompared: Mapping[str, str],
    described: set[str],
) -> Iterator[UncorrectedFinding]:
    """Yield the difference of two models in each number that both runs have."""
    numbers = _numbers(second, described)
    for key, before in _numbers(first, described).items():
        if key in numbers:
            yield _difference(names, before, numbers[key], uncompared[before.metric])


def _numbers(findings: Sequence[Finding], described: set[str]) -> dict[_Key, Finding]:
    """Return a model's numbers of some metrics, of subjects where there is none of all."""
    by_key, n_subjects = dict[_Key, Finding](), dict[_Place, int]()
    places = {_place_of(finding) for finding in findings if not (finding.subject or finding.group)}
    for finding in findings:
        if finding.metric not in described or finding.group or math.isnan(finding.value):
            continue
        place = _place_of(finding)
        if finding.subject and place in places:
            continue
        n_subjects[place] = n_subjects.get(place, 0) + 1
        if n_subjects[place] <= _MOST_SUBJECTS:
            by_key.setdefault((*place, finding.subject), finding)
    return by_key


def _place_of(finding: Finding) -> _Place:
    return (
        finding.metric, finding.aggregate.value, finding.compared_to, finding.groups,
        finding.version,
    )  # fmt: skip


def _difference(
    names: tuple[str, str], before: Finding, after: Finding, reason: str
) -> UncorrectedFinding:
    """Return the second model's number less the first's, described."""
    values = before.value, after.value
    fact = fact_of(before)
    is_worse = spec_for(fact.metric, fact.aggregate, fact.compared_to).value_harm != "either"
    worse = worse_model(fact, values, names) if is_worse else ""
    pair = Pair(*names, values, worse)
    part = Part(
        before.metric, before.subject, values[1] - values[0], n=min(before.n, after.n),
        aggregate=before.aggregate, reason=f"the numbers are those of each run: {reason}",
    )  # fmt: skip
    place = Place(
        COMPARISON, pair.name, before.groups, before.version, before.level, sides=before.sides
    )
    return difference(
        part, pair, place, family=Family.DESCRIPTIVE, unit=before.unit,
        method="none: the numbers of two runs", null=NullHypothesis.NONE, null_drawn="",
        compared_to=before.compared_to, interval=IntervalKind.SPREAD,
    )  # fmt: skip
