"""The first chart: a record for each conclusion, and a drawing of each form."""

import math
from dataclasses import replace

import altair as alt
import pytest

from equipoise.core import Aggregate, Family, GroupValue, Verdict
from equipoise.core.conclusion import Standing
from equipoise.report.chart_records import Form, Scale
from equipoise.report.concluding import conclusions_of
from equipoise.report.expecting import expected_shares
from equipoise.report.forms import draw
from equipoise.report.leading_chart import MOST_MARKS, chart_of
from equipoise.report.result import first_screen
from report.pages import KINDS, result_and_page
from report.synthetic import NAN, finding

RATE = {
    "metric": "true_positive_rate", "aggregate": Aggregate.DIFFERENCE, "compared_to": "",
    "groups": "gender", "model": "m", "chance": 0.02, "chance_high": 0.06, "threshold": 0.05,
}  # fmt: skip


def parts_of(values, n=100):
    return tuple(
        GroupValue(", ".join(levels), levels, n, value, value - 0.05, value + 0.05)
        for levels, value in values.items()
    )


def rate(subject, women, men, verdict=Verdict.DISPARITY, **changes):
    by_group = parts_of({("women",): women, ("men",): men})
    value = abs(women - men)
    return finding(
        **RATE | changes, subject=subject, by_group=by_group, value=value, verdict=verdict,
        ci_low=value - 0.05, ci_high=value + 0.05, excess=value - 0.02, family=Family.LEAF,
    )  # fmt: skip


def record_of(*findings):
    first = conclusions_of(findings)[0]
    return chart_of(findings[first.finding], first, findings)


CLASSES = (
    rate("chef", 0.80, 0.81, Verdict.BELOW_THRESHOLD),
    rate("nurse", 0.80, 0.60),
    rate("doctor", 0.30, 0.90),
)


def test_groups_of_each_class_are_joined_and_sorted_by_size():
    record = record_of(*CLASSES)
    assert record.form is Form.DUMBBELL
    assert record.scale is Scale.SHARE
    assert list(dict.fromkeys(mark.label for mark in record.marks)) == ["doctor", "nurse", "chef"]
    assert record.highlighted == ("women", "men")


def test_groups_of_the_conclusion_have_a_colour_where_a_difference_was_found():
    roles = {(mark.label, mark.name): mark.role for mark in record_of(*CLASSES).marks}
    assert roles["doctor", "women"] == roles["nurse", "women"] == "worse"
    assert roles["doctor", "men"] == "other"
    assert roles["chef", "women"] == roles["chef", "men"] == ""


def test_marks_have_their_values():
    record = record_of(*CLASSES)
    texts = {(mark.label, mark.name): mark.text for mark in record.marks}
    assert texts["doctor", "women"] == "30.0\u00a0%"
    values = {(mark.label, mark.name): mark.value for mark in record.marks}
    assert values["nurse", "men"] == 0.6


def test_groups_are_outside_a_band_where_they_are_farther_apart():
    for mark in record_of(*CLASSES).marks:
        spread = {"doctor": 0.6, "nurse": 0.2, "chef": 0.01}[mark.label]
        assert mark.chance[1] - mark.chance[0] == pytest.approx(0.06)
        assert mark.limit[1] - mark.limit[0] == pytest.approx(0.07)
        assert (mark.chance[0] <= mark.value <= mark.chance[1]) == (spread <= 0.06)


def test_the_class_that_leads_is_always_shown():
    many = [rate(f"class {place}", 0.1, 0.9, Verdict.INCONCLUSIVE) for place in range(30)]
    record = record_of(*many, rate("leads", 0.5, 0.6))
    labels = dict.fromkeys(mark.label for mark in record.marks)
    assert "leads" in labels
    assert len(record.marks) <= MOST_MARKS
    assert f"{len(labels)} of 31" in record.title


def test_levels_of_one_attribute_are_joined_in_a_row_for_each_of_the_other():
    by_group = parts_of({
        ("old", "women"): 0.4, ("old", "men"): 0.9, ("young", "women"): 0.8, ("young", "men"): 0.85,
    })  # fmt: skip
    gap = finding(
        **RATE | {"groups": "age × gender", "metric": "accuracy"}, by_group=by_group, value=0.5,
        subject="",
    )  # fmt: skip
    record = record_of(gap)
    rows = [(mark.label, mark.name) for mark in record.marks]
    assert sorted(rows) == [("old", "men"), ("old", "women"), ("young", "men"), ("young", "women")]
    assert rows[0][0] == "old"
    assert {mark.role for mark in record.marks if mark.label == "young"} == {""}


def legends(record):
    """Return the keys of the shapes of a drawing."""
    layers = draw(record).spec["layer"]
    shapes = (layer["encoding"].get("shape") for layer in layers if "encoding" in layer)
    return [shape["legend"] for shape in shapes if shape and "field" in shape]


@pytest.mark.parametrize("second", [("old", "young"), ("old", "middle", "young")])
def test_marks_that_the_title_does_not_name_have_a_key(second):
    values = {
        (gender, age): 0.9 - 0.4 * (gender == "women" and age == "old")
        for gender in ("women", "men") for age in second
    }  # fmt: skip
    both = replace(
        CLASSES[2], groups="gender × age", subject="", metric="accuracy", family=Family.COMPOSITE,
        by_group=parts_of(values), value=0.4, ci_low=0.3, ci_high=0.5,
    )  # fmt: skip
    record = record_of(both)
    names = {mark.name for mark in record.marks}
    assert not names & {*record.highlighted}
    (key,) = legends(record)
    assert key is not None
    # Groups that the title colours have none.
    assert legends(record_of(*CLASSES)) == [None]


def test_several_models_have_a_panel_each():
    record = record_of(rate("doctor", 0.3, 0.9), rate("doctor", 0.5, 0.7, model="n"))
    assert record.panels == ("m", "n")
    spec = draw(record).spec
    assert spec["facet"]["field"] == "model"
    alone = draw(record_of(*CLASSES)).spec
    assert "facet" not in alone


SHOWN = {
    "metric": "share_mad", "groups": "perceived gender", "model": "painter", "chance": 0.2,
    "chance_high": 0.5, "threshold": 0.1, "compared_to": "", "aggregate": Aggregate.VALUE,
}  # fmt: skip


def shown(subject, men, verdict, **changes):
    by_group = parts_of({("man",): men, ("woman",): 1 - men}, n=30)
    return finding(
        **SHOWN | changes, subject=subject, by_group=by_group, value=abs(2 * men - 1),
        verdict=verdict, family=Family.LEAF,
    )  # fmt: skip


def test_shares_of_one_whole_are_bars_from_what_is_expected():
    record = record_of(
        shown("pilot", 1.0, Verdict.DISPARITY),
        shown("nurse", 0.1, Verdict.DISPARITY),
        shown("cook", 0.5, Verdict.INCONCLUSIVE),
    )
    assert record.form is Form.BARS
    assert [mark.label for mark in record.marks] == ["pilot", "cook", "nurse"]
    assert {mark.expected for mark in record.marks} == {0.5}
    # The group that the title names is drawn, and rows on its side have its colour.
    assert {mark.name for mark in record.marks} == {"woman"}
    assert [mark.text for mark in record.marks] == ["0.0\u00a0%", "50.0\u00a0%", "90.0\u00a0%"]
    assert [mark.role for mark in record.marks] == ["worse", "", "other"]
    assert record.sides == ("← more man", "more woman →")


def test_all_other_groups_have_the_colour_of_the_title_and_a_row():
    by_group = parts_of({("a",): 0.1, ("b",): 0.6, ("c",): 0.7, ("d",): 0.7, ("e",): 0.8})
    gap = replace(rate("chef", 0.1, 0.8), by_group=by_group)
    rest = parts_of({("a",): 0.1, ("all other groups",): 0.7})
    case = replace(
        gap, aggregate=Aggregate.AGAINST_REST, group="a", by_group=rest, value=-0.6, excess=-0.6,
    )  # fmt: skip
    conclusion = replace(
        conclusions_of([gap])[0], group="a", other="all other groups", aggregate=case.aggregate
    )
    record = chart_of(case, conclusion, [gap, case])
    roles = {mark.name: mark.role for mark in record.marks}
    assert roles == {"a": "worse"} | dict.fromkeys(("b", "c", "d", "e", rest[1].group), "other")
    assert record.marks[-1].value == rest[1].value


def test_a_ranking_of_values_is_drawn_model_by_model():
    sizes = {"mild": 0.1, "strong": 0.4, "middle": 0.2}
    findings = [
        finding(
            metric="effect_size_mean", model=model, value=value, groups="hue", subject="",
            aggregate=Aggregate.VALUE, compared_to="",
            by_group=parts_of({("a",): 0.1, ("b",): 0.9}),
        )
        for model, value in sizes.items()
    ]  # fmt: skip
    standings = tuple(Standing(model=m, value=sizes[m]) for m in sorted(sizes, key=sizes.get))
    first = replace(conclusions_of(findings)[0], model="", standings=standings, worse="strong")
    record = chart_of(findings[0], first, findings)
    assert [(mark.label, mark.value) for mark in record.marks] == [
        ("mild", 0.1), ("middle", 0.2), ("strong", 0.4),
    ]  # fmt: skip
    assert [mark.role for mark in record.marks] == ["other", "", "worse"]


def test_pairs_of_groups_share_the_row_of_their_subject():
    def pair(first, second, subject="street"):
        values = {("a",): 0.7, ("b",): 0.5, ("c",): 0.4}
        by_group = parts_of({(name,): values[name,] for name in (first, second)})
        value = by_group[0].value - by_group[1].value
        return finding(
            metric="iss_difference", model="m", groups="region", value=value, by_group=by_group,
            subject=f"{subject}: {first} − {second}", family=Family.LEAF,
            aggregate=Aggregate.VALUE, compared_to="",
        )  # fmt: skip

    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    record = record_of(*(pair(*names, place) for place in ("street", "home") for names in pairs))
    rows = sorted((mark.label, mark.name) for mark in record.marks)
    assert rows == [(place, name) for place in ("home", "street") for name in "abc"]


def test_a_subject_is_in_the_title_only_where_the_sentence_names_it():
    case = rate("unanswered", 0.3, 0.1)
    state = replace(case, metric="unanswered_rate", aggregate=Aggregate.DIFFERENCE)
    assert "unanswered" not in record_of(state).title
    assert "“chef”" in record_of(rate("chef", 0.3, 0.1)).title


def test_points_have_no_percent_sign():
    case = finding(
        metric="systematic_preference", model="m", groups="gender", value=0.2, subject="",
        aggregate=Aggregate.VALUE, compared_to="", by_group=(),
    )  # fmt: skip
    record = record_of(case)
    assert record.scale is Scale.POINTS
    labels = [layer["encoding"]["x"].get("axis", {}) for layer in draw(record).spec["layer"]
              if "axis" in layer["encoding"]["x"]]  # fmt: skip
    assert labels
    assert all("%" not in axis["labelExpr"] and axis["title"] == "points" for axis in labels)


def test_shares_from_outside_are_expected_where_they_are_declared():
    case = shown("pilot", 0.7, Verdict.DISPARITY)
    assert expected_shares(case) == {}
    declared = replace(case, metric="share_gap", parameters={"outside": {"man": 0.9, "woman": 0.1}})
    assert expected_shares(declared) == {"man": 0.9, "woman": 0.1}


def test_values_with_a_sign_point_to_both_sides():
    base = {
        "metric": "mcas", "groups": "men against women", "sides": ("men", "women"), "model": "m",
        "by_group": (),
        "aggregate": Aggregate.VALUE, "compared_to": "", "family": Family.LEAF,
        "chance": 0.0, "chance_low": -0.1, "chance_high": 0.1, "threshold": 0.2,
    }  # fmt: skip
    record = record_of(
        finding(**base, subject="pilot", value=0.6), finding(**base, subject="nurse", value=-0.5)
    )
    assert [(mark.label, mark.role) for mark in record.marks] == [
        ("pilot", "worse"), ("nurse", "other"),
    ]  # fmt: skip
    assert record.sides == ("← women", "men →")
    assert {mark.chance for mark in record.marks} == {(-0.1, 0.1)}


def test_numbers_that_are_not_finite_have_no_mark():
    assert record_of(rate("a", NAN, NAN)) is None
    base = {"metric": "min_skew", "by_group": (), "model": "m", "family": Family.LEAF}
    record = record_of(
        finding(**base, subject="a", value=-math.inf), finding(**base, subject="b", value=-0.3)
    )
    assert record is None or all(math.isfinite(mark.value) for mark in record.marks)


RECORDS = {
    "dumbbells": lambda: record_of(*CLASSES),
    "bars": lambda: record_of(shown("pilot", 1.0, Verdict.DISPARITY)),
    "multiples": lambda: record_of(rate("a", 0.3, 0.9), rate("a", 0.5, 0.7, model="n")),
}


def fields(value):
    if isinstance(value, dict):
        names = {value["field"]} if isinstance(value.get("field"), str) else set()
        return names.union(*map(fields, value.values()))
    return set().union(*map(fields, value)) if isinstance(value, list | tuple) else set()


@pytest.mark.parametrize("name", RECORDS)
def test_each_form_is_valid_vega_lite_of_fields_that_rows_have(name):
    chart = draw(RECORDS[name]())
    alt.Chart.from_dict(dict(chart.spec))
    assert fields({key: chart.spec[key] for key in chart.spec if key != "usermeta"}) <= {
        *chart.rows[0]
    }
    assert chart.exported
    assert chart.title


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_a_chart(name):
    result, page = result_and_page(name)
    chart = first_screen(result, page).chart
    assert chart is not None
    assert all(math.isfinite(row["value"]) for row in chart.rows)
