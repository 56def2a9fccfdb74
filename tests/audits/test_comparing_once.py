"""Comparisons count honestly: what repeats is told once, what is undefined says why."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import polars as pl
import pytest

from audits.comparisons import ALL_LABELS, compare, images, pick, run, usual
from equipoise.core import AuditResult, Family, Verdict

TARGET_TOO = {"groups": ["place", ["place", "kind"]]}


@cache
def nested() -> AuditResult:
    return compare(run(images(kinds=2), "skewed", "good", data=TARGET_TOO))


def test_base_rates_get_no_verdict_where_groups_determine_the_target() -> None:
    found = pick(nested(), "demographic_parity", groups="place × kind")
    why = "the groups determine the target: a model without mistakes has this gap too"
    assert (found.family, found.verdict, found.reason) == (Family.DESCRIPTIVE, Verdict.NONE, why)
    assert math.isnan(found.p_value)
    assert math.isnan(found.q_value)
    ranked = {(row["metric"], row["groups"]) for row in nested().tables["ranking"].to_pylist()}
    assert ("demographic_parity", "place") in ranked
    assert ("demographic_parity", "place × kind") not in ranked


@pytest.mark.parametrize("metric", ["demographic_parity", "equalized_odds"])
def test_with_two_labels_the_second_class_repeats_the_first(metric: str) -> None:
    tested, shown = (pick(nested(), metric, subject) for subject in ("cat", "dog"))
    assert abs(tested.value - shown.value) < 1e-12
    assert shown.reason == "the same gap as for cat, which is tested"
    assert (tested.family, shown.family) == (Family.LEAF, Family.DESCRIPTIVE)


@pytest.mark.parametrize(
    ("metric", "subject"),
    [("equalized_odds", ""), ("equalized_odds", "cat"), ("effect_size_mean", ""),
     ("cramers_v", "cat")],
)  # fmt: skip
def test_splitting_by_the_target_repeats_what_conditions_on_it(metric: str, subject: str) -> None:
    tested = pick(nested(), metric, subject)
    shown = pick(nested(), metric, subject, "place × kind")
    assert shown.value == pytest.approx(tested.value, abs=1e-12)
    assert shown.reason == "the same numbers as for place"
    assert (tested.family is Family.DESCRIPTIVE, shown.verdict) == (False, Verdict.NONE)


def test_other_groups_are_tested_although_numbers_may_agree() -> None:
    frame = images(kinds=2).with_columns(half=pl.Series(["p", "q"] * 300))
    both = {"groups": ["place", "half", ["place", "half"]]}
    result = compare(run(frame, "skewed", "good", data=both))
    assert not [one.reason for one in result.findings if one.reason.startswith("the same numbers")]


def test_false_positives_of_three_classes_are_not_repeated_by_splitting() -> None:
    settings: dict[str, Any] = {"data": TARGET_TOO, "metrics": ALL_LABELS}
    result = compare(run(images(), "skewed", "good", **settings))
    assert pick(result, "equalized_odds", "cat", "place × kind").family is Family.LEAF
    repeated = pick(result, "cramers_v", "cat", "place × kind")
    assert repeated.reason == "the same numbers as for place"


def test_disagreements_are_pairs_of_shown_differences_each_once() -> None:
    result = compare(run(images(1500, kinds=2), "poor", "skewed", data=TARGET_TOO))
    rows = result.tables["disagreements"].to_pylist()
    shown = {
        (one.metric, one.groups) for one in result.findings
        if one.verdict is Verdict.DISPARITY and not one.subject
    }  # fmt: skip
    seen = [(*sorted((row["metric_a"], row["metric_b"])), row["groups"]) for row in rows]
    assert len(seen) == len(set(seen)) > 0
    for row in rows:
        for metric in (row["metric_a"], row["metric_b"]):
            assert (metric, "" if metric == "accuracy" else row["groups"]) in shown
    assert ("accuracy", "equalized_odds", "place") in seen
    sentence = next(row["sentence"] for row in rows if row["metric_b"] == "equalized_odds")
    assert sentence.startswith("accuracy prefers skewed (0.")
    assert "; equalized odds difference over place prefers poor (0." in sentence


def test_skewness_of_too_few_classes_is_said_for_each_model() -> None:
    found = pick(nested(), "skewsize")
    assert (found.verdict, found.family) == (Verdict.NOT_ESTIMABLE, Family.DESCRIPTIVE)
    assert found.reason.startswith(
        "skewed: 2 classes can be estimated; skewness needs at least 3; good: "
    )
    assert math.isnan(found.ci_low)


def test_skewness_is_described_with_its_spread() -> None:
    found = pick(compare(run(images(3000), "poor", "skewed")), "skewsize")
    assert not math.isnan(found.value)
    assert (found.verdict, found.family) == (Verdict.NONE, Family.DESCRIPTIVE)
    assert math.isnan(found.p_value)
    assert found.method.startswith("resampling spread: percentiles of 400 paired")
    assert found.reason.startswith("SkewSize is descriptive")


def test_without_resampling_there_are_values_alone() -> None:
    result = compare(run(images(), "poor", "good", resampling={"method": "none"}))
    found = pick(result, "accuracy")
    assert found.value == pick(usual(), "accuracy").value
    assert math.isnan(found.ci_low)
    assert found.verdict is Verdict.NONE
    assert found.method == "none: resampling is off"


def test_reasons_speak_of_differences() -> None:
    assert not [one.reason for one in usual().findings if "disparity" in one.reason]
    result = compare(run(images(150), "poor", "skewed"))
    unsure = [one for one in result.findings if one.verdict is Verdict.INCONCLUSIVE]
    assert unsure
    assert all("a difference cannot be ruled out" in one.reason for one in unsure)
