"""Sizes of conclusions after the selection of their groups, on findings and on audits."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from equipoise import report
from equipoise.core import Aggregate, Family, GroupValue, Verdict
from equipoise.metrics import SPECS
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import first_screen
from equipoise.report.words import corrected_size
from equipoise.stats import simultaneous_shares
from equipoise.stats.intervals import wilson
from report.synthetic import faces, finding


def parts(shares, n=100):
    groups = []
    for place, share in enumerate(shares):
        low, high = wilson(share * n, n)
        name = f"g{place}"
        groups.append(GroupValue(name, (name,), n, share, float(low), float(high)))
    return tuple(groups)


def gap(shares, n=100, **changes):
    """A difference of accuracy over groups with these shares."""
    value = max(shares) - min(shares)
    fields = {
        "family": Family.LEAF, "value": value, "ci_low": value / 4, "ci_high": value * 1.4,
        "chance": 0.04, "chance_low": 0.01, "chance_high": 0.08, "excess": value - 0.04,
        "groups": "group", "by_group": parts(shares, n),
    }  # fmt: skip
    return finding(metric="accuracy", **{**fields, **changes})


def concluded(*findings):
    return conclusions_of(findings)


def test_the_leading_group_has_an_interval_for_all_groups_together():
    shares = [0.6, 0.75, 0.8, 0.85]
    (conclusion,) = concluded(gap(shares))
    low, high = simultaneous_shares(np.array(shares) * 100, np.full(4, 100))
    assert (conclusion.group, conclusion.compared) == ("g0", 4)
    assert (conclusion.group_low, conclusion.group_high) == pytest.approx((low[0], high[0]))
    assert conclusion.group_value < conclusion.group_corrected < conclusion.group_high


def test_a_size_is_corrected_more_the_closer_the_runner_up_is():
    alone, close = (concluded(gap(shares))[0] for shares in ([0.5, 0.8, 0.9], [0.5, 0.52, 0.9]))
    for conclusion in (alone, close):
        assert 0 <= conclusion.corrected_low <= conclusion.corrected < conclusion.size
        assert conclusion.corrected <= conclusion.corrected_high
    assert close.corrected < alone.corrected


def test_two_groups_are_corrected_for_their_verdict_alone():
    undecided = concluded(gap([0.6, 0.8], verdict=Verdict.INCONCLUSIVE, q_value=0.2))[0]
    assert undecided.corrected == pytest.approx(undecided.size)
    clear, close = (
        concluded(gap([0.6, 0.8], p_value=p, q_value=q, chance_high=0.16))[0]
        for p, q in ((1e-6, 1e-6), (0.02, 0.05))
    )
    assert 0 <= close.corrected < clear.corrected <= clear.size


def test_a_group_against_all_others_has_the_direction_of_its_size():
    shares = [0.5, 0.8, 0.82, 0.85]
    overall = gap(
        shares, compared_to="overall", verdict=Verdict.INCONCLUSIVE, q_value=0.5, leads=False
    )
    rest = GroupValue("all other groups", (), 300, 0.8233333333, 0.78, 0.86)
    value = 0.5 - rest.value
    leaf = gap(
        shares, aggregate=Aggregate.AGAINST_REST, group="g0", value=value, ci_low=value - 0.1,
        ci_high=value + 0.1, chance=0.0, chance_low=-0.1, chance_high=0.1, excess=value,
        by_group=(overall.by_group[0], rest),
    )  # fmt: skip
    conclusion = concluded(overall, leaf)[0]
    assert (conclusion.group, conclusion.compared) == ("g0", 4)
    assert conclusion.size < conclusion.corrected < 0
    assert conclusion.corrected_low < conclusion.corrected < conclusion.corrected_high
    # The groups it was picked from are unknown without the finding over all of them.
    alone = concluded(leaf)[0]
    assert alone.compared == 0
    assert math.isnan(alone.corrected)


def test_corrected_sizes_rank_conclusions_of_the_same_strength():
    noisy = gap([0.4, 0.42, 0.44, 0.7, 0.72], n=30, groups="noisy", ci_low=0.2)
    clear = gap([0.6, 0.8, 0.82], n=1000, groups="clear", ci_low=0.17)
    conclusions = concluded(noisy, clear)
    assert [conclusion.groups for conclusion in conclusions] == ["clear", "noisy"]
    assert conclusions[0].size < conclusions[1].size


@pytest.mark.parametrize(("shares", "stated"), [([0.5, 0.8, 0.9], True), ([0.5, 0.9], False)])
def test_the_correction_is_stated_from_three_groups_on(shares, stated):
    item = gap(shares)
    assert bool(corrected_size(item, concluded(item)[0])) is stated


@pytest.mark.parametrize(
    ("shares", "stated"),
    [
        ([0.5, 0.505, 0.9], "of 3 groups: 25.0 points, the low end of 25.0 to 52.7."),
        ([0.5, 0.51, 0.53], "of 3 groups: 1.9 points (0.0 to 19.3)."),
    ],
)
def test_a_correction_that_ends_at_the_limit_says_so(shares, stated):
    item = gap(shares)
    assert corrected_size(item, concluded(item)[0]).endswith(stated)


def test_numbers_without_an_interval_of_their_groups_have_none():
    bare = tuple(GroupValue(f"g{i}", (f"g{i}",), 9, i + 2.0, math.nan, math.nan) for i in range(3))
    conclusion = concluded(gap([0.5, 0.8, 0.9], by_group=bare))[0]
    assert conclusion.compared == 0
    assert math.isnan(conclusion.group_low)


@pytest.mark.parametrize("metric", [name for name, spec in SPECS.items() if spec.of_whole])
def test_shares_of_one_whole_have_no_size_from_the_rows_of_their_groups(metric):
    # Of the top 50 for a query none shows g0; 100 images of the pool do.
    top = tuple(replace(part, low=math.nan, high=math.nan) for part in parts([0.0, 0.3, 0.7]))
    item = finding(metric=metric, value=0.76, groups="group", subject="nurse", by_group=top)
    conclusion = concluded(item)[0]
    assert conclusion.compared == 0
    assert math.isnan(conclusion.group_low)
    assert math.isnan(conclusion.group_high)
    assert math.isnan(conclusion.group_corrected)


def test_all_surfaces_state_the_correction(tmp_path):
    result = faces()
    leading = next(item for item in result.conclusions if item.compared > 2 and item.real)
    clause = corrected_size(result.findings[leading.finding], leading)
    stated = [
        statement.certainty for statement in first_screen(result, result.shown_page).statements
    ]
    assert any(clause in text for text in stated)
    report.write(result, tmp_path)
    assert repr(report.read(tmp_path).conclusions) == repr(result.conclusions)
    stored = json.loads((tmp_path / "conclusions.json").read_text("utf-8"))
    assert stored[0]["compared"] == result.conclusions[0].compared
    assert clause.split(":")[0] in report.card(result)
