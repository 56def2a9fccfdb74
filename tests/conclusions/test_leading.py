"""How many conclusions a run has, and which leads: small tables whose truth is known."""

import math

import numpy as np
import pytest

from conclusions import worlds
from conclusions.planted_causes import disparities
from equipoise import audits
from equipoise.core import Family, Verdict
from equipoise.report.concluding import conclusions_of
from equipoise.report.ranking_models import is_ranking
from equipoise.report.result import first_screen
from equipoise.report.words import conclusion_sentence
from equipoise.stats.additivity import departures
from report.synthetic import finding, group_values


def result_of(config):
    return audits.run(audits.parse_config(config))


def stated(config):
    """Return the groups that disparities name, with their subjects."""
    return {
        (conclusion.groups, conclusion.group, conclusion.subject)
        for conclusion in disparities(config)
    }


def test_attributes_that_add_up_are_causes_of_their_own():
    result = result_of(worlds.additive())
    real = [conclusion for conclusion in result.conclusions if conclusion.real]
    assert {(conclusion.groups, conclusion.group) for conclusion in real} == {
        ("gender", "woman"), ("skin", "dark"),
    }  # fmt: skip


@pytest.mark.parametrize("seed", [50, 53, 58])
def test_a_copy_with_errors_explains_nothing_beyond_its_attribute(seed):
    assert stated(worlds.noisy_copy(seed)) == {("gender", "woman", "")}


def test_an_intersection_beyond_its_attributes_is_one_cause():
    rows = worlds.Rows(41, worlds.crossed(1000, **worlds.GENDER, skin=("dark", "light")))
    cell = {"gender": "woman", "skin": "dark"}
    config = rows.config(
        rows.predicted(0.95, [(cell, 0.7)]), ["gender", "skin", ["gender", "skin"]]
    )
    assert stated(config) == {("gender × skin", "woman, dark", "")}


def answers_by(share):
    """Answers without a truth; the share of "violent" is a function of being a woman and dark."""
    rng = np.random.default_rng(44)
    people = worlds.crossed(1000, **worlds.GENDER, skin=("dark", "light"))
    shares = share(people["gender"] == "woman", people["skin"] == "dark")
    said = np.where(rng.random(len(shares)) < shares, "violent", "calm")
    config = worlds.answers(said, **people)
    config["data"]["groups"] = ["gender", "skin", ["gender", "skin"]]
    return config


def test_without_a_truth_attributes_that_add_up_are_two_conclusions():
    config = answers_by(lambda woman, dark: 0.1 + 0.15 * woman + 0.15 * dark)
    assert sorted({names[0] for names in stated(config)}) == ["gender", "skin"]
    assert len(disparities(config)) == 2


def test_without_a_truth_an_intersection_explains_its_attributes():
    config = answers_by(lambda woman, dark: 0.1 + 0.25 * woman * dark)
    ((groups, group, _),) = stated(config)
    assert (groups, group) == ("gender × skin", "woman, dark")


@pytest.mark.parametrize(("odd", "level"), [(0.95, 0.75), (0.75, 0.95)])
def test_a_group_against_equal_ones_is_one_conclusion(odd, level):
    assert stated(worlds.one_group_of_three(odd, level)) == {("origin", "west", "")}


def test_groups_at_three_levels_have_a_group_that_is_worse_off_first():
    rows = worlds.Rows(42, {"origin": worlds.balanced(east=1000, north=1000, west=1000)})
    planted = [({"origin": "north"}, 0.8), ({"origin": "west"}, 0.7)]
    first, *_ = disparities(rows.config(rows.predicted(0.9, planted)))
    assert first.group == "west"


def test_rows_without_an_answer_are_not_wrong_once_more():
    assert stated(worlds.refused_alone()) == {("gender", "woman", "unanswered")}


def test_wrong_answers_beside_refusals_are_a_conclusion_of_their_own():
    unanswered, wrong = sorted(stated(worlds.refusal()), key=lambda names: names[1] == "man")
    assert unanswered == ("gender", "woman", "unanswered")
    assert wrong[:2] == ("gender", "man")


@pytest.mark.parametrize(
    ("sizes", "named"),
    [
        ({"asian": 600, "black": 100, "white": 300}, {"asian", "black"}),
        ({"asian": 600, "black": 200, "white": 200}, {"asian"}),
        ({"asian": 700, "black": 300}, {"black"}),
    ],
)
def test_shares_that_another_share_leaves_are_one_conclusion(sizes, named):
    conclusions = disparities(worlds.shares_of_three(**sizes))
    assert {conclusion.group for conclusion in conclusions} == named
    for conclusion in conclusions:
        assert conclusion.subject == conclusion.group
        assert conclusion.size == pytest.approx(
            np.log(conclusion.group_value / conclusion.other_value)
        )


def test_models_with_opposite_differences_are_told_apart():
    first, *_ = result_of(worlds.opposite_models()).conclusions
    assert is_ranking(first)
    assert first.real
    assert {standing.model: standing.group for standing in first.opposite} == {
        "harsh on man": "man", "harsh on woman": "woman",
    }  # fmt: skip
    assert first.size == pytest.approx(sum(standing.value for standing in first.standings))
    assert first.low <= first.size <= first.high


def test_models_that_are_worse_for_the_same_group_are_not_opposite():
    rows = worlds.Rows(43, {"gender": worlds.balanced(man=1000, woman=1000)})
    planted = [({"gender": "woman"}, 0.77)]
    config = rows.config(None, a=rows.predicted(0.92, planted), b=rows.predicted(0.92, planted))
    first, *_ = result_of(config).conclusions
    assert is_ranking(first)
    assert first.opposite == ()


def test_the_chart_is_of_the_metric_that_ranks_the_models():
    result = result_of(worlds.opposite_models())
    ranking = next(filter(is_ranking, result.conclusions))
    chart = first_screen(result, result.shown_page).chart
    shown = {(row["model"], round(row["value"], 6)) for row in chart.rows}
    finding = result.findings[ranking.finding]
    assert {(finding.model, round(part.value, 6)) for part in finding.by_group} <= shown


def test_what_the_labels_have_is_explained_by_no_error_and_leads_nowhere():
    names = stated(worlds.labels_in_part())
    assert names == {("gender", "woman", "yes"), ("gender", "man", "yes")}


def test_a_departure_is_measured_against_the_other_groups():
    levels = [(row, column) for row in "abc" for column in "xyz"]
    rng = np.random.default_rng(0)
    rows = rng.integers(200, 400, 9).astype(float)
    effects = {"a": 0.5, "b": 0.6, "c": 0.75, "x": 0.0, "y": 0.1, "z": 0.2}
    values = np.array([effects[row] + effects[column] for row, column in levels])
    variances = 0.2 / rows
    assert departures(levels, values, variances, rows) == pytest.approx(np.zeros(9), abs=1e-9)
    values[4] -= 0.2
    scores = departures(levels, values, variances, rows)
    assert np.argmin(scores) == 4
    # Of a group without counterpart, the others say nothing.
    assert departures([("a", "x"), ("b", "y")], values[:2], variances[:2], rows[:2]).tolist() == [
        0.0, 0.0,
    ]  # fmt: skip


def parity(labels, added, **fields):
    """Return a finding of parity of 40 points, with what the model adds to the labels."""
    parts = {
        "labels": labels,
        "added": added,
        "added_low": added - 0.02,
        "added_high": added + 0.02,
    }
    shares = group_values({("man",): (32, 100), ("woman",): (72, 100)})
    return finding(
        metric="selection_rate", aggregate="difference", groups="gender", subject="yes", value=0.4,
        ci_low=0.3, ci_high=0.5, chance=0.0, threshold=0.05, by_group=shares, parameters=parts,
        verdict=Verdict.DISPARITY, **fields,
    )  # fmt: skip


@pytest.mark.parametrize(("added", "leading"), [(0.06, "age"), (0.3, "gender")])
def test_parity_ranks_by_what_the_model_adds(added, leading):
    other = finding(
        metric="true_positive_rate", aggregate="difference", groups="age", subject="yes",
        value=0.15, ci_low=0.12, ci_high=0.18, chance=0.0, threshold=0.05,
        by_group=group_values({("old",): (70, 100), ("young",): (85, 100)}),
        verdict=Verdict.DISPARITY,
    )  # fmt: skip
    first, second = conclusions_of([parity(0.4 - added, added), other])
    assert (first.groups, second.groups) == (leading, {"age": "gender", "gender": "age"}[leading])


@pytest.mark.parametrize(("labels", "added"), [(0.2, 0.2), (-0.04, 0.44)])
def test_the_sentence_of_parity_has_the_labels_and_what_the_model_adds(labels, added):
    stated = parity(labels, added)
    (conclusion,) = conclusions_of([stated])
    sentence = conclusion_sentence(stated, conclusion)
    for share in (0.32, 0.72, abs(labels), added):
        assert f"{100 * share:.1f}" in sentence
    assert ("other way" in sentence) == (labels < 0)


def test_without_intervals_the_larger_difference_leads_whatever_the_band_of_chance():
    def of_query(subject, value, chance_high):
        return finding(
            metric="max_skew", subject=subject, family=Family.QUERY, value=value, threshold=0.22,
            chance=0.15, chance_low=0.0, chance_high=chance_high, excess=value - 0.15,
            ci_low=math.nan, ci_high=math.nan, p_value=0.001, q_value=0.001,
            verdict=Verdict.DISPARITY, compared_to="", by_group=(),
        )  # fmt: skip

    findings = [of_query("smaller", 0.51, 0.29), of_query("larger", 0.61, 0.41)]
    leading, _ = conclusions_of(findings)
    assert leading.subject == "larger"
