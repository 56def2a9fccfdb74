"""Pages of recipes and of training on changed faces."""

import html
import math
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from equipoise.core import AuditResult, Manifest, Verdict
from equipoise.mitigate.concluding import conclusions_of_recipes
from equipoise.mitigate.measuring import ModelMeasures, Row, conclude
from equipoise.mitigate.page import (
    AUGMENTATION,
    PAGE,
    price,
)
from equipoise.mitigate.running import Assessment, findings_of
from equipoise.report import render
from equipoise.report.blocks import Grid, Table
from equipoise.report.result import first_screen
from equipoise.report.text import unbroken
from equipoise.report.words import conclusion_sentence
from report.synthetic import augmentation as experiment

NUMBERS = {
    "n": 24, "before": 0.8, "after": 0.5, "difference": -0.3, "low": -0.4, "high": -0.2,
    "p_value": 0.001, "q_value": 0.002, "floor": 0.2, "share": 0.5, "share_low": 0.3,
    "share_high": 0.7,
}  # fmt: skip
NAME = {"recipe": "<b>ensemble"}
BIAS = NAME | {"role": "bias", "measure": "ndkl", "about": "hue"} | NUMBERS
PRICE = NAME | {"role": "utility", "measure": "accuracy", "about": "objects"} | NUMBERS
PRICE |= {"difference": -0.01, "share": math.nan}


def result(*rows):
    manifest = Manifest({}, {}, {"equipoise": "0"}, "", False, {}, {}, 0, "", 0.0, {})
    recipe = NAME | {"conclusion": "transfers", "sentence": "1 of 1 fell", "model": ""}
    subject = NAME | {"measure": "ndkl", "about": "hue", "subject": "nurse", "fold": 0,
                      "before": 0.8, "after": 0.5, "floor": math.nan}  # fmt: skip
    tables = {
        "mitigation": pa.Table.from_pylist([*rows]),
        "mitigation_recipes": pa.Table.from_pylist([recipe]),
        "mitigation_subjects": pa.Table.from_pylist([subject]),
    }
    return AuditResult((), manifest, tables)


def blocks(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


@pytest.mark.parametrize(
    ("change", "place"),
    [({}, 0.5), ({"floor": math.nan, "share": math.nan}, 0.375), ({"share": math.nan}, None)],
    ids=["floor", "no floor", "not estimable"],
)
def test_what_was_lowered_lies_over_what_it_cost(change, place):
    section = price(result(BIAS | change, PRICE))
    grids = blocks(section, Grid)
    if place is None:
        assert not grids
        return
    (chart,) = grids[0].charts
    assert chart.title == "NDKL, hue"
    (mark,) = chart.rows
    assert (mark["x"], mark["y"]) == (pytest.approx(place), -1.0)
    biases, utilities = blocks(section, Table)
    assert biases.rows[0][:4] == ("<b>ensemble", "NDKL", "hue", "0.800")
    assert utilities.rows[0][1] == "Zero-shot accuracy"


def concluded(*changes):
    """A result whose conclusions are about the findings of its rows."""
    rows = [
        Row(**{name: value for name, value in row.items() if name != "lowered"}, test="signs")
        for row in changes
    ]
    before = after = ModelMeasures({}, {})
    done = Assessment(tuple(rows), conclude(rows), (), before, {}, after, {}, {})
    conclusions = conclusions_of_recipes(done.rows, done.outcomes)
    return replace(result(*changes), findings=findings_of(done), conclusions=conclusions)


def test_a_recipe_starts_with_the_change_of_the_leading_disparity_then_the_price():
    small = BIAS | {"about": "frame", "before": 0.4, "after": 0.35, "difference": -0.05}
    audit_result = concluded(small, BIAS, PRICE)
    bias, price_paid = audit_result.conclusions
    assert (bias.groups, bias.verdict, bias.worse) == ("hue", Verdict.DISPARITY, "before")
    assert (bias.size, bias.low, bias.high) == (-0.3, -0.4, -0.2)
    assert bias.restated_by == (0,)
    assert price_paid.metric == "accuracy"
    (statement,) = first_screen(audit_result, PAGE).statements
    assert statement.text == conclusion_sentence(audit_result.findings[1], bias)
    (remark,) = statement.others
    assert remark.text == conclusion_sentence(audit_result.findings[2], price_paid)


def test_the_first_chart_joins_before_and_after_of_the_leading_measure():
    audit_result = concluded(BIAS, PRICE)
    rows = first_screen(audit_result, PAGE).chart.rows
    assert [(row["series"], row["value"], row["role"]) for row in rows] == [
        ("before", 0.8, "worse"), ("after", 0.5, "other"),
    ]  # fmt: skip


def test_the_recipe_that_transfers_leads():
    names = [{"recipe": "idle"}, {"recipe": "useful"}]
    small = BIAS | names[0] | {"after": 0.78, "difference": -0.02, "low": -0.1, "high": 0.1,
                               "q_value": 0.8, "share": 0.03, "share_low": -0.1,
                               "share_high": 0.2}  # fmt: skip
    rows = [small, PRICE | names[0], BIAS | names[1], PRICE | names[1]]
    audit_result = concluded(*rows)
    recipes = pa.Table.from_pylist([
        name | {"conclusion": kind, "sentence": "1 of 1 fell", "model": ""}
        for name, kind in zip(names, ("does not transfer", "transfers"), strict=True)
    ])  # fmt: skip
    tables = {**audit_result.tables, "mitigation_recipes": recipes}
    statements = first_screen(replace(audit_result, tables=tables), PAGE).statements
    assert [statement.finding.model for statement in statements] == ["useful", "idle"]


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"after": 0.7, "difference": -0.1}, Verdict.DETECTED),
        ({"q_value": 0.4, "low": -0.7, "high": 0.1}, Verdict.INCONCLUSIVE),
        ({"q_value": 0.4, "low": -0.1, "high": 0.1}, Verdict.BELOW_THRESHOLD),
    ],
)
def test_a_change_is_large_where_it_goes_halfway(change, verdict):
    bias, _ = concluded(BIAS | change, PRICE).conclusions
    assert bias.verdict is verdict
    assert bool(bias.worse) == bias.real


@pytest.mark.parametrize(
    ("change", "verdict", "worse"),
    [
        ({"difference": -0.05, "low": -0.07, "high": -0.03}, Verdict.DISPARITY, "<b>ensemble"),
        ({"difference": -0.03, "low": -0.05, "high": -0.01}, Verdict.DETECTED, "<b>ensemble"),
        ({"difference": 0.0, "low": -0.01, "high": 0.01}, Verdict.BELOW_THRESHOLD, ""),
        ({"difference": -0.05, "low": -0.12, "high": 0.02, "q_value": 0.3},
         Verdict.INCONCLUSIVE, ""),
    ],
)  # fmt: skip
def test_the_price_is_a_difference_beyond_the_margin(change, verdict, worse):
    _, price_paid = concluded(BIAS, PRICE | change).conclusions
    assert (price_paid.verdict, price_paid.worse) == (verdict, worse)


def test_the_page_of_recipes_is_no_audit_and_escapes_names():
    page = render(concluded(BIAS, PRICE), PAGE)
    assert "&lt;b&gt;ensemble transfers: 1\u00a0of\u00a01 fell." in page
    assert "<b>ensemble" not in page
    for word in ("Audit of", "Who is worse off", "debias", "unbiased", "solved"):
        assert word not in re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)


def test_what_helped_and_what_did_not_is_concluded_of_each_training():
    audit_result = experiment()
    few = replace(audit_result.findings[2], verdict=Verdict.NONE, reason="few faces")
    audit_result = AuditResult(
        (*audit_result.findings[:2], few), audit_result.manifest, audit_result.tables
    )
    statements = first_screen(audit_result, AUGMENTATION).statements
    assert "partial mixing" in statements[0].text
    assert "few faces" in statements[2].text
    page = html.unescape(render(audit_result, AUGMENTATION))
    assert all(unbroken(statement.text) in page for statement in statements)
    assert "Images of each label and group" in page
