"""The page of an audit of associations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from equipoise.audits.engines.associations.charts import (
    MODALITIES,
    PLACE,
    interval_chart,
    largest,
    section_of,
    sides,
    xmcas_table,
)
from equipoise.audits.engines.associations.charts import scores as scores_by_target
from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Chart, Grid, Heading, Section, Table, Words
from equipoise.report.mark_names import spread
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import SCATTER_HEIGHT, Axis, bars, heat_map, scatter, tone
from equipoise.report.tables import Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, listed, number, p_value, percent

MOST_LABELS = 15
_SCORES = ("association_score", "mcas", "sc_weat", "weat", "differential_association")
_REPEATS = "the same test as weat"
_HOW = (
    "Point: the value. Line: its interval. Grey band: 95 of 100 random exchanges of the two sets' "
    "members. II: images with images. ITP: texts of the target with images of the groups. ITA: "
    "images of the target with texts of the groups. TT: texts with texts."
)


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return the items and the targets."""
    resolved, counts = result.manifest.resolved, result.manifest.counts
    tables = [
        f"{name}: {count(counts.get(name, {}).get('rows', 0))} {section['kind']}s"
        for name, section in resolved.get("data", {}).items()
    ]
    targets = [
        name
        for options in resolved.get("measure", ())
        for names in (options.get("targets") or {}).values()
        for name in names
    ]
    return (("Items", "; ".join(tables)), ("Targets", listed([*dict.fromkeys(targets)], 12)))


def scores(result: AuditResult) -> Section | None:
    """Return the scores of all targets, by metric, groups and model."""
    findings = [
        finding
        for finding in result.findings
        if finding.metric in _SCORES and not finding.reason.startswith(_REPEATS)
    ]
    findings.sort(key=lambda finding: _SCORES.index(finding.metric))
    return scores_by_target(result, findings, _HOW)


def parts(result: AuditResult) -> Section | None:
    """Return the four parts of MCAS of each target, stacked."""
    text = (
        "A bar is one of the four associations that add up to MCAS. The diamond is their sum. "
        "Bars on both sides of 0 cancel each other."
    )
    charts = [
        _stack(f"{model}, {scope(groups, version)}", groups, panel)
        for (model, groups, version), panel in panels(rows(result, "mcas_parts"), *PLACE).items()
    ]
    return section_of("mcas", "Parts of MCAS", text, charts)


def _stack(name: str, groups: str, panel: Sequence[Row]) -> Chart:
    by_target = {target: own for (target,), own in panels(panel, "target").items()}
    totals = {target: sum(row["value"] for row in own) for target, own in by_target.items()}
    points, cells = [], []
    for target in largest(totals):
        by_part = {row["part"]: number(row["value"]) for row in by_target[target]}
        own = (by_part.get(part, "–") for part in MODALITIES)
        cells.append((target, *own, number(totals[target])))
        points += [
            {
                "label": target, "series": row["part"], "value": row["value"],
                "total": totals[target],
                "tip": f"{target}, {row['part']}: {number(row['value'])} "
                f"{interval(row['low'], row['high'])}; MCAS {number(totals[target])}",
            }
            for row in by_target[target]
        ]  # fmt: skip
    columns = ["Target", *(f"#{part}" for part in MODALITIES), "#MCAS"]
    chart = bars(
        points, f"MCAS by its parts: {name}", Axis(sides(groups)), title=name,
        series=MODALITIES, stacked=True,
    )  # fmt: skip
    return replace(chart, table=Table.of(name, columns, cells, source="mcas_parts"))


def amplification(result: AuditResult) -> Section | None:
    """Return bias amplification against diffusion bias of each target."""
    charts, lost = [], []
    for key, panel in panels(rows(result, "amplification"), *PLACE).items():
        name = f"{key[0]}, {scope(key[1], key[2])}"
        known = [row for row in panel if has(row["bias_amplification"])]
        if missing := [row["target"] for row in panel if not has(row["bias_amplification"])]:
            lost.append(
                f"{name}: no estimate for {listed(missing, 12)}. Their texts may have no "
                "association, and the ratio would explode."
            )
        if known:
            charts.append(_amplified(name, known, panel))
    text = (
        "Right: the images' association differs more in size from that of their texts. Up: images "
        "and texts together have a stronger association than the texts; above 1 it is amplified. "
        "Dashed: local regression, from five points on."
    )
    more = (Words(tuple(lost), "list"),) if lost else ()
    heading = "Images against the texts that made them"
    return section_of("amplification", heading, text, charts, *more)


def _amplified(name: str, known: Sequence[Row], panel: Sequence[Row]) -> Chart:
    points = [
        {
            "series": row["model"], "name": row["target"], "x": row["diffusion_bias"],
            "y": row["bias_amplification"], "y_low": row["amplification_low"],
            "y_high": row["amplification_high"], "fitted": row["fitted"],
            "tip": f"{row['target']}: diffusion bias {number(row['diffusion_bias'])}, "
            f"amplification {number(row['bias_amplification'])} "
            f"{interval(row['amplification_low'], row['amplification_high'])}",
        }
        for row in sorted(known, key=lambda row: (row["diffusion_bias"], row["target"]))
    ]  # fmt: skip
    cells = [
        (
            row["target"], number(row["diffusion_bias"]),
            interval(row["diffusion_low"], row["diffusion_high"]),
            number(row["bias_amplification"]),
            interval(row["amplification_low"], row["amplification_high"]), row["reason"] or "",
        )
        for row in panel
    ]  # fmt: skip
    columns = ["Target", "#Diffusion bias", "#Interval", "#Amplification", "#Its interval", "Note"]
    label = f"Bias amplification against diffusion bias: {name}"
    axes = Axis("diffusion bias"), Axis("bias amplification")
    chart = scatter(
        spread(points, SCATTER_HEIGHT), label, *axes, title=name, series=distinct(known, "model")
    )
    return replace(chart, table=Table.of(name, columns, cells, source="amplification"))


def further(result: AuditResult) -> Section | None:
    """Return the angle of each target under xMCAS, and its similarity to further groups."""
    table = rows(result, "xmcas")
    if not table:
        return None
    text = (
        "The angle compares how close a target is to further groups with its association with the "
        "first two. Below the neutral angle further groups are under-represented."
    )
    blocks = (Words((text,), "note"), xmcas_table(table, "xmcas"))
    return Section("further", "Further groups (xMCAS)", blocks)


def totals(result: AuditResult) -> Section | None:
    """Return the total absolute association of every model over the same targets."""
    table = rows(result, "totals")
    if len(distinct(table, "model")) < 2:
        return None
    text = "The sizes of the associations of all targets, added up. Grey: up to the mean by chance."
    more = {
        "#By chance": lambda row: number(row["chance"]),
        "#Targets": lambda row: count(row["targets"]),
    }
    charts = [
        interval_chart(
            panel, scope(groups, version), Axis("total", zero=True), ["model"], "totals", more
        )
        for (groups, version), panel in panels(table, "groups", "version").items()
    ]
    return section_of("totals", "Total association by model", text, charts)


def regions(result: AuditResult) -> Section | None:
    """Return the results by region and group, and similarities to each word."""
    known = [row for row in rows(result, "regions") if has(row["value"])]
    charts = [
        interval_chart(
            panel, f"{title(metric)}, {model}: {scope(groups, version)}", Axis(zero=True),
            ["region", "group"], "regions", {"#Images": lambda row: count(row["n"])},
            series=distinct(panel, "group"),
        )
        for (metric, model, groups, version), panel in panels(known, "metric", *PLACE).items()
    ]  # fmt: skip
    text = (
        "Trend: similarity to positive words minus similarity to negative words; left is less "
        "favourable. Gender difference: groups far apart differ in their similarity to all words."
    )
    heading = "Results by region and word"
    return section_of("regions", heading, text, charts, *_word_maps(result))


def _word_maps(result: AuditResult) -> Iterator[Block]:
    known = [row for row in rows(result, "words") if has(row["similarity"])]
    for (model, groups, version), panel in panels(known, *PLACE).items():
        values = [row["similarity"] for row in panel]
        legend = Axis("mean similarity", domain=(min(values), max(values)))
        yield Heading(f"Similarity to each word: {model}, {scope(groups, version)}")
        by_group = panels(panel, "group")
        yield Grid(tuple(_word_map(group, own, legend) for (group,), own in by_group.items()))


def _word_map(group: str, panel: Sequence[Row], legend: Axis) -> Chart:
    ends = legend.domain or (0.0, 1.0)
    points = [
        {
            "row": row["region"], "column": row["word"], "value": row["similarity"],
            "shown": number(row["similarity"], 2), "tone": tone(row["similarity"], *ends),
            "tip": f"{row['region']}, {group}, {row['word']} ({row['kind']}): "
            f"{number(row['similarity'])}, n = {row['n']}",
        }
        for row in panel
    ]  # fmt: skip
    words = distinct(panel, "word")
    by_cell = {(row["region"], row["word"]): number(row["similarity"]) for row in panel}
    cells = [
        (region, *(by_cell.get((region, word), "–") for word in words))
        for region in distinct(panel, "region")
    ]
    label = f"Mean similarity of images of {group} to each word, by region"
    chart = heat_map(points, label, legend, columns=words, title=group)
    columns = ["Region", *(f"#{word}" for word in words)]
    return replace(chart, table=Table.of(group, columns, cells, source="words"))


def external(result: AuditResult) -> Section | None:
    """Return the results of targets or regions against external figures."""
    keys = (*PLACE, "metric", "figure")
    related = panels(rows(result, "outside_correlations"), *keys)
    known = [row for row in rows(result, "outside") if has(row["outside"]) and has(row["value"])]
    charts = [
        _against(key, panel, related.get(key, [])) for key, panel in panels(known, *keys).items()
    ]
    text = (
        "A point is a target or a region. r is Pearson's correlation; with few points its interval "
        "is wide. A correlation is no cause."
    )
    more = (_correlations(related),) if related and charts else ()
    return section_of("external", "Against external figures", text, charts, *more)


def _against(key: tuple[str, ...], panel: Sequence[Row], related: Sequence[Row]) -> Chart:
    model, groups, version, metric, figure = key
    points = [
        {
            "series": model, "name": row["subject"], "x": row["outside"], "y": row["value"],
            "y_low": row["low"], "y_high": row["high"], "fitted": row["fitted"],
            "tip": f"{row['subject']}: {figure} {number(row['outside'])}, {_named(metric)} "
            f"{number(row['value'])} {interval(row['low'], row['high'])}",
        }
        for row in sorted(panel, key=lambda row: (row["outside"], row["subject"]))
    ]  # fmt: skip
    cells = [
        (row["subject"], number(row["outside"]), number(row["value"]),
         interval(row["low"], row["high"]))
        for row in panel
    ]  # fmt: skip
    name = f"{_named(metric)} and {figure}, {model}: {scope(groups, version)}"
    for row in related:
        if row["kind"] == "pearson" and has(row["value"]):
            ends = interval(row["low"], row["high"], 2)
            name += f". r = {number(row['value'], 2)} {ends}, p = {p_value(row['p_value'])}"
    columns = ["Subject", f"#{figure}", f"#{_named(metric)}", "#Interval"]
    axes = Axis(figure), Axis(_named(metric))
    chart = scatter(spread(points, SCATTER_HEIGHT), name, *axes, title=name, series=(model,))
    return replace(chart, table=Table.of(name, columns, cells, source="outside"))


def _correlations(related: Mapping[tuple[str, ...], Sequence[Row]]) -> Table:
    cells = [
        (
            f"{_named(metric)} and {figure}", row["kind"], model, scope(groups, version),
            count(row["n"]), number(row["value"], 2), interval(row["low"], row["high"], 2),
            p_value(row["p_value"]), row["reason"] or "",
        )
        for (model, groups, version, metric, figure), some in related.items()
        for row in some
    ]  # fmt: skip
    columns = ["Pair", "Kind", "Model", "Groups", "#Points", "#r", "#Interval", "#p", "Note"]
    return Table.of("Correlations", columns, cells, source="outside_correlations")


def _named(metric: str) -> str:
    first, separator, rest = metric.partition(", ")
    return f"{title(first)} of {rest}" if separator else title(first)


def labels(result: AuditResult) -> Section | None:
    """Return the labels predicted most often for each group, and their associations."""
    charts = [
        _shares(f"{model}, {scope(groups, version)}", panel)
        for (model, groups, version), panel in panels(rows(result, "labels"), *PLACE).items()
    ]
    cells = [
        (row["label"], row["set"], number(row["value"]), row["model"],
         scope(row["groups"], row["version"]))
        for row in sorted(rows(result, "label_scores"), key=lambda row: -row["value"])
    ]  # fmt: skip
    columns = ["Label", "Most frequent for", "#Association score", "Model", "Groups"]
    caption = "Labels frequent for one group only, and their association"
    scored = Table.of(caption, columns, cells, source="label_scores")
    text = "Bars of different length show labels that one group gets more often."
    more = (scored,) if cells else ()
    return section_of("labels", "Predicted labels by group", text, charts, *more)


def _shares(name: str, panel: Sequence[Row]) -> Chart:
    best: dict[str, float] = {}
    for row in panel:
        best[row["label"]] = max(best.get(row["label"], 0.0), row["share"])
    kept = sorted(best, key=lambda label: (-best[label], label))[:MOST_LABELS]
    by_cell = {(row["label"], row["group"]): row for row in panel}
    groups = sorted(distinct(panel, "group"))
    points = [
        {
            "label": row["label"], "series": row["group"], "value": row["share"],
            "tip": f"{row['label']}, {row['group']}: {count(row['count'])} images, "
            f"{percent(row['share'])}",
        }
        for row in (by_cell.get((label, group)) for label in kept for group in groups)
        if row is not None
    ]  # fmt: skip
    counts = {cell: count(row["count"]) for cell, row in by_cell.items()}
    cells = [(label, *(counts.get((label, group), "0") for group in groups)) for label in kept]
    axis = Axis("share of the group's images", percent=True)
    label = f"Shares of the most frequent labels: {name}"
    chart = bars(points, label, axis, title=name, series=groups)
    columns = ["Label", *(f"#{group}" for group in groups)]
    return replace(chart, table=Table.of(name, columns, cells, source="labels"))


def sets(result: AuditResult) -> Section | None:
    """Return the sizes of the sets, and how many members each model knows."""
    table = rows(result, "sets")
    if not table:
        return None
    models = distinct(table, "model")
    cells = []
    for (name, kind, source), panel in panels(table, "set", "kind", "table").items():
        known = {row["model"]: row["embedded"] for row in panel}
        own = (count(known.get(model)) for model in models)
        cells.append((name, kind, source, count(panel[0]["members"]), *own))
    columns = ["Set", "Kind", "Table", "#Members", *(f"#With {model}" for model in models)]
    block = Table.of("Sets and their sizes", columns, cells, source="sets", limit=100)
    return Section("sets", "Sets", (block,))


PAGE = Page(
    leads=(
        "mcas", "weat", "association_score", "total_absolute_association", "sc_weat",
        "predicted_label_weat", "label_concentration", "gender_difference",
    ),
    by_group=(
        "label_concentration", "gender_difference", "trend", "association_score", "weat", "sc_weat",
    ),
    subjects="targets or regions",
    sections=(
        scores, parts, amplification, further, totals, regions, external, labels, sets,
    ),
    facts=facts,
)  # fmt: skip
