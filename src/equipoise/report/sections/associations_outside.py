"""Regions and words, figures from outside, and the labels that images of groups get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_associations as charts
from equipoise.report.blocks import Block, Chart, Grid, Heading, Section, Table, Words
from equipoise.report.charts_names import spread
from equipoise.report.names import title
from equipoise.report.sections.associations import MOST_PANELS
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number, p_value

MOST_LABELS = 15
_TITLES = {"trend": "Trend", "gender_difference": "Sum over all words"}


def regions(result: AuditResult) -> Section | None:
    """Each region and group: its trend, its sum over all words, and its similarity to each word."""
    found = rows(result, "regions")
    if not found:
        return None
    blocks: list[Block] = []
    plots = []
    for key, panel in panels(found, "metric", "model", "groups", "version").items():
        metric, model, groups, version = key
        if any(has(row["value"]) for row in panel):
            name = f"{_TITLES.get(metric, title(metric))}, {model}: {scope(groups, version)}"
            plots.append(_by_region(name, panel))
    if plots:
        note = (
            "A row a region, a mark a group. Trend: similarity to positive words less that to "
            "negative ones; further left is less favourable. Sum over all words: groups that lie "
            "apart are placed differently to these words as a whole."
        )
        blocks += [Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS]))]
    blocks += _heat(result)
    return Section("regions", "Regions, groups and words", tuple(blocks))


def _by_region(name: str, panel: Sequence[Any]) -> Chart:
    shown = [row for row in panel if has(row["value"])]
    data = [
        {
            "label": row["region"], "series": row["group"], "value": row["value"],
            "low": row["low"], "high": row["high"], "chance_low": None, "chance_high": None,
            "tip": f"{row['region']}, {row['group']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}, n = {row['n']}",
        }
        for row in shown
    ]  # fmt: skip
    cells = [
        (row["region"], row["group"], number(row["value"]), interval(row["low"], row["high"]),
         count(row["n"]))
        for row in panel
    ]  # fmt: skip
    columns = ["Region", "Group", "#Value", "#Interval", "#Images"]
    table = Table.of(name, columns, cells, source="regions")
    spec = charts.forest("rows", distinct(shown, "group"), len(distinct(shown, "region")), None)
    return Chart(f"{name}, by region and group", spec, {"rows": data}, table, name)


def _heat(result: AuditResult) -> list[Block]:
    found = rows(result, "words")
    blocks: list[Block] = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        known = [row["similarity"] for row in panel if has(row["similarity"])]
        if not known:
            continue
        ends = (float(f"{min(known):.3g}"), float(f"{max(known):.3g}"))
        plots = [_heat_map(group, some, ends) for (group,), some in panels(panel, "group").items()]
        name = f"Similarity to each word: {model}, {scope(groups, version)}"
        blocks += [Heading(name), Grid(tuple(plots))]
    return blocks


def _heat_map(group: str, panel: Sequence[Any], ends: tuple[float, float]) -> Chart:
    words, places = distinct(panel, "word"), distinct(panel, "region")
    data = [
        {
            "region": row["region"], "word": row["word"], "similarity": row["similarity"],
            "tip": f"{row['region']}, {group}, {row['word']} ({row['kind']}): "
            f"{number(row['similarity'])}, n = {row['n']}",
        }
        for row in panel
    ]  # fmt: skip
    by_cell = {(row["region"], row["word"]): number(row["similarity"]) for row in panel}
    cells = [(one, *(by_cell.get((one, word), "–") for word in words)) for one in places]
    columns = ["Region", *(f"#{word}" for word in words)]
    table = Table.of(group, columns, cells, source="words")
    spec = charts.heat("rows", words, len(places), ends)
    label = f"Mean similarity of images of {group} to each word, by region"
    return Chart(label, spec, {"rows": data}, table, group)


def figures(result: AuditResult) -> Section | None:
    """Numbers of targets or regions against figures from outside, with their correlation."""
    found = rows(result, "outside")
    if not found:
        return None
    keys = ("model", "groups", "version", "metric", "figure")
    told = panels(rows(result, "outside_correlations"), *keys)
    plots = []
    for key, panel in panels(found, *keys).items():
        known = [row for row in panel if has(row["outside"]) and has(row["value"])]
        if known:
            plots.append(_scatter(key, known, told.get(key, [])))
    if not plots:
        return None
    note = (
        "A point a target or region: its figure from outside, and its number. r is Pearson's "
        "correlation; with few points its interval is wide, and a correlation is no cause. A name "
        "without room is in its tooltip."
    )
    return Section(
        "outside",
        "Against figures from outside",
        (Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS])), *_correlations(told)),
    )


def _scatter(key: tuple[str, ...], known: Sequence[Any], told: Sequence[Any]) -> Chart:
    model, groups, version, metric, figure = key
    data = [
        {
            "series": model, "name": row["subject"], "x": row["outside"], "y": row["value"],
            "low": row["low"], "high": row["high"], "fitted": row["fitted"],
            "tip": f"{row['subject']}: {figure} {number(row['outside'])}, {_named(metric)} "
            f"{number(row['value'])} {interval(row['low'], row['high'])}",
        }
        for row in sorted(known, key=lambda row: (row["outside"], row["subject"]))
    ]  # fmt: skip
    cells = [
        (row["subject"], number(row["outside"]), number(row["value"]),
         interval(row["low"], row["high"]))
        for row in known
    ]  # fmt: skip
    columns = ["Subject", f"#{figure}", f"#{_named(metric)}", "#Interval"]
    name = f"{_named(metric)} and {figure}, {model}: {scope(groups, version)}"
    pearson = next((row for row in told if row["kind"] == "pearson" and has(row["value"])), None)
    if pearson is not None:
        name += (
            f". r = {number(pearson['value'], 2)} "
            f"{interval(pearson['low'], pearson['high'], 2)}, p = {p_value(pearson['p_value'])}"
        )
    smooth = any(has(row["fitted"]) for row in known)
    spec = charts.scatter("rows", (figure, _named(metric)), (model,), smooth=smooth)
    table = Table.of(name, columns, cells, source="outside")
    return Chart(name, spec, {"rows": spread(data, charts.SCATTER_HEIGHT)}, table, name)


def _correlations(told: Any) -> list[Block]:
    if not told:
        return []
    cells = [
        (
            f"{_named(metric)} and {figure}", row["kind"], model, scope(groups, version),
            count(row["n"]), number(row["value"], 2), interval(row["low"], row["high"], 2),
            p_value(row["p_value"]), row["reason"] or "",
        )
        for (model, groups, version, metric, figure), some in told.items()
        for row in some
    ]  # fmt: skip
    columns = ["Pair", "Kind", "Model", "Groups", "#Points", "#r", "#Interval", "#p", "Reason"]
    return [Table.of("Correlations", columns, cells, source="outside_correlations")]


def _named(metric: str) -> str:
    first, separator, rest = metric.partition(", ")
    return f"{title(first)} of {rest}" if separator else title(first)


def labels(result: AuditResult) -> Section | None:
    """The labels that images of each group get most often, and to whom these labels lean."""
    found = rows(result, "labels")
    if not found:
        return None
    plots = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        plots.append(_shares(f"{model}, {scope(groups, version)}", panel))
    blocks: list[Block] = [Grid(tuple(plots[:MOST_PANELS]))]
    scored = rows(result, "label_scores")
    if scored:
        cells = [
            (row["label"], row["set"], number(row["value"]), row["model"],
             scope(row["groups"], row["version"]))
            for row in sorted(scored, key=lambda row: -row["value"])
        ]  # fmt: skip
        columns = ["Label", "Most frequent for", "#Association score", "Model", "Groups"]
        caption = "Labels of one group alone, and their association"
        blocks.append(Table.of(caption, columns, cells, source="label_scores"))
    return Section("labels", "Labels that images get", tuple(blocks))


def _shares(name: str, panel: Sequence[Any]) -> Chart:
    best: dict[str, float] = {}
    for row in panel:
        best[row["label"]] = max(best.get(row["label"], 0.0), row["share"])
    kept = sorted(best, key=lambda one: (-best[one], one))[:MOST_LABELS]
    place = {one: index for index, one in enumerate(kept)}
    shown = sorted((r for r in panel if r["label"] in place), key=lambda r: place[r["label"]])
    data = [
        {
            "label": row["label"], "series": row["group"], "share": row["share"],
            "tip": f"{row['label']}, {row['group']}: {count(row['count'])} images, "
            f"{100 * row['share']:.1f} %",
        }
        for row in shown
    ]  # fmt: skip
    groups = tuple(sorted(distinct(panel, "group")))
    by_cell = {(row["label"], row["group"]): count(row["count"]) for row in shown}
    cells = [(one, *(by_cell.get((one, group), "0") for group in groups)) for one in kept]
    table = Table.of(name, ["Label", *(f"#{group}" for group in groups)], cells, source="labels")
    spec = charts.bars("rows", groups, len(kept))
    return Chart(f"Shares of the most frequent labels: {name}", spec, {"rows": data}, table, name)
