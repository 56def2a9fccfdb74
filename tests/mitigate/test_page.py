"""Pages of recipes and of training on changed faces."""

import math
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from equipoise.core import AuditResult, Manifest, Verdict
from equipoise.mitigate.page import (
    AUGMENTATION,
    PAGE,
    conclusions,
    price,
)
from equipoise.report import render
from equipoise.report.blocks import Grid, Table
from equipoise.report.text import unbroken
from report.synthetic import augmentation as experiment
from report.synthetic import finding

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


def test_the_page_of_recipes_is_no_audit_and_escapes_names():
    nothing = dict.fromkeys(
        ("chance", "chance_low", "chance_high", "excess", "threshold"), math.nan
    )
    change = finding(
        audit="mitigation", model="ensemble", metric="ndkl", change_from="before", unit="subject",
        verdict=Verdict.NONE, direction="NDKL of withheld subjects fell", **nothing,
    )  # fmt: skip
    page = render(replace(result(BIAS, PRICE), findings=(change,)), PAGE)
    assert "&lt;b&gt;ensemble transfers: 1\u00a0of\u00a01 fell." in page
    assert "<b>ensemble" not in page
    for word in ("Audit of", "Who is worse off", "debias", "unbiased", "solved"):
        assert word not in re.sub(r"<(style|script).*?</\1>", " ", page, flags=re.DOTALL)


def test_what_helped_and_what_did_not_in_plain_words():
    audit_result = experiment()
    few = replace(audit_result.findings[2], verdict=Verdict.NONE, reason="few faces")
    audit_result = AuditResult(
        (*audit_result.findings[:2], few), audit_result.manifest, audit_result.tables
    )
    texts = conclusions(audit_result)
    assert "partial mixing helped" in texts[0]
    assert f"{100 * audit_result.findings[0].value:+.1f} points [" in texts[0]
    assert "no verdict (few faces)" in texts[2]
    page = render(audit_result, AUGMENTATION)
    assert all(unbroken(text) in page for text in texts)
    assert "Images of each label and group" in page
