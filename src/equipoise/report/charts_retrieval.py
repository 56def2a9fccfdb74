"""Charts of audits of retrieval: every K over the band of chance, and shares by query."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    Spec,
    _chart,
    _model_color,
    _number_axis,
    _spec,
    _tip,
)
from equipoise.report.charts_heat import Scale, heat_map


@cache
def curves(data: str, title: str, models: tuple[str, ...]) -> Spec:
    """A measure at every K: line with its interval, over the band that chance gives."""
    color, _ = _model_color(models)
    x = alt.X("k:Q", axis=_number_axis("K: how many of the best images", tickMinStep=1, format="d"))
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
    scale = Scale("share", (0.0, 1.0), "share of the first K", ".0%")
    return heat_map(data, ("group", groups), ("query", None), scale, 30 * queries + 8)
