"""Rules on verdicts, on another run and on either end of an interval; and their false alarms."""

import math
from dataclasses import replace
from functools import cache
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest

import equipoise
from equipoise.core import (
    Aggregate,
    AuditResult,
    ConfigError,
    Family,
    GroupValue,
    NullHypothesis,
    Verdict,
)
from equipoise.report import GateRule, gate, junit
from equipoise.report.concluding import conclusions_of
from report.synthetic import NAN, comparison, finding, manifest

INTERVAL = finding(
    metric="accuracy", aggregate=Aggregate.VALUE, value=0.80, ci_low=0.75, ci_high=0.85
)
LESS = finding(metric="accuracy", value=0.3, model="other", verdict=Verdict.DETECTED)
NOTHING = finding(metric="demographic_parity", value=0.01, verdict=Verdict.BELOW_THRESHOLD)


def result(*findings):
    return AuditResult(findings, manifest(), conclusions=conclusions_of(findings))


def outcomes(rule, *findings):
    return [check.outcome for check in gate(result(*findings), [rule]).checks]


@pytest.mark.parametrize(
    ("bounds", "whole", "part"),
    [
        ({"min": 0.86}, "breached", "breached"),
        ({"min": 0.82}, "passed", "breached"),
        ({"min": 0.75}, "passed", "passed"),
        ({"max": 0.74}, "breached", "breached"),
        ({"max": 0.80}, "passed", "breached"),
        ({"max": 0.85}, "passed", "passed"),
        ({"min": 0.70, "max": 0.90}, "passed", "passed"),
        ({"min": 0.70, "max": 0.80}, "passed", "breached"),
        ({"min": 0.86, "max": 0.90}, "breached", "breached"),
    ],
)
def test_the_whole_interval_or_any_of_it(bounds, whole, part):
    for on, expected in (("whole", whole), ("any", part)):
        assert outcomes(GateRule("accuracy", on=on, **bounds), INTERVAL) == [expected]


@pytest.mark.parametrize("on", ["whole", "any"])
def test_without_an_interval_nothing_passes(on):
    bare = replace(INTERVAL, ci_low=NAN, ci_high=NAN)
    assert outcomes(GateRule("accuracy", on=on, min=0.1), bare) == ["not estimable"]


def test_a_verdict_breaches_with_the_graver_ones():
    findings = (finding(metric="accuracy"), LESS, NOTHING)
    disparity = gate(result(*findings), [GateRule(verdict="disparity")])
    assert [check.finding for check in disparity.breaches] == [findings[0]]
    detected = gate(result(*findings), [GateRule(verdict="detected")])
    assert [check.finding for check in detected.breaches] == [*findings[:2]]
    assert detected.exit_code == 1
    assert all(check.conclusion for check in detected.breaches)


def test_a_verdict_is_of_conclusions_unless_a_metric_is_named():
    restated = finding(metric="true_positive_rate", subject="a", family=Family.LEAF)
    findings = (finding(metric="accuracy"), restated)
    stated = {c.finding for c in result(*findings).conclusions}
    assert len(gate(result(*findings), [GateRule(verdict="disparity")]).checks) == len(stated)
    rule = GateRule("true_positive_rate", verdict="disparity")
    assert [check.finding for check in gate(result(*findings), [rule]).breaches] == [restated]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"metric": "demographic_parity", "model": "deepface"}, ["passed"]),
        ({"model": "other"}, ["passed"]),
        ({"groups": "race"}, ["no match"]),
        ({"metric": "skewsize"}, ["no match"]),
        ({"metric": "accuracy", "of": "difference"}, ["breached", "passed"]),
        ({"metric": "accuracy", "of": "worst_group"}, ["no match"]),
    ],
)
def test_a_verdict_is_filtered_and_never_passes_without_a_match(filters, expected):
    rule = GateRule(verdict="disparity", **filters)
    assert outcomes(rule, finding(metric="accuracy"), LESS, NOTHING) == expected


def test_a_number_tested_against_two_null_hypotheses_is_breached_once():
    first = finding(metric="accuracy", verdict=Verdict.INCONCLUSIVE)
    graver = replace(first, null=NullHypothesis.WITHIN_CLASS, verdict=Verdict.DISPARITY)
    for findings in ((first, graver), (graver, first), (graver, graver)):
        rule = GateRule("accuracy", verdict="inconclusive", of="difference")
        (check,) = gate(result(*findings), [rule]).checks
        assert check.outcome == "breached"
        assert check.finding.verdict is Verdict.DISPARITY


def test_each_model_without_the_verdict_is_listed():
    grave = finding(metric="accuracy")
    checks = gate(result(grave, LESS), [GateRule("accuracy", verdict="disparity")]).checks
    assert [check.outcome for check in checks] == ["breached", "passed"]
    assert "other" in checks[1].sentence


@pytest.mark.parametrize(
    ("rule", "choice"),
    [
        ({"metric": "accuracy", "of": "ratio"}, "accuracy difference"),
        ({"metric": "skewsize"}, "accuracy"),
        ({"metric": "accuracy", "model": "nobody", "of": "difference"}, "model other"),
    ],
)
def test_a_rule_without_a_match_says_what_the_run_has(rule, choice):
    (check,) = gate(result(LESS), [GateRule(**rule, max=1)]).checks
    assert check.outcome == "no match"
    _, _, choices = check.sentence.partition("To do: ")
    assert choices.endswith(f": {choice}.")


BOTH = finding(metric="accuracy", model="other", verdict=Verdict.BELOW_THRESHOLD)
WITHOUT_VERDICT = replace(NOTHING, model="other", value=NAN, verdict=Verdict.NOT_ESTIMABLE)


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "demographic_parity", "max": 0.1},
        {"metric": "demographic_parity", "verdict": "disparity"},
        {"verdict": "disparity", "groups": "race"},
    ],
)
def test_a_model_without_the_number_of_another_is_not_measured(rule):
    findings = (replace(NOTHING, groups="race"), replace(BOTH, model="deepface"), BOTH)
    outcome = gate(result(*findings), [GateRule(**rule)])
    assert [check.outcome for check in outcome.checks] == ["passed", "not measured"]
    assert (outcome.checks[1].rule.model, outcome.checks[1].rule.groups) == ("other", "race")
    assert outcome.exit_code == 2
    assert 'type="not measured"' in junit(outcome)
    # What has nothing in common with the model is measured by other metrics.
    apart = replace(BOTH, metric="diversity")
    assert outcomes(GateRule(**rule), *findings[:2], apart) == ["passed"]
    assert outcomes(GateRule(**rule | {"model": "deepface"}), *findings) == ["passed"]


@pytest.mark.parametrize("metric", [{}, {"metric": "demographic_parity"}])
def test_a_verdict_that_cannot_be_given_does_not_pass(metric):
    rule = GateRule(verdict="disparity", **metric)
    assert outcomes(rule, NOTHING, WITHOUT_VERDICT) == ["passed", "not estimable"]
    assert outcomes(rule, NOTHING, replace(WITHOUT_VERDICT, model="deepface")) == ["passed"]


@pytest.mark.parametrize(
    "rule",
    [
        {"metric": "demographic_parity", "max": 0.9},
        {"metric": "demographic_parity", "min": 0.9},
        {"metric": "demographic_parity", "verdict": "disparity"},
        {"verdict": "disparity"},
    ],
)
def test_a_number_that_means_nothing_is_not_judged(rule):
    withheld = replace(NOTHING, family=Family.WITHHELD, verdict=Verdict.NONE)
    outcome = gate(result(withheld), [GateRule(**rule)])
    assert [check.outcome for check in outcome.checks] == ["not judged"]
    assert outcome.exit_code == 2
    # What another number of the same groups shows is judged all the same.
    worse = replace(LESS, model=NOTHING.model)
    checks = outcomes(GateRule(verdict="detected"), withheld, worse)
    assert checks == ["breached", "not judged"]


def test_classes_are_checked_for_the_models_that_have_no_finding_for_the_whole():
    part = replace(NOTHING, model="other", subject="cat", value=0.9)
    assert outcomes(GateRule("demographic_parity", max=0.1), NOTHING, part) == [
        "passed", "breached",
    ]  # fmt: skip


@cache
def changes():
    """Differences of facellm, the run that is checked, to deepface."""
    return comparison()


def against(**keys):
    rule = GateRule(worse_than="runs/base", **keys)
    return gate(result(INTERVAL), [rule], baselines={"runs/base": changes()})


def test_a_run_must_not_be_worse_than_another():
    second = {f.parameters["model_b"] for f in changes().findings}
    assert len(second) == 1
    worse = [
        f for f in changes().findings
        if f.tested and f.verdict in ("disparity", "detected") and f.parameters["worse"] in second
    ]  # fmt: skip
    better = [f for f in changes().findings if f.tested and f.parameters["worse"] not in second]
    assert worse
    assert better
    outcome = against()
    assert {id(check.finding) for check in outcome.breaches} == {*map(id, worse)}
    assert outcome.exit_code == 1


def test_a_comparison_is_filtered_and_never_passes_without_a_match():
    metrics = {check.finding.metric for check in against().breaches}
    for metric in metrics:
        assert {check.finding.metric for check in against(metric=metric).breaches} == {metric}
    assert [check.outcome for check in against(groups="none").checks] == ["no match"]
    assert [check.outcome for check in against(model="nobody").checks] == ["no match"]
    (model,) = {f.parameters["model_b"] for f in changes().findings}
    named = [check.finding for check in against(model=model).breaches]
    assert named == [check.finding for check in against().breaches]


def test_a_model_that_the_other_run_lacks_is_not_measured():
    (second,) = {f.parameters["model_b"] for f in changes().findings}
    run = result(replace(INTERVAL, model=second), replace(INTERVAL, model="new"))
    rule = GateRule(worse_than="runs/base")
    checks = gate(run, [rule], baselines={"runs/base": changes()}).unchecked
    assert {check.outcome for check in checks} == {"not measured"}
    assert {check.rule.model for check in checks} == {"new"}


def test_a_run_that_was_not_compared_is_an_error():
    with pytest.raises(ConfigError) as refused:
        gate(result(INTERVAL), [GateRule(worse_than="elsewhere")])
    assert refused.value.key == "worse_than"


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ({}, "min"),
        ({"metric": "accuracy"}, "min"),
        ({"min": 0.5}, "metric"),
        ({"metric": "accuracy", "min": 2, "max": 1}, "min"),
        ({"metric": "accuracy", "min": 0.5, "on": "middle"}, "on"),
        ({"metric": "accuracy", "min": 0.5, "of": "mean"}, "of"),
        ({"verdict": "difference"}, "verdict"),
        ({"verdict": "disparity", "min": 0.1}, "min"),
        ({"verdict": "disparity", "max": 0.1}, "max"),
        ({"verdict": "disparity", "on": "whole"}, "on"),
        ({"verdict": "disparity", "of": "difference"}, "of"),
        ({"worse_than": "runs/a", "min": 0.1}, "min"),
        ({"worse_than": "runs/a", "on": "any"}, "on"),
        ({"worse_than": "runs/a", "change_from": "before"}, "change_from"),
        ({"worse_than": "runs/a", "metric": "accuracy", "of": "worst_group"}, "of"),
        ({"worse_than": "runs/a", "metric": "accuracy", "of": "difference"}, "of"),
    ],
)
def test_a_rule_that_makes_no_sense_names_its_key_and_what_to_do(rule, key):
    with pytest.raises(ConfigError) as refused:
        GateRule(**rule)
    assert refused.value.key == key
    assert refused.value.expected


def group_of(name, n, value):
    return GroupValue(name, (name,), n, value, value - 0.05, value + 0.05)


def groups(n, shares):
    return tuple(group_of(f"g{place}", n, value) for place, value in enumerate(shares))


def alarms(rule, **fields):
    (check,) = gate(result(finding(metric="accuracy", **fields)), [rule]).checks
    return check.alarms


def test_alarms_of_the_worst_of_groups_that_are_alike():
    """Held against a simulation of 20 groups of 100 rows that are all right for 85 %."""
    fields = {"aggregate": Aggregate.WORST_GROUP, "by_group": groups(100, [0.85] * 20)}
    rate = alarms(GateRule("accuracy", of="worst_group", min=0.8), value=0.78, **fields)
    worst = np.random.default_rng(0).binomial(100, 0.85, size=(20_000, 20)).min(axis=1) / 100
    assert rate == pytest.approx((worst < 0.8).mean(), abs=0.012)
    few = groups(100, [0.85] * 2)
    fields |= {"by_group": few}
    assert alarms(GateRule("accuracy", of="worst_group", min=0.8), **fields) < 0.2 < rate


def test_alarms_of_gaps():
    fields = {"aggregate": Aggregate.DIFFERENCE, "by_group": groups(200, [0.6] * 6)}
    drawn = np.random.default_rng(0).binomial(200, 0.6, size=(20_000, 6)) / 200
    rate = alarms(GateRule("accuracy", of="difference", max=0.1), **fields)
    assert rate == pytest.approx((np.ptp(drawn, axis=1) > 0.1 + 1e-9).mean(), abs=0.012)
    rate = alarms(GateRule("accuracy", of="difference", max=0.05), compared_to="overall", **fields)
    short = drawn.mean(axis=1) - drawn.min(axis=1)
    assert rate == pytest.approx((short > 0.05 + 1e-9).mean(), abs=0.08)


@pytest.mark.parametrize(
    ("rule", "aggregate", "shares"),
    [
        ({"min": 0.8}, Aggregate.VALUE, [0.85, 0.85]),
        ({"min": 0.8, "of": "worst_group"}, Aggregate.WORST_GROUP, [0.7, 0.7]),
        ({"min": 0.8, "of": "worst_group", "on": "whole"}, Aggregate.WORST_GROUP, [0.9, 0.9]),
        ({"min": 0.8, "of": "worst_group"}, Aggregate.WORST_GROUP, []),
    ],
)
def test_no_alarms_where_there_is_no_extreme_or_no_rate(rule, aggregate, shares):
    fields = {"aggregate": aggregate, "by_group": groups(100, shares)}
    assert math.isnan(alarms(GateRule("accuracy", **rule), **fields))


def test_junit_has_every_rule_with_its_outcome():
    rules = [
        GateRule(verdict="disparity"),
        GateRule("accuracy", verdict="inconclusive", groups="nowhere"),
        GateRule("accuracy", of="difference", max=0.1, on="whole"),
        GateRule(worse_than="runs/base"),
    ]
    outcome = gate(result(finding(metric="accuracy")), rules, baselines={"runs/base": changes()})
    suite = ET.fromstring(junit(outcome))
    assert int(suite.get("tests")) == len(outcome.checks) == len(list(suite))
    assert int(suite.get("failures")) == len(outcome.breaches)
    assert int(suite.get("errors")) == 1
    names = {case.get("classname") for case in suite}
    assert {"verdict", "accuracy", "worse than runs/base"} <= names
    assert all(
        case.find("failure").get("message") for case in suite if case.find("failure") is not None
    )


@pytest.mark.parametrize("on", ["value", "lower", "upper", "whole", "any"])
def test_a_number_at_a_bound_is_not_beyond_it_by_rounding(on):
    gap, share = 8 / 20 - 6 / 20, 1 - 0.9
    assert gap > 0.1 > share
    at_max = finding(metric="accuracy", value=gap, ci_low=gap, ci_high=gap)
    assert outcomes(GateRule("accuracy", of="difference", on=on, max=0.1), at_max) == ["passed"]
    at_min = replace(at_max, aggregate=Aggregate.VALUE, value=share, ci_low=share, ci_high=share)
    assert outcomes(GateRule("accuracy", on=on, min=0.1), at_min) == ["passed"]
    above = replace(at_max, value=0.1001, ci_low=0.1001, ci_high=0.1001)
    assert outcomes(GateRule("accuracy", of="difference", on=on, max=0.1), above) == ["breached"]


@pytest.mark.parametrize(
    ("rule", "fix"),
    [
        ({"of": "difference", "max": 10}, "write 0.1: 10 points are 0.1"),
        ({"of": "worst_group", "min": 80}, "write 0.8: 80 % is 0.8"),
        ({"min": 80}, "write 0.8: 80 % is 0.8"),
        ({"of": "difference", "min": -0.1}, "write a number from 0 to 1"),
        ({"change_from": "before", "min": -1.5}, "write a number from -1 to 1"),
    ],
)
def test_a_bound_that_no_number_can_reach_is_refused(rule, fix):
    with pytest.raises(ConfigError) as raised:
        GateRule("accuracy", **rule)
    assert raised.value.key == [*rule][-1]
    assert fix in str(raised.value)


def test_a_bound_within_the_range_of_a_change_or_of_a_metric_without_ends_is_taken():
    assert GateRule("accuracy", change_from="before", min=-0.5).bounds == [-0.5]
    assert GateRule("error_difference", max=10.0).bounds == [10.0]


SMALL = (
    GroupValue("men", ("men",), 740, 0.86, 0.83, 0.88, ""),
    GroupValue("women", ("women",), 785, 0.86, 0.83, 0.88, ""),
    GroupValue("nonbinary", ("nonbinary",), 25, 0.0, 0.0, 0.133, "fewer than 30 rows"),
)


@pytest.mark.parametrize(
    ("aggregate", "bounds", "outcome"),
    [
        ("worst_group", {"min": 0.8}, "not judged"),
        ("worst_group", {"min": 0.1}, "passed"),
        ("worst_group", {"min": 0.9}, "breached"),
        ("difference", {"max": 0.6}, "not judged"),
        ("difference", {"max": 0.8}, "passed"),
    ],
)
def test_a_group_too_small_to_compare_is_named_and_may_leave_a_rule_not_judged(
    aggregate, bounds, outcome
):
    value = 0.86 if aggregate == "worst_group" else 0.0
    measured = finding(
        metric="accuracy", aggregate=Aggregate(aggregate), value=value, by_group=SMALL
    )
    (check,) = gate(result(measured), [GateRule("accuracy", of=aggregate, **bounds)]).checks
    assert check.outcome == outcome
    assert check.not_checked == (("nonbinary", 25),)
    assert "Not checked: nonbinary, 25 rows." in check.sentence
    every_group = replace(measured, by_group=SMALL[:2])
    rule = GateRule("accuracy", of=aggregate, **bounds)
    (check,) = gate(result(every_group), [rule]).checks
    assert (check.not_checked, check.outcome == "breached") == ((), outcome == "breached")


def test_a_rule_on_verdicts_names_groups_too_small_to_compare():
    people = pl.DataFrame({
        "gender": ["women", "men"] * 60 + ["nonbinary"] * 5,
        "label": [1, 1, 0, 0] * 30 + [1] * 5, "pred": [1, 1, 0, 0] * 30 + [0] * 5,
    })  # fmt: skip
    audited = equipoise.audit(people, target="label", pred="pred", groups="gender")
    (check,) = gate(audited, [GateRule(verdict="disparity")]).checks
    assert check.outcome == "passed"
    assert check.not_checked == (("nonbinary", 5),)
    assert "nonbinary, 5 rows" in junit(gate(audited, [GateRule(verdict="disparity")]))


def test_a_check_names_the_end_of_the_interval_that_it_limits():
    for on, bounds, text in (
        ("any", {"min": 0.7}, "passed with 0.7500, the lower end of the interval."),
        ("whole", {"min": 0.7}, "passed with 0.8500, the upper end of the interval."),
        ("whole", {"max": 0.7}, "breached with 0.7500, the lower end of the interval."),
        ("value", {"min": 0.7}, "passed with 0.8000."),
    ):
        (check,) = gate(result(INTERVAL), [GateRule("accuracy", on=on, **bounds)]).checks
        assert check.sentence.endswith(text)


def test_a_check_that_is_not_judged_keeps_the_whole_name_of_its_model():
    name = "net: passed twice"
    measured = finding(
        metric="accuracy", aggregate=Aggregate.WORST_GROUP, value=0.86, by_group=SMALL, model=name
    )
    (check,) = gate(result(measured), [GateRule("accuracy", of="worst_group", min=0.8)]).checks
    assert check.outcome == "not judged"
    assert name in check.sentence
