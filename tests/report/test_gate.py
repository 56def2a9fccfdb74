"""The gate: what passes, what breaches, and what is never a silent pass."""

from xml.etree import ElementTree as ET

import pytest

from equipoise.core import AuditResult, ConfigError
from equipoise.report import GateRule, gate, junit
from report.synthetic import NAN, finding, manifest


def result(*findings):
    return AuditResult(findings, manifest())


WORST = finding(metric="worst_group_accuracy", value=0.1296, ci_low=0.09, ci_high=0.18)


@pytest.mark.parametrize(
    ("on", "bounds", "outcome"),
    [
        ("value", {"min": 0.13}, "breached"),
        ("value", {"min": 0.1296}, "passed"),
        ("upper", {"min": 0.13}, "passed"),
        ("lower", {"min": 0.1}, "breached"),
        ("value", {"max": 0.15}, "passed"),
        ("upper", {"max": 0.15}, "breached"),
        ("value", {"min": 0.1, "max": 0.12}, "breached"),
    ],
)
def test_value_or_an_end_of_the_interval(on, bounds, outcome):
    rule = GateRule("worst_group_accuracy", on=on, **bounds)
    assert [check.outcome for check in gate(result(WORST), [rule]).checks] == [outcome]


@pytest.mark.parametrize(
    "rule",
    [
        GateRule("accuracy", min=0),
        GateRule("worst_group_accuracy", min=0, model="other"),
        GateRule("worst_group_accuracy", min=0, groups="race"),
        GateRule("worst_group_accuracy", min=0, subject="cat"),
    ],
)
def test_a_rule_that_matches_nothing_does_not_pass(rule):
    outcome = gate(result(WORST), [rule])
    assert not outcome.passed
    assert outcome.exit_code == 2
    assert outcome.checks[0].outcome == "no match"
    assert outcome.checks[0].sentence == f"{rule}: no finding matches this rule."


def test_without_a_subject_a_rule_is_about_the_whole():
    overall = finding(metric="demographic_parity", value=0.05)
    part = finding(metric="demographic_parity", value=0.9, subject="cat")
    rule = GateRule("demographic_parity", max=0.1)
    assert gate(result(part, overall), [rule]).passed
    assert not gate(result(part), [rule]).passed


@pytest.mark.parametrize("bounds", [{}, {"min": 2, "max": 1}, {"min": 1, "on": "middle"}])
def test_rules_that_make_no_sense(bounds):
    with pytest.raises(ConfigError, match=r"^gate rule on accuracy: "):
        GateRule("accuracy", **bounds)


def test_junit_counts_failures_and_errors():
    rules = [
        GateRule("worst_group_accuracy", min=0.6),
        GateRule("worst_group_accuracy", min=0.1),
        GateRule("absent", max=1),
    ]
    suite = ET.fromstring(junit(gate(result(WORST), rules)))
    assert suite.attrib == {
        "name": "equipoise gate", "tests": "3", "failures": "1", "errors": "1"
    }  # fmt: skip
    cases = list(suite)
    assert cases[0].attrib["name"] == "worst_group_accuracy ≥ 0.6: deepface, race × gender"
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], ["error"]]


def test_nan_does_not_pass_and_junit_survives_hostile_labels():
    nasty = '<x a="1">&\x00\x1b\u202e'
    bad = finding(metric="accuracy_gap", model=nasty, value=NAN, reason=nasty)
    outcome = gate(result(bad), [GateRule("accuracy_gap", max=0, model=nasty)])
    assert (outcome.exit_code, outcome.checks[0].outcome) == (2, "not estimable")
    suite = ET.fromstring(junit(outcome))
    assert '<x a="1">&\\u0000\\u001b\\u202e' in suite[0].attrib["name"]


def test_one_number_with_two_nulls_is_checked_once():
    within = finding(
        metric="worst_group_accuracy", value=0.1296, ci_low=0.09, ci_high=0.18, null="within class"
    )
    outcome = gate(result(WORST, within), [GateRule("worst_group_accuracy", min=0.6)])
    assert [check.finding for check in outcome.checks] == [WORST]


def test_findings_under_another_null_are_checked_only_by_name():
    findings = (
        finding(metric="logit_gap", value=0.1, version="default"),
        finding(metric="logit_gap", value=0.9, version="null: pool order"),
        finding(metric="logit_gap", value=0.9, version="raw"),
    )
    default_gate = gate(result(*findings), [GateRule("logit_gap", max=0.5)])
    assert [check.finding for check in default_gate.checks] == [findings[0], findings[2]]
    named = gate(result(*findings), [GateRule("logit_gap", max=0.5, version="null: pool order")])
    assert [check.finding for check in named.checks] == [findings[1]]
