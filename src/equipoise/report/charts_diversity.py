"""Charts of audits of diversity: distances within and between sets."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import Spec, _chart, _row_axis, _spec, _tip
from equipoise.report.charts_heat import Scale, heat_map


@cache
def distances(data: str, names: tuple[str, ...], low: float, high: float) -> Spec:
    """Mean distances of sets by sets as a heat map, with the numbers in its cells.

    Parameters
    ----------
    data : str
    names : tuple of str
        Sets in the order of rows and columns.
    low, high : float
        The smallest and the largest distance, ends of the five steps of colour.
    """
    scale = Scale("distance", (low, high), "mean distance (1 − cosine)", ".2f")
    return heat_map(data, ("set_b", names), ("set_a", names), scale, 44 * len(names))


@cache
def diversities(data: str, rows: int) -> Spec:
    """ISS intra of every set with its interval; reference data sets as squares."""
    domain = ["set", "reference"]
    color = alt.Color(
        "role:N", legend=None, scale=alt.Scale(domain=domain, range=["var(--m1)", "var(--m6)"])
    )
    shape = alt.Shape(
        "role:N", legend=None, scale=alt.Scale(domain=domain, range=["circle", "square"])
    )
    base = _chart(data).encode(y=alt.Y("set:N", sort=None, axis=_row_axis()))
    axis = alt.Axis(title="ISS intra", tickCount=5)
    scale = alt.Scale(zero=False)
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=color),
            base.mark_point(size=80, opacity=1).encode(
                x=alt.X("value:Q", axis=axis, scale=scale), color=color, shape=shape, tooltip=_tip()
            ),
        ),
        28 * rows + 8,
    )
