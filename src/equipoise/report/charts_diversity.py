"""Charts of audits of diversity: distances within and between sets."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import INK, STEPS, Spec, _chart, _row_axis, _spec, _tip

PAPER = "var(--paper)"


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
    order = [*names]
    axis = alt.Axis(
        title=None, ticks=False, domain=False, grid=False, labelColor=INK, orient="top",
        labelAngle=-35, labelLimit=150, labelOverlap=False,
    )  # fmt: skip
    base = _chart(data).encode(
        x=alt.X("set_b:N", sort=order, axis=axis), y=alt.Y("set_a:N", sort=order, axis=_row_axis())
    )
    fill = alt.Color(
        "distance:Q",
        scale=alt.Scale(type="quantize", domain=[low, high], range=STEPS),
        legend=alt.Legend(title="mean distance (1 − cosine)", format=".2f", gradientLength=180),
    )
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(color=fill, tooltip=_tip())
    ink = alt.Color(
        "tone:N",
        legend=None,
        scale=alt.Scale(domain=["low", "middle", "high"], range=[INK, "#0b1116", PAPER]),
    )
    numbers = base.mark_text(fontSize=12).encode(text="shown:N", color=ink)
    layers = alt.layer(cells, numbers).resolve_scale(color="independent")
    return _spec(layers, 44 * len(order))


def tone(distance: float, low: float, high: float) -> str:
    """Return which ink is legible on a distance's step of colour, in light and in dark."""
    step = int(5 * (distance - low) / (high - low)) if high > low else 0
    return ("low", "low", "middle", "high", "high")[min(max(step, 0), 4)]


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
