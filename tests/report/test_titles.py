"""The title of a page: the leading conclusion in few words, with its groups marked and escaped."""

import math
import re
from copy import deepcopy
from dataclasses import replace
from html import unescape
from itertools import pairwise

import pytest

from equipoise.audits.labels.predictions.page import PAGE
from equipoise.core import AuditResult, Verdict
from equipoise.core.finding import Ratio, findings_from_table, findings_to_table
from equipoise.core.sentences import Sentence, fill, named
from equipoise.report import render
from equipoise.report.blocks import Span, Statement, Summary
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.concluding import conclusions_of
from equipoise.report.result import first_screen
from equipoise.report.short_lines import short_certainty
from equipoise.report.titles import MOST_WORDS, plain_title, verdict_line
from equipoise.report.words import certainty
from report.pages import PAGES, result_and_page
from report.synthetic import comparison, finding, group_values, manifest

HOSTILE = "<b>women & men</b>"


def gap(*names, **changes):
    shares = zip(names, (10, 40, 41), strict=False)
    by_group = group_values({(name,): (k, 100) for name, k in shares})
    return finding(model="m", groups="g", by_group=by_group, metric="accuracy", **changes)


def titled(*findings):
    result = AuditResult(findings, manifest())
    return first_screen(result, PAGE)


def plain(spans):
    return "".join(span.text for span in spans)


@pytest.mark.parametrize("name", PAGES)
def test_the_title_is_the_first_statement_in_few_words(name):
    result, kind = result_and_page(name)
    html = render(result, kind)
    heading = re.search(r"(?s)<h1[^>]*>(.*?)</h1>", html)[1]
    text = unescape(re.sub(r"<[^>]+>", "", heading))
    assert 0 < len(text.split()) <= MOST_WORDS + 1  # "…" of a text that is cut
    assert unescape(re.search(r"(?s)<title>(.*?)</title>", html)[1]) == text
    assert "<script" not in heading


def test_the_groups_of_the_conclusion_are_marked():
    spans = titled(gap("women", "men")).title
    assert {(span.text, span.role) for span in spans if span.role} == {
        ("women", "worse"), ("men", "other"),
    }  # fmt: skip


def test_only_parts_that_name_a_group_are_marked():
    model = replace(gap("women", "men"), model="women")
    spans = titled(model).title
    assert [span.text for span in spans if span.role] == ["women", "men"]
    assert spans[0].text.startswith("women")
    assert spans[0].role == ""


@pytest.mark.parametrize("model", ["men", "women", "lowest"])
def test_a_stored_direction_keeps_which_words_name_groups(model):
    text = Sentence(f"{model}: lowest for ", named("men"), ", highest for ", named("women, old"))
    stored = replace(gap("women", "men"), model=model, direction=text)
    (read,) = findings_from_table(findings_to_table([stored]))
    assert read.direction == text
    assert read.direction.parts == text.parts
    assert [part.group for part in read.direction.parts if part.group] == ["men", "women, old"]


def test_a_title_that_states_mistakes_keeps_them():
    mistakes = Sentence("instead of “doctor”, ", named("women"), " is called “nurse” (30 of 100)")
    effect = finding(
        metric="cramers_v", subject="doctor", groups=" × ".join("abcdefghijkl"), compared_to="",
        direction=mistakes,
    )  # fmt: skip
    assert "".join(span.text for span in titled(effect).title).startswith("Instead of “doctor”")


@pytest.mark.parametrize("words", range(1, 9))
def test_a_sentence_that_is_cut_keeps_its_parts(words):
    sentence = fill("right for {group} ({n} of 9) and others", group=named("old men"), n=3)
    short = sentence.first_words(words)
    assert short == (f"{' '.join(sentence.split(' ')[:words])} …" if words < 9 else sentence)
    assert short == "".join(part.text for part in short.parts)
    assert deepcopy(sentence).parts == sentence.parts


def test_names_of_groups_are_escaped():
    result = AuditResult((gap(HOSTILE, "a & b"),), manifest())
    html = render(result, PAGE)
    heading = re.search(r"(?s)<h1[^>]*>(.*?)</h1>", html)[1]
    assert '<em class="worse">&lt;b&gt;women &amp; men&lt;/b&gt;</em>' in heading
    assert '<em class="other">a &amp; b</em>' in heading
    assert HOSTILE not in html


def test_long_names_are_cut_to_the_room_of_a_title():
    names = [f"{letter} {'very ' * 30}long" for letter in "abc"]
    spans = titled(gap(*names)).title
    assert len(plain(spans).split(" ")) <= MOST_WORDS + 1


def test_no_group_is_marked_where_none_differs():
    spans = titled(gap("women", "men", verdict=Verdict.BELOW_THRESHOLD)).title
    assert not any(span.role for span in spans)


def test_a_summary_without_a_title_has_its_first_statement():
    summary = Summary((Statement(None, "B is better."), Statement(None, "C")))
    assert plain_title(summary) == (Span("B is better."),)


VERDICTS = (
    Verdict.DISPARITY, Verdict.DETECTED, Verdict.INCONCLUSIVE, Verdict.BELOW_THRESHOLD,
)  # fmt: skip


def test_every_verdict_has_a_line_of_its_own_with_size_and_limit():
    case = gap("women", "men", value=0.31, ci_low=0.21, ci_high=0.42, threshold=0.07)
    lines = [verdict_line(replace(case, verdict=verdict)) for verdict in VERDICTS]
    assert all(first != other for first, other in pairwise(lines))
    for number in ("31.0", "21.0", "42.0", "7 points"):
        assert all(number in line for line in lines)


def test_a_ratio_that_decides_has_its_own_limit():
    ratio = Ratio(10.0, 5.0, 19.0, decides=True)
    case = gap("women", "men", value=0.009, threshold=0.05, ratio=ratio, verdict=Verdict.DISPARITY)
    (conclusion,) = conclusions_of([case])
    for line in (verdict_line(case), short_certainty(case, conclusion)):
        assert "limit" in line
        assert "5 points" not in line
        assert "1.25" in line
        assert "19" in line


def test_a_ratio_names_its_group_where_the_title_names_another():
    shares = {("men",): (10, 12), ("women",): (2, 12)}
    case = finding(
        model="m", groups="g", metric="max_skew", by_group=group_values(shares), subject="ceo",
        aggregate="value", compared_to="", parameters={"desired": "uniform", "k": 12},
        value=math.log(10 / 6), threshold=0.2, verdict=Verdict.DISPARITY,
    )  # fmt: skip
    texts = verdict_line(case), certainty(case), short_certainty(case, conclusions_of([case])[0])
    assert all(" for men" in text for text in texts)
    # The limit is a distance from chance, and may be a default.
    assert verdict_line(case).endswith("the limit is a factor of 1.22 above chance.")
    assert "limit a factor of 1.22 above chance" in texts[2]
    low = replace(case, metric="min_skew", value=math.log(2 / 6))
    assert "men" not in verdict_line(low)


def test_models_of_a_comparison_are_marked():
    result = comparison()
    result = replace(result, conclusions=conclusions_of(result.findings))
    summary = first_screen(result, COMPARISON)
    first = summary.statements[0].conclusion
    worst, best = first.standings[-1].model, first.standings[0].model
    roles = {span.text: span.role for span in plain_title(summary) if span.role}
    assert roles == {worst: "worse", best: "other"}
    assert summary.verdict == summary.statements[0].certainty != ""


def test_a_value_that_is_missing_has_its_reason():
    case = gap("women", "men", verdict=Verdict.NOT_ESTIMABLE, value=float("nan"), reason="few rows")
    assert "few rows" in verdict_line(case)
