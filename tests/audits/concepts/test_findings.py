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
    how = {"choices": {"min_positives": 15}, "resampling": {"replicates": 100, "permutations": 999}}
    config = audits.parse_config(values(data, metrics=["auroc"], **how))
    result = audits.run(config)
    assert any(one.verdict is Verdict.INCONCLUSIVE for one in result.findings if not one.group)
    leaves = [
        one for one in result.findings if one.metric == "auroc" and one.aggregate == "against_rest"
    ]
    assert [one.group for one in leaves[:3]] == ["a", "b", "rare"]
    assert {one.verdict for one in leaves[:2]} == {Verdict.DISPARITY}
    assert leaves[0].family is Family.COMPOSITE is not leaves[3].family is Family.LEAF
    assert leaves[0].threshold == config.testing.threshold(spec_of("auroc"))
    assert audits.plan(config).tests == sum(one.tested for one in result.findings)
    lead = summarize(result, page.PAGE.leads).statements[0].finding
    assert lead.group in ("a", "b")


def test_the_source_s_protocol_has_no_verdict_and_says_why():
    result = run(small(choices={"prevalence": "hall", "min_positives": 20}))
    assert {one.family for one in result.findings} == {Family.DESCRIPTIVE}
    assert {one.verdict for one in result.findings} == {Verdict.NONE}
    assert all("interval against 0" in one.reason for one in result.findings)
    assert not any(math.isnan(one.ci_low) for one in result.findings)


def test_the_plan_says_what_there_is_and_what_is_too_rare():
    versions = {"rare": {"min_positives": 90}, "hall": {"prevalence": "hall"}}
    found = audits.plan(audits.parse_config(small(versions=versions)))
    assert (found.details["images"], found.details["rows"], found.tests) == (400, 400, 5)
    assert found.details["models"] == [{"model": "m", "concepts": 4, "images_without_scores": 0}]
    by_version = {row["version"]: row for row in found.details["versions"]}
    assert by_version["baseline"]["concepts_compared"] == 4
    assert by_version["rare"]["concepts_too_rare"] == 4
    detectable = found.details["detectable"][0]
    assert min(detectable["positives"]) > 20
    assert 0.1 < detectable["true_positive_rate_difference"] < 0.6
    assert found.seconds >= 0


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
        (note,) = [one for one in notes if "compared in no concept" in one]
        assert "c (300 rows)" in note
        assert "positives, fewer than 20" in note
    plain = audits.parse_config(values(tables(*world(3, n=900))))
    assert not any("in no concept" in one for one in audits.plan(plain).notes)


def test_disparities_stand_against_the_images_of_the_smallest_group():
    data = tables(*world(3, n=400))
    result = run(values(data))
    section = page.sample_size(result)
    table = next(block for block in section.blocks if isinstance(block, Table))
    joined = data["labels"].join(data["images"], on="image")
    smallest = joined.group_by("gender").agg(pl.col(CONCEPTS).sum()).select(CONCEPTS).min()
    found = {row[0]: row for row in table.rows}
    assert {name: int(str(found[name][1])) for name in CONCEPTS} == smallest.row(0, named=True)
    for one in result.findings:
        if one.metric == "average_precision" and one.subject:
            assert str(found[one.subject][2]) == number(one.value)
    rare = run(values(data, choices={"min_positives": 400}))
    assert page.sample_size(rare) is None
