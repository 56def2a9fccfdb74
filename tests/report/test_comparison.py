"""Sentences, plots and page of a comparison: two models, both values, who is worse."""

import html
import json
import re
from dataclasses import replace
from functools import cache

import pytest

from equipoise.core import Aggregate, Verdict
from equipoise.report import read, render, write
from equipoise.report.comparison_page import summary
from equipoise.report.concluding import conclusions_of
from equipoise.report.words import (
    conclusion_sentence,
    counts_sentence,
    oriented,
    pair_of,
    ranked,
    sentence,
)
from report.synthetic import (
    COMPARED,
    comparison,
    difference,
)

KEYS = [case[:2] for case in COMPARED]
FOUND = dict(zip(KEYS, comparison().findings, strict=True))


@cache
def page():
    return html.unescape(render(comparison()))


def visible_words(text):
    """The page without what is for machines: style, scripts, configuration and class names."""
    text = re.sub(r"<(style|script|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", text)


@pytest.mark.parametrize(
    ("metric", "subject", "parts"),
    [
        ("accuracy", "", ["facellm 88.3", "deepface 68.5", "19.8 points [17.8, 21.8]"]),
        ("demographic_parity", "", ["44.8 points", "45.1 points", "[−5.7, 6.3]", "cannot tell"]),
        ("cramers_v", "Male", ["“Male”", "0.250 [0.190, 0.310]: worse for facellm."]),
        ("effect_size_mean", "", ["deepface 0.202", "(n = ", "too close to matter (under 0."]),
        ("skewsize", "", ["the difference can't be estimated", "2 classes can be estimated"]),
    ],
)
def test_a_sentence_has_both_values_and_follows_the_verdict(metric, subject, parts):
    text = sentence(FOUND[metric, subject]).replace("\u00a0", " ")
    assert [part for part in parts if part not in text] == []


def test_what_restates_a_difference_is_one_conclusion_for_each_worse_model():
    findings = comparison().findings
    overall, deepface, *_ = conclusions_of(findings)
    facellm = overall.reverse
    assert facellm is not None
    assert (deepface.metric, deepface.aggregate) == ("accuracy", "worst_group")
    assert findings.index(FOUND["difference", ""]) in deepface.restated_by
    assert (facellm.metric, facellm.subject) == ("cramers_v", "Male")
    assert overall.groups == ""
    assert [standing.model for standing in overall.standings] == ["facellm", "deepface"]


def of_group(group, values, worse):
    parameters = {"value_a": values[0], "value_b": values[1], "worse": worse}
    accuracy = FOUND["accuracy", ""]
    return replace(
        accuracy, group=group, groups="gender", value=values[1] - values[0],
        parameters={**accuracy.parameters, **parameters},
    )  # fmt: skip


BOTH_WAYS = (
    of_group("women", (0.7, 0.8), "deepface"),
    of_group("men", (0.85, 0.75), "facellm"),
    replace(of_group("others", (0.8, 0.8), ""), verdict=Verdict.BELOW_THRESHOLD),
)


def test_a_model_that_is_better_for_some_groups_and_worse_for_others_is_said_to_be_both():
    (conclusion,) = (c for c in conclusions_of(BOTH_WAYS) if c.real)
    reverse = conclusion.reverse
    assert reverse is not None
    assert (conclusion.group, conclusion.worse) == ("women", "deepface")
    assert (reverse.group, reverse.worse) == ("men", "facellm")
    text = conclusion_sentence(BOTH_WAYS[0], conclusion).replace("\u00a0", " ")
    assert re.findall(r"women|men|[\d.]+ %", text) == [
        "women", "men", "80.0 %", "70.0 %", "75.0 %", "85.0 %",
    ]  # fmt: skip
    assert {part.group for part in conclusion_sentence(BOTH_WAYS[0], conclusion).parts} == {
        "", "women", "men", "facellm", "deepface",
    }  # fmt: skip
    assert conclusion.compared_on == 3
    assert [standing.better_on for standing in conclusion.standings] == [1, 1]


def test_no_model_is_preferred_that_is_worse_for_a_group():
    alone, both = (
        summary(replace(comparison(), findings=found, conclusions=conclusions_of(found)))
        for found in (BOTH_WAYS[:1], BOTH_WAYS)
    )
    assert any("facellm" in step for step in alone.steps)
    assert not any("facellm" in step for step in both.steps)


def test_metrics_that_disagree_are_said_in_one_sentence():
    accuracy, mistakes = FOUND["accuracy", ""], FOUND["cramers_v", "Male"]
    (conclusion,) = conclusions_of([accuracy, mistakes])
    text = conclusion_sentence(accuracy, conclusion)
    assert text.index("accuracy") < text.index("facellm of “Male”")
    assert "0.350 against 0.100" in text


def test_a_sentence_begins_with_a_capital_whatever_the_models_are_called():
    mistakes = FOUND["cramers_v", "Male"]
    (conclusion,) = conclusions_of([mistakes])
    better, worse = conclusion.standings
    named = replace(conclusion, standings=(replace(better, model="the"), worse))
    assert conclusion_sentence(mistakes, named).startswith("The mistakes of ")


def test_a_difference_leads_before_models_that_are_alike():
    accuracy = replace(FOUND["accuracy", ""], verdict=Verdict.BELOW_THRESHOLD)
    mistakes = replace(FOUND["effect_size_mean", ""], verdict=Verdict.DISPARITY)
    first, alike = conclusions_of([accuracy, mistakes])
    assert (first.metric, first.worse, first.alike_in) == (
        "effect_size_mean", "facellm", ("accuracy",)
    )  # fmt: skip
    assert (alike.metric, alike.worse) == ("accuracy", "")
    text = conclusion_sentence(mistakes, first)
    assert "0.202" in text
    assert text.index("0.224") < text.index("deepface")


def test_classes_are_counted_for_the_model_that_is_better_on_them():
    leaf = FOUND["cramers_v", "Male"]
    worse = {**leaf.parameters, "worse": "deepface"}
    leaves = [
        replace(leaf, subject=str(place), parameters=worse if place == 3 else leaf.parameters)
        for place in range(4)
    ]
    alike = replace(leaf, subject="alike", verdict=Verdict.BELOW_THRESHOLD)
    first, *_ = conclusions_of([*leaves, alike])
    counts = {standing.model: standing.better_on for standing in first.standings}
    assert counts == {"deepface": 3, "facellm": 1}
    assert (first.compared_on, first.compared_over) == (5, "classes")


def test_a_metric_is_counted_once_whatever_it_compares():
    accuracy, mean = FOUND["accuracy", ""], FOUND["effect_size_mean", ""]
    over = [replace(accuracy, groups=groups, group="") for groups in ("", "race", "gender")]
    first, *_ = conclusions_of(over)
    assert first.compared_on == 1
    assert counts_sentence(first) == ""
    first, *_ = conclusions_of([*over, replace(mean, verdict=Verdict.BELOW_THRESHOLD)])
    assert (first.compared_on, first.compared_over) == (2, "metrics")


@pytest.mark.parametrize(
    ("better", "n", "over", "word"),
    [
        ((3, 0), 5, "classes", "no difference"),
        ((3, 0), 5, "subjects", "worse on none"),
        ((5, 0), 5, "classes", "all 5"),
        ((3, 1), 5, "metrics", "worse in 1"),
        ((0, 0), 5, "groups", "No difference"),
        ((0, 0), 5, "subjects", "Neither"),
    ],
)
def test_no_verdict_is_not_said_to_be_equality(better, n, over, word):
    first, *_ = conclusions_of([FOUND["accuracy", ""]])
    standings = [
        replace(standing, better_on=count)
        for standing, count in zip(first.standings, better, strict=True)
    ]
    counted = replace(first, standings=tuple(standings), compared_on=n, compared_over=over)
    assert word in counts_sentence(counted)


def test_what_is_untested_says_why_once():
    few = replace(
        FOUND["accuracy", ""], unit="subject", verdict=Verdict.NONE, reason="few",
        parameters={**FOUND["accuracy", ""].parameters, "better_a": 1, "better_b": 1},
    )  # fmt: skip
    (conclusion,) = conclusions_of([few, replace(few, metric="mcas")])
    assert conclusion.verdict is Verdict.NONE
    assert "few" in conclusion_sentence(few, conclusion)


def test_models_without_any_difference_have_no_size_of_one():
    small = replace(FOUND["accuracy", ""], value=0.0, verdict=Verdict.BELOW_THRESHOLD, p_value=1.0)
    for high, has_size in ((0.0, False), (0.01, True)):
        found = replace(small, ci_low=-high, ci_high=high)
        (conclusion,) = conclusions_of([found])
        assert ("point" in conclusion_sentence(found, conclusion)) is has_size


def test_conclusions_of_models_survive_a_file(tmp_path):
    conclusions = conclusions_of(comparison().findings)
    write(replace(comparison(), conclusions=conclusions), tmp_path)
    assert [*map(repr, read(tmp_path).conclusions)] == [*map(repr, conclusions)]


def test_differences_rank_by_their_size_whatever_their_sign():
    differences = [f for f in ranked(comparison().findings) if f.verdict == Verdict.DISPARITY]
    assert [(f.metric, f.aggregate) for f in differences] == [
        ("accuracy", "worst_group"), ("accuracy", "difference"), ("cramers_v", "value"),
        ("accuracy", "value"),
    ]  # fmt: skip


@pytest.mark.parametrize("turned", [1, -1])
def test_right_of_zero_is_better_for_the_second_model(turned):
    for metric, subject, a, b, worse, spread, verdict in COMPARED[:-1]:
        other = {"deepface": "facellm", "facellm": "deepface"}[worse]
        values, who = ((a, b), worse) if turned > 0 else ((b, a), other)
        finding = difference(metric, subject, *values, who, spread, verdict)
        pair = pair_of(finding)
        assert pair is not None
        value, low, high = oriented(finding, pair)
        assert low <= value <= high
        assert (value > 0) == (who == "deepface")


def test_page_names_the_compared_models():
    text = visible_words(page())
    assert "<b>Comparison of deepface and facellm</b>" in page()
    lead = text[: text.index("Next steps")]
    order = ["deepface has the lower accuracy", "deepface has the lower worst-group accuracy"]
    places = [lead.index(start) for start in order]
    assert places == sorted(places)


def test_page_speaks_of_differences_not_of_disparities():
    text = visible_words(page())
    assert "Difference: 2 conclusions, 4 numbers" in text
    assert "disparit" not in text
    data = json.loads(re.findall(r'id="page-data">(.*?)</script>', render(comparison()))[0])
    chart_data = json.dumps(data["data"])
    assert '"Difference"' in chart_data
    assert '"Disparity"' not in chart_data


@pytest.mark.parametrize(
    ("changed", "leads"), [(0.1, "outcome_share"), (0.4, "order_inconsistency")]
)
def test_a_gap_leads_where_it_changed_more_than_the_effect_of_the_order(changed, leads):
    accuracy = FOUND["accuracy", ""]
    order = replace(
        accuracy, metric="order_inconsistency", value=changed, ci_low=changed - 0.02,
        ci_high=changed + 0.02, threshold=0.0, verdict=Verdict.DISPARITY,
    )  # fmt: skip
    gap = replace(
        accuracy, metric="outcome_share", aggregate=Aggregate.DIFFERENCE, groups="gender",
        value=0.2, ci_low=0.02, ci_high=0.38, threshold=0.05, verdict=Verdict.DETECTED,
    )  # fmt: skip
    first, *_ = conclusions_of([order, gap])
    assert first.metric == leads
