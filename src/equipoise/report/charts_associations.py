"""Charts of associations of targets: values with intervals over chance bands."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    CHANCE,
    MODEL_COLORS,
    MODEL_SHAPES,
    SOFT,
    Spec,
    _chart,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)


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
