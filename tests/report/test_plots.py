"""Every shape of chart is valid Vega-Lite and draws the fields that its rows have."""

import altair as alt
import pytest

from equipoise.report.plots import (
    VERDICTS,
    WIDE,
    Axis,
    bars,
    curves,
    heat_map,
    intervals,
    scatter,
)

POINT = {"label": "a", "value": 0.4, "low": 0.3, "high": 0.5, "tip": "a: 0.4", "series": "m"}
BAND = {"chance_low": 0.1, "chance_high": 0.2}
POOL = {"pool_low": 0.0, "pool_high": 0.3}
MARK = {"x": 1.0, "y": 2.0, "tip": "a", "series": "m"}
CELL = {"row": "r", "column": "c", "value": 0.5, "tip": "c"}
SHARE = Axis("share", percent=True, domain=(0.0, 1.0))
SIGNED = Axis(("left", "right"), domain=(-1.0, 1.0), zero=True)

CHARTS = {
    "intervals": lambda: intervals([POINT | BAND | POOL | {"line": 0.1}], "words", SHARE),
    "intervals of series": lambda: intervals(
        [POINT, POINT | {"series": "n"}], "words", SIGNED, series=("m", "n"), cuts=(0.1,)
    ),
    "intervals by verdict": lambda: intervals(
        [POINT | {"series": "disparity"}], "words", Axis(), series=("disparity",), palette=VERDICTS
    ),
    "curves": lambda: curves([POINT | BAND | {"x": 1}], "words", Axis("K"), SIGNED, series=("m",)),
    "scatter": lambda: scatter(
        [MARK | {"x_low": 0.0, "x_high": 2.0, "fitted": 1.0, "name": "a"}],
        "words", Axis("x", zero=True), Axis("y"), series=("m", "n"),
        rules=(("y", 1.0), ("xy", 2.0)),
    ),
    "scatter in steps": lambda: scatter(
        [MARK | {"step": 0.2}], "words", SHARE, SHARE, steps=("odds", (0.1, 0.2, 0.3, 0.5))
    ),
    "bars": lambda: bars([POINT | {"before": 0.8}], "words", SHARE),
    "stacked bars": lambda: bars(
        [POINT | {"total": 0.4}], "words", SHARE, series=("m", "n"), stacked=True
    ),
    "heat map": lambda: heat_map([CELL], "words", SHARE, columns=("c",)),
}  # fmt: skip


def fields(value):
    if isinstance(value, dict):
        names = {value["field"]} if isinstance(value.get("field"), str) else set()
        return names.union(*map(fields, value.values()))
    return set().union(*map(fields, value)) if isinstance(value, list | tuple) else set()


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_vega_lite_and_draws_fields_that_its_rows_have(name):
    chart = CHARTS[name]()
    alt.Chart.from_dict(dict(chart.spec))
    assert "http" not in str(chart.spec)
    columns = {field for row in chart.rows for field in row}
    assert fields(chart.spec["layer"]) <= columns


@pytest.mark.parametrize("columns", [2, WIDE - 1, WIDE])
def test_a_map_of_many_columns_takes_the_width_of_the_page(columns):
    names = tuple(map(str, range(columns)))
    chart = heat_map([CELL | {"column": name} for name in names], "words", SHARE, columns=names)
    assert ("usermeta" in chart.spec) == (columns >= WIDE)
