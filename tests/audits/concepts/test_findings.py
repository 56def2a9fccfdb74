"""Findings, tables and plans of audits of concepts."""

import math

import numpy as np
import polars as pl

from audits.concepts.worlds import CONCEPTS, run, small, tables, values
from concept_worlds import world
from equipoise import audits
from equipoise.audits.concepts import page
from equipoise.core import Family, Verdict
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import Table
from equipoise.report.summary import summarize
from equipoise.report.text import number


def test_a_rare_group_hides_no_difference_between_large_ones():
    scores, labels, group = world(2, n=2000, shift=dict.fromkeys(range(4), 0.5))
    group = np.where(np.arange(2000) < 100, "rare", group)
    data = tables(scores, labels, group)
    options = {
        "choices": {"min_positives": 15},
        "resampling": {"replicates": 100, "permutations": 999},
    }
    config = audits.parse_config(values(data, metrics=["auroc"], **options))
    result = audits.run(config)
    assert any(
        finding.verdict is Verdict.INCONCLUSIVE for finding in result.findings if not finding.group
    )
    leaves = [
        finding
        for finding in result.findings
        if finding.metric == "auroc" and finding.aggregate == "against_rest"
    ]
    assert [finding.group for finding in leaves[:3]] == ["a", "b", "rare"]
    assert {finding.verdict for finding in leaves[:2]} == {Verdict.DISPARITY}
    assert leaves[0].family is Family.COMPOSITE is not leaves[3].family is Family.LEAF
    assert leaves[0].threshold == config.testing.threshold(spec_of("auroc"))
    assert audits.plan(config).tests == sum(finding.tested for finding in result.findings)
    lead = summarize(result, page.PAGE.leads).statements[0].finding
    assert lead.group in ("a", "b")


def test_the_protocol_of_the_source_has_no_verdict_but_a_reason():
    result = run(small(choices={"prevalence": "hall", "min_positives": 20}))
    assert {finding.family for finding in result.findings} == {Family.DESCRIPTIVE}
    assert {finding.verdict for finding in result.findings} == {Verdict.NONE}
    assert all("interval against 0" in finding.reason for finding in result.findings)
    assert not any(math.isnan(finding.ci_low) for finding in result.findings)


def test_the_plan_counts_images_and_rare_concepts():
    versions = {"rare": {"min_positives": 90}, "hall": {"prevalence": "hall"}}
    plan = audits.plan(audits.parse_config(small(versions=versions)))
    assert (plan.details["images"], plan.details["rows"], plan.tests) == (400, 400, 5)
    assert plan.details["models"] == [
        {"model": "m", "concepts": 4, "concepts_without_scores": 0, "images_without_scores": 0}
    ]
    by_version = {row["version"]: row for row in plan.details["versions"]}
    assert by_version["baseline"]["concepts_compared"] == 4
    assert by_version["rare"]["concepts_too_rare"] == 4
    detectable = plan.details["detectable"][0]
    assert min(detectable["positives"]) > 20
    assert 0.1 < detectable["true_positive_rate_difference"] < 0.6
    assert plan.seconds >= 0


def test_of_false_positives_the_higher_rate_is_worse():
    scores, labels, group = world(3, n=900, prevalence=(0.3, 0.3))
    scores[:, 0] += 1.5 * ((group == "b") & ~labels[:, 0])
    versions = {"observed": {"prevalence": "observed"}}
    data = tables(scores, labels, group)
    result = run(values(data, metrics=["false_positive_rate"], versions=versions))
    table = next(block for block in page.robust(result).blocks if isinstance(block, Table))
    assert ("chef", "worse for b than for a") in [row[:2] for row in table.rows]


def test_a_group_that_is_in_no_concept_is_named_first_by_the_plan():
    scores, labels, group = world(3, n=900)
    group = np.where((np.arange(900) % 3 == 0), "c", group)
    # Large enough, and each of its concepts is too rare.
    labels[(group == "c") & (np.cumsum(group == "c") > 40)] = False
    config = audits.parse_config(values(tables(scores, labels, group)))
    for notes in (audits.plan(config).notes, audits.run(config).manifest.notes):
        (note,) = [note for note in notes if "compared in no concept" in note]
        assert "c (300 rows)" in note
        assert "positives, fewer than 20" in note
    plain = audits.parse_config(values(tables(*world(3, n=900))))
    assert not any("in no concept" in note for note in audits.plan(plain).notes)


def test_disparities_are_listed_with_images_of_the_smallest_group():
    data = tables(*world(3, n=400))
    result = run(values(data))
    section = page.sample_size(result)
    table = next(block for block in section.blocks if isinstance(block, Table))
    joined = data["labels"].join(data["images"], on="image")
    smallest = joined.group_by("gender").agg(pl.col(CONCEPTS).sum()).select(CONCEPTS).min()
    rows_by_name = {row[0]: row for row in table.rows}
    assert {name: int(str(rows_by_name[name][1])) for name in CONCEPTS} == smallest.row(
        0, named=True
    )
    for finding in result.findings:
        if finding.metric == "average_precision" and finding.subject:
            assert str(rows_by_name[finding.subject][2]) == number(finding.value)
    rare = run(values(data, choices={"min_positives": 400}))
    assert page.sample_size(rare) is None
