"""Estimates, tables and charts as notebooks, papers and terminals show them."""

import sys
import xml.etree.ElementTree as ET

import altair as alt
import numpy as np
import pytest
from matplotlib.figure import Figure

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.core.views import VEGA_LITE, Mark, Plot, TextTable

RNG = np.random.default_rng(4)
GROUP = RNG.choice(["women", "men"], 800)
TRUE = RNG.choice(["a", "b"], 800)
PRED = np.where(
    RNG.random(800) < np.where(GROUP == "women", 0.3, 0.1), RNG.choice(["a", "b"], 800), TRUE
)
GAP, RATES = (metric(TRUE, PRED, GROUP) for metric in (m.accuracy_gap, m.rates))
HOSTILE = "<script>\u202e & $x_1$ | *"


def test_an_estimate_prints_its_value_interval_and_sizes():
    text = repr(GAP)
    ends = GAP.interval()
    for number in (GAP.value, ends.low, ends.high, GAP.chance.mean):
        assert f"{number:.3f}" in text
    assert "n = 800 in 2 groups" in text
    assert "\n" not in text
    undefined = m.skewsize(TRUE, PRED, GROUP)
    assert undefined.reason in repr(undefined)


def test_a_value_of_groups_has_a_row_for_each_and_others_one_for_each_part():
    assert [row[0] for row in GAP.table().rows] == ["men", "women"]
    assert {row[0]: int(row[-1]) for row in GAP.table().rows} == GAP.n
    assert len(RATES.table().rows) == len(RATES.parts)
    alone = m.accuracy_gap(TRUE, PRED, GROUP, resampling=None)
    assert [mark.value for mark in alone.plot().marks] == [mark.value for mark in GAP.plot().marks]


def test_frames_have_a_row_for_each_group_class_and_part():
    assert dict(GAP.by_group.select("group", "n").iter_rows()) == GAP.n
    assert GAP.by_class.is_empty()
    rates = RATES.by_group.filter(metric="true_positive_rate", **{"class": "a"})
    assert {*rates["group"]} == {*GAP.n}
    difference = RATES.by_class.filter(metric="true_positive_rate difference", **{"class": "a"})
    assert difference["value"].item() == pytest.approx(rates["value"].max() - rates["value"].min())
    assert len(RATES.to_frame()) == len(RATES.parts)


@pytest.mark.parametrize("suffix", ["svg", "html", "png", "pdf"])
def test_a_plot_is_saved_in_the_format_of_its_name(tmp_path, suffix):
    path = tmp_path / f"gap.{suffix}"
    GAP.plot().save(path)
    start = {"svg": b"<svg", "html": b"<!doctype html>", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(start[suffix])


def test_a_plot_of_another_format_or_without_matplotlib_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for name in ("gap.jpeg", "gap.png"):
        with pytest.raises(InputError):
            GAP.plot().save(tmp_path / name)
        assert not (tmp_path / name).exists()
    GAP.plot().save(tmp_path / "gap.svg")


def test_a_plot_is_drawn_into_axes():
    ax = Figure().subplots()
    plot = RATES.plot(ax=ax)
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert [*dots.get_xdata()] == [mark.value for mark in plot.marks]
    assert [text.get_text() for text in ax.get_yticklabels()] == [mark.label for mark in plot.marks]
    series = Figure().subplots()
    Plot("t", (Mark("a", 0.5, series="x"), Mark("a", 0.4, series="y")), percent=True).draw(series)
    assert [text.get_text() for text in series.get_legend().get_texts()] == ["x", "y"]


@pytest.mark.parametrize("estimate", [GAP, RATES], ids=["groups", "parts"])
def test_a_plot_is_valid_vega_lite_and_svg_with_every_value(estimate):
    plot = estimate.plot()
    spec = plot.to_dict()
    alt.LayerChart.from_dict({key: value for key, value in spec.items() if key != "$schema"})
    assert [row["value"] for row in spec["data"]["values"]] == [mark.value for mark in plot.marks]
    root = ET.fromstring(plot.to_svg())
    circles = root.findall("{*}circle")
    assert len(circles) == len(plot.marks)
    places = [float(circle.get("cx")) for circle in circles]
    values = [mark.value for mark in plot.marks]
    assert np.corrcoef(places, values)[0, 1] == pytest.approx(1, abs=1e-3)
    assert {VEGA_LITE, "text/html", "text/plain"} == set(plot._repr_mimebundle_())


def test_labels_cannot_become_markup():
    plot = Plot(HOSTILE, (Mark(HOSTILE, 0.5, 0.4, 0.6, "one"), Mark("b", 0.2, series=HOSTILE)))
    assert "<script" not in plot.to_svg()
    assert ET.fromstring(plot.to_svg()).tag.endswith("svg")
    table = TextTable(HOSTILE, ("a", HOSTILE), (("x", HOSTILE),))
    assert "<script" not in table._repr_html_()
    assert "\u202e" not in str(table) + table.to_markdown() + table.to_latex() + table._repr_html_()
    (cells,) = [line for line in table.to_latex().splitlines() if line.startswith("x &")]
    assert cells == r"x & $<$script$>$\textbackslash{}u202e \& \$x\_1\$ | * \\"
    last = table.to_markdown().splitlines()[-1]
    assert last.replace(r"\|", "").count("|") == 3


def test_a_plot_of_one_value_or_none_is_drawn():
    for marks in ((), (Mark("a", 0.5),)):
        assert ET.fromstring(Plot("t", marks).to_svg()).tag.endswith("svg")
