"""Charts of concepts: what design choices do to differences, and values beside prevalence."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    INK,
    LINE,
    MODEL_COLORS,
    MODEL_SHAPES,
    SOFT,
    Spec,
    _chart,
    _group_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)

EFFECTS = ("surfaces", "explains", "switches", "magnifies", "shrinks", "lost power", "stays",
           "absent", "not estimable")  # fmt: skip
SYMBOLS = dict(zip(EFFECTS, "+×⇄↑↓?●·–", strict=True))
_COLORS = ["var(--disparity)", "var(--m1)", "var(--m4)", "var(--m8)", "var(--m3)",
           "var(--inconclusive)", INK, SOFT, SOFT]  # fmt: skip
_SHAPES = ["triangle-up", "cross", "diamond", "triangle-right", "triangle-left", "square",
           "circle", "circle", "circle"]  # fmt: skip


def _color() -> alt.Color:
    scale = alt.Scale(domain=[*EFFECTS], range=_COLORS)
    return alt.Color("effect:N", scale=scale, legend=None)


@cache
def matrix(data: str, versions: tuple[str, ...], rows: int) -> Spec:
    """What each version does to each concept: a symbol in its colour."""
    axis = alt.Axis(
        title=None, orient="top", labelAngle=-50, labelLimit=150, labelOverlap=False, ticks=False,
        domain=False, labelColor=INK, grid=False,
    )  # fmt: skip
    base = _chart(data).encode(
        x=alt.X("version:N", sort=[*versions], axis=axis),
        y=alt.Y("concept:N", sort=None, axis=_row_axis()),
        tooltip=_tip(),
    )
    return _spec(
        alt.layer(
            base.mark_rect(fill="var(--chance)", fillOpacity=0.25, stroke=LINE),
            base.mark_text(fontSize=17, fontWeight="bold").encode(text="symbol:N", color=_color()),
        ),
        30 * rows + 8,
    )


@cache
def differences(data: str, sides: tuple[str, str], reach: float, rows: int) -> Spec:
    """One concept's difference with its interval in every version, coloured by effect."""
    shape = alt.Shape("effect:N", scale=alt.Scale(domain=[*EFFECTS], range=_SHAPES), legend=None)
    axis = _number_axis([*sides], labelExpr="format(abs(datum.value), '.3~f')")
    scale = alt.Scale(domain=[-reach, reach])
    base = _chart(data).encode(y=alt.Y("label:N", sort=None, axis=_row_axis()))
    return _spec(
        alt.layer(
            _chart(data).mark_rule(color=SOFT, strokeDash=[3, 3]).encode(x=alt.datum(0)),
            base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=_color()),
            base.mark_point(size=85, opacity=1).encode(
                x=alt.X("value:Q", axis=axis, scale=scale), color=_color(), shape=shape,
                tooltip=_tip(),
            ),
        ),
        26 * rows + 8,
    )  # fmt: skip


@cache
def by_group(data: str, title: str, groups: tuple[str, ...], rows: int, *, share: bool) -> Spec:
    """A number per concept and group, joined by a line: how far the groups are apart."""
    color, shape = _group_color(groups)
    axis = _number_axis(title, format="%") if share else _number_axis(title)
    base = _chart(data).encode(y=alt.Y("concept:N", sort=None, axis=_row_axis()))
    scale = alt.Scale(zero=share, nice=True)
    return _spec(
        alt.layer(
            base.mark_line(color=SOFT, strokeWidth=2).encode(
                x=alt.X("value:Q", axis=axis, scale=scale), detail="concept:N"
            ),
            base.mark_point(size=75, opacity=1).encode(
                x="value:Q",
                color=color,
                shape=shape,
                tooltip=_tip(),
            ),
        ),
        26 * rows + 8,
    )


@cache
def order(data: str, models: tuple[str, str], reach: float, rows: int) -> Spec:
    """By version, how much larger one model's disparity is than the other's."""
    domain = [*models, ""]
    color = alt.Color(
        "larger:N", legend=None, scale=alt.Scale(domain=domain, range=[*MODEL_COLORS[:2], SOFT])
    )
    shape = alt.Shape(
        "larger:N", legend=None, scale=alt.Scale(domain=domain, range=[*MODEL_SHAPES[:2], "circle"])
    )
    sides = [f"← left: larger for {_short(models[1])}", f"right: larger for {_short(models[0])} →"]
    axis = _number_axis(sides, labelExpr="format(abs(datum.value), '.3~f')")
    base = _chart(data).encode(y=alt.Y("version:N", sort=None, axis=_row_axis()))
    return _spec(
        alt.layer(
            _chart(data).mark_rule(color=SOFT, strokeDash=[3, 3]).encode(x=alt.datum(0)),
            base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=color),
            base.mark_point(size=85, opacity=1).encode(
                x=alt.X("difference:Q", axis=axis, scale=alt.Scale(domain=[-reach, reach])),
                color=color, shape=shape, tooltip=_tip(),
            ),
        ),
        26 * rows + 8,
    )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= 20 else f"{name[:19]}…"
