"""Comparisons count honestly: what repeats is told once, what is undefined says why."""

import math
from functools import cache

import pytest

from audits.comparisons import compare, images, pick, run
from equipoise.core import Family, Verdict

TARGET_TOO = {"groups": ["place", ["place", "kind"]]}


@cache
def nested():
    return compare(run(images(kinds=2), "skewed", "good", data=TARGET_TOO))


def test_base_rates_get_no_verdict_where_groups_determine_the_target():
    found = pick(nested(), "demographic_parity", groups="place × kind")
    why = "the groups determine the target: a model without mistakes has this gap too"
    assert (found.family, found.verdict, found.reason) == (Family.DESCRIPTIVE, Verdict.NONE, why)
    assert math.isnan(found.p_value)
    assert math.isnan(found.q_value)
    ranked = {(row["metric"], row["groups"]) for row in nested().tables["ranking"].to_pylist()}
    assert ("demographic_parity", "place") in ranked
    assert ("demographic_parity", "place × kind") not in ranked


@pytest.mark.parametrize(
    ("metric", "subject"),
    [("equalized_odds", ""), ("equalized_odds", "cat"), ("effect_size_mean", ""),
     ("cramers_v", "cat")],
)  # fmt: skip
def test_splitting_by_the_target_repeats_what_conditions_on_it(metric, subject):
    tested = pick(nested(), metric, subject)
    shown = pick(nested(), metric, subject, "place × kind")
    assert shown.value == pytest.approx(tested.value, abs=1e-12)
    assert shown.reason == "the same numbers as for place"
    assert (tested.family is Family.DESCRIPTIVE, shown.verdict) == (False, Verdict.NONE)


def test_disagreements_are_pairs_of_shown_differences_each_once():
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
