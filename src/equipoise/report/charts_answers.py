"""Charts of audits of answers: shares by answer and group, rows without one, outside figures."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    LINE,
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
def shares(data: str, groups: tuple[str, ...], rows: int) -> Spec:
    """Share of each group's answers by answer, a mark a group, joined by a line."""
    color, shape = _group_color(groups, columns=2)
    base = _chart(data).encode(y=alt.Y("answer:N", sort=None, axis=_row_axis()))
    axis = _number_axis("share of the group's answers", format="%")
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=3, color=LINE).encode(x="lowest:Q", x2="highest:Q"),
            base.mark_point(size=75, opacity=1).encode(
                x=alt.X("share:Q", axis=axis, scale=alt.Scale(zero=True)),
                color=color,
                shape=shape,
                tooltip=_tip(),
            ),
        ),
        26 * rows + 8,
    )


@cache
def unanswered(data: str, states: tuple[str, ...], rows: int) -> Spec:
    """Share of each group's rows without an answer, stacked by what was said in its place."""
    colors = {"do not know": "var(--s2)", "refused": "var(--s4)", "empty": "var(--soft)"}
    color = alt.Color(
        "state:N",
        legend=alt.Legend(title=None),
        scale=alt.Scale(domain=[*states], range=[colors[state] for state in states]),
    )
    chart = (
        _chart(data)
        .mark_bar(height=16, stroke="var(--paper)")
        .encode(
            y=alt.Y("group:N", sort=None, axis=_row_axis()),
            x=alt.X("start:Q", axis=_number_axis("share without an answer", format="%")),
            x2="end:Q",
            color=color,
            tooltip=_tip(),
        )
    )
    return _spec(chart, 28 * rows + 8)


@cache
def leans(data: str, figure: str, first: str) -> Spec:
    """A point an answer: its figure from outside, and how far it leans to the first group."""
    middle = _chart(data).mark_rule(color=SOFT, strokeDash=[3, 3]).encode(y=alt.datum(0.5))
    points = (
        _chart(data)
        .mark_point(size=65, opacity=1, color=MODEL_COLORS[0])
        .encode(
            x=alt.X("outside:Q", axis=_number_axis(figure), scale=alt.Scale(zero=False)),
            y=alt.Y(
                "lean:Q", axis=_number_axis(f"lean to {first}"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            tooltip=_tip(),
        )
    )  # fmt: skip
    return _spec(alt.layer(middle, points), 300)
