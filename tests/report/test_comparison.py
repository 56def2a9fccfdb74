"""Sentences, plots and page of a comparison: two models, both values, who is worse."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pyarrow as pa
import pytest

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report import render
from equipoise.report.comparison import changed, leading, oriented, pair_of
from equipoise.report.words import figures, heading, ranked, sentence
from report.synthetic import NAN, faces, finding
from report.synthetic_large import (
    COMPARED,
    augmentation,
    comparison,
    comparison_of_subjects,
    difference,
)

FOUND = {(f.metric, f.subject): f for f in comparison().findings}


@cache
def page() -> str:
    return html.unescape(render(comparison()))


def visible_words(text: str) -> str:
    """The page without what is for machines: style, scripts, configuration and class names."""
    text = re.sub(r"<(style|script|pre)\b.*?</\1>", "", text, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", text)


@pytest.mark.parametrize(
    ("metric", "subject", "expected"),
    [
        (
            "accuracy",
            "",
            "facellm is right on 88.3\u00a0% of the images, deepface on 68.5\u00a0%: "
            "19.8 percentage points more [17.8, 21.8].",
        ),
        (
            "worst_group_accuracy",
            "",
            "Worst-group accuracy over race × gender: facellm 0.608, deepface 0.130, a difference "
            "of 0.479 [0.419, 0.539]: worse for deepface.",
        ),
        (
            "accuracy_gap",
            "",
            "Accuracy gap over race × gender: facellm 0.275, deepface 0.555, a difference "
            "of 0.281 [0.221, 0.341]: worse for deepface.",
        ),
        (
            "demographic_parity",
            "",
            "Demographic parity difference over race × gender: facellm 0.448, deepface "
            "0.451, a difference of 0.003 [−0.057, 0.063]; these data cannot tell which is worse.",
        ),
        (
            "equalized_odds",
            "Female",
            "Equalized odds difference of “Female” over race × gender: facellm 0.283, deepface "
            "0.382, a difference of 0.098 [0.018, 0.178]; perhaps worse for deepface.",
        ),
        (
            "effect_size_mean",
            "",
            "Mean effect size over race × gender: deepface 0.202, facellm 0.224, a difference of "
            "0.021 [0.001, 0.041]; too close to matter.",
        ),
        (
            "cramers_v",
            "Male",
            "Cramér's V of “Male” over race × gender: deepface 0.100, facellm 0.350, a difference "
            "of 0.250 [0.190, 0.310]: worse for facellm.",
        ),
        (
            "skewsize",
            "",
            "SkewSize over race × gender: deepface –, facellm –; no difference can be given "
            "(facellm: 2 classes can be estimated).",
        ),
    ],
)
def test_sentence_names_both_models_and_claims_what_its_verdict_allows(
    metric: str, subject: str, expected: str
) -> None:
    assert sentence(FOUND[metric, subject]) == expected


def test_equal_models_are_said_to_be_equal() -> None:
    same = difference("accuracy_gap", "", 0.2, 0.2, "", 0.01, Verdict.BELOW_THRESHOLD)
    assert sentence(same) == (
        "Accuracy gap over race × gender: deepface and facellm both 0.200 [−0.020, 0.020]; "
        "too close to matter."
    )
    right = difference("accuracy", "", 0.9, 0.9, "", 0.01, Verdict.INCONCLUSIVE)
    assert sentence(right) == (
        "Share of images that are right: deepface and facellm both 90.0\u00a0% [−2.0, 2.0]; these "
        "data cannot tell which is worse."
    )


def test_without_a_verdict_the_reason_is_said() -> None:
    told = replace(
        FOUND["accuracy_gap", ""], verdict=Verdict.NONE, reason="the same numbers as for race"
    )
    assert sentence(told).endswith("; no verdict: the same numbers as for race.")
    skewed = difference("skewsize", "", -0.5, 0.7, "deepface", 0.1, Verdict.NONE)
    assert sentence(skewed).endswith("a difference of 1.200 [1.000, 1.400]; described, not tested.")


def test_one_model_without_a_value_is_named() -> None:
    half = difference("cramers_v", "cat", 0.3, NAN, "", NAN, Verdict.NOT_ESTIMABLE)
    assert sentence(half).startswith(
        "Cramér's V of “cat” over race × gender: deepface 0.300, facellm –; no difference"
    )


def test_figures_and_heading_are_those_of_a_difference() -> None:
    found = FOUND["accuracy_gap", ""]
    assert heading(found) == "Accuracy gap: facellm against deepface, race × gender"
    assert figures(found).startswith("facellm − deepface −0.281 · 95 % interval [−0.341, −0.221]")
    assert "threshold 0.050 either way" in figures(found)
    spread = replace(found, method="resampling spread: percentiles of 9 replicates")
    assert "· resampling spread [−0.341, −0.221] ·" in figures(spread)


def test_differences_rank_by_their_size_whatever_their_sign() -> None:
    shown = [f for f in ranked(comparison().findings) if f.verdict == Verdict.DISPARITY]
    assert [f.metric for f in shown] == [
        "worst_group_accuracy", "accuracy_gap", "cramers_v", "accuracy",
    ]  # fmt: skip


@pytest.mark.parametrize("turned", [1, -1])
def test_right_of_zero_is_better_for_the_second_model(turned: int) -> None:
    for metric, subject, a, b, worse, spread, said in COMPARED[:-1]:
        other = {"deepface": "facellm", "facellm": "deepface"}[worse]
        values, who = ((a, b), worse) if turned > 0 else ((b, a), other)
        found = difference(metric, subject, *values, who, spread, said)
        pair = pair_of(found)
        assert pair is not None
        value, low, high = oriented(found, pair)
        assert low <= value <= high
        assert (value > 0) == (who == "deepface")


def test_what_leads_is_accuracy_and_the_widest_worst_group() -> None:
    wide = FOUND["worst_group_accuracy", ""]
    narrow = replace(wide, groups="race", value=0.1)
    lost = replace(wide, groups="age", value=NAN)
    found = [narrow, FOUND["accuracy", ""], wide, lost]
    assert [f.groups for f in leading(found)] == ["", "race × gender"]
    assert leading(faces().findings) == []


def test_page_says_what_was_compared() -> None:
    text = visible_words(page())
    assert "<title>Comparison of deepface and facellm</title>" in page()
    lead = text[: text.index("Findings", 200)]
    order = ["facellm is right on 88.3", "Worst-group accuracy over", "Metrics disagree: accuracy"]
    places = [lead.index(start) for start in order]
    assert places == sorted(places)


def test_page_speaks_of_differences_not_of_disparities() -> None:
    text = visible_words(page())
    assert "Differences (4)" in text
    assert "disparit" not in text
    data = json.loads(re.findall(r'id="page-data">(.*?)</script>', render(comparison()))[0])
    drawn = json.dumps(data["data"])
    assert '"difference"' in drawn
    assert '"disparity"' not in drawn


def test_title_names_three_models_and_counts_more() -> None:
    def against(name: str) -> Finding:
        known = json.loads(FOUND["accuracy", ""].parameters) | {"model_b": name}
        found = replace(FOUND["accuracy", ""], model=f"{name} − deepface")
        return replace(found, parameters=json.dumps(known))

    def titled(*names: str) -> str:
        found = AuditResult(tuple(map(against, names)), comparison().manifest)
        return str(re.findall("<h1>(.*?)</h1>", render(found))[0])

    assert titled("b", "c") == "Comparison of deepface, b and c"
    assert titled("b", "c", "d") == "Comparison of 4 models"


def test_title_of_the_audits_configuration_is_not_the_comparisons() -> None:
    named = replace(comparison().manifest, resolved={"report": {"title": "Audit of faces"}})
    text = render(replace(comparison(), manifest=named))
    assert "<h1>Comparison of deepface and facellm</h1>" in text


def test_the_version_of_a_measure_is_named_where_there_are_several() -> None:
    words = replace(FOUND["accuracy_gap", ""], version="TT")
    assert sentence(words).startswith("Accuracy gap over race × gender (TT): facellm 0.275,")


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ([], "Of 1 disparity of a that b was measured for, too, 0 are none of b; 1 stayed"),
        (["below threshold"], "Of 2 disparities of a that b was measured for, too, 1 is below the "
         "threshold for b; 1 stayed"),
        (["inconclusive"] * 28, "28 are inconclusive for b; 1 stayed"),
        (["inconclusive"] * 3 + ["below threshold", "not estimable", "no verdict"],
         "6 are none of b, 1 below the threshold, 3 inconclusive, 1 not estimable and 1 without a "
         "verdict; 1 stayed"),
    ],
)  # fmt: skip
def test_what_disparities_that_went_have_become(after: list[str], told: str) -> None:
    base = comparison_of_subjects()
    row = base.tables["changes"].to_pylist()[0]
    found = [row | {"verdict_b": verdict, "change": "went"} for verdict in after]
    stayed = row | {"verdict_b": "disparity", "change": "stayed"}
    rows = pa.Table.from_pylist([*found, stayed])
    (text,) = changed(replace(base, tables={"changes": rows}))
    assert told in text
    assert text.endswith("; 1 stayed, and 0 came.")


def test_a_chance_level_without_a_band_has_no_interval() -> None:
    assert " · by chance 0.061 · " in figures(finding(chance_low=NAN, chance_high=NAN))


def test_a_difference_of_models_has_no_level_of_chance_but_a_band_where_one_was_drawn() -> None:
    found = FOUND["accuracy_gap", ""]
    drawn = replace(found, chance=0.0, chance_low=-0.02, chance_high=0.021)
    assert "] · if the models were alike [−0.020, 0.021] · threshold 0.050" in figures(drawn)
    # Over subjects, or training runs, nothing is drawn that would have a band.
    without = replace(found, chance=0.0, chance_low=NAN, chance_high=NAN)
    assert "[−0.341, −0.221] · threshold 0.050" in figures(without)


@pytest.mark.parametrize("made", [comparison, comparison_of_subjects, augmentation])
def test_no_page_of_differences_speaks_of_chance_as_a_level(
    made: Callable[[], AuditResult],
) -> None:
    result = made()
    level = {"chance": 0.0, "chance_low": NAN, "chance_high": NAN}
    told = replace(result, findings=tuple(replace(f, **level) for f in result.findings))
    text = visible_words(render(told))
    assert "threshold 0.050 either way" in text
    for words in ("by chance", "what chance gives", "Grey bar", "above chance", "over chance"):
        assert words not in text


def test_facts_name_no_target_where_there_is_none() -> None:
    named = replace(comparison().manifest, resolved={"data": {"target": None}})
    assert "None" not in visible_words(render(replace(comparison(), manifest=named)))
