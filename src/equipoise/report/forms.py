"""The three forms of the first chart as Vega-Lite: dumbbells, bars from chance, small multiples."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.report.blocks import Chart
from equipoise.report.chart_records import ChartMark, ChartRecord, Form, Scale
from equipoise.report.plots import CHANCE, INK, SHAPES, SOFT, Spec
from equipoise.report.text import count, enclose

WORSE, OTHER, MUTED, LIMIT = "var(--worse)", "var(--other)", "var(--muted)", "var(--limit)"
ROW_HEIGHT, BAR_HEIGHT = 36, 26
COLUMNS = 2
"""Panels side by side."""

_COLOR: Spec = {
    "field": "role", "type": "nominal", "legend": None,
    "scale": {"domain": ["worse", "other", ""], "range": [WORSE, OTHER, MUTED]},
}  # fmt: skip
_NO_TITLE: Spec = {"title": None}
_LABELS: Mapping[Scale, str] = {
    Scale.SHARE: "format(datum.value, '.3~%')",
    Scale.POINTS: "format(100 * datum.value, '.3~f')",
    Scale.NUMBER: "format(datum.value, '.3~f')",
    Scale.LOG_RATIO: "format(exp(datum.value), '.3~g') + '×'",
    Scale.DEGREES: "format(datum.value * 180 / PI, '.3~g') + '°'",
}
"""Vega expressions of the numbers below the axis."""
_MOST_IN_LINE = 30
_LETTER = 7.8
"""Pixels of a letter of the texts beside marks."""


def draw(record: ChartRecord) -> Chart:
    """Draw a record in its form; of several models each in a panel of its own."""
    rows = [mark.to_json() | {"tip": _tip(mark)} for mark in record.marks]
    layers = _FORMS[record.form](record, rows)
    heights = {Form.DUMBBELL: ROW_HEIGHT, Form.BARS: BAR_HEIGHT}
    height = heights[record.form] * len({row["label"] for row in rows}) + 8
    if len(record.panels) > 1:
        spec = _multiples(layers, height, record.panels)
    else:
        spec = {
            "data": {"name": "rows"}, "layer": layers, "width": "container", "height": height,
            "autosize": {"type": "fit-x", "contains": "padding"},
        }  # fmt: skip
    label = f"{record.title}. {record.note}"
    spec["usermeta"] = {"wide": True, "names": {**record.names, "value": record.title}}
    return Chart(label, spec, rows, None, record.title, record.note, exported=True)


def _multiples(layers: Sequence[Spec], height: float, panels: Sequence[str]) -> Spec:
    """Return the same layers for each model; the page sets the width of the panels."""
    header = {
        "title": None,
        "labelColor": INK,
        "labelFontWeight": "bold",
        "labelFontSize": 12,
        "labelAnchor": "start",
    }
    return {
        "data": {"name": "rows"},
        "facet": {"field": "model", "type": "nominal", "header": header, "sort": [*panels]},
        "columns": COLUMNS,
        "spacing": {"column": 24, "row": 16},
        "spec": {"layer": [*layers], "width": 300, "height": height},
    }


def _dumbbells(record: ChartRecord, rows: list[dict[str, Any]]) -> list[Spec]:
    """Return marks joined by a line, over the bands of their row; values beside the outer marks."""
    _add_spans(rows)
    names = [*dict.fromkeys(mark.name for mark in record.marks)]
    several = len({row["label"] for row in rows}) < len(rows) / max(len(record.panels), 1)
    place = _place(record)
    shape: Spec = {"value": "circle"}
    if several:
        # Marks of the names that the title colours need no key.
        direct = {*names} == {*record.highlighted} and any(row["role"] for row in rows)
        shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
        legend: Spec | None = None
        if not direct:
            legend = {"title": None, "symbolFillColor": MUTED, "symbolStrokeColor": MUTED}
        shape = {"field": "series", "type": "nominal", "legend": legend,
                 "scale": {"domain": names, "range": shapes}}  # fmt: skip
    x = _x(record)
    layers = _bands(rows, place, ROW_HEIGHT - 8)
    if record.zero:
        layers.append(_layer({"type": "rule", "color": SOFT}, {"x": {"datum": 0}}))
    if several:
        line = {"type": "rule", "strokeWidth": 3, "color": CHANCE}
        layers.append(_layer(line, place | _between("span")))
    if _has(rows, "low"):
        interval = {"type": "rule", "strokeWidth": 1.6}
        layers.append(_layer(interval, place | _between("") | {"color": _COLOR}))
    point = {"type": "point", "size": 110, "filled": True, "opacity": 1}
    tip = {"tooltip": {"field": "tip", "type": "nominal"}}
    layers.append(_layer(point, place | {"x": x, "color": _COLOR, "shape": shape} | tip))
    return [*layers, *_texts(rows, place, bold=True)]


def _bars(record: ChartRecord, rows: list[dict[str, Any]]) -> list[Spec]:
    """Return bars from what is expected to the value, over the bands of chance and limit."""
    for row in rows:
        above = not row["value"] < row["expected"]
        ends = [end for end in (row["value"], row["low"], row["high"]) if math.isfinite(end)]
        row |= {"align": "left" if above else "right", "at": max(ends) if above else min(ends)}
    place = _place(record)
    layers = _bands(rows, place, BAR_HEIGHT - 4)
    start = {"x2": {"field": "expected"}}
    tip = {"tooltip": {"field": "tip", "type": "nominal"}}
    x = _x(record)
    bar = {"type": "bar", "height": 12}
    layers.append(_layer(bar, place | {"x": x, "color": _COLOR} | start | tip))
    if _has(rows, "low"):
        interval = {"type": "rule", "strokeWidth": 1.4, "color": INK, "opacity": 0.75}
        layers.append(_layer(interval, place | _between("")))
    tick = {"type": "tick", "color": SOFT, "size": BAR_HEIGHT, "thickness": 1.4}
    layers.append(_layer(tick, place | {"x": {"field": "expected", "type": "quantitative"}}))
    return [*layers, *_texts(rows, place, bold=False)]


_FORMS = {Form.DUMBBELL: _dumbbells, Form.BARS: _bars}


def _add_spans(rows: Sequence[dict[str, Any]]) -> None:
    """Add the line that joins the marks of a row, and where their values are written."""
    by_row: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_row[row["model"], row["label"]].append(row)
    for same in by_row.values():
        ordered = sorted((row for row in same if row["text"]), key=lambda row: row["value"])
        lowest, highest = ordered[0], ordered[-1]
        for row in same:
            row |= {"span_low": math.nan, "span_high": math.nan, "align": "", "at": row["value"]}
        highest |= {"align": "left", "at": max(_end(row, "high") for row in same)}
        if lowest is not highest:
            lowest |= {"align": "right", "at": min(_end(row, "low") for row in same)}
            lowest |= {"span_low": lowest["value"], "span_high": highest["value"]}
        for row in same[1:]:
            # The band is the row's: drawn once, it stays as light as the legend says.
            row.update(dict.fromkeys(_BANDS, math.nan))


_BANDS = ("chance_low", "chance_high", "limit_low", "limit_high")


def _end(row: Mapping[str, Any], name: str) -> float:
    end = row[name]
    return float(end if math.isfinite(end) else row["value"])


def _bands(rows: Sequence[Mapping[str, Any]], place: Spec, height: float) -> list[Spec]:
    """Return the bands of the limit and of chance, where rows have them."""
    layers = []
    for name, color in (("limit", LIMIT), ("chance", CHANCE)):
        if _has(rows, f"{name}_low"):
            band = {"type": "bar", "height": height, "color": color}
            layers.append(_layer(band, place | _between(name)))
    return layers


def _texts(rows: Sequence[Mapping[str, Any]], place: Spec, *, bold: bool) -> list[Spec]:
    """Return the values, beside the end of their mark that is farther out."""
    layers = []
    aligns = {row["align"] for row in rows}
    for align, distance in (("left", 7), ("right", -7)):
        if align not in aligns:
            continue
        mark: Spec = {"type": "text", "align": align, "dx": distance, "baseline": "middle"}
        if bold:
            mark["fontWeight"] = 600
        text = {"text": {"field": "text", "type": "nominal"}}
        at = {"x": {"field": "at", "type": "quantitative"}}
        layer = _layer(mark, place | at | text | {"color": _COLOR})
        layers.append({**layer, "transform": [{"filter": f"datum.align === '{align}'"}]})
    return layers


def _place(record: ChartRecord) -> Spec:
    axis = {
        "title": None, "ticks": False, "domain": False, "grid": False, "labelColor": INK,
        "labelPadding": 8,
    }  # fmt: skip
    labels = [*dict.fromkeys(mark.label for mark in record.marks)]
    scale = {"domain": labels, "paddingInner": 0.05, "paddingOuter": 0.05}
    return {"y": {"field": "label", "type": "nominal", "sort": None, "axis": axis, "scale": scale}}


def _x(record: ChartRecord) -> Spec:
    room = _LETTER * max(len(str(mark.to_json()["text"])) for mark in record.marks) + 14
    left, right = record.sides
    titles = [text for text in (left, _unit(record), right) if text]
    title = " · ".join(titles)
    axis = {
        # A phone has no room for more letters in a line.
        "title": (title if len(title) <= _MOST_IN_LINE else titles) or None,
        "titleColor": SOFT, "tickCount": 5, "labelExpr": _axis_label(record),
    }  # fmt: skip
    scale = {"zero": False, "nice": False, "padding": room}
    return {"field": "value", "type": "quantitative", "axis": axis, "scale": scale}


def _unit(record: ChartRecord) -> str:
    """Return the unit that the numbers of the axis are without."""
    return "points" if record.scale is Scale.POINTS else ""


def _axis_label(record: ChartRecord) -> str:
    """Return the expression of the axis' numbers: none where no value can be."""
    numbers = [
        number
        for mark in record.marks
        for number in (mark.value, *mark.ends, mark.expected)
        if math.isfinite(number)
    ]
    outside = []
    if min(numbers) >= 0:
        outside.append("datum.value < 0")
        if max(numbers) <= 1:
            outside.append("datum.value > 1")
    if not outside:
        return _LABELS[record.scale]
    return f"{' || '.join(outside)} ? '' : {_LABELS[record.scale]}"


def _between(name: str) -> Spec:
    start = enclose("", name, "_")
    low, high = f"{start}low", f"{start}high"
    return {"x": {"field": low, "type": "quantitative"}, "x2": {"field": high}}


def _layer(mark: Spec, encoding: Spec) -> Spec:
    return {"mark": mark, "encoding": encoding}


def _has(rows: Sequence[Mapping[str, Any]], field: str) -> bool:
    return any(math.isfinite(row[field]) for row in rows)


def _tip(mark: ChartMark) -> str:
    """Return the tooltip of a mark."""
    place = ", ".join(dict.fromkeys(filter(None, (mark.label, mark.name, mark.panel))))
    return f"{place}: {mark.text}" + (f", n = {count(mark.n)}" if mark.n else "")
