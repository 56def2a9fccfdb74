"""Charts of audits of similarity: groups by concept over the band of chance, maps, hypotheses."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    SOFT,
    Spec,
    _chart,
    _group_color,
    _model_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)
from equipoise.report.charts_heat import Scale, heat_map


@cache
def effects(data: str, title: str, groups: tuple[str, ...], concepts: int) -> Spec:
    """Effect of every group by concept with its interval, over the widest band of chance."""
    color, shape = _group_color(groups)
    each = max(13 * len(groups), 24)
    rows = _chart(data).encode(y=alt.Y("concept:N", sort=None, axis=_row_axis()))
    base = rows.encode(yOffset=alt.YOffset("group:N", sort=[*groups]))
    x = alt.X("effect:Q", axis=_number_axis(title))
    zero = _chart(data).mark_rule(color=SOFT, strokeDash=[2, 4]).encode(x=alt.datum(0))
    return _spec(
        alt.layer(
            base.mark_bar(height=13, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q"),
            zero,
            base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q", color=color),
            base.mark_point(size=60, opacity=1).encode(
                x=x, color=color, shape=shape, tooltip=_tip()
            ),
        ),
        each * concepts + 8,
    )


@cache
def effect_map(data: str, title: str, groups: tuple[str, ...], concepts: int, reach: float) -> Spec:
    """Effect of every group by concept as a heat map; the middle step is no effect."""
    scale = Scale("effect", (-reach, reach), title, ".2f")
    return heat_map(data, ("group", groups), ("concept", None), scale, 28 * concepts + 8)


@cache
def declared_numbers(data: str, x: str, y: str, models: tuple[str, ...]) -> Spec:
    """Preference over the number that was declared, one mark a concept."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        x=alt.X("declared:Q", axis=_number_axis(x), scale=alt.Scale(zero=False)),
        y=alt.Y("preference:Q", axis=_number_axis(y)),
    )
    zero = _chart(data).mark_rule(color=SOFT, strokeDash=[2, 4]).encode(y=alt.datum(0))
    marks = base.mark_point(size=60, opacity=1).encode(color=color, shape=shape, tooltip=_tip())
    return _spec(alt.layer(zero, marks), 240)


@cache
def declared_groups(data: str, title: str, models: tuple[str, ...], rows: int) -> Spec:
    """Preference for the group that was declared, by concept; models share a row, side by side."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        y=alt.Y("concept:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("model:N", sort=[*models]),
    )
    zero = _chart(data).mark_rule(color=SOFT, strokeDash=[2, 4]).encode(x=alt.datum(0))
    marks = base.mark_point(size=70, opacity=1).encode(
        x=alt.X("preference:Q", axis=_number_axis(title)), color=color, shape=shape, tooltip=_tip()
    )
    return _spec(alt.layer(zero, marks), max(14 * len(models), 24) * rows + 8)
