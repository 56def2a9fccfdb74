"""The page of recipes: what was lowered, at what price, in words that promise no more."""

import math
import re
from dataclasses import replace

import pyarrow as pa
import pytest

from equipoise.core import AuditResult, Manifest, Verdict
from equipoise.mitigate.page import (
    PAGE,
    price,
)
from equipoise.report.blocks import Chart, Grid, Table
from equipoise.report.rendering import render
from report.synthetic import finding


def row(recipe: str, role: str, measure: str, about: str, **values: float) -> dict[str, object]:
    numbers = {
        "before": 0.8, "after": 0.5, "difference": -0.3, "low": -0.4, "high": -0.2,
        "p_value": 0.001, "q_value": 0.002, "floor": 0.2, "share": 0.5, "share_low": 0.3,
        "share_high": 0.7,
    }  # fmt: skip
    told = {"recipe": recipe, "role": role, "measure": measure, "about": about}
    return told | {"n": 24} | numbers | values


def result(rows: list[dict[str, object]]) -> AuditResult:
    manifest = Manifest({}, {}, {"equipoise": "0"}, "", False, {}, {}, 0, "", 0.0, {})
    recipes = [
        {"recipe": "<b>ensemble", "conclusion": "transfers", "sentence": "1 of 1 fell",
         "model": "", "transfers": True, "seconds": 1.0},
    ]  # fmt: skip
    subjects = [
        {"recipe": "<b>ensemble", "measure": "ndkl", "about": "hue", "subject": "nurse",
         "fold": 0, "before": 0.8, "after": 0.5, "floor": math.nan},
    ]  # fmt: skip
    tables = {
        "mitigation": pa.Table.from_pylist(rows),
        "mitigation_recipes": pa.Table.from_pylist(recipes),
        "mitigation_subjects": pa.Table.from_pylist(subjects),
    }
    return AuditResult((), manifest, tables)


ROWS = [
    row("<b>ensemble", "bias", "ndkl", "hue"),
    row("<b>ensemble", "utility", "accuracy", "objects", difference=-0.01, share=math.nan),
]


def test_what_was_lowered_lies_over_what_it_cost() -> None:
    section = price(result(ROWS))
    assert section is not None
    grid = next(block for block in section.blocks if isinstance(block, Grid))
    (chart,) = grid.charts
    assert isinstance(chart, Chart)
    assert chart.title == "NDKL, hue"
    (mark,) = chart.data["rows"]
    assert (mark["x"], mark["x_low"], mark["y"]) == (0.5, 0.3, -1.0)
    biases, utilities = (block for block in section.blocks if isinstance(block, Table))
    assert biases.rows[0][:4] == ("<b>ensemble", "NDKL", "hue", "0.800")
    assert utilities.rows[0][1] == "Zero-shot accuracy"


def test_without_a_floor_the_way_ends_at_nothing() -> None:
    nothing = {"floor": math.nan, "share": math.nan, "share_low": math.nan, "share_high": math.nan}
    section = price(result([row("a", "bias", "ndkl", "hue", **nothing), ROWS[1]]))
    assert section is not None
    assert not [block for block in section.blocks if isinstance(block, Grid)]  # no accuracy of "a"
    rows = [row("<b>ensemble", "bias", "ndkl", "hue", **nothing), ROWS[1]]
    section = price(result(rows))
    assert section is not None
    grid = next(block for block in section.blocks if isinstance(block, Grid))
    chart = grid.charts[0]
    assert isinstance(chart, Chart)
    assert chart.data["rows"][0]["x"] == pytest.approx(0.375)


NO_CHANCE = dict.fromkeys(("chance", "chance_low", "chance_high", "excess", "threshold"), math.nan)


def test_the_page_of_recipes_is_no_audit() -> None:
    changes = (
        finding(audit="mitigation", model="ensemble", metric="ndkl_change", unit="subject",
                verdict=Verdict.NONE, direction="NDKL of withheld subjects fell", **NO_CHANCE),
        finding(audit="mitigation", model="ensemble", metric="accuracy_change", unit="image",
                verdict=Verdict.NONE, direction="unchanged", **NO_CHANCE),
    )  # fmt: skip
    page = render(replace(result(ROWS), findings=changes), PAGE)
    text = re.sub(
        r"\s+", " ", re.sub(r"<(style|script).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    )
    assert "<h1>Mitigation of ensemble</h1>" in page
    assert "ensemble transfers: 1 of 1 fell." in text
    assert "Changes (2)" in text
    assert "What changed NDKL of withheld subjects fell" in text
    for word in (
        "Audit of",
        "– no verdict",
        "with a verdict",
        "Who is worse off",
        "Chance band",
        "by chance",
        "Grey bar",
        "what chance gives",
    ):
        assert word not in text


def test_the_page_escapes_names_and_keeps_its_words() -> None:
    page = render(result(ROWS), PAGE)
    assert "&lt;b&gt;ensemble" in page
    assert "<b>ensemble" not in page
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).lower()
    assert not any(word in text for word in ("debias", "unbiased", "solved"))
    assert "Change in disparities and its price" in page
    assert "Withheld subjects before and after" in page
