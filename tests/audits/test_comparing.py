"""Comparisons: what differs, in which direction, how surely, and on which rows."""

import math
from functools import cache

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

from audits.comparisons import (
    KINDS,
    compare,
    images,
    pick,
    run,
    share_right,
    usual,
)
from equipoise.core import DataError, Family, NullHypothesis, Verdict


def test_accuracy_is_the_paired_difference_with_both_values_and_the_worse_model():
    frame, finding = images(), pick(usual(), "accuracy")
    right = {name: share_right(frame, name) for name in ("poor", "good")}
    assert finding.model == "good − poor"
    assert finding.value == pytest.approx(right["good"] - right["poor"], abs=1e-12)
    assert finding.parameters == {
        "model_a": "poor", "model_b": "good", "worse": "poor",
        "value_a": pytest.approx(right["poor"]), "value_b": pytest.approx(right["good"]),
    }  # fmt: skip
    assert finding.direction == "accuracy is worse for poor"
    assert (finding.verdict, finding.n, finding.unit) == (Verdict.DISPARITY, len(frame), "row")
    assert (finding.chance, finding.excess) == (0.0, finding.value)
    ranking = usual().tables["ranking"].to_pylist()
    level = {"metric": "accuracy", "aggregate": "value", "compared_to": "", "rank": 1}
    best = [row for row in ranking if row.items() >= level.items()]
    assert [(row["model"], row["share_best"]) for row in best] == [("good", 1.0)]


def test_changes_between_predicted_groups_have_no_verdict():
    sources = {"place": {"source": "machine", "confusion": {"x": {"x": 9}, "y": {"y": 9}}}}
    result = compare(run(images(), "poor", "good", group_sources=sources))
    by_group = [finding for finding in result.findings if finding.groups == "place"]
    assert by_group
    numbers = [(finding.p_value, finding.ci_low, finding.ci_high) for finding in by_group]
    assert np.isnan(numbers).all()
    assert not {f.verdict for f in by_group} & {Verdict.DISPARITY, Verdict.BELOW_THRESHOLD}
    assert sum(note.startswith("place: ") for note in result.manifest.notes) == 1
    assert pick(result, "accuracy").verdict is Verdict.DISPARITY
    assert {row["groups"] for row in result.tables["ranking"].to_pylist()} == {""}
    # The second run says where groups are from, as well as the first does.
    both = compare(run(images(), "poor"), run(images(), "good", group_sources=sources))
    assert np.isnan([f.p_value for f in both.findings if f.groups == "place"]).all()


def test_swapping_gives_mcnemars_p_value():
    frame = images(200)
    rng = np.random.default_rng(0)
    close = np.where(rng.random(200) < 0.12, KINDS[rng.integers(0, 3, 200)], frame["poor"])
    frame = frame.with_columns(close=pl.Series(close))
    result = compare(run(frame, "poor", "close", resampling={"replicates": 4000}))
    first, second = (frame[name] == frame["kind"] for name in ("poor", "close"))
    only = int((first & ~second).sum()), int((second & ~first).sum())
    expected = binomtest(only[0], sum(only)).pvalue
    # The smaller side of 4000 draws, doubled: 4 standard errors of a share near one half.
    assert pick(result, "accuracy").p_value == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize("unit", [None, "scene"])
@pytest.mark.parametrize("separate", [False, True])
def test_naming_the_other_model_first_turns_the_sign_and_nothing_else(unit, separate):
    frame, more = images(200), {"data": {"unit": unit}} if unit else {}
    names = ("poor", "skewed")
    runs = {name: run(frame, name, **more) for name in names}

    def compared(first, second):
        if separate:
            return compare(runs[first], runs[second])
        return compare(run(frame, first, second, **more))

    def numbers(result, sign):
        rows = {}
        for finding in result.findings:
            ends = sorted((sign * finding.ci_low, sign * finding.ci_high))
            band = sorted((sign * finding.chance_low, sign * finding.chance_high))
            fact = finding.metric, finding.aggregate, finding.subject, finding.group, finding.groups
            rows[fact] = [sign * finding.value, *ends, *band, finding.p_value, finding.q_value]
            rows[fact].append(list(Verdict).index(finding.verdict))
        return rows

    forwards, backwards = compared(*names), compared(*reversed(names))
    expected = numbers(forwards, 1.0)
    assert len(expected) > 5
    turned = numbers(backwards, -1.0)
    assert turned.keys() == expected.keys()
    for fact, values in expected.items():
        np.testing.assert_allclose(turned[fact], values, atol=1e-12, err_msg=str(fact))
    statements = [[str(c.standings), str(c.worse)] for c in forwards.conclusions]
    assert [[str(c.standings), str(c.worse)] for c in backwards.conclusions] == statements


def test_units_move_together():
    """Every image twice says no more than every image once, when its copies are one unit."""
    frame = images(300)
    twice = pl.concat([frame, frame]).with_columns(
        id=pl.Series([f"j{index}" for index in range(2 * len(frame))]),
        scene=pl.Series([*frame["id"]] * 2),
    )
    once = pick(compare(run(frame, "poor", "good")), "accuracy")
    clustered = pick(compare(run(twice, "poor", "good", data={"unit": "scene"})), "accuracy")
    naive = pick(compare(run(twice, "poor", "good")), "accuracy")
    assert clustered.unit == "unit"
    assert clustered.value == pytest.approx(once.value)
    widths = [finding.ci_high - finding.ci_low for finding in (once, clustered, naive)]
    assert widths[1] == pytest.approx(widths[0], rel=0.2)
    assert widths[2] < 0.85 * widths[1]
    assert clustered.null is NullHypothesis.MODELS
    assert "exchangeable on each unit" in clustered.null_drawn


def test_two_runs_are_one_comparison():
    frame = images()
    separate = compare(run(frame, "poor"), run(frame, "good"))
    assert [*map(repr, separate.findings)] == [*map(repr, usual().findings)]
    assert [*separate.manifest.counts] == ["a", "b"]
    assert all(name.startswith(("a: ", "b: ")) for name in separate.manifest.inputs)
    renamed = frame.with_columns(poor=pl.col("good"))
    result = compare(run(frame, "poor"), run(renamed, "poor"))
    assert {finding.model for finding in result.findings} == {"b: poor − a: poor"}


def test_only_common_and_answered_rows_are_compared():
    frame = images()
    fewer = frame[100:].with_columns(
        good=pl.when(pl.int_range(500) < 20).then(pl.lit("")).otherwise("good")
    )
    result = compare(run(frame, "poor"), run(fewer, "good"))
    finding, same = pick(result, "accuracy"), frame[120:]
    assert finding.n == 480
    right = {name: share_right(same, name) for name in ("poor", "good")}
    assert finding.value == pytest.approx(right["good"] - right["poor"], abs=1e-12)
    assert "480 of 600 labelled images" in result.manifest.notes[1]
    assert sum(row["n"] for row in result.tables["group_sizes"].to_pylist()) == 480


@pytest.mark.parametrize("unit", [None, "scene"])
@pytest.mark.parametrize(("n_shared", "decided"), [(1, False), (8, False), (200, True)])
def test_a_few_shared_images_decide_nothing(n_shared, decided, unit):
    frame, data = images(), {} if unit is None else {"unit": unit}
    first = run(frame.head(200 + n_shared), "good", data=data)
    second = run(frame.tail(400), "poor", data=data)
    result = compare(first, second)
    verdicts = {finding.verdict for finding in result.findings if not finding.groups}
    verdicts -= {Verdict.NONE}
    assert (verdicts != {Verdict.INCONCLUSIVE}) is decided
    if not decided:
        assert not any(conclusion.real for conclusion in result.conclusions)
        assert Verdict.BELOW_THRESHOLD not in {c.verdict for c in result.conclusions}


def test_incomparable_results_are_refused():
    frame = images(60)
    kinds = pl.when(pl.col("id") == "i0007").then(pl.lit("eel")).otherwise("kind")
    place = pl.int_range(60) < 30
    halves = frame.with_columns(
        poor=pl.when(place).then("poor").otherwise(pl.lit("")),
        good=pl.when(place).then(pl.lit("")).otherwise("good"),
    )
    strangers = frame.with_columns(id=pl.lit("z") + pl.col("id"))
    for runs, named in (
        ((run(frame, "poor"), run(frame.with_columns(kind=kinds), "good")), "i0007"),
        ((run(frame, "poor"),), "one model only"),
        ((run(frame, "poor"), run(strangers, "good")), "no image in common"),
        ((run(halves, "poor", "good"),), "answers of two models"),
    ):
        with pytest.raises(DataError) as raised:
            compare(*runs)
        assert named in raised.value.problem
        assert raised.value.expected


TARGET_TOO = {"groups": ["place", ["place", "kind"]]}


@cache
def nested():
    return compare(run(images(kinds=2), "skewed", "good", data=TARGET_TOO))


def test_base_rates_get_no_verdict_where_groups_determine_the_target():
    finding = pick(nested(), "demographic_parity", groups="place × kind")
    reason = "the groups determine the target: a model without mistakes has this gap too"
    assert (finding.family, finding.verdict, finding.reason) == (
        Family.DESCRIPTIVE,
        Verdict.NONE,
        reason,
    )
    assert math.isnan(finding.p_value)
    assert math.isnan(finding.q_value)
    ranked = {(row["metric"], row["groups"]) for row in nested().tables["ranking"].to_pylist()}
    assert ("demographic_parity", "place") in ranked
    assert ("demographic_parity", "place × kind") not in ranked


def test_disagreements_are_pairs_of_shown_differences_each_once():
    result = compare(run(images(1500, kinds=2), "poor", "skewed", data=TARGET_TOO))
    rows = result.tables["disagreements"].to_pylist()
    disparities = {
        (finding.metric, finding.groups) for finding in result.findings
        if finding.verdict is Verdict.DISPARITY and not finding.subject
    }  # fmt: skip
    sides = [
        {(row[f"metric_{side}"], row[f"group_{side}"]) for side in "ab"} | {row["groups"]}
        for row in rows
    ]
    assert len(sides) == len({*map(frozenset, sides)}) > 0
    for row in rows:
        for metric in (row["metric_a"], row["metric_b"]):
            assert (metric, "" if metric == "accuracy" else row["groups"]) in disparities
    assert {("accuracy", ""), ("effect_size_mean", ""), "place"} in sides
    assert {("accuracy", "x"), ("effect_size_mean", ""), "place"} in sides
