"""The gate: what passes, what breaches, and what is never a silent pass."""

from xml.etree import ElementTree as ET

import polars as pl
import pytest

import equipoise
from equipoise.core import Aggregate, AuditResult, ConfigError, NullHypothesis, Variant
from equipoise.metrics.registry import metric, remove
from equipoise.metrics.spec import MetricSpec
from equipoise.report import GateRule, gate, junit
from equipoise.report.words import headline, name_of
from report.synthetic import NAN, finding, manifest


def result(*findings):
    return AuditResult(findings, manifest())


WORST = finding(
    metric="accuracy", aggregate=Aggregate.WORST_GROUP, value=0.1296, ci_low=0.09, ci_high=0.18
)


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
    rule = GateRule("accuracy", of="worst_group", on=on, **bounds)
    assert [check.outcome for check in gate(result(WORST), [rule]).checks] == [outcome]


@pytest.mark.parametrize(
    "rule",
    [
        GateRule("accuracy", min=0),
        GateRule("accuracy", of="worst_group", min=0, model="other"),
        GateRule("accuracy", of="worst_group", min=0, groups="race"),
        GateRule("accuracy", of="worst_group", min=0, subject="cat"),
    ],
)
def test_a_rule_that_matches_nothing_does_not_pass(rule):
    outcome = gate(result(WORST), [rule])
    assert not outcome.passed
    assert outcome.exit_code == 2
    assert outcome.checks[0].outcome == "no match"
    assert outcome.checks[0].sentence.startswith(f"{rule}: no finding matches this rule. To do: ")


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
        GateRule("accuracy", of="worst_group", min=0.6),
        GateRule("accuracy", of="worst_group", min=0.1),
        GateRule("absent", max=1),
    ]
    suite = ET.fromstring(junit(gate(result(WORST), rules)))
    assert suite.attrib == {
        "name": "equipoise gate", "tests": "3", "failures": "1", "errors": "1"
    }  # fmt: skip
    cases = list(suite)
    assert cases[0].attrib["name"] == "accuracy worst group ≥ 0.6: deepface, race × gender"
    assert [[child.tag for child in case] for case in cases] == [["failure"], [], ["error"]]


def test_nan_does_not_pass_and_junit_survives_hostile_labels():
    nasty = '<x a="1">&\x00\x1b\u202e'
    bad = finding(
        metric="accuracy",
        aggregate=Aggregate.DIFFERENCE,
        compared_to="overall",
        model=nasty,
        value=NAN,
        reason=nasty,
    )
    outcome = gate(result(bad), [GateRule("accuracy", of="difference", max=0, model=nasty)])
    assert (outcome.exit_code, outcome.checks[0].outcome) == (2, "not estimable")
    suite = ET.fromstring(junit(outcome))
    assert '<x a="1">&\\u0000\\u001b\\u202e' in suite[0].attrib["name"]


def test_one_number_with_two_nulls_is_checked_once():
    within = finding(
        metric="accuracy",
        aggregate=Aggregate.WORST_GROUP,
        value=0.1296,
        ci_low=0.09,
        ci_high=0.18,
        null=NullHypothesis.WITHIN_CLASS,
    )
    outcome = gate(result(WORST, within), [GateRule("accuracy", of="worst_group", min=0.6)])
    assert [check.finding for check in outcome.checks] == [WORST]


def test_findings_under_another_null_are_checked_only_by_name():
    findings = (
        finding(metric="logit_gap", value=0.1, version="default"),
        finding(
            metric="logit_gap", value=0.9, version="null: pool order", variant=Variant.POOL_ORDER
        ),
        finding(metric="logit_gap", value=0.9, version="raw"),
    )
    default_gate = gate(result(*findings), [GateRule("logit_gap", max=0.5)])
    assert [check.finding for check in default_gate.checks] == [findings[0], findings[2]]
    named = gate(result(*findings), [GateRule("logit_gap", max=0.5, version="null: pool order")])
    assert [check.finding for check in named.checks] == [findings[1]]


PEOPLE = [
    audits_row
    for gender, rights in (("women", 143), ("men", 181))
    for audits_row in [(gender, 1, 1)] * (rights // 2)
    + [(gender, 0, 0)] * (rights - rights // 2)
    + [(gender, 1, 0)] * ((200 - rights) // 2)
    + [(gender, 0, 1)] * (200 - rights - (200 - rights) // 2)
]
"""A model that is right about 71.5 % of women and 90.5 % of men: 81 %, a gap of 19 points."""


@pytest.fixture(scope="module")
def audited():
    gender, label, predicted = zip(*PEOPLE, strict=True)
    table = pl.DataFrame({"gender": gender, "label": label, "pred": predicted})
    return equipoise.audit(table, target="label", pred="pred", groups="gender")


def test_a_rate_and_its_gap_are_two_numbers(audited):
    levels = [GateRule("accuracy", min=0.7), GateRule("true_positive_rate", min=0.6)]
    outcome = gate(audited, levels)
    assert (outcome.passed, outcome.exit_code) == (True, 0)
    assert outcome.checks[0].finding.value == pytest.approx(0.81)
    (gap,) = gate(audited, [GateRule("accuracy", of="difference", max=0.1)]).checks
    assert (gap.outcome, round(gap.finding.value, 3)) == ("breached", 0.19)
    (worst,) = gate(audited, [GateRule("accuracy", of="worst_group", min=0.6)]).checks
    assert (worst.outcome, worst.finding.value) == ("passed", pytest.approx(0.715))


@pytest.mark.parametrize(
    ("name", "metric", "of"),
    [
        ("tpr", "true_positive_rate", None),
        ("dp", "demographic_parity", None),
        ("equal opportunity", "true_positive_rate", "difference"),
        ("worst_group_accuracy", "accuracy", "worst_group"),
        ("true_positive_rate_against_rest", "true_positive_rate", "against_rest"),
    ],
)
def test_a_name_of_the_field_stands_for_the_metric_and_its_comparison(name, metric, of):
    rule = GateRule(name, max=0.1)
    assert (rule.metric, rule.of) == (metric, of)
    assert rule == GateRule(metric, max=0.1, of=of)


def test_a_name_that_says_another_comparison_than_of_is_refused():
    with pytest.raises(ConfigError) as refused:
        GateRule("disparate_impact", of="difference", max=0.1)
    assert refused.value.key == "of"


def test_a_metric_of_a_user_keeps_its_name_in_gate_report_and_card():
    record = MetricSpec(
        name="label_change", title="Labels that changed", kinds=("predictions",), unit="share",
        definition="Share of labels that changed.", direction="Higher: more labels changed.",
        reference="tests", threshold=0.3, threshold_reason="a test",
    )  # fmt: skip
    metric(record)(lambda: None)
    try:
        gap_finding = finding(metric="label_change", aggregate=Aggregate.VALUE, value=0.4)
        (check,) = gate(result(gap_finding), [GateRule("label_change", max=0.3)]).checks
        assert check.outcome == "breached"
        assert name_of(gap_finding) == "Labels that changed"
        assert "40.0 %" in headline(gap_finding).replace("\u00a0", " ")
    finally:
        remove("label_change")
