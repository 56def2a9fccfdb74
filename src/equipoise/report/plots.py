"""Charts as plain Vega-Lite: one function for each shape of chart.

Colours are custom properties of the page's style sheet, so that they follow the reader's colour
scheme and print. A test validates every shape against the Vega-Lite schema.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

from equipoise.report.blocks import SYMBOLS, Chart, Rows, Value, has, value_of
from equipoise.report.text import VERDICT_TITLES, count, enclose, number
from equipoise.report.text import interval as ends_of
from equipoise.report.text import percent as share_of

Spec = dict[str, Any]
Palette = Mapping[str, tuple[str, str]]
"""Colour and shape by name."""

INK, SOFT, LINE, CHANCE = "var(--ink)", "var(--soft)", "var(--line)", "var(--chance)"
PAPER = "var(--paper)"
COLORS = tuple(f"var(--m{place})" for place in range(1, 9))
SHAPES = (
    "circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right",
    "triangle-left",
)  # fmt: skip
STEPS = tuple(f"var(--s{place})" for place in range(1, 6))
VERDICTS: Palette = {
    VERDICT_TITLES[verdict]: (f"var(--{verdict.value.replace(' ', '-')})", shape)
    for verdict, shape in zip(
        SYMBOLS,
        ("triangle-up", "triangle-right", "diamond", "triangle-down", "circle", "square"),
        strict=True,
    )
}
WIDE = 8
"""Columns from which on a heat map takes the width of the page."""

CONFIG: Spec = {
    "background": None,
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "aria": False,
    "axis": {
        "labelColor": SOFT, "titleColor": SOFT, "domainColor": LINE, "tickColor": LINE,
        "gridColor": LINE, "gridOpacity": 0.6, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 170, "titleLimit": 420, "labelOverlap": True,
    },
    "legend": {
        "labelColor": INK, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "top", "symbolStrokeColor": SOFT,
        "labelLimit": 200, "columns": 3, "direction": "horizontal",
    },
    "text": {"color": INK, "fontSize": 12},
    "point": {"filled": True, "size": 70},
    "rule": {"color": SOFT},
}  # fmt: skip
"""Settings that all charts share."""

_DASHED = [3, 3]
_TIP: Spec = {"tooltip": {"field": "tip", "type": "nominal"}}
_DETAIL: Spec = {"detail": {"field": "series", "type": "nominal"}}
_LABELS: Spec = {"title": None, "ticks": False, "domain": False, "grid": False, "labelColor": INK}


@dataclass(frozen=True)
class Axis:
    """A quantitative axis.

    Attributes
    ----------
    title : str or tuple of str
        One line, or several.
    percent : bool
        Whether its numbers are shares.
    domain : tuple of float or None
        Its ends; those of the data unless given.
    zero : bool
        Whether a line marks 0. Numbers have no sign where the ends mirror each other.
    """

    title: str | tuple[str, ...] = ""
    percent: bool = False
    domain: tuple[float, float] | None = None
    zero: bool = False

    def channel(self, name: str, field: str, **more: Any) -> Spec:
        """Return the encoding of a field."""
        title = self.title if isinstance(self.title, str) else [*self.title]
        axis: Spec = {"title": title or None, "tickCount": 5}
        if self.percent:
            axis["format"] = "%"
        if self.zero and self.domain and self.domain[0] == -self.domain[1]:
            axis["labelExpr"] = "format(abs(datum.value), '.3~f')"
        scale: Spec = {"zero": False}
        if self.domain:
            scale = {"domain": [*self.domain]}
        return {
            name: {"field": field, "type": "quantitative", "axis": axis, "scale": scale, **more}
        }


def labelled_points(
    rows: Iterable[Any],
    label: Value,
    *,
    series: Value,
    value: str = "value",
    percent: bool = False,
) -> list[dict[str, Any]]:
    """Return the marks of `intervals` and `bars`: a row for each known value, with its tooltip.

    Parameters
    ----------
    rows : iterable of mapping
        Optional: low, high, chance_low, chance_high (drawn), n (in the tooltip).
    label, series : str or callable
        Keys of the rows, or functions of a row.
    value : str
        Key of the value.
    percent : bool
        Whether values are shares.
    """
    marks: list[dict[str, Any]] = []
    format_value = share_of if percent else number
    for row in rows:
        if not has(row[value]):
            continue
        mark = {
            "label": str(value_of(row, label)), "series": str(value_of(row, series)),
            "value": row[value], **{key: row.get(key) for key in _ENDS},
        }  # fmt: skip
        tip = f"{mark['label']}, {mark['series']}: {format_value(row[value])}"
        if mark["low"] is not None:
            tip += f" {ends_of(row['low'], row['high'])}"
        if "n" in row:
            tip += f", n = {count(row['n'])}"
        marks.append({**mark, "tip": tip})
    return marks


_ENDS = ("low", "high", "chance_low", "chance_high")


def intervals(
    rows: Rows,
    label: str,
    axis: Axis,
    *,
    title: str = "",
    series: Sequence[str] = (),
    palette: Palette | None = None,
    cuts: Sequence[float] = (),
) -> Chart:
    """Draw values with intervals, a row for each label.

    Parameters
    ----------
    rows : sequence of mapping
        Fields: label, value, low, high, tip. Optional: chance_low and chance_high (a grey band),
        pool_low and pool_high (a dashed band), line (a tick), series.
    label : str
        The chart in words, for those who don't see it.
    axis : Axis
    series : sequence of str
        Marks of one row, side by side; with a palette they share the row.
    palette : mapping of str to (colour, shape), optional
    cuts : sequence of float
        Dashed lines.
    """
    side_by_side = len(series) > 1 and palette is None
    place = _rows_of(series if side_by_side else ())
    channels = _channels(series, palette)
    fields = _fields(rows)
    band: Spec = {"type": "bar", "height": 13 if side_by_side else 16}
    layers: list[Spec] = []
    if "chance_low" in fields:
        layers.append(_layer(band | {"color": CHANCE}, place | _span("chance")))
    if "pool_low" in fields:
        layers.append(_layer(band | _HOLLOW, place | _span("pool")))
    if "line" in fields:
        tick = {"type": "tick", "color": SOFT, "size": 20, "thickness": 2}
        layers.append(_layer(tick, place | _number("x", "line")))
    if axis.zero:
        cuts = [0.0, *cuts]
    layers += [_rule("x", cut) for cut in cuts]
    if "low" in fields:
        line = {"type": "rule", "strokeWidth": 2.3}
        layers.append(_layer(line, place | _span("") | _color(channels)))
    layers.append(_layer(_POINT, place | axis.channel("x", "value") | channels | _TIP))
    row_height = 28
    if side_by_side:
        row_height = max(14 * len(series), 26)
    return _chart(layers, rows, label, title, row_height * _count(rows, "label") + 8)


def curves(
    rows: Rows,
    label: str,
    x: Axis,
    y: Axis,
    *,
    title: str = "",
    series: Sequence[str] = (),
    marks: bool = True,
) -> Chart:
    """Draw a number over another, a line for each series.

    Rows have the fields x, value, series, tip. Optional: low and high (the interval), chance_low
    and chance_high (a grey band). `marks` draws the points.
    """
    across, up = x.channel("x", "x"), y.channel("y", "value")
    channels, fields = _channels(series), _fields(rows)
    layers: list[Spec] = []
    if "chance_low" in fields:
        area = {"type": "area", "color": CHANCE, "opacity": 0.75}
        layers.append(_layer(area, across | _span("chance", "y") | _DETAIL))
    if y.zero:
        layers.append(_rule("y", 0.0))
    if "low" in fields:
        shade = {"type": "area", "opacity": 0.22}
        layers.append(_layer(shade, across | _span("", "y") | _color(channels)))
    point = _POINT if marks else {"type": "point", "size": 26, "opacity": 0}
    layers += [
        _layer({"type": "line", "strokeWidth": 2.2}, across | up | _color(channels)),
        _layer(point, across | up | channels | _TIP),
    ]
    return _chart(layers, rows, label, title, 240)


def scatter(
    rows: Rows,
    label: str,
    x: Axis,
    y: Axis,
    *,
    title: str = "",
    series: Sequence[str] = (),
    steps: tuple[str, Sequence[float]] | None = None,
    rules: Sequence[tuple[str, float]] = (),
) -> Chart:
    """Draw one number against another, a mark for each row.

    Parameters
    ----------
    rows : sequence of mapping
        Fields: x, y, tip. Optional: series; x_low, x_high, y_low, y_high (intervals); fitted (a
        curve over x); step (colour).
    steps : (str, sequence of float), optional
        Title and four cuts of the five steps of colour of the field step.
    rules : sequence of (str, float)
        Dashed lines, such as ("x", 0.5); ("xy", 1.0) is the line of equal numbers from 0 to 1.
    """
    across, up = x.channel("x", "x"), y.channel("y", "y")
    channels, fields = _channels(series), _fields(rows)
    layers = [_rule(name, 0.0) for name, axis in (("x", x), ("y", y)) if axis.zero]
    layers += [_rule(name, place) for name, place in rules]
    for name, other in (("x", up), ("y", across)):
        if f"{name}_low" in fields:
            bar = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.6}
            layers.append(_layer(bar, _span(name, name) | other | _color(channels)))
    if "fitted" in fields:
        line = {"type": "line", "strokeWidth": 2, "strokeDash": [5, 3]}
        fit = _layer(line, across | _number("y", "fitted") | _color(channels) | _DETAIL)
        layers.append({**fit, "transform": [{"filter": "isValid(datum.fitted)"}]})
    mark = _POINT
    if steps:
        legend = {"title": steps[0], "format": ".1f", "gradientLength": 180}
        scale = {"type": "threshold", "domain": [*steps[1]], "range": [*STEPS]}
        channels = _number("fill", "step", scale=scale, legend=legend)
        mark = _POINT | {"stroke": SOFT, "strokeWidth": 0.6}
    layers.append(_layer(mark, across | up | channels | _TIP))
    return _chart(layers, rows, label, title, 280)


def bars(
    rows: Rows,
    label: str,
    axis: Axis,
    *,
    title: str = "",
    series: Sequence[str] = (),
    stacked: bool = False,
) -> Chart:
    """Draw a bar for each label; of several series side by side, or stacked to both sides of 0.

    Rows have the fields label, value, tip; series. Optional: before (a second bar up to there, in
    grey) and total (a mark at the sum of a stack).
    """
    side_by_side = len(series) > 1 and not stacked
    place = _rows_of(series if side_by_side else ())
    x = axis.channel("x", "value", stack="zero" if stacked else None)
    fields = _fields(rows)
    bar: Spec = {"type": "bar"}
    if stacked:
        bar |= {"stroke": PAPER, "strokeWidth": 1}
    layers: list[Spec] = []
    if "before" in fields:
        grey = {"type": "bar", "color": CHANCE}
        layers.append(_layer(grey, place | _number("x", "value") | {"x2": {"field": "before"}}))
    layers.append(_layer(bar, place | x | _color(_channels(series)) | _TIP))
    if "total" in fields:
        total = _POINT | {"shape": "diamond", "color": INK, "stroke": PAPER}
        layers += [_rule("x", 0.0), _layer(total, place | _number("x", "total"))]
    row_height = 28
    if side_by_side:
        row_height = max(13 * len(series), 24)
    return _chart(layers, rows, label, title, row_height * _count(rows, "label") + 8)


def heat_map(
    rows: Rows,
    label: str,
    legend: Axis,
    *,
    columns: Sequence[str],
    title: str = "",
) -> Chart:
    """Draw cells in five steps of colour; their numbers are in tooltips.

    From `WIDE` columns on the map takes the width of the page.

    Parameters
    ----------
    rows : sequence of mapping
        Fields: row, column, value, tip.
    legend : Axis
        Title, format and ends of the colour scale.
    columns : sequence of str
        In order.
    """
    wide = len(columns) >= WIDE
    across = {**_LABELS, "orient": "top", "labelLimit": 150, "labelOverlap": False,
              "labelAngle": -60 if wide else -35}  # fmt: skip
    place: Spec = {
        "x": {"field": "column", "type": "nominal", "sort": [*columns], "axis": across},
        **_rows_of((), "row"),
    }
    key = {"title": legend.title, "format": ".0%" if legend.percent else ".2f"}
    scale = {"type": "quantize", "domain": [*(legend.domain or (0.0, 1.0))], "range": [*STEPS]}
    fill = _number("color", "value", scale=scale, legend=key | {"gradientLength": 180})
    cells = _layer({"type": "rect", "stroke": PAPER, "strokeWidth": 2}, place | fill | _TIP)
    chart = _chart([cells], rows, label, title, 28 * _count(rows, "row") + 8)
    # The last column's label leans out farther once cells have shrunk to make room for it.
    spec = {**chart.spec, "padding": {"left": 5, "top": 5, "bottom": 5, "right": 14}}
    if wide:
        spec["usermeta"] = {"wide": True}
    return replace(chart, spec=spec)


def _rows_of(series: Sequence[str], field: str = "label") -> Spec:
    """Return the encoding of a row for each label, with the marks of some series side by side."""
    axis = {**_LABELS, "labelPadding": 8}
    place: Spec = {"y": {"field": field, "type": "nominal", "sort": None, "axis": axis}}
    if series:
        place["yOffset"] = {"field": "series", "sort": [*series]}
    return place


def _channels(names: Sequence[str], palette: Palette | None = None) -> Spec:
    """Return colour and shape by name; past eight names both repeat, and the labels tell."""
    if not names:
        return {"color": {"value": COLORS[0]}}
    styles = palette or dict(zip(names, cycle(zip(COLORS, SHAPES, strict=True)), strict=False))
    colors, shapes = zip(*styles.values(), strict=True)
    series: Spec = {"field": "series", "type": "nominal", "legend": None}
    if len(names) > 1:
        series["legend"] = {"title": None, "values": [*names]}
    return {
        "color": {**series, "scale": {"domain": [*styles], "range": [*colors]}},
        "shape": {**series, "scale": {"domain": [*styles], "range": [*shapes]}},
    }


def _color(channels: Spec) -> Spec:
    """Keep the colour alone: lines and bars have no shape."""
    return {key: channel for key, channel in channels.items() if key != "shape"}


def _chart(layers: Sequence[Spec], rows: Rows, label: str, title: str, height: float) -> Chart:
    finite_rows = [
        row for row in rows if _finite(row.get("value", 0.0)) and _finite(row.get("y", 0.0))
    ]
    spec = {
        "data": {"name": "rows"},
        "layer": [*layers],
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
    }
    return Chart(label, spec, finite_rows, None, title)


def _finite(value: float | None) -> bool:
    """Whether there is a number that a chart has a place for; infinity has none."""
    return value is not None and math.isfinite(value)


def _layer(mark: Spec, encoding: Spec) -> Spec:
    return {"mark": mark, "encoding": encoding}


def _number(channel: str, field: str, **more: Any) -> Spec:
    return {channel: {"field": field, "type": "quantitative", **more}}


def _span(name: str, axis: str = "x") -> Spec:
    """Return the encoding from the field low to the field high, or name_low to name_high."""
    start = enclose("", name, "_")
    return _number(axis, f"{start}low") | {f"{axis}2": {"field": f"{start}high"}}


def _rule(axis: str, place: float) -> Spec:
    """Return a dashed line at a place of an axis, or of equal numbers up to there ("xy")."""
    start, end = {"datum": 0}, {"datum": place}
    ends: Spec = {axis: end}
    if axis == "xy":
        ends = {"x": start, "y": start, "x2": end, "y2": end}
    return _layer({"type": "rule", "color": SOFT, "strokeDash": _DASHED}, ends)


def _fields(rows: Rows) -> set[str]:
    """Return the fields that have a value in some row."""
    fields = set[str]()
    for row in rows:
        fields.update(key for key, value in row.items() if _is_shown(value))
    return fields


def _is_shown(value: Any) -> bool:
    return _finite(value) if isinstance(value, float) else value is not None


def _count(rows: Rows, field: str) -> int:
    return len({row[field] for row in rows})


_POINT: Spec = {"type": "point", "size": 70, "opacity": 1}
_HOLLOW: Spec = {"fillOpacity": 0, "stroke": SOFT, "strokeDash": _DASHED, "strokeWidth": 1.2}
