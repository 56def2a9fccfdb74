"""Sections on the effect sizes of several models: bands, SkewSize and the order of models."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from equipoise.audits.labels.predictions.effects import Profile
from equipoise.core import AuditResult
from equipoise.metrics.spec import BANDS, band_of
from equipoise.report.blocks import (
    NUMBER,
    P_VALUE,
    SHARE,
    Chart,
    Column,
    Row,
    Section,
    Table,
    Words,
    distinct,
    has,
    panels,
    rows,
    scope,
    scope_of,
)
from equipoise.report.plots import Axis, bars, curves, scatter
from equipoise.report.text import listed, number, percent

MOST_PANELS = 24
LEAST_CLASSES, LEAST_MODELS = 3, 3
_BIN = 0.05
_PANEL = ("groups", "version")


def bands(result: AuditResult) -> Section | None:
    """Return how many classes of each model have an effect of each size, and all effect sizes."""
    estimable = [row for row in rows(result, "classes") if has(row["effect_size"])]
    if len(distinct(estimable, "class")) < LEAST_CLASSES:
        return None
    charts, counts = list[Chart](), list[dict[str, object]]()
    for key, panel in [*panels(estimable, *_PANEL).items()][:MOST_PANELS]:
        panel_counts = [*_count_bands(panel)]
        counts += panel_counts
        name = scope(*key)
        charts += [_band_chart(panel_counts, name), _distribution(panel, name)]
    text = (
        "Each class counts once, by the size of its effect. Fewer classes with medium and large "
        "effects mean that mistakes depend less on the group."
    )
    columns = [
        Column("Model", "model"),
        Column("Attributes", scope_of),
        *(Column(name.capitalize(), name, NUMBER) for name in BANDS),
        Column("Classes", "classes", NUMBER),
        Column("Mean effect size", "mean", NUMBER),
    ]
    table = Table.of("Classes by size of the effect", columns, counts, source="classes")
    return Section.of("bands", "Effect sizes by band", text, charts, table)


def _count_bands(panel: Sequence[Row]) -> Iterator[dict[str, object]]:
    for (model, groups, version), classes in panels(panel, "model", *_PANEL).items():
        sizes = [row["effect_size"] for row in classes]
        by_band = [band_of(size) for size in sizes]
        yield {
            "model": model, "groups": groups, "version": version, "classes": len(sizes),
            "mean": math.fsum(sizes) / len(sizes),
            **{name: by_band.count(name) for name in BANDS},
        }  # fmt: skip


def _band_chart(counts: Sequence[Mapping[str, object]], name: str) -> Chart:
    marks = [
        {"label": row["model"], "series": level, "value": row[level],
         "tip": f"{row['model']}: {row[level]} of {row['classes']} classes, {level} effect"}
        for row in counts
        for level in BANDS
    ]  # fmt: skip
    title = f"Classes by size of the effect, {name}"
    return bars(marks, title, Axis("classes"), title=title, series=[*BANDS], stacked=True)


def _distribution(panel: Sequence[Row], name: str) -> Chart:
    """Draw the share of classes over effect sizes, a line for each model."""
    edges = np.arange(0.0, 1.0 + _BIN / 2, _BIN)
    marks = list[dict[str, object]]()
    for (model,), classes in panels(panel, "model").items():
        sizes = np.clip([row["effect_size"] for row in classes], 0.0, 1.0)
        counts, _ = np.histogram(sizes, edges)
        for low, n_classes in zip(edges.tolist(), counts.tolist(), strict=False):
            share = n_classes / len(classes)
            tip = f"{model}: {percent(share)} of classes between {low:.2f} and {low + _BIN:.2f}"
            marks.append({"x": low + _BIN / 2, "value": share, "series": model, "tip": tip})
    title = f"Distribution of effect sizes, {name}"
    axis = Axis("effect size", domain=(0.0, 1.0))
    share_axis = Axis("share of classes", percent=True)
    models = distinct(panel, "model")
    return curves(marks, title, axis, share_axis, title=title, series=models, marks=False)


ACCURACY = Column("Accuracy", "accuracy", SHARE)
_WORST = {"worst_group_accuracy": "accuracy of the worst group"}


def skewsize_of(row: Row) -> float:
    """Return the SkewSize of a model; NaN without one."""
    skewsize: float = row["skewsize"]
    return skewsize


def _name_of(column: str) -> str:
    """Return an accuracy's name in a sentence."""
    return _WORST.get(column, column.replace("_", " "))


def over_models(result: AuditResult) -> Section | None:
    """Return SkewSize against metrics of accuracy, a mark for each model, and correlations."""
    profiles = [row for row in rows(result, "model_profiles") if has(skewsize_of(row))]
    charts, accuracies = list[Chart](), Profile.of_records().accuracies
    for key, panel in [*panels(profiles, *_PANEL).items()][:MOST_PANELS]:
        if len(panel) >= LEAST_MODELS:
            charts += [_models_chart(panel, other, scope(*key)) for other in accuracies]
    if not charts:
        return None
    text = (
        "A higher SkewSize means that few classes have large effects. Models that are alike in "
        "accuracy can differ in it."
    )
    profile_columns = [
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("SkewSize", skewsize_of, NUMBER),
        Column("Spread", ("skewsize_low", "skewsize_high"), NUMBER),
        Column("Mean effect size", "mean_effect_size", NUMBER),
        ACCURACY,
        Column("Worst group", "worst_group_accuracy", SHARE),
        Column("GAP", "accuracy_gap", SHARE),
    ]
    columns = [
        Column("SkewSize and", lambda row: _name_of(row["y"])),
        Column("Attributes", scope_of),
        Column("Models", "models", NUMBER),
        Column("Pearson r", "pearson", NUMBER),
        Column("Interval", ("pearson_low", "pearson_high"), NUMBER),
        Column("p", "pearson_p", P_VALUE),
    ]
    related = [row for row in rows(result, "model_correlations") if not row["reason"]]
    tables = (
        Table.of("SkewSize by model", profile_columns, profiles, source="model_profiles"),
        Table.of("Correlations over models", columns, related, source="model_correlations"),
    )
    return Section.of("skewsize", "SkewSize over models", text, charts, *tables)


def _models_chart(panel: Sequence[Row], other: str, name: str) -> Chart:
    accuracy = _name_of(other)
    marks = [
        {"x": row[other], "y": skewsize_of(row), "series": row["model"],
         "tip": f"{row['model']}: SkewSize {number(skewsize_of(row))}, {accuracy} "
         f"{percent(row[other])}"}
        for row in panel
        if has(row[other])
    ]  # fmt: skip
    title = f"SkewSize against {accuracy}, {name}"
    axis, skewness = Axis(accuracy, percent=True), Axis("SkewSize")
    return scatter(marks, title, axis, skewness, title=title, series=distinct(panel, "model"))


def _has_skewsize(row: Row) -> bool:
    return has(skewsize_of(row))


def sweep(result: AuditResult) -> Section | None:
    """Return SkewSize over the minimum expected count, and whether the order of models changes."""
    options = result.manifest.resolved.get("metrics", {}).get("effect_sizes") or {}
    if not options.get("sweep"):
        return None
    sweep_rows: list[dict[str, object]] = []
    orders: dict[str, dict[tuple[str, ...], list[str]]] = {}
    swept = panels(rows(result, "mev_sweep"), "groups", "version", "min_expected")
    for (groups, version, minimum), setting_rows in swept.items():
        ranked = sorted(filter(_has_skewsize, setting_rows), key=lambda row: -skewsize_of(row))
        sweep_rows += [{**row, "place": place} for place, row in enumerate(ranked, 1)]
        sweep_rows += [{**row, "place": math.nan} for row in setting_rows if not _has_skewsize(row)]
        models = tuple(row["model"] for row in ranked)
        # Where a model has no SkewSize nothing is known of its place.
        if len(ranked) == len(setting_rows) > 1:
            by_order = orders.setdefault(scope(groups, version), {})
            by_order.setdefault(models, []).append(f"{float(minimum):g}")
    order_notes = [_order_note(scope_name, by_order) for scope_name, by_order in orders.items()]
    text = (
        "Predicted labels with a smaller expected count are left out. Place 1 has the highest "
        "SkewSize, which means the least bias; a model without SkewSize has no place."
    )
    columns = [
        Column("Model", "model"),
        Column("Attributes", scope_of),
        Column("Minimum", "min_expected", NUMBER),
        Column("SkewSize", skewsize_of, NUMBER),
        Column("Place", "place", NUMBER),
        Column("Mean effect size", "mean_effect_size", NUMBER),
        Column("Classes", "classes", NUMBER),
        Column("Columns excluded", "columns_dropped", NUMBER),
    ]
    table = Table.of(
        "Aggregates by minimum expected count", columns, sweep_rows, source="mev_sweep"
    )
    title = "SkewSize over the minimum expected count"
    return Section.of("sweep", title, text, Words(tuple(order_notes), "list"), table)


def _order_note(scope_name: str, by_order: Mapping[tuple[str, ...], Sequence[str]]) -> str:
    """Name the order of models by SkewSize, and at which minimum expected counts it holds."""
    orders = [
        f"{' > '.join(models)} at {listed(minimums)}" for models, minimums in by_order.items()
    ]
    if len(orders) == 1:
        return f"{scope_name}: the order of models stays the same, {orders[0]}."
    return f"{scope_name}: the order of models changes: {'; '.join(orders)}."
