"""Charts of audits of retrieval: every K over the band of chance, and shares by query."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    INK,
    STEPS,
    Spec,
    _chart,
    _model_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)

PAPER = "var(--paper)"
TONES = ("low", "middle", "high")
TONE_COLORS = [INK, "#0b1116", PAPER]


@cache
def curves(data: str, title: str, models: tuple[str, ...]) -> Spec:
    """A measure at every K: line with its interval, over the band that chance gives."""
    color, _ = _model_color(models)
    x = alt.X("k:Q", axis=_number_axis("K: how many of the best images"))
    base = _chart(data).encode(x=x)
    y = alt.Y("value:Q", axis=_number_axis(title), scale=alt.Scale(zero=False))
    return _spec(
        alt.layer(
            base.mark_area(color=CHANCE, opacity=0.75).encode(
                y=alt.Y("chance_low:Q"), y2="chance_high:Q", detail="model:N"
            ),
            base.mark_area(opacity=0.22).encode(y="low:Q", y2="high:Q", color=color),
            base.mark_line(strokeWidth=2.2).encode(y=y, color=color),
            base.mark_point(size=26, opacity=0).encode(y=y, tooltip=_tip()),
        ),
        240,
    )


@cache
def shares(data: str, groups: tuple[str, ...], queries: int) -> Spec:
    """Share of each group among the first K of each query, as a heat map with its numbers."""
    axis = alt.Axis(
        title=None, ticks=False, domain=False, grid=False, labelColor=INK, orient="top",
        labelAngle=-35, labelLimit=150, labelOverlap=False,
    )  # fmt: skip
    base = _chart(data).encode(
        x=alt.X("group:N", sort=[*groups], axis=axis),
        y=alt.Y("query:N", sort=None, axis=_row_axis()),
    )
    fill = alt.Color(
        "share:Q",
        scale=alt.Scale(type="quantize", domain=[0, 1], range=STEPS),
        legend=alt.Legend(title="share of the first K", format=".0%", gradientLength=180),
    )
    ink = alt.Color("tone:N", legend=None, scale=alt.Scale(domain=[*TONES], range=TONE_COLORS))
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(color=fill, tooltip=_tip())
    numbers = base.mark_text(fontSize=12).encode(text="shown:N", color=ink)
    layers = alt.layer(cells, numbers).resolve_scale(color="independent")
    return _spec(layers, 30 * queries + 8)
