"""Heat maps with their numbers in the cells, legible on every step of colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt

from equipoise.report.charts import INK, STEPS, Spec, _chart, _row_axis, _spec, _tip

PAPER = "var(--paper)"

WIDE = 8
"""Columns from which on a map takes the width of the page."""

LEGIBLE = 42
"""Pixels of a cell below which its number would run into the next one."""
# The middle step of colour bears the same ink in light and in dark.
_TONES = {"low": INK, "middle": "#0b1116", "high": PAPER}


@dataclass(frozen=True)
class Scale:
    """What the colour says: a field, its ends, and how its legend reads."""

    field: str
    ends: tuple[float, float]
    title: str
    format: str


def heat_map(
    data: str,
    columns: tuple[str, Sequence[str]],
    rows: tuple[str, Sequence[str] | None],
    scale: Scale,
    height: int,
) -> Spec:
    """Cells coloured in five steps, each with its number where there is room for it.

    From `WIDE` columns on the specification asks for the width of the page and its column labels
    stand steeper, so that none lies on another. Numbers without room are in tooltips and tables.

    Parameters
    ----------
    data : str
        Its rows have the fields named here, `shown` (the number as text), `tone` and `tip`.
    columns, rows : tuple of field and order
        An order of None is that of the data.
    scale : Scale
    height : int
    """
    wide = len(columns[1] or ()) >= WIDE
    axis = alt.Axis(
        title=None, ticks=False, domain=False, grid=False, labelColor=INK, orient="top",
        labelAngle=-60 if wide else -35, labelLimit=150, labelOverlap=False,
    )  # fmt: skip
    across, down = (None if order is None else [*order] for _, order in (columns, rows))
    base = _chart(data).encode(
        x=alt.X(f"{columns[0]}:N", sort=across, axis=axis),
        y=alt.Y(f"{rows[0]}:N", sort=down, axis=_row_axis()),
    )
    fill = alt.Color(
        f"{scale.field}:Q",
        scale=alt.Scale(type="quantize", domain=[*scale.ends], range=STEPS),
        legend=alt.Legend(title=scale.title, format=scale.format, gradientLength=180),
    )
    tones = alt.Scale(domain=[*_TONES], range=[*_TONES.values()])
    cells = base.mark_rect(stroke=PAPER, strokeWidth=2).encode(color=fill, tooltip=_tip())
    numbers = base.mark_text(fontSize=12).encode(
        text=alt.when(f"bandwidth('x') >= {LEGIBLE}").then("shown:N").otherwise(alt.value("")),
        color=alt.Color("tone:N", legend=None, scale=tones),
    )
    spec = _spec(alt.layer(cells, numbers).resolve_scale(color="independent"), height)
    # The last column's label leans out farther once cells have shrunk to make room for it.
    spec["padding"] = {"left": 5, "top": 5, "bottom": 5, "right": 14}
    return spec | {"usermeta": {"wide": True}} if wide else spec


def tone(value: float, low: float, high: float) -> str:
    """Return which ink is legible on a value's step of colour, in light and in dark."""
    step = int(5 * (value - low) / (high - low)) if high > low else 0
    return ("low", "low", "middle", "high", "high")[min(max(step, 0), 4)]
