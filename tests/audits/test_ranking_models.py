"""Several models in one audit: one sentence ranks them, and claims no order by chance."""

import math
from dataclasses import replace
from functools import cache

import pytest

from audits.comparisons import compare, images, run
from equipoise import audits
from equipoise.core import Aggregate, Verdict
from equipoise.report.concluding import in_order
from equipoise.report.ranking_models import is_ranking, rank_models
from equipoise.report.result import first_screen


def audited(frame, *models, **more):
    data = {"table": frame, "id": "id", "target": "kind", "groups": ["place"]}
    values = {
        "audit": "predictions",
        "data": data,
        "models": {name: {"table": frame, "prediction": name} for name in models},
        "resampling": {"replicates": 400, "seed": 3},
    }
    return audits.run(audits.parse_config(values | more))


@cache
def several():
    return audited(images(), "good", "skewed", "poor")


def test_the_worst_model_is_named_last_with_the_values_of_its_findings():
    first, *others = several().conclusions
    assert is_ranking(first)
    assert not any(map(is_ranking, others))
    assert (first.worse, first.verdict) == ("skewed", Verdict.DISPARITY)
    assert first.standings[-1].model == "skewed"
    values = {
        finding.model: finding.value
        for finding in several().findings
        if (finding.metric, finding.aggregate) == (first.metric, first.aggregate)
        and finding.groups == first.groups and not finding.subject
        and finding.compared_to == first.compared_to
    }  # fmt: skip
    assert {standing.model: standing.value for standing in first.standings} == values
    assert 0 < first.low <= first.size <= first.high


def test_all_surfaces_start_with_the_ranking():
    summary = first_screen(several(), several().shown_page)
    text = summary.statements[0].text
    assert "skewed" in text
    assert f"- {text}" in repr(several())
    assert summary.leading_findings[0].model == "skewed"
    reviewed = in_order(several())[0]
    assert reviewed == summary.leading_findings[0]


def test_a_weaker_verdict_of_a_further_model_does_not_choose_the_measure():
    verdicts = {
        "accuracy": (Verdict.DISPARITY, Verdict.BELOW_THRESHOLD, Verdict.BELOW_THRESHOLD),
        "equalized_odds": (Verdict.DISPARITY, Verdict.DETECTED, Verdict.BELOW_THRESHOLD),
    }
    gaps = {
        finding.model: finding
        for finding in several().findings
        if (finding.metric, finding.aggregate) == ("accuracy", Aggregate.DIFFERENCE)
        and not finding.compared_to and not finding.subject
    }  # fmt: skip
    findings = [
        replace(gap, metric=metric, verdict=verdict)
        for metric, of_models in verdicts.items()
        for gap, verdict in zip(gaps.values(), of_models, strict=True)
    ]
    ranking = rank_models(findings, ("accuracy",), lambda _best, worst: worst)
    assert ranking.metric == "accuracy"


def test_models_that_are_alike_have_no_order():
    frame = images()
    frame = frame.with_columns(also=frame["good"])
    first, *_ = audited(frame, "good", "also").conclusions
    assert is_ranking(first)
    assert first.worse == ""
    assert not first.real
    assert first.low <= 0 <= first.high


def test_the_interval_of_two_models_is_that_of_their_comparison():
    first, *_ = audited(images(), "good", "skewed").conclusions
    compared = compare(run(images(), "good", "skewed"))
    (finding,) = (
        finding for finding in compared.findings
        if (finding.metric, finding.aggregate, finding.compared_to, finding.groups, finding.subject)
        == (first.metric, first.aggregate, first.compared_to, first.groups, "")
    )  # fmt: skip
    assert (first.low, first.high) == pytest.approx((finding.ci_low, finding.ci_high))


def test_one_model_is_not_ranked():
    assert not any(map(is_ranking, audited(images(), "good").conclusions))


def test_models_without_a_paired_interval_are_not_ranked():
    findings = several().findings
    assert rank_models(findings, (), lambda _best, _worst: None) is None
    unknown = replace(findings[0], ci_low=math.nan)
    assert rank_models(findings, (), lambda _best, _worst: unknown) is None
