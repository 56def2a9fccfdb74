"""The charts of the page, as Vega-Lite specifications made with Altair.

Every chart draws on a named data set that the page holds once, so Altair's limit of 5,000 rows,
which guards against copies of the data in each chart, does not apply. Colours are custom
properties of the page's style sheet: they follow the reader's colour scheme, in print too.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import altair as alt

from equipoise.core import Verdict
from equipoise.report.names import DIFFERENCE

Spec = dict[str, Any]

INK, SOFT, LINE, CHANCE = "var(--ink)", "var(--soft)", "var(--line)", "var(--chance)"
MODEL_COLORS = [f"var(--m{i})" for i in range(1, 9)]
MODEL_SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down",
                "triangle-right", "triangle-left"]  # fmt: skip
MOST_GROUPS = len(MODEL_COLORS)
"""Groups that colours and shapes can tell apart."""
STEPS = [f"var(--s{i})" for i in range(1, 6)]
VERDICTS = [verdict.value for verdict in Verdict]
VERDICT_COLORS = [f"var(--{value.replace(' ', '-')})" for value in VERDICTS]
VERDICT_SHAPES = ["triangle-up", "triangle-down", "diamond", "circle", "square"]
BANDS = ["negligible", "small", "medium", "large"]

CONFIG: Spec = {
    "background": None,
    "font": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif",
    "view": {"stroke": None},
    "aria": False,
    "axis": {
        "labelColor": SOFT, "titleColor": SOFT, "domainColor": LINE, "tickColor": LINE,
        "gridColor": LINE, "gridOpacity": 0.6, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 170, "titleLimit": 420, "labelOverlap": True,
    },
    "legend": {
        "labelColor": INK, "titleColor": SOFT, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "orient": "top", "symbolStrokeColor": SOFT,
        "labelLimit": 200, "columns": 3, "direction": "horizontal",
    },
    "text": {"color": INK, "fontSize": 12},
    "point": {"filled": True, "size": 70},
    "rule": {"color": SOFT},
}  # fmt: skip


def _spec(chart: alt.Chart | alt.LayerChart | alt.FacetChart, height: float) -> Spec:
    sized = chart.properties(
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )
    spec: Spec = sized.to_dict()
    return {key: value for key, value in spec.items() if key not in ("$schema", "config")}


def _chart(data: str) -> alt.Chart:
    return alt.Chart(alt.NamedData(name=data))


def _number_axis(title: str | list[str], **options: Any) -> alt.Axis:
    return alt.Axis(title=title, tickCount=5, **options)


def _row_axis() -> alt.Axis:
    return alt.Axis(
        title=None, ticks=False, domain=False, labelPadding=8, grid=False, labelColor=INK
    )


def _verdict_color(present: tuple[str, ...]) -> tuple[alt.Color, alt.Shape]:
    legend = alt.Legend(title=None, values=list(present))
    words = [DIFFERENCE, *VERDICTS[1:]] if DIFFERENCE in present else VERDICTS
    color = alt.Color(
        "verdict:N", scale=alt.Scale(domain=words, range=VERDICT_COLORS), legend=legend
    )
    shape = alt.Shape(
        "verdict:N", scale=alt.Scale(domain=words, range=VERDICT_SHAPES), legend=legend
    )
    return color, shape


def _model_color(models: tuple[str, ...]) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of a model."""
    return _color_and_shape("model:N", models, alt.Legend(title=None) if len(models) > 1 else None)


def _group_color(groups: tuple[str, ...], **options: Any) -> tuple[alt.Color, alt.Shape]:
    """Colour and shape of a group, with options of their legend."""
    return _color_and_shape("group:N", groups, alt.Legend(title=None, **options))


def _color_and_shape(
    field: str, names: tuple[str, ...], legend: alt.Legend | None
) -> tuple[alt.Color, alt.Shape]:
    """Tell names apart; past eight colours and shapes repeat, and the labels tell."""
    colors, shapes = (
        [known[place % len(known)] for place in range(len(names))]
        for known in (MODEL_COLORS, MODEL_SHAPES)
    )
    return (
        alt.Color(field, scale=alt.Scale(domain=list(names), range=colors), legend=legend),
        alt.Shape(field, scale=alt.Scale(domain=list(names), range=shapes), legend=legend),
    )


@cache
def estimates(
    data: str,
    verdicts: tuple[str, ...],
    rows: int,
    *,
    reach: float = 0.0,
    sides: tuple[str, ...] = (),
) -> Spec:
    """Values with intervals over the band that chance gives, one row a finding.

    With a reach the numbers are differences: 0 stands in the middle, and what lies on either side
    is said in words in place of a sign.
    """
    y = alt.Y("label:N", sort=None, axis=_row_axis())
    color, shape = _verdict_color(verdicts)
    base = _chart(data).encode(y=y)
    unsigned = {"labelExpr": "format(abs(datum.value), '.3~f')"} if reach else {}
    axis = _number_axis([*sides] or "", **unsigned)
    scale = alt.Scale(domain=[-reach, reach]) if reach else alt.Scale()
    layers: list[alt.Chart] = []
    if reach:
        layers.append(_chart(data).mark_rule(color=SOFT, strokeDash=[3, 3]).encode(x=alt.datum(0)))
    else:
        layers.append(
            base.mark_bar(height=16, color=CHANCE).encode(x="chance_low:Q", x2="chance_high:Q")
        )
        layers.append(base.mark_tick(color=SOFT, size=20, thickness=2).encode(x="line:Q"))
    layers += [
        base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=color),
        base.mark_point(size=90, opacity=1).encode(
            x=alt.X("value:Q", axis=axis, scale=scale), color=color, shape=shape, tooltip=_tip()
        ),
    ]
    return _spec(alt.layer(*layers), 30 * rows + 8)


def _tip() -> alt.Tooltip:
    return alt.Tooltip("tip:N")


@cache
def groups(data: str, title: str, rows: int, *, share: bool) -> Spec:
    """One number a group with its interval; the worst group stands out by colour and shape."""
    y = alt.Y("group:N", sort=None, axis=_row_axis())
    domain = ["worst", "other"]
    color = alt.Color(
        "role:N",
        legend=None,
        scale=alt.Scale(domain=domain, range=["var(--disparity)", "var(--m1)"]),
    )
    shape = alt.Shape(
        "role:N", legend=None, scale=alt.Scale(domain=domain, range=["triangle-up", "circle"])
    )
    axis = _number_axis(title, format="%") if share else _number_axis(title)
    scale = alt.Scale(domain=[0, 1]) if share else alt.Scale(zero=False)
    base = _chart(data).encode(y=y)
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q", color=color),
            base.mark_point(size=80, opacity=1).encode(
                x=alt.X("value:Q", axis=axis, scale=scale), color=color, shape=shape,
                tooltip=_tip(),
            ),
        ),
        24 * rows + 8,
    )  # fmt: skip


@cache
def class_effects(data: str, models: tuple[str, ...], rows: int) -> Spec:
    """Effect size per class with its interval; models share a row."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        y=alt.Y("class:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("model:N", sort=list(models)),
    )
    unit = alt.Scale(domain=[0, 1])
    cuts = alt.Chart(alt.InlineData(values=[{"cut": cut} for cut in (0.1, 0.3, 0.5)]))
    return _spec(
        alt.layer(
            cuts.mark_rule(color=SOFT, strokeDash=[2, 4]).encode(x="cut:Q"),
            base.mark_rule(strokeWidth=2).encode(x="effect_low:Q", x2="effect_high:Q", color=color),
            base.mark_point(size=60, opacity=1).encode(
                x=alt.X("effect_size:Q", axis=_number_axis("effect size"), scale=unit),
                color=color, shape=shape, tooltip=_tip(),
            ),
        ),
        max(14 * len(models), 24) * rows + 8,
    )  # fmt: skip


@cache
def histogram(data: str, model: str) -> Spec:
    """How many classes have which effect size, coloured by band, for one model of the data."""
    color = alt.Color(
        "band:N", scale=alt.Scale(domain=BANDS, range=STEPS[1:]), legend=alt.Legend(title=None)
    )
    chart = (
        _chart(data)
        .mark_bar()
        .transform_filter(alt.FieldEqualPredicate(field="model", equal=model))
        .encode(
            x=alt.X(
                "effect_size:Q", bin=alt.Bin(step=0.05, extent=[0, 1]),
                axis=_number_axis("effect size"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=alt.Y("count():Q", axis=_number_axis("classes", tickMinStep=1)),
            color=color,
        )
    )  # fmt: skip
    return _spec(chart, 190)


@cache
def accuracy_against_effect(data: str, model: str) -> Spec:
    """One point a class: accuracy, effect size, and equalized odds as colour in five steps."""
    odds = alt.Fill(
        "equalized_odds:Q",
        scale=alt.Scale(type="threshold", domain=[0.1, 0.2, 0.3, 0.5], range=STEPS),
        legend=alt.Legend(title="equalized odds", format=".1f", gradientLength=180),
    )
    share = alt.Scale(domain=[0, 1])
    chart = (
        _chart(data)
        .mark_point(size=55, opacity=0.95, stroke=SOFT, strokeWidth=0.6)
        .transform_filter(alt.FieldEqualPredicate(field="model", equal=model))
        .encode(
            x=alt.X("accuracy:Q", axis=_number_axis("accuracy", format="%"), scale=share),
            y=alt.Y("effect_size:Q", axis=_number_axis("effect size"), scale=share),
            fill=odds,
            tooltip=_tip(),
        )
    )  # fmt: skip
    return _spec(chart, 300)
