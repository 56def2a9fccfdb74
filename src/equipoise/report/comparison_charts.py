"""Charts that set models beside each other, and those of the planted world."""

from __future__ import annotations

from functools import cache

import altair as alt

from equipoise.report.charts import (
    INK,
    MODEL_COLORS,
    SOFT,
    Spec,
    _chart,
    _model_color,
    _number_axis,
    _row_axis,
    _spec,
    _tip,
)


@cache
def model_points(data: str, x_title: str, y_title: str, models: tuple[str, ...]) -> Spec:
    """One point a model, named in the chart."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        x=alt.X(
            "x:Q",
            axis=_number_axis(x_title, format=".3~f"),
            scale=alt.Scale(zero=False, padding=28),
        ),
        y=alt.Y(
            "y:Q",
            axis=_number_axis(y_title, format=".3~f"),
            scale=alt.Scale(zero=False, padding=24),
        ),
    )
    return _spec(
        alt.layer(
            base.mark_point(size=110, opacity=1).encode(
                color=color.legend(None), shape=shape.legend(None), tooltip=_tip()
            ),
            base.mark_text(dy=-13, color=INK, limit=140).encode(text="model:N"),
        ),
        240,
    )


@cache
def sweep(data: str, field: str, title: str, models: tuple[str, ...]) -> Spec:
    """A number over the smallest expected count, one line a model."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        x=alt.X("min_expected:Q", axis=_number_axis("smallest expected count kept (MEV)")),
        y=alt.Y(f"{field}:Q", axis=_number_axis(title), scale=alt.Scale(zero=False)),
        color=color,
    )
    return _spec(
        alt.layer(
            base.mark_line(strokeWidth=2),
            base.mark_point(size=60, opacity=1).encode(shape=shape, tooltip=_tip()),
        ),
        220,
    )


@cache
def planted(data: str, classes: tuple[str, ...], models: int) -> Spec:
    """Effect size found per model and class; hollow marks are the paper's."""
    scale = alt.Scale(domain=list(classes), range=MODEL_COLORS[: len(classes)])
    base = _chart(data).encode(
        y=alt.Y("model:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("class:N", sort=list(classes)),
        color=alt.Color("class:N", scale=scale, legend=alt.Legend(title=None)),
    )
    axis = _number_axis("effect size (Cramér's V)")
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=2.5).encode(x="low:Q", x2="high:Q"),
            base.mark_point(size=80, opacity=1).encode(
                x=alt.X("found:Q", axis=axis, scale=alt.Scale(domain=[0, 1])), tooltip=_tip()
            ),
            base.mark_point(size=110, filled=False, shape="diamond", strokeWidth=1.5).encode(
                x="paper:Q", color=alt.value(SOFT)
            ),
        ),
        18 * len(classes) * models + 8,
    )


@cache
def planted_scenes(data: str, models: tuple[str, ...]) -> Spec:
    """Gap found over the strength planted in the biased model, one mark a subject and model."""
    color, shape = _model_color(models)
    base = _chart(data).encode(
        x=alt.X("strength:Q", axis=_number_axis("strength planted in the biased model")),
        y=alt.Y("gap:Q", axis=_number_axis("similarity gap found (logits)")),
        color=color,
    )
    return _spec(base.mark_point(size=60, opacity=1).encode(shape=shape, tooltip=_tip()), 220)


@cache
def ranking(data: str, n: int) -> Spec:
    """Rank of each model with the range that the data leave open."""
    base = _chart(data).encode(y=alt.Y("model:N", sort=None, axis=_row_axis()))
    axis = alt.Axis(title="rank (1 is best)", values=list(range(1, n + 1)), format="d")
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=3, color="var(--m1)").encode(
                x="rank_low:Q", x2="rank_high:Q"
            ),
            base.mark_point(size=100, opacity=1, color="var(--m1)").encode(
                x=alt.X("rank:Q", axis=axis, scale=alt.Scale(domain=[0.6, n + 0.4], nice=False)),
                tooltip=_tip(),
            ),
        ),
        30 * n + 8,
    )


@cache
def accuracies_by_training(data: str, arms: tuple[str, ...], networks: int) -> Spec:
    """Accuracy per network and set of training images, with its interval."""
    scale = alt.Scale(domain=list(arms), range=MODEL_COLORS[: len(arms)])
    shapes = alt.Scale(domain=list(arms), range=["circle", "square", "triangle-up", "diamond"])
    base = _chart(data).encode(
        y=alt.Y("network:N", sort=None, axis=_row_axis()),
        yOffset=alt.YOffset("arm:N", sort=list(arms)),
        color=alt.Color("arm:N", scale=scale, legend=alt.Legend(title=None, columns=2)),
    )
    axis = _number_axis("share of images that are right")
    return _spec(
        alt.layer(
            base.mark_rule(strokeWidth=2.5).encode(
                x=alt.X("low:Q", axis=axis, scale=alt.Scale(domain=[0, 1])), x2="high:Q"
            ),
            base.mark_point(filled=True, size=70, opacity=1).encode(
                x="value:Q", shape=alt.Shape("arm:N", scale=shapes, legend=None), tooltip=_tip()
            ),
        ),
        90 * networks,
    )
