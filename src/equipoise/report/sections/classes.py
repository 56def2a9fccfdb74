"""Effect sizes per class, their relation to accuracy, and the MEV sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts, comparison_charts
from equipoise.report.blocks import Block, Chart, Grid, Heading, Section, Table, Words
from equipoise.report.sections.tables import distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number

PLOTTED = 30
MOST_PANELS = 24

_FIELDS = ("model", "class", "accuracy", "effect_size", "effect_low", "effect_high",
           "equalized_odds", "band", "tip")  # fmt: skip


def effect_sizes(result: AuditResult) -> Section | None:
    """Effect size of every class with bands, and their histogram per model."""
    found = rows(result, "classes")
    if not found:
        return None
    blocks: list[Block] = [Words((_BANDS_NOTE,), "note")]
    for (groups, version), panel in list(panels(found, "groups", "version").items())[:MOST_PANELS]:
        name = scope(groups, version)
        blocks.append(Heading(f"By {name}"))
        blocks.append(_largest(panel, name))
        if len(distinct(panel, "class")) > 5:
            blocks.append(Grid(tuple(_histograms(panel, name))))
    blocks += _bands(result)
    blocks.append(_table(found))
    return Section("classes", "Effect size per class", tuple(blocks))


_BANDS_NOTE = (
    "The effect size says how strongly the answers for the images of one class depend on the "
    "group, from 0 (not at all) to 1 (fully). Below 0.1 it is called negligible, below 0.3 small, "
    "below 0.5 medium, else large."
)


def _data(panel: Sequence[Any]) -> list[dict[str, Any]]:
    return [{key: row[key] for key in _FIELDS} for row in (_tipped(row) for row in panel)]


def _tipped(row: Any) -> dict[str, Any]:
    tip = (
        f"{row['model']}, {row['class']}: effect size {number(row['effect_size'])}, "
        f"accuracy {number(row['accuracy'])}, equalized odds {number(row['equalized_odds'])}, "
        f"worst group {row['worst_group']}"
    )
    return {**row, "tip": tip}


def _largest(panel: Sequence[Any], name: str) -> Chart:
    valued = [row for row in panel if has(row["effect_size"])]
    order = sorted(valued, key=lambda row: -row["effect_size"])
    kept = distinct(order, "class")[:PLOTTED]
    total = len(distinct(panel, "class"))
    place = {name_: i for i, name_ in enumerate(kept)}
    shown = sorted((r for r in valued if r["class"] in place), key=lambda r: place[r["class"]])
    title = f"The {PLOTTED} largest of {count(total)} classes" if total > PLOTTED else "Every class"
    label = f"Effect size per class with its interval, {name}. Dotted lines: the bands."
    spec = charts.class_effects("rows", distinct(panel, "model"), len(kept))
    return Chart(label, spec, {"rows": _data(shown)}, None, title)


def _histograms(panel: Sequence[Any], name: str) -> list[Chart]:
    data = _data(panel)
    return [
        Chart(
            f"Histogram of effect sizes over classes: {model}, {name}",
            charts.histogram("rows", model),
            {"rows": data},
            None,
            f"{model}: classes by effect size",
        )
        for model in distinct(panel, "model")[:MOST_PANELS]
    ]  # fmt: skip


def _bands(result: AuditResult) -> list[Block]:
    found = rows(result, "bands")
    if not found:
        return []
    names = [name for name in (*charts.BANDS, "") if any(row["band"] == name for row in found)]
    cells = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        by_band = {row["band"]: row["classes"] for row in panel}
        cells.append((model, scope(groups, version), *(count(by_band.get(n, 0)) for n in names)))
    columns = ["Model", "Groups", *(f"#{name or 'not estimable'}" for name in names)]
    return [Table.of("Classes per band", columns, cells, source="bands")]


def _table(found: Sequence[Any]) -> Table:
    columns = [
        "Class", "#Effect size", "#Interval", "#Accuracy", "Band", "Model", "Groups", "#Images",
        "#By chance", "Worst group", "#Its accuracy", "#GAP", "#Parity", "#Odds",
        "#Columns left out", "#Rows left out", "~Reason",
    ]  # fmt: skip
    ordered = sorted(found, key=lambda r: -r["effect_size"] if has(r["effect_size"]) else 1)
    cells = [
        (
            r["class"], number(r["effect_size"]), interval(r["effect_low"], r["effect_high"]),
            number(r["accuracy"]), r["band"] or "", r["model"], scope(r["groups"], r["version"]),
            count(r["n"]), number(r["effect_chance"]), r["worst_group"] or "",
            number(r["worst_group_accuracy"]), number(r["gap"]), number(r["demographic_parity"]),
            number(r["equalized_odds"]), count(r["columns_dropped"]), count(r["rows_dropped"]),
            r["reason"] or "",
        )
        for r in ordered
    ]  # fmt: skip
    return Table.of("Classes, largest effect size first", columns, cells, source="classes")


def accuracy_and_effect(result: AuditResult) -> Section | None:
    """Accuracy against effect size, one point a class, and how the two go together."""
    found = rows(result, "classes")
    plots = _scatters(found)
    related = rows(result, "correlations")
    if not any(has(row["pearson"]) or has(row["spearman"]) for row in related):
        related = []
    if not plots and not related:
        return None
    blocks: list[Block] = []
    if plots:
        note = (
            "Each point is a class. To the right: often answered rightly. Up: its wrong answers "
            "depend on the group. Upper right, accuracy hides a disparity. Colour: equalized odds "
            "difference."
        )
        blocks += [Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS]))]
    if related:
        blocks += _correlations(related)
    return Section("accuracy", "Accuracy against effect size", tuple(blocks))


def _scatters(found: Sequence[Any]) -> list[Chart]:
    plots = []
    for (groups, version), panel in panels(found, "groups", "version").items():
        if len(distinct(panel, "class")) < 3:
            continue
        data = _data(panel)
        for model in distinct(panel, "model"):
            title = f"{model}, {scope(groups, version)}"
            label = f"Accuracy against effect size per class: {title}"
            spec = charts.accuracy_against_effect("rows", model)
            plots.append(Chart(label, spec, {"rows": data}, None, title))
    return plots


def _correlations(related: Sequence[Any]) -> list[Block]:
    names = {"effect_size": "effect size", "gap": "GAP", "demographic_parity": "parity",
             "equalized_odds": "odds"}  # fmt: skip
    cells = [
        (
            f"{names.get(r['x'], r['x'])} and {names.get(r['y'], r['y'])}", r["model"],
            scope(r["groups"], r["version"]), count(r["classes"]), number(r["pearson"], 2),
            interval(r["pearson_low"], r["pearson_high"], 2), number(r["spearman"], 2),
            number(r["spearman_p"], 4), r["reason"] or "",
        )
        for r in related
    ]  # fmt: skip
    columns = ["Pair", "Model", "Groups", "#Classes", "#Pearson r", "#Interval", "#Spearman ρ",
               "#p", "Reason"]  # fmt: skip
    caption = "Correlations over classes"
    return [Table.of(caption, columns, cells, source="correlations")]


def sweep(result: AuditResult) -> Section | None:
    """What the filter on expected counts does to SkewSize and to the number of classes."""
    found = rows(result, "mev_sweep")
    if not found:
        return None
    note = (
        "Before an effect size is computed, answers that are expected too rarely are left out. A "
        "strict filter can leave classes with few mistakes without a number, and change SkewSize."
    )
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(_sweep_charts(found)))]
    columns = ["Model", "Groups", "#MEV", "#SkewSize", "#Mean effect size", "#Classes",
               "#Not estimable", "#Columns left out", "#Rows left out"]  # fmt: skip
    cells = [
        (
            r["model"], scope(r["groups"], r["version"]), number(r["min_expected"], 1),
            number(r["skewsize"]), number(r["mean_effect_size"]), count(r["classes"]),
            count(r["not_estimable"]), count(r["columns_dropped"]), count(r["rows_dropped"]),
        )
        for r in found
    ]  # fmt: skip
    blocks.append(Table.of("The sweep", columns, cells, source="mev_sweep"))
    return Section("mev", "The smallest expected count (MEV)", tuple(blocks))


def _sweep_charts(found: Sequence[Any]) -> list[Chart]:
    fields = {"skewsize": "SkewSize", "mean_effect_size": "mean effect size",
              "not_estimable": "classes not estimable"}  # fmt: skip
    plots = []
    for (groups, version), panel in list(panels(found, "groups", "version").items())[:MOST_PANELS]:
        data = [
            {**{key: row[key] for key in ("model", "min_expected", *fields)},
             "tip": f"{row['model']}, MEV {number(row['min_expected'], 1)}: "
             f"SkewSize {number(row['skewsize'])}, {row['not_estimable']} not estimable"}
            for row in panel
        ]  # fmt: skip
        for field, title in fields.items():
            if any(has(row[field]) for row in panel):
                spec = comparison_charts.sweep("rows", field, title, distinct(panel, "model"))
                name = f"{title[0].upper()}{title[1:]}, {scope(groups, version)}"
                plots.append(Chart(f"{name}, over MEV", spec, {"rows": data}, None, name))
    return plots
