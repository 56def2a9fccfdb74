"""Two models of equal accuracy, of which the mistakes of one depend on gender."""

import polars as pl
import pytest

from audits.comparisons import compare, run
from equipoise.report.result import first_screen

CLASSES, PEOPLE = ("writer", "doctor", "biologist"), 100


def labels():
    """Every class is right for 70 of 100 people; the second model's errors follow gender."""
    rows = []
    for code, kind in enumerate(CLASSES):
        for person in range(2 * PEOPLE):
            sex, place = person % 2, person // 2
            wrong = [CLASSES[(code + step) % 3] for step in (1, 2)]
            first, second = (wrong[place % 2], wrong[sex]) if place >= 70 else (kind, kind)
            rows.append((f"{kind} {person}", kind, ("male", "female")[sex], first, second))
    names = ("id", "kind", "gender", "even", "uneven")
    return pl.DataFrame(rows, schema=names, orient="row")


@pytest.fixture(scope="module")
def compared():
    more = {"data": {"groups": ["gender"]}, "resampling": {"replicates": 1000}}
    return compare(run(labels(), "even", "uneven", **more))


def test_the_difference_of_mistakes_leads_before_equal_accuracy(compared):
    first, *others = compared.conclusions
    assert (first.worse, first.metric, first.groups) == ("uneven", "effect_size_mean", "gender")
    assert first.alike_in == ("accuracy",)
    assert first.low <= first.size <= first.high
    values = {standing.model: standing.value for standing in first.standings}
    assert values["even"] < 0.1
    assert values["uneven"] > 0.5
    alike = [conclusion for conclusion in others if conclusion.metric == "accuracy"]
    assert [conclusion.real for conclusion in alike] == [False]


def test_the_model_that_is_better_is_so_on_every_class_and_worse_on_none(compared):
    better, worse = compared.conclusions[0].standings
    assert (better.model, worse.better_on) == ("even", 0)
    assert better.better_on >= len(CLASSES)


def test_the_chart_shows_both_models_on_each_class(compared):
    marks = first_screen(compared, compared.shown_page).chart.rows
    assert {mark["label"] for mark in marks} >= {*CLASSES}
    assert {mark["series"] for mark in marks} == {"even", "uneven"}
