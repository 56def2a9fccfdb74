"""Charts of audits of generation: what each stage leaves, and whose images it rejects."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    MODEL_COLORS,
    SOFT,
    Spec,
    _chart,
    _group_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)


@cache
def funnel(data: str, stages: int) -> Spec:
    """Sets that are left after each stage, as shares of those asked for; one row a stage."""
    rows = _chart(data).encode(y=alt.Y("stage:N", sort=None, axis=_row_axis()), tooltip=_tip())
    x = alt.X(
        "left:Q",
        axis=_number_axis("share of the sets asked for", format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    bar = rows.mark_bar(height=16, color=MODEL_COLORS[0]).encode(x=x)
    lost = rows.mark_bar(height=16, color=CHANCE).encode(x="left:Q", x2="before:Q")
    return _spec(alt.layer(lost, bar), 30 * stages + 8)


@cache
def rejections(data: str, title: str, groups: tuple[str, ...], checks: int) -> Spec:
    """Share of every group's images that a check rejects, over the band of chance."""
    color, shape = _group_color(groups)
    each = max(13 * len(groups), 24)
    rows = _chart(data).encode(y=alt.Y("check:N", sort=None, axis=_row_axis()))
    base = rows.encode(yOffset=alt.YOffset("group:N", sort=[*groups]))
    x = alt.X("share:Q", axis=_number_axis(title, format="%"))
    return _spec(
        alt.layer(
            base.mark_bar(height=13, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q"),
            base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=color),
            base.mark_point(size=60, opacity=1).encode(
                x=x, color=color, shape=shape, tooltip=_tip()
            ),
        ),
        each * checks + 8,
    )


@cache
def agreement(data: str, attributes: tuple[str, ...]) -> Spec:
    """Agreement with labels over the threshold; the chosen one is marked."""
    legend = alt.Legend(title=None) if len(attributes) > 1 else None
    colors = [MODEL_COLORS[place % len(MODEL_COLORS)] for place in range(len(attributes))]
    color = alt.Color(
        "attribute:N", scale=alt.Scale(domain=[*attributes], range=colors), legend=legend
    )
    x = alt.X("threshold:Q", axis=_number_axis("images of a set that must show it"))
    y = alt.Y(
        "agreement:Q",
        axis=_number_axis("agrees with labels", format="%"),
        scale=alt.Scale(domain=[0, 1]),
    )
    base = _chart(data).encode(x=x, y=y, color=color)
    chosen = base.transform_filter("datum.chosen").mark_point(size=90, opacity=1)
    half = _chart(data).mark_rule(color=SOFT, strokeDash=[2, 4]).encode(y=alt.datum(0.5))
    return _spec(alt.layer(half, base.mark_line(), chosen.encode(tooltip=_tip())), 220)
