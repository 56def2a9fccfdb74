"""Charts of recipes: what was lowered over what it cost, subjects before and after."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    SOFT,
    Spec,
    _chart,
    _model_color,
    _number_axis,
    _spec,
    _tip,
)

HALFWAY, MARGIN = 0.5, -2.0


@cache
def price(data: str, recipes: tuple[str, ...]) -> Spec:
    """Share of the way that a disparity was lowered, over the change in accuracy."""
    color, shape = _model_color(recipes)
    # Where accuracy stays as it was, 0 would be the end of the axis and marks lie on the frame.
    room = alt.Scale(padding=14)
    x = alt.X("lowered:Q", axis=_number_axis("share of the way to the floor"), scale=room)
    y = alt.Y("points:Q", axis=_number_axis("change in accuracy (points)"), scale=room)
    base = _chart(data)
    return _spec(
        alt.layer(
            base.mark_rule(color=SOFT, strokeDash=[4, 4]).encode(x=alt.datum(HALFWAY)),
            base.mark_rule(color=SOFT, strokeDash=[4, 4]).encode(y=alt.datum(MARGIN)),
            base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", y=y, color=color),
            base.mark_rule(strokeWidth=2).encode(
                y="points_low:Q", y2="points_high:Q", x=x, color=color
            ),
            base.mark_point(size=80, opacity=1).encode(
                x=x, y=y, color=color, shape=shape, tooltip=_tip()
            ),
        ),
        260,
    )


@cache
def subjects(data: str, recipes: tuple[str, ...], reach: float) -> Spec:
    """After over before, one mark a subject and recipe; on the line nothing changed."""
    color, shape = _model_color(recipes)
    scale = alt.Scale(domain=[0.0, 1.05 * reach])
    x = alt.X("before:Q", axis=_number_axis("before"), scale=scale)
    y = alt.Y("after:Q", axis=_number_axis("after"), scale=scale)
    base = _chart(data)
    line = base.mark_rule(color=SOFT, strokeDash=[2, 4]).encode(
        x=alt.datum(0.0), x2=alt.datum(reach), y=alt.datum(0.0), y2=alt.datum(reach)
    )
    marks = base.mark_point(size=50, opacity=0.8).encode(
        x=x, y=y, color=color, shape=shape, tooltip=_tip()
    )
    return _spec(alt.layer(line, marks), 260)
