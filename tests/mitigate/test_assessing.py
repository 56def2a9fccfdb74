"""Paired tests against scipy, and the conclusion about a recipe from its numbers."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_rel

from equipoise.core import Verdict
from equipoise.mitigate import Split
from equipoise.mitigate.measuring import (
    FEWEST,
    NEUTRAL,
    ModelMeasures,
    Row,
    assess,
    compare_pairs,
    conclude,
    estimate_share_of_way,
)
from equipoise.mitigate.running import Assessment, findings_of, notes_of, tables_of

SUBJECTS = [f"s{number:02d}" for number in range(24)]


@pytest.mark.parametrize("n", [5, 12, 16])
def test_few_units_are_tested_exactly(n):
    rng = np.random.default_rng(n)
    before, after = rng.normal(size=n), rng.normal(size=n) - 0.7
    change = compare_pairs(before, after, seed=0)
    peer = permutation_test(
        (after - before,), np.mean, permutation_type="samples", n_resamples=10**6
    )
    assert change.p_value == pytest.approx(peer.pvalue)
    assert change.test == "all signs of the differences"
    assert change.difference == pytest.approx((after - before).mean())
    if n < FEWEST:
        # No test of so few can show anything, so that an interval without 0 would contradict it.
        assert change.p_value > 0.05
        assert np.isnan([change.low, change.high]).all()
    else:
        student = ttest_rel(after, before).confidence_interval()
        assert (change.low, change.high) == pytest.approx((student.low, student.high), rel=1e-12)


def test_more_are_drawn_and_never_give_zero():
    assert compare_pairs(np.ones(24), np.zeros(24), seed=0).p_value == pytest.approx(2 / 100_001)
    assert compare_pairs(np.ones(30), np.ones(30), seed=0).p_value == 1.0


def test_units_without_both_numbers_are_left_out():
    change = compare_pairs([1.0, math.nan, 3.0], [0.0, 1.0, 1.0], seed=0)
    assert (change.n, change.before, change.after) == (2, 2.0, 0.5)
    assert compare_pairs([math.nan], [1.0], seed=0).n == 0


def share(before, after, floor):
    return estimate_share_of_way(before, after, floor, seed=0)


def test_the_floor_is_resampled_with_its_subjects():
    floor = np.random.default_rng(3).uniform(0, 0.6, size=20)
    row_fields = share(floor + 0.4, floor + 0.1, floor)
    assert [*row_fields.values()] == pytest.approx([0.75, 0.75, 0.75])


@pytest.mark.parametrize("before", [0.190, 0.186, 0.1])
def test_no_share_of_a_way_that_is_not_clear_of_nothing(before):
    floor = np.random.default_rng(3).normal(0.186, 0.1, size=24)
    row_fields = share(np.full(24, before), np.full(24, 0.1), floor)
    assert {*row_fields} == {"share_reason"}


@pytest.mark.parametrize(("n", "has_interval"), [(5, False), (6, True)])
def test_a_share_of_few_subjects_has_no_interval(n, has_interval):
    row_fields = share(np.full(n, 0.8), np.full(n, 0.5), np.full(n, 0.2))
    assert row_fields["share"] == pytest.approx(0.5)
    assert [math.isfinite(row_fields[end]) for end in ("share_low", "share_high")] == [
        has_interval,
        has_interval,
    ]


def measured(ndkl, accuracy):
    wobble = {name: ndkl + 0.001 * place for place, name in enumerate(SUBJECTS)}
    right = {str(row): float(row < 1000 * accuracy) for row in range(1000)}
    return ModelMeasures({("ndkl", "hue"): wobble}, {("accuracy", "scenes"): right})


def test_numbers_of_a_row():
    bias, utility = assess(measured(0.8, 0.9), {"a": measured(0.5, 0.88)}, measured(0.2, 0.9))
    assert (bias.role, bias.n, bias.difference) == ("bias", 24, pytest.approx(-0.3))
    assert bias.share == pytest.approx(0.5)
    assert bias.reaches
    assert (utility.role, utility.n) == ("utility", 1000)
    assert utility.difference == pytest.approx(-0.02)
    assert utility.low < -0.02 < utility.high
    assert math.isnan(utility.share)
    assert not utility.reaches


HALF = Row(
    recipe="a", role="bias", measure="ndkl", about="hue", n=9, before=0.8, after=0.3,
    difference=-0.5, low=-0.6, high=-0.4, p_value=0.01, q_value=0.01, floor=0.1, share=0.71,
)  # fmt: skip
PART = replace(HALF, after=0.7, difference=-0.1, low=-0.2, high=-0.1, share=0.14)
CHANCE = replace(HALF, low=-1.0, high=0.0, q_value=0.125)
PRICE = replace(HALF, role="utility", measure="accuracy", difference=0.0, low=-0.01)
NEAR = replace(HALF, before=0.11, after=0.05, share_reason="not clear of the floor")
RECALL = replace(PRICE, measure="text_recall_at_1")
LOST = replace(RECALL, difference=-0.03)
GUESSED = replace(RECALL, about="flickr", difference=-0.9)


@pytest.mark.parametrize(
    ("rows", "conclusion"),
    [
        ([HALF, PRICE], "transfers"),
        ([HALF, NEAR, PRICE], "transfers"),
        ([NEAR, PRICE], "not enough data"),
        ([CHANCE, PRICE], "not enough data"),
        ([replace(CHANCE, low=-0.3), PRICE], "does not transfer"),
        ([PART, PRICE], "transfers in part"),
        ([HALF, RECALL], "price not measured"),
        ([HALF, PRICE, replace(RECALL, difference=-0.03)], "costs too much"),
        ([PART, replace(PRICE, difference=-0.03)], "costs too much"),
        # Captions that name the attribute are guessed; those that don't tell the price.
        ([HALF, PRICE, GUESSED, replace(RECALL, about=f"flickr, {NEUTRAL}")], "transfers"),
        ([HALF, PRICE, GUESSED, replace(LOST, about=f"flickr, {NEUTRAL}")], "costs too much"),
    ],
)
def test_conclusions(rows, conclusion):
    (outcome,) = conclude(rows)
    assert outcome.conclusion == conclusion


def test_a_disparity_of_predicted_groups_has_no_verdict():
    predicted = HALF.withheld("groups are predicted")
    assert (predicted.before, predicted.after) == (HALF.before, HALF.after)
    assert not any((predicted.lowered, predicted.reaches, predicted.open))
    assert [outcome.conclusion for outcome in conclude([predicted, PRICE])] == ["not enough data"]


def test_too_few_for_an_interval_leave_open_that_a_disparity_fell_halfway():
    few = replace(HALF, low=math.nan, q_value=0.25)
    assert (few.open, few.lowered) == (True, False)
    assert not replace(few, before=0.0, floor=math.nan).open


def test_an_assessment_ends_as_every_audit_does():
    before, after, floor = measured(0.8, 0.9), {"a": measured(0.4, 0.9)}, measured(0.2, 0.9)
    rows = assess(before, after, floor)
    half = Split(tuple(SUBJECTS[:12]), tuple(SUBJECTS[12:]))
    splits = (half, Split(half.withheld, half.training))
    done = Assessment(rows, conclude(rows), splits, before, after, floor, {"a": 1.0}, {})
    findings = findings_of(done)
    assert [(finding.metric, finding.change_from) for finding in findings] == [
        ("ndkl", "before"),
        ("accuracy", "before"),
    ]
    assert {finding.verdict for finding in findings} == {Verdict.NONE}
    tables = tables_of(done)
    assert [table.num_rows for table in tables.values()] == [2, 1, 24]
    assert {*tables["mitigation_subjects"]["fold"].to_pylist()} == {0, 1}
    assert "24 subjects" in notes_of(done)[0]
