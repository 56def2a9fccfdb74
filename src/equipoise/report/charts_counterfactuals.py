"""Charts of audits of counterfactual sets: subjects by model over both bands of chance."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    SOFT,
    Spec,
    _chart,
    _model_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)
from equipoise.report.charts_heat import Scale, heat_map

SUBJECT, MEAN = "subject", "mean"
"""What a row is: the value of one subject, or the mean over them with its chance levels."""


@cache
def subjects(data: str, title: str, models: tuple[str, ...]) -> Spec:
    """One mark a subject by model, and the mean over the bands that both nulls give it."""
    color, shape = _model_color(models)
    color["legend"] = shape["legend"] = None
    y = alt.Y("model:N", sort=list(models), axis=_row_axis())

    def of(kind: str) -> alt.Chart:
        same = alt.FieldEqualPredicate(field="kind", equal=kind)
        return _chart(data).transform_filter(same).encode(y=y)

    x = alt.X("value:Q", axis=_number_axis(title), scale=alt.Scale(zero=False))
    means = of(MEAN)
    return _spec(
        alt.layer(
            means.mark_bar(height=40, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q"),
            means.mark_bar(
                height=40, fillOpacity=0, stroke=SOFT, strokeDash=[3, 3], strokeWidth=1.2
            ).encode(x="pool_low:Q", x2="pool_high:Q"),
            of(SUBJECT)
            .mark_tick(size=20, thickness=2, opacity=0.6)
            .encode(x=x, color=color, tooltip=_tip()),
            means.mark_rule(strokeWidth=3).encode(x="low:Q", x2="high:Q", color=color),
            means.mark_point(size=120, opacity=1).encode(
                x=x, color=color, shape=shape, tooltip=_tip()
            ),
        ),
        52 * len(models) + 8,
    )


@cache
def proportions(data: str, groups: tuple[str, ...], subjects: int) -> Spec:
    """Share of each group among the first K of each subject, as a heat map with its numbers."""
    scale = Scale("share", (0.0, 1.0), "share of the first K", ".0%")
    return heat_map(data, ("group", groups), ("subject", None), scale, 28 * subjects + 8)
