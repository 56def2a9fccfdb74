"""Sentences, plots and page of a comparison: two models, both values, who is worse."""

import html
import json
import re
from dataclasses import replace
from functools import cache

import pytest

from equipoise.core import Verdict
from equipoise.report import render
from equipoise.report.words import compared, leading, oriented, pair_of, ranked, sentence
from report.synthetic import (
    COMPARED,
    NAN,
    comparison,
    difference,
    faces,
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
        ("demographic_parity", "", ["0.448", "0.451", "[−0.057, 0.063]", "cannot tell"]),
        ("cramers_v", "Male", ["“Male”", "0.250 [0.190, 0.310]: worse for facellm."]),
        ("effect_size_mean", "", ["deepface 0.202", "(n = ", "too close to matter (under 0."]),
        ("skewsize", "", ["no difference can be given", "2 classes can be estimated"]),
    ],
)
def test_a_sentence_has_both_values_and_follows_the_verdict(metric, subject, parts):
    text = sentence(FOUND[metric, subject]).replace("\u00a0", " ")
    assert [part for part in parts if part not in text] == []


def test_the_sets_of_groups_where_models_are_farthest_apart_lead():
    wide = FOUND["worst_group", ""]
    narrow, undefined = (
        replace(wide, groups="race", value=0.1),
        replace(wide, groups="age", value=NAN),
    )
    findings = [narrow, FOUND["accuracy", ""], wide, undefined]
    assert {(f.aggregate, f.groups) for f in leading(findings)} == {
        ("value", ""), ("worst_group", "race × gender"),
    }  # fmt: skip
    assert leading(faces().findings) == []


def test_real_differences_come_first_and_untested_ones_appear_once():
    few = replace(FOUND["accuracy", ""], unit="subject", verdict=Verdict.NONE, reason="few")
    texts = compared([few, replace(few, model="b − c"), FOUND["worst_group", ""]])
    assert [text.startswith("Worst-group") for text in texts] == [True, False]


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
    lead = text[: text.index("Findings", 200)]
    order = ["Worst-group accuracy over", "Accuracy (n\u00a0=\u00a0", "Metrics disagree: accuracy"]
    places = [lead.index(start) for start in order]
    assert places == sorted(places)


def test_page_speaks_of_differences_not_of_disparities():
    text = visible_words(page())
    assert "Differences (4)" in text
    assert "disparit" not in text
    data = json.loads(re.findall(r'id="page-data">(.*?)</script>', render(comparison()))[0])
    chart_data = json.dumps(data["data"])
    assert '"Difference"' in chart_data
    assert '"Disparity"' not in chart_data
