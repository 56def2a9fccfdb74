"""The difference in accuracy between groups leads, whatever the number of classes."""

import numpy as np
import polars as pl
import pytest

from equipoise import report
from equipoise.audits import parse_config, plan, run
from equipoise.core import Aggregate, Family, NullHypothesis, Verdict

SHARES = {"women": 0.78, "men": 0.86}
NAMES = np.array(["chef", "clerk", "nurse", "pilot", "tailor"])


def people(shares, classes=3, n=1000):
    """Rows of groups that are right for a share of every class, with a second attribute."""
    rng, tables = np.random.default_rng(3), []
    for group, share in shares.items():
        order = np.arange(n)
        truth = order % classes
        wrong = order * 7 % n < round(n * (1 - share))
        steps = 1 + order // classes % max(classes - 1, 1)
        labels = np.where(wrong, (truth + steps) % classes, truth)
        age = rng.permutation(np.resize(["old", "young"], n))
        columns = {"truth": NAMES[truth], "m": NAMES[labels], "age": age}
        tables.append(pl.DataFrame({"gender": group, **columns}))
    return pl.concat(tables).sample(fraction=1.0, shuffle=True, seed=1).with_row_index("id")


def config_of(table, groups=("gender",), **values):
    return parse_config({
        "audit": "predictions",
        "data": {"table": table, "id": "id", "target": "truth", "groups": [*groups]},
        "models": {"m": {"table": table, "prediction": "m"}},
        "resampling": {"replicates": 100, "permutations": 1999}, **values,
    })  # fmt: skip


def accuracy_gaps(result, groups="gender"):
    """The differences over all classes, by what they are from and what is exchanged."""
    return {
        (finding.compared_to, finding.null): finding
        for finding in result.findings
        if (finding.metric, finding.aggregate, finding.subject, finding.groups)
        == ("accuracy", Aggregate.DIFFERENCE, "", groups)
    }


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_two_groups_have_one_conclusion_of_their_difference(classes):
    (conclusion,) = run(config_of(people(SHARES, classes))).conclusions
    assert (conclusion.verdict, conclusion.metric) == (Verdict.DISPARITY, "accuracy")
    assert (conclusion.compared_to, conclusion.subject) == ("", "")
    assert conclusion.size == pytest.approx(0.08)
    assert (conclusion.group, conclusion.other) == ("women", "men")
    assert (conclusion.group_value, conclusion.other_value) == pytest.approx((0.78, 0.86))


def test_the_number_of_classes_changes_no_number():
    numbers = [
        [
            (finding.value, finding.ci_low, finding.ci_high, finding.threshold, finding.family)
            for finding in accuracy_gaps(run(config_of(people(SHARES, classes)))).values()
        ]
        for classes in (2, 5)
    ]
    assert numbers[0] == numbers[1]


def test_of_two_groups_the_gap_to_all_rows_restates_the_difference():
    gaps = accuracy_gaps(run(config_of(people(SHARES))))
    assert {null for _, null in gaps} == {NullHypothesis.ROWS, NullHypothesis.WITHIN_CLASS}
    for (compared_to, null), finding in gaps.items():
        difference = gaps["", null]
        assert difference.value == pytest.approx(0.08)
        assert finding.tested is (compared_to == "")
        assert finding.p_value == difference.p_value
        assert finding.verdict is difference.verdict is Verdict.DISPARITY
    assert gaps["overall", NullHypothesis.ROWS].family is Family.FOLD


def test_of_three_groups_both_are_tested_and_stated_once():
    result = run(config_of(people(SHARES | {"others": 0.86})))
    gaps = accuracy_gaps(result)
    assert all(finding.tested for finding in gaps.values())
    assert gaps["", NullHypothesis.ROWS].value == pytest.approx(0.08)
    assert gaps["overall", NullHypothesis.ROWS].value == pytest.approx(0.08 * 2 / 3)
    (conclusion,) = result.conclusions
    assert {*gaps.values()} <= {
        result.findings[place] for place in (conclusion.finding, *conclusion.restated_by)
    }


def test_a_main_effect_leads_before_the_intersection_that_it_makes():
    table = people(SHARES, n=2000)
    result = run(config_of(table, ("gender", "age", ("gender", "age"))))
    real = [conclusion for conclusion in result.conclusions if conclusion.real]
    assert [conclusion.groups for conclusion in real] == ["gender"]
    assert real[0].size == pytest.approx(0.08)


def test_the_difference_at_equal_classes_is_of_the_same_groups():
    (conclusion,) = run(config_of(people(SHARES))).conclusions
    by_class = next(adjustment for adjustment in conclusion.adjustments if adjustment.by == "")
    assert by_class.size + by_class.moved == pytest.approx(conclusion.size)


def test_a_rule_on_the_difference_is_about_the_groups():
    result = run(config_of(people(SHARES)))
    for most, passed in ((0.1, True), (0.06, False)):
        rule = report.GateRule("accuracy", of="difference", max=most)
        (check,) = report.gate(result, [rule]).checks
        assert check.finding.compared_to == ""
        assert (check.outcome == "passed") is passed


def test_a_plan_counts_the_tests_of_the_run():
    config = config_of(people(SHARES | {"others": 0.86}), ("gender", "age"))
    assert plan(config).tests == sum(finding.tested for finding in run(config).findings)


def test_accuracy_can_be_switched_off_alone():
    result = run(config_of(people(SHARES), metrics={"accuracy": False}))
    assert {compared_to for compared_to, _ in accuracy_gaps(result)} == {"overall"}
