"""Charts of audits of text-to-image models: the plane, shares beside outside shares, the curve."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    INK,
    MODEL_COLORS,
    SOFT,
    Spec,
    _chart,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)
from equipoise.report.charts_associations import _series
from equipoise.report.charts_names import names

MOST_SERIES = len(MODEL_COLORS)
PLANE_HEIGHT = 320


@cache
def plane(
    data: str,
    sides: tuple[str, str],
    group: str,
    series: tuple[str, ...],
    neutral: float,
    *,
    near: bool,
) -> Spec:
    """MCAS against similarity to a further group, a point a target.

    The neutral point is drawn where it is near the marks; else the axis of similarity has the
    marks alone, and its title says where that point lies.
    """
    color, shape = _series(series)
    x = alt.X("x:Q", axis=_number_axis(f"← {sides[0]} · MCAS · {sides[1]} →"))
    beyond = [] if near else [f"(neutral: {neutral:.3g}, beyond the axis)"]
    title = [f"similarity to {group}", *beyond]
    y = alt.Y("y:Q", axis=_number_axis(title), scale=alt.Scale(zero=False, padding=18))
    base = _chart(data)
    at = alt.Chart(alt.InlineData(values=[{"x": 0.0, "y": neutral}]))
    layers = [
        at.mark_rule(color=SOFT, strokeDash=[3, 3]).encode(x="x:Q"),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(
            x="x_low:Q", x2="x_high:Q", y="y:Q", color=color
        ),
        base.mark_rule(strokeWidth=1.2, opacity=0.6).encode(
            y="y_low:Q", y2="y_high:Q", x="x:Q", color=color
        ),
        base.mark_point(size=62, opacity=1).encode(
            x=x, y=y, color=color, shape=shape, tooltip=_tip()
        ),
        *names(base, x=x, y=y),
    ]
    if near:
        cross = at.mark_point(shape="cross", size=110, color=INK, filled=True, opacity=1)
        layers += [
            at.mark_rule(color=SOFT, strokeDash=[3, 3]).encode(y="y:Q"),
            cross.encode(x=x, y=y),
        ]
    return _spec(alt.layer(*layers), PLANE_HEIGHT)


@cache
def shares(data: str, title: str, kinds: tuple[str, ...], rows: int) -> Spec:
    """Share of a class by target: corrected and as said with intervals, and from outside."""
    colors = [MODEL_COLORS[0], SOFT, MODEL_COLORS[1]]
    shapes = ["circle", "triangle-up", "diamond"]
    legend = alt.Legend(title=None)
    domain = [*kinds]
    color = alt.Color("kind:N", scale=alt.Scale(domain=domain, range=colors), legend=legend)
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=domain, range=shapes), legend=legend)
    base = _chart(data).encode(
        y=alt.Y("target:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("kind:N", sort=domain),
    )
    x = alt.X("value:Q", axis=_number_axis(title, format="%"), scale=alt.Scale(domain=[0, 1]))
    layers = [
        base.mark_rule(strokeWidth=2.2).encode(x="low:Q", x2="high:Q", color=color),
        base.mark_point(size=62, opacity=1).encode(x=x, color=color, shape=shape, tooltip=_tip()),
    ]
    return _spec(alt.layer(*layers), max(13 * len(kinds), 26) * rows + 8)


@cache
def curve(data: str, title: str, series: tuple[str, ...], *, share: bool) -> Spec:
    """A number at each strength of guidance with its interval, a line a subject."""
    color, shape = _series(series)
    options = {"format": "%"} if share else {}
    x = alt.X("guidance:Q", axis=_number_axis("guidance"), scale=alt.Scale(zero=False, padding=12))
    y = alt.Y("value:Q", axis=_number_axis(title, **options))
    base = _chart(data).encode(x=x)
    zero = _chart(data).mark_rule(color=SOFT, strokeDash=[3, 3]).encode(y=alt.datum(0))
    layers = [
        zero,
        base.mark_rule(strokeWidth=1.2, opacity=0.5).encode(y="low:Q", y2="high:Q", color=color),
        base.mark_line(strokeWidth=2).encode(y=y, color=color),
        base.mark_point(size=55, opacity=1).encode(y=y, color=color, shape=shape, tooltip=_tip()),
    ]
    return _spec(alt.layer(*layers), 250)
