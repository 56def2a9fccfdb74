"""Charts of audits of activations: shares by group over the band of chance, with the area."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import CHANCE, SOFT, Spec, _chart, _number_axis, _row_axis, _spec, _tip


@cache
def shares(data: str, rows: int) -> Spec:
    """Share of maps inside a region by group, with interval; a tick where the area is."""
    base = _chart(data).encode(y=alt.Y("group:N", sort=None, axis=_row_axis()))
    x = alt.X("share:Q", axis=_number_axis("share of the map"), scale=alt.Scale(domainMin=0))
    return _spec(
        alt.layer(
            base.mark_bar(height=14, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q"),
            base.mark_tick(thickness=2, size=18, color=SOFT).encode(x="area:Q"),
            base.mark_rule(strokeWidth=2.5, color="var(--m1)").encode(x="low:Q", x2="high:Q"),
            base.mark_point(size=70, opacity=1, filled=True, color="var(--m1)").encode(
                x=x, tooltip=_tip()
            ),
        ),
        30 * rows + 8,
    )
