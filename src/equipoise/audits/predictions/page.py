"""The page of an audit of predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import AuditResult
from equipoise.metrics.spec import BANDS
from equipoise.report.blocks import Block, Card, Chart, Grid, Heading, Section, Table, Words
from equipoise.report.names import band
from equipoise.report.page import Page
from equipoise.report.plots import Axis, curves, histogram, intervals, scatter
from equipoise.report.tables import Key, Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number, percent, source

MOST_CLASSES, MOST_PANELS = 30, 24
_BANDS = [*BANDS]
_EFFECT = Axis("effect size", domain=(0.0, 1.0))


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return what was measured on which images."""
    data = result.manifest.resolved.get("data", {})
    n = max((one.n for one in result.findings), default=0)
    return (
        ("Images", f"{count(n)}, from {source(data)}" if n else ""),
        ("Target", str(data.get("target") or "")),
    )


def class_effects(result: AuditResult) -> Section | None:
    """Return the effect size of every class, with bands."""
    classes = rows(result, "classes")
    if not classes:
        return None
    text = (
        "Effect size: how strongly the predictions for images of one class depend on the group, "
        "from 0 (not at all) to 1 (fully). Below 0.1 is negligible, below 0.3 small, below 0.5 "
        "medium, else large."
    )
    blocks: list[Block] = [Words((text,), "note")]
    for (groups, version), panel in [*panels(classes, "groups", "version").items()][:MOST_PANELS]:
        where = scope(groups, version)
        blocks.append(_largest(panel, where))
        if len(distinct(panel, "class")) > 5:
            blocks.append(Grid(tuple(_histograms(panel, where))))
    blocks += [_band_counts(result), _class_table(classes)]
    return Section("classes", "Results by class", tuple(blocks))


def _largest(panel: Sequence[Row], where: str) -> Chart:
    known = sorted((row for row in panel if has(row["effect_size"])), key=_effect)
    names = distinct(known, "class")
    kept = names[:MOST_CLASSES]
    points = [
        {
            "label": row["class"],
            "series": row["model"],
            "value": row["effect_size"],
            "low": row["effect_low"],
            "high": row["effect_high"],
            "tip": _tip(row),
        }
        for row in sorted(
            (r for r in known if r["class"] in kept), key=lambda r: kept.index(r["class"])
        )
    ]
    some = f"{MOST_CLASSES} largest of {count(len(names))} classes"
    title = f"Effect size by class, {where}{f': {some}' if len(names) > len(kept) else ''}"
    label = f"{title}, with intervals. Dashed lines: bands."
    models = distinct(panel, "model")
    return intervals(points, label, _EFFECT, title=title, series=models, cuts=(0.1, 0.3, 0.5))


def _effect(row: Row) -> float:
    return -float(row["effect_size"])


def _tip(row: Row) -> str:
    return (
        f"{row['model']}, {row['class']}: effect size {number(row['effect_size'])}, "
        f"accuracy {number(row['accuracy'])}, equalized odds {number(row['equalized_odds'])}, "
        f"worst group {row['worst_group']}"
    )


def _histograms(panel: Sequence[Row], where: str) -> Iterator[Chart]:
    for (model,), own in [*panels(panel, "model").items()][:MOST_PANELS]:
        points = [{"value": row["effect_size"], "band": row["band"]} for row in own]
        title = f"{model}: classes by effect size"
        yield histogram(
            points, f"{title}, {where}", _EFFECT, counts="classes", bands=_BANDS, title=title
        )


def _band_counts(result: AuditResult) -> Table:
    counts = rows(result, "bands")
    names = [name for name in (*_BANDS, "") if any(row["band"] == name for row in counts)]
    cells = []
    for (model, groups, version), panel in panels(counts, "model", "groups", "version").items():
        by_band = {row["band"]: row["classes"] for row in panel}
        cells.append((model, scope(groups, version), *(count(by_band.get(n, 0)) for n in names)))
    columns = ["Model", "Attributes", *(f"#{name or 'not estimable'}" for name in names)]
    return Table.of("Classes by band of effect size", columns, cells, source="bands")


def _class_table(classes: Sequence[Row]) -> Table:
    columns = [
        "Class", "#Effect size", "#Interval", "#Accuracy", "Band", "Model", "Attributes", "#n",
        "#By chance", "Worst group", "#Its accuracy", "#GAP", "#Parity", "#Odds",
        "#Columns excluded", "#Rows excluded", "~Note",
    ]  # fmt: skip
    cells = [
        (
            r["class"], number(r["effect_size"]), interval(r["effect_low"], r["effect_high"]),
            number(r["accuracy"]), r["band"] or "", r["model"], scope(r["groups"], r["version"]),
            count(r["n"]), number(r["effect_chance"]), r["worst_group"] or "",
            number(r["worst_group_accuracy"]), number(r["gap"]), number(r["demographic_parity"]),
            number(r["equalized_odds"]), count(r["columns_dropped"]), count(r["rows_dropped"]),
            r["reason"] or "",
        )
        for r in sorted(classes, key=lambda r: _effect(r) if has(r["effect_size"]) else 1)
    ]  # fmt: skip
    return Table.of("All classes, largest effect size first", columns, cells, source="classes")


def accuracy_and_effect(result: AuditResult) -> Section | None:
    """Return accuracy against effect size, a mark for each class, and their correlation."""
    charts = [*_scatters(rows(result, "classes"))]
    related = rows(result, "correlations")
    known = any(has(row["pearson"]) or has(row["spearman"]) for row in related)
    if not charts and not known:
        return None
    text = (
        "A class on the upper right is usually predicted rightly, and yet its mistakes depend on "
        "the group. Colour: equalized odds difference."
    )
    blocks: list[Block] = [Words((text,), "note"), Grid(tuple(charts[:MOST_PANELS]))]
    return Section(
        "accuracy",
        "Accuracy against effect size",
        (*(blocks if charts else []), *([_correlations(related)] if known else [])),
    )


def _scatters(classes: Sequence[Row]) -> Iterator[Chart]:
    for (groups, version), panel in panels(classes, "groups", "version").items():
        if len(distinct(panel, "class")) < 3:
            continue
        for (model,), own in panels(panel, "model").items():
            title = f"{model}, {scope(groups, version)}"
            points = [
                {"x": row["accuracy"], "y": row["effect_size"], "step": row["equalized_odds"],
                 "tip": _tip(row)}
                for row in own
            ]  # fmt: skip
            accuracy = Axis("accuracy", percent=True, domain=(0.0, 1.0))
            label = f"Accuracy against effect size of each class: {title}"
            steps = ("equalized odds", (0.1, 0.2, 0.3, 0.5))
            yield scatter(points, label, accuracy, _EFFECT, title=title, steps=steps)


def _correlations(related: Sequence[Row]) -> Table:
    names = {"gap": "GAP", "demographic_parity": "parity", "equalized_odds": "odds"}
    cells = [
        (
            f"effect size and {names.get(r['y'], r['y'])}", r["model"],
            scope(r["groups"], r["version"]), count(r["classes"]), number(r["pearson"], 2),
            interval(r["pearson_low"], r["pearson_high"], 2), number(r["spearman"], 2),
            number(r["spearman_p"], 4), r["reason"] or "",
        )
        for r in related
    ]  # fmt: skip
    columns = ["Pair", "Model", "Attributes", "#Classes", "#Pearson r", "#Interval", "#Spearman ρ",
               "#p", "Note"]  # fmt: skip
    return Table.of("Correlations over classes", columns, cells, source="correlations")


MEDIUM, ACCURATE = 0.3, 0.8
MOST_HIDDEN, MOST_WRONG = 8, 3


def hidden(result: AuditResult) -> Section | None:
    """Return classes that are accurate on average and unequal in their mistakes.

    A class counts with an effect size of at least 0.3 and an accuracy of at least 0.8, or of the
    median of the model's classes if that is lower: at most eight a model and grouping, largest
    effect size first.
    """
    panelled = panels(rows(result, "classes"), "model", "groups", "version")
    chosen = {key: high for key, panel in panelled.items() if (high := _both_high(panel))}
    if not chosen:
        return None
    mistakes = _mistakes(result, [row for high in chosen.values() for row in high])
    text = (
        f"Classes with an effect size of at least {MEDIUM} whose accuracy is at least {ACCURATE}, "
        "or at least the median of the model's classes. A good average hides that groups are "
        "mistaken for different things."
    )
    blocks: list[Block] = [Words((text,), "note")]
    for (model, groups, version), high in chosen.items():
        blocks.append(Heading(f"{model}, {scope(groups, version)}"))
        blocks += [_hidden_card(row, mistakes.get(_key(row), [])) for row in high]
    return Section("hidden", "Disparities behind a good average", tuple(blocks))


def _both_high(panel: Sequence[Row]) -> list[Row]:
    known = [row for row in panel if has(row["accuracy"]) and has(row["effect_size"])]
    if not known:
        return []
    enough = min(median(row["accuracy"] for row in known), ACCURATE)
    high = [row for row in known if row["effect_size"] >= MEDIUM and row["accuracy"] >= enough]
    return sorted(high, key=_effect)[:MOST_HIDDEN]


def _key(row: Row) -> Key:
    return tuple(str(row[name]) for name in ("model", "groups", "version", "class"))


def _mistakes(result: AuditResult, classes: Sequence[Row]) -> Mapping[Key, list[Row]]:
    """Return the wrong predictions of some classes only: the table may have millions of rows."""
    table = result.tables["confusions"]
    names = pa.array(sorted({row["class"] for row in classes}), table.schema.field("class").type)
    wrong = pc.and_(
        pc.is_in(table["class"], value_set=names), pc.not_equal(table["prediction"], table["class"])
    )
    return panels(table.filter(wrong).to_pylist(), "model", "groups", "version", "class")


def _hidden_card(row: Row, mistakes: Sequence[Row]) -> Card:
    sentence = (
        f"{row['model']} is right on {percent(row['accuracy'])} of the images of "
        f"“{row['class']}”, but its mistakes depend on {scope(row['groups'], row['version'])} "
        f"(effect size {number(row['effect_size'], 2)}, {band(row['effect_size'])})."
        f"{_typical(mistakes)}"
    )
    line = f"GAP {number(row['gap'])} · worst group: {row['worst_group']}"
    return Card(None, sentence, (line,), (_mistake_table(row, mistakes),) if mistakes else ())


def _typical(mistakes: Sequence[Row]) -> str:
    """Name the two groups with the largest shares of one wrong prediction."""
    order = sorted(
        mistakes, key=lambda r: (-r["count"] / max(r["n"], 1), r["group"], r["prediction"])
    )
    if not order:
        return ""
    first = order[0]
    text = f" Images labelled {first['group']} are taken for “{first['prediction']}” {_of(first)}"
    for other in order[1:]:
        if other["prediction"] != first["prediction"] and other["group"] != first["group"]:
            taken = f"images labelled {other['group']} for “{other['prediction']}” {_of(other)}"
            return f"{text}, {taken}."
    return f"{text}."


def _of(row: Row) -> str:
    return f"({row['count']} of {row['n']})"


def _mistake_table(row: Row, mistakes: Sequence[Row]) -> Table:
    cells = []
    for (group,), own in panels(mistakes, "group").items():
        top = sorted(own, key=lambda r: (-r["count"], r["prediction"]))[:MOST_WRONG]
        n, wrong = own[0]["n"], sum(r["count"] for r in own)
        named = "; ".join(f"{r['prediction']} ({r['count']})" for r in top)
        share = wrong / max(n, 1)
        cells.append((-share, (group, count(n), count(wrong), percent(share), named)))
    columns = ["Group", "#n", "#Wrong", "#Share", "Most frequent wrong predictions"]
    caption = f"Wrong predictions for “{row['class']}” by group, {row['model']}"
    return Table.of(caption, columns, [cell for _, cell in sorted(cells)], source="confusions")


def sweep(result: AuditResult) -> Section | None:
    """Return how SkewSize depends on the minimum expected count."""
    swept = rows(result, "mev_sweep")
    if not swept:
        return None
    text = (
        "Before an effect size is computed, predictions that are expected too rarely are excluded. "
        "A strict minimum can exclude classes with few mistakes, and change SkewSize."
    )
    columns = ["Model", "Attributes", "#MEV", "#SkewSize", "#Mean effect size", "#Classes",
               "#Not estimable", "#Columns excluded", "#Rows excluded"]  # fmt: skip
    cells = [
        (
            r["model"], scope(r["groups"], r["version"]), number(r["min_expected"], 1),
            number(r["skewsize"]), number(r["mean_effect_size"]), count(r["classes"]),
            count(r["not_estimable"]), count(r["columns_dropped"]), count(r["rows_dropped"]),
        )
        for r in swept
    ]  # fmt: skip
    return Section(
        "mev",
        "Sensitivity to the minimum expected count (MEV)",
        (
            Words((text,), "note"),
            Grid(tuple(_sweep_charts(swept))),
            Table.of("SkewSize by minimum expected count", columns, cells, source="mev_sweep"),
        ),
    )


def _sweep_charts(swept: Sequence[Row]) -> Iterator[Chart]:
    titles = {"skewsize": "SkewSize", "mean_effect_size": "Mean effect size",
              "not_estimable": "Classes not estimable"}  # fmt: skip
    for (groups, version), panel in [*panels(swept, "groups", "version").items()][:MOST_PANELS]:
        for field, title in titles.items():
            points = [
                {"x": row["min_expected"], "value": row[field], "series": row["model"],
                 "tip": f"{row['model']}, MEV {row['min_expected']:g}: {number(row[field])}"}
                for row in panel
                if has(row[field])
            ]  # fmt: skip
            if points:
                name = f"{title}, {scope(groups, version)}"
                axes = Axis("minimum expected count"), Axis(title)
                models = distinct(panel, "model")
                yield curves(points, f"{name}, over MEV", *axes, title=name, series=models)


def planted(result: AuditResult) -> Section | None:
    """Return the ground truth of the demonstration against the audit's results."""
    known = rows(result, "planted")
    if not known:
        return None
    text = (
        "Training images of one class and colour were removed on purpose, so the truth is known: "
        "the effect size should be high for that class and near 0 for the others."
    )
    points = [
        {"label": f"{r['model']}, {r['class']}", "series": kind, "value": r[field], "low": low,
         "high": high, "tip": f"{r['model']}, {r['class']}: {kind} {number(r[field])}"}
        for r in known
        for kind, field, low, high in (
            ("audit", "found_effect_size", r["low"], r["high"]),
            ("paper", "paper_effect_size", None, None),
        )
        if has(r[field])
    ]  # fmt: skip
    palette = {"audit": ("var(--m1)", "circle"), "paper": ("var(--soft)", "diamond")}
    title = "Effect size by model and class: this audit, and the paper"
    chart = intervals(
        points, title, _EFFECT, title=title, series=("audit", "paper"), palette=palette
    )
    return Section(
        "planted",
        "Ground truth against audit results",
        (Words((text,)), chart, _planted_effects(known), _planted_accuracy(known)),
    )


def _planted_effects(known: Sequence[Row]) -> Table:
    columns = ["Model", "Removed from", "Strength", "Class", "Bias", "#Audit", "#Interval",
               "#Paper", "#Parity", "#Odds"]  # fmt: skip
    cells = [
        (
            r["model"], r["removed"] or "none", r["strength"], r["class"],
            "planted" if r["planted"] else "", number(r["found_effect_size"]),
            interval(r["low"], r["high"]), number(r["paper_effect_size"]),
            number(r["demographic_parity"]), number(r["equalized_odds"]),
        )
        for r in known
    ]  # fmt: skip
    return Table.of(
        "Effect size by class, this audit and the paper", columns, cells, source="planted"
    )


def _planted_accuracy(known: Sequence[Row]) -> Table:
    columns = ["Model", "#Accuracy", "#Paper", "#Worst group", "#Paper", "#GAP", "#Paper"]
    names = ("accuracy", "worst_group_accuracy", "gap")
    cells: list[tuple[Any, ...]] = [
        (model, *(number(own[0][key]) for name in names for key in (name, f"paper_{name}")))
        for (model,), own in panels(known, "model").items()
    ]
    return Table.of("Accuracy and gap, this audit and the paper", columns, cells, source="planted")


PAGE = Page(
    leads=("worst_group_accuracy", "accuracy_gap", "equalized_odds", "demographic_parity"),
    by_group=("worst_group_accuracy", "accuracy_gap", "hit_rate", "unanswered_rate"),
    subjects="classes",
    points=(
        ("accuracy", "skewsize"),
        ("worst_group_accuracy", "skewsize"),
        ("accuracy_gap", "skewsize"),
    ),
    sections=(planted, class_effects, accuracy_and_effect, hidden, sweep),
    facts=facts,
)  # fmt: skip
