"""Two models by group: each group's change has the verdict, and extremes have an interval."""

import math
from functools import cache

import numpy as np
import polars as pl
import pytest

from audits.comparisons import compare, run
from equipoise.core import Aggregate, Family, IntervalKind, Verdict
from equipoise.report import render
from equipoise.report.result import first_screen

GROUPS, ROWS = 12, 100
GROUP_OFF = {"groups": ["part"]}
EXTREMES = (Aggregate.DIFFERENCE, Aggregate.WORST_GROUP)


def frame(rights, seed=0, units=1):
    """Rows of groups with each model's share of right answers, spread evenly over classes."""
    rng = np.random.default_rng(seed)
    n = ROWS * GROUPS // units
    part, truth = rng.permutation(np.arange(n) % GROUPS), rng.integers(0, 2, n)
    alike = rng.random(n)
    table = {"id": np.arange(n * units), "part": np.repeat([f"g{p:02d}" for p in part], units)}
    table |= {"kind": np.repeat(truth, units).astype(str), "pair": np.repeat(np.arange(n), units)}
    for model, shares in rights.items():
        draw = np.where(rng.random(n) < 0.7, alike, rng.random(n))
        right = draw < np.asarray(shares)[part]
        table[model] = np.repeat(np.where(right, truth, 1 - truth), units).astype(str)
    return pl.DataFrame(table)


def one_worse(points=0.35):
    return {"first": np.full(GROUPS, 0.8), "second": np.r_[0.8 - points, np.full(GROUPS - 1, 0.8)]}


@cache
def compared():
    return compare(run(frame(one_worse()), "first", "second", data=GROUP_OFF))


def changes(result, metric="accuracy", subject=""):
    return {
        finding.group: finding for finding in result.findings
        if finding.group and (finding.metric, finding.subject) == (metric, subject)
    }  # fmt: skip


def test_the_group_that_changed_has_the_verdict_and_leads():
    found = changes(compared())
    assert len(found) == GROUPS
    assert {group for group, f in found.items() if f.verdict is Verdict.DISPARITY} == {"g00"}
    rows = frame(one_worse()).filter(pl.col("part") == "g00")
    right = [(rows[model] == rows["kind"]).mean() for model in ("first", "second")]
    changed = found["g00"]
    assert changed.value == pytest.approx(right[1] - right[0])
    assert (changed.n, changed.family, changed.interval) == (
        len(rows), Family.COMPOSITE, IntervalKind.SIMULTANEOUS
    )  # fmt: skip
    first, *_ = compared().conclusions
    assert (first.group, first.worse, first.metric) == ("g00", "second", "accuracy")
    assert (first.compared_on, first.compared_over) == (GROUPS, "groups")
    assert {standing.better_on for standing in first.standings} == {0, 1}


def test_extremes_have_an_interval_and_no_verdict():
    extremes = [finding for finding in compared().findings if finding.aggregate in EXTREMES]
    assert {finding.metric for finding in extremes} == {
        "accuracy", "demographic_parity", "equalized_odds",
        "negative_predictive_value", "precision",
    }  # fmt: skip
    for finding in extremes:
        assert (finding.family, finding.verdict) == (Family.DESCRIPTIVE, Verdict.NONE)
        assert math.isnan(finding.p_value)
        assert finding.ci_low <= finding.value <= finding.ci_high
        assert -1 <= finding.ci_low < finding.ci_high <= 1
    worst = next(f for f in extremes if f.aggregate is Aggregate.WORST_GROUP)
    assert worst.ci_low <= -0.35 <= worst.ci_high


def test_no_difference_has_an_interval_that_holds_0():
    for seed in range(4):
        table = frame(one_worse(0.12), seed)
        for finding in changes(compare(run(table, "first", "second", data=GROUP_OFF))).values():
            if finding.verdict in (Verdict.DISPARITY, Verdict.DETECTED):
                assert not finding.ci_low <= 0 <= finding.ci_high


def test_a_group_with_few_rows_takes_no_part():
    table = frame(one_worse())
    few = table.filter((pl.col("part") != "g03") | (pl.col("id") < 150))
    left = changes(compare(run(few, "first", "second", data=GROUP_OFF)))
    assert {*changes(compared())} - {*left} == {"g03"}


def test_the_order_of_models_turns_the_sign():
    turned = changes(compare(run(frame(one_worse()), "second", "first", data=GROUP_OFF)))
    for group, finding in changes(compared()).items():
        other = turned[group]
        assert (other.value, other.ci_low, other.ci_high) == pytest.approx(
            (-finding.value, -finding.ci_high, -finding.ci_low)
        )
        assert other.p_value == pytest.approx(finding.p_value)


def test_rows_of_a_unit_say_no_more_than_the_unit():
    single = compare(run(frame(one_worse()), "first", "second", data=GROUP_OFF))
    rows = pl.concat([frame(one_worse())] * 3).with_columns(id=pl.int_range(3 * ROWS * GROUPS))
    by_unit = run(rows, "first", "second", data=GROUP_OFF | {"unit": "pair"})
    units = changes(compare(by_unit))
    for group, finding in changes(single).items():
        width = units[group].ci_high - units[group].ci_low
        assert width >= 0.98 * (finding.ci_high - finding.ci_low)
        assert units[group].unit == "unit"


def test_classes_have_the_change_of_each_group():
    rates = [changes(compared(), "true_positive_rate", subject) for subject in "01"]
    assert [len(found) for found in rates] == [GROUPS, GROUPS]
    worse = [found["g00"].parameters["worse"] for found in rates]
    assert worse == ["second", "second"]


def test_models_that_are_alike_are_bounded_by_the_group_that_is_open_widest():
    table = frame({"first": np.full(GROUPS, 0.8), "second": np.full(GROUPS, 0.8)})
    result = compare(run(table, "first", "second", data=GROUP_OFF))
    bound = next(c for c in result.conclusions if c.groups == "part")
    found = changes(result).values()
    reach = max(max(abs(f.ci_low), abs(f.ci_high)) for f in found)
    assert not bound.real
    assert max(abs(bound.low), abs(bound.high)) == pytest.approx(reach)


def test_the_page_draws_and_lists_each_group():
    marks = first_screen(compared(), compared().shown_page).chart.rows
    assert {mark["label"] for mark in marks} == {f"g{place:02d}" for place in range(GROUPS)}
    page = render(compared(), compared().shown_page)
    table = page[page.index('id="bygroup"') :]
    assert all(f">g{place:02d}<" in table for place in range(GROUPS))


def test_without_resampling_values_stand_alone():
    table = frame(one_worse())
    off = run(table, "first", "second", data=GROUP_OFF, resampling={"method": "none"})
    result = compare(off)
    assert not changes(result)
    extremes = [finding for finding in result.findings if finding.aggregate in EXTREMES]
    assert all(math.isnan(finding.ci_low) for finding in extremes)
