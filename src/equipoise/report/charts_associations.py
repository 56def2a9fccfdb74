"""Charts of audits of associations: forests, stacked parts, scatters and heat maps."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    INK,
    MODEL_COLORS,
    MODEL_SHAPES,
    SOFT,
    STEPS,
    Spec,
    _chart,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)
from equipoise.report.charts_names import PAPER, names

SCATTER_HEIGHT = 280


def _series(names: tuple[str, ...], *, shown: bool = True) -> tuple[alt.Color, alt.Shape]:
    legend = alt.Legend(title=None) if shown and len(names) > 1 else None
    colors = [MODEL_COLORS[i % 8] for i in range(len(names))]
    shapes = [MODEL_SHAPES[i % 8] for i in range(len(names))]
    return (
        alt.Color("series:N", scale=alt.Scale(domain=[*names], range=colors), legend=legend),
        alt.Shape("series:N", scale=alt.Scale(domain=[*names], range=shapes), legend=legend),
    )


def _zero(data: str) -> alt.Chart:
    rule: alt.Chart = _chart(data).mark_rule(color=SOFT, strokeDash=[3, 3])
    return rule.encode(x=alt.datum(0))


@cache
def forest(data: str, series: tuple[str, ...], rows: int, sides: tuple[str, str] | None) -> Spec:
    """Values with intervals over their chance bands, a row a target, a series a modality.

    `sides` are what lies to the left and to the right of 0.
    """
    color, shape = _series(series)
    base = _chart(data).encode(
        y=alt.Y("label:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("series:N", sort=[*series]),
    )
    title = "" if sides is None else f"← closer to {sides[0]} · closer to {sides[1]} →"
    x = alt.X("value:Q", axis=_number_axis(title))
    high = max(8, 18 - 2 * len(series))
    layers = [
        _zero(data),
        base.mark_bar(height=high, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q"),
        base.mark_rule(strokeWidth=2.2).encode(x="low:Q", x2="high:Q", color=color),
        base.mark_point(size=62, opacity=1).encode(x=x, color=color, shape=shape, tooltip=_tip()),
    ]
    return _spec(alt.layer(*layers), max(15 * len(series), 26) * rows + 8)


@cache
def parts(data: str, names: tuple[str, ...], rows: int, sides: tuple[str, str]) -> Spec:
    """What adds up to a score, stacked to both sides of 0, with the sum as a point."""
    color, _ = _series(names)
    y = alt.Y("label:N", sort=None, axis=_row_axis())
    title = f"← closer to {sides[0]} · closer to {sides[1]} →"
    bars = (
        _chart(data)
        .mark_bar(height=16, stroke=PAPER, strokeWidth=1)
        .encode(
            y=y,
            x=alt.X("value:Q", stack="zero", axis=_number_axis(title)),
            color=color,
            order=alt.Order("place:Q"),
            tooltip=_tip(),
        )
    )
    point = (
        _chart(data)
        .mark_point(size=80, shape="diamond", filled=True, color=INK, stroke=PAPER, opacity=1)
        .encode(y=y, x=alt.X("total:Q"))
    )
    return _spec(alt.layer(bars, _zero(data), point), 26 * rows + 8)


@cache
def scatter(data: str, axes: tuple[str, str], series: tuple[str, ...], *, smooth: bool) -> Spec:
    """One number against another, a point a subject with its name, and the local regression."""
    color, shape = _series(series)
    x = alt.X("x:Q", axis=_number_axis(axes[0]), scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", axis=_number_axis(axes[1]), scale=alt.Scale(zero=False))
    base = _chart(data).encode(x=x)
    layers = [
        base.mark_rule(strokeWidth=1.4, opacity=0.6).encode(y="low:Q", y2="high:Q", color=color)
    ]
    if smooth:
        line = base.mark_line(strokeWidth=2, strokeDash=[5, 3]).encode(
            y="fitted:Q", color=color, detail="series:N"
        )
        layers.append(line.transform_filter("isValid(datum.fitted)"))
    layers += [
        base.mark_point(size=62, opacity=1).encode(y=y, color=color, shape=shape, tooltip=_tip()),
        *names(base, y=y),
    ]
    return _spec(alt.layer(*layers), SCATTER_HEIGHT)


@cache
def heat(data: str, words: tuple[str, ...], rows: int, ends: tuple[float, float]) -> Spec:
    """Mean similarity of each region's images to each word, in five steps."""
    axis = alt.Axis(
        title=None, ticks=False, domain=False, grid=False, labelColor=INK, orient="top",
        labelAngle=-45, labelLimit=120, labelOverlap=False,
    )  # fmt: skip
    fill = alt.Color(
        "similarity:Q",
        scale=alt.Scale(type="quantize", domain=[*ends], range=STEPS),
        legend=alt.Legend(
            title="mean similarity", format=".2f", gradientLength=180, orient="bottom"
        ),
    )
    chart = (
        _chart(data)
        .mark_rect(stroke=PAPER, strokeWidth=2)
        .encode(
            x=alt.X("word:N", sort=[*words], axis=axis),
            y=alt.Y("region:N", sort=None, axis=_row_axis()),
            color=fill,
            tooltip=_tip(),
        )
    )
    return _spec(chart, 28 * rows + 8)


@cache
def bars(data: str, series: tuple[str, ...], rows: int) -> Spec:
    """Shares by label, a bar a group."""
    color, _ = _series(series)
    chart = (
        _chart(data)
        .mark_bar()
        .encode(
            y=alt.Y("label:N", sort=None, axis=_row_axis()),
            yOffset=alt.YOffset("series:N", sort=[*series]),
            x=alt.X("share:Q", axis=_number_axis("share of the group's images", format="%")),
            color=color,
            tooltip=_tip(),
        )
    )
    return _spec(chart, max(13 * len(series), 22) * rows + 8)
