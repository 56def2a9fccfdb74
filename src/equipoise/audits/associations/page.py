"""The page of an audit of associations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Block, Chart, Fold, Grid, Heading, Section, Table, Words
from equipoise.report.mark_names import spread
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import SCATTER_HEIGHT, Axis, bars, heat_map, intervals, scatter, tone
from equipoise.report.tables import Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, listed, number, p_value, percent
from equipoise.report.words import figures

MOST_TARGETS, MOST_PANELS, MOST_LABELS = 40, 24, 15
MODALITIES = ("II", "ITP", "ITA", "TT")
_PLACE = ("model", "groups", "version")
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
    split: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in result.findings:
        repeats = finding.reason.startswith(_REPEATS)
        if finding.metric in _SCORES and has(finding.value) and not repeats:
            key = (finding.metric, finding.groups, finding.model)
            split.setdefault(key, []).append(finding)
    if not split:
        return None
    ordered = sorted(split.items(), key=lambda item: _SCORES.index(item[0][0]))
    charts = [_scores(result, *key, panel) for key, panel in ordered[:MOST_PANELS]]
    blocks = (Words((_HOW,), "note"), Grid(tuple(charts)), *summaries(result))
    return Section("scores", "Results by target", blocks)


def _scores(
    result: AuditResult, metric: str, groups: str, model: str, panel: Sequence[Finding]
) -> Chart:
    values: dict[str, list[float]] = {}
    for finding in panel:
        values.setdefault(finding.subject, []).append(finding.value)
    largest = sorted(values, key=lambda name: -max(map(abs, values[name])))[:MOST_TARGETS]
    shown = sorted(
        (finding for finding in panel if finding.subject in largest),
        key=lambda f: (-math.fsum(values[f.subject]) / len(values[f.subject]), f.subject),
    )
    points = [
        {
            "label": f.subject, "series": f.version, "value": f.value, "low": f.ci_low,
            "high": f.ci_high, "chance_low": f.chance_low, "chance_high": f.chance_high,
            "tip": f"{f.subject} ({f.version}), {f.verdict.value}: {figures(f)}",
        }
        for f in shown
    ]  # fmt: skip
    name = f"{title(metric)}, {model}: {groups}"
    if len(values) > len(largest):
        name += f" ({len(largest)} largest of {count(len(values))})"
    series = sorted({f.version for f in shown}, key=_modality_first)
    axis = Axis("" if metric in ("weat", "differential_association") else sides(groups), zero=True)
    label = f"{name}. Value, interval and chance band of each target."
    chart = intervals(points, label, axis, title=name, series=series)
    return Chart(label, chart.spec, chart.data, _score_table(result, name, shown), name)


def sides(groups: str) -> str:
    """Return which set is on which side of 0, for two sets that are compared."""
    first, separator, second = groups.partition(" against ")
    return f"← closer to {second} · closer to {first} →" if separator else ""


def _modality_first(version: str) -> tuple[int, str]:
    first = version.split(", ", maxsplit=1)[0]
    return (MODALITIES.index(first) if first in MODALITIES else len(MODALITIES), version)


def _score_table(result: AuditResult, name: str, shown: Sequence[Finding]) -> Table:
    categories = {row["target"]: row["category"] for row in rows(result, "target_categories")}
    cells = [
        (
            f.subject, categories.get(f.subject, ""), _version(f.version), number(f.value),
            interval(f.ci_low, f.ci_high), interval(f.chance_low, f.chance_high),
            "" if f.verdict == Verdict.NONE else f.verdict.value, f.direction,
        )
        for f in shown
    ]  # fmt: skip
    columns = ["Target", "Category", "Compared", "#Value", "#Interval", "#Chance band", "Verdict",
               "~In words"]  # fmt: skip
    return Table.of(name, columns, cells, source="findings")


def _version(version: str) -> str:
    return "" if version == "default" else version


def summaries(result: AuditResult) -> list[Block]:
    """Return mean and spread of scores by category and direction, folded."""
    summarized = rows(result, "score_summaries")
    if not summarized:
        return []
    cells = [
        (
            row["category"], _direction(row), row["model"], title(row["metric"]),
            _version(row["version"]), count(row["targets"]), number(row["mean"]),
            number(row["sd"]),
        )
        for row in summarized
    ]  # fmt: skip
    columns = ["Category", "Direction", "Model", "Score", "Compared", "#Targets", "#Mean", "#Sd"]
    table = Table.of("Scores by category and direction", columns, cells, source="score_summaries")
    return [Fold("Mean and spread of scores by category", (table,))]


def _direction(row: Row) -> str:
    first, _, second = row["groups"].partition(" against ")
    return {"first": f"to {first}", "second": f"to {second}"}.get(row["direction"], "both")


def parts(result: AuditResult) -> Section | None:
    """Return the four parts of MCAS of each target, stacked."""
    table = rows(result, "mcas_parts")
    if not table:
        return None
    charts = [
        _stack(f"{model}, {scope(groups, version)}", groups, panel)
        for (model, groups, version), panel in panels(table, *_PLACE).items()
    ]
    text = (
        "A bar is one of the four associations that add up to MCAS. The diamond is their sum. "
        "Bars on both sides of 0 cancel each other."
    )
    return Section("mcas", "Parts of MCAS", (Words((text,), "note"), Grid(_first(charts))))


def _stack(name: str, groups: str, panel: Sequence[Row]) -> Chart:
    by_target = {target: own for (target,), own in panels(panel, "target").items()}
    totals = {target: sum(row["value"] for row in own) for target, own in by_target.items()}
    kept = sorted(totals, key=lambda target: -abs(totals[target]))[:MOST_TARGETS]
    kept.sort(key=lambda target: -totals[target])
    points = [
        {
            "label": target, "series": row["part"], "value": row["value"],
            "total": totals[target],
            "tip": f"{target}, {row['part']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}; MCAS {number(totals[target])}",
        }
        for target in kept
        for row in by_target[target]
    ]  # fmt: skip
    cells = []
    for target in kept:
        by_part = {row["part"]: number(row["value"]) for row in by_target[target]}
        own = (by_part.get(part, "–") for part in MODALITIES)
        cells.append((target, *own, number(totals[target])))
    columns = ["Target", *(f"#{part}" for part in MODALITIES), "#MCAS"]
    chart = bars(
        points, f"MCAS by its parts: {name}", Axis(sides(groups)), title=name,
        series=MODALITIES, stacked=True,
    )  # fmt: skip
    return _with_table(chart, Table.of(name, columns, cells, source="mcas_parts"))


def _with_table(chart: Chart, table: Table) -> Chart:
    return Chart(chart.label, chart.spec, chart.data, table, chart.title)


def _first(charts: Sequence[Chart]) -> tuple[Chart, ...]:
    return tuple(charts[:MOST_PANELS])


def amplification(result: AuditResult) -> Section | None:
    """Return bias amplification against diffusion bias of each target."""
    table = rows(result, "amplification")
    if not table:
        return None
    charts, lost = [], []
    for key, panel in panels(table, *_PLACE).items():
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
    blocks: list[Block] = [Words((text,), "note")]
    blocks += [Words(tuple(lost), "list")] if lost else []
    blocks += [Grid(_first(charts))] if charts else []
    return Section("amplification", "Images against the texts that made them", tuple(blocks))


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
    return _with_table(chart, Table.of(name, columns, cells, source="amplification"))


def further(result: AuditResult) -> Section | None:
    """Return the angle of each target under xMCAS, and its similarity to further groups."""
    table = rows(result, "xmcas")
    if not table:
        return None
    cells = []
    for (model, groups, version, target), panel in panels(table, *_PLACE, "target").items():
        by_part = {row["part"]: row for row in panel if not row["group"]}
        near = [f"{r['group']} {number(r['value'])}" for r in panel if r["part"] == "similarity"]
        cells.append(
            (
                target, f"{model}, {scope(groups, version)}", number(panel[0]["theta"]),
                number(panel[0]["neutral"]), number(by_part["euclidean"]["value"]),
                number(by_part["mcas"]["value"]), ", ".join(near),
            )
        )  # fmt: skip
    columns = ["Target", "Model", "#Angle (rad)", "#Neutral (rad)", "#Distance", "#MCAS",
               "Similarity to further groups"]  # fmt: skip
    text = (
        "The angle compares how close a target is to further groups with its association with the "
        "first two. Below the neutral angle further groups are under-represented."
    )
    blocks = (
        Words((text,), "note"), Table.of("xMCAS by target", columns, cells, source="xmcas")
    )  # fmt: skip
    return Section("further", "Further groups (xMCAS)", blocks)


def totals(result: AuditResult) -> Section | None:
    """Return the total absolute association of every model over the same targets."""
    table = rows(result, "totals")
    if len(distinct(table, "model")) < 2:
        return None
    text = "The sizes of the associations of all targets, added up. Grey: up to the mean by chance."
    charts = [
        _totals(scope(groups, version), panel)
        for (groups, version), panel in panels(table, "groups", "version").items()
    ]
    blocks = (Words((text,), "note"), Grid(_first(charts)))
    return Section("totals", "Total association by model", blocks)


def _totals(name: str, panel: Sequence[Row]) -> Chart:
    points = [
        {
            "label": row["model"], "value": row["value"], "low": row["low"], "high": row["high"],
            "chance_low": 0.0, "chance_high": row["chance"],
            "tip": f"{row['model']}: {number(row['value'])} {interval(row['low'], row['high'])}, "
            f"by chance {number(row['chance'])}",
        }
        for row in panel
    ]  # fmt: skip
    cells = [
        (row["model"], number(row["value"]), interval(row["low"], row["high"]),
         number(row["chance"]), count(row["targets"]))
        for row in panel
    ]  # fmt: skip
    columns = ["Model", "#Total", "#Interval", "#By chance", "#Targets"]
    label = f"Total absolute association: {name}"
    chart = intervals(points, label, Axis("total", zero=True), title=name)
    return _with_table(chart, Table.of(name, columns, cells, source="totals"))


def regions(result: AuditResult) -> Section | None:
    """Return the results by region and group, and similarities to each word."""
    known = [row for row in rows(result, "regions") if has(row["value"])]
    charts = [
        _by_region(f"{title(metric)}, {model}: {scope(groups, version)}", panel)
        for (metric, model, groups, version), panel in panels(known, "metric", *_PLACE).items()
    ]
    maps = [*_word_maps(result)]
    if not charts and not maps:
        return None
    text = (
        "Trend: similarity to positive words minus similarity to negative words; left is less "
        "favourable. Gender difference: groups far apart differ in their similarity to all words."
    )
    front: list[Block] = [Words((text,), "note"), Grid(_first(charts))] if charts else []
    return Section("regions", "Results by region and word", (*front, *maps))


def _by_region(name: str, panel: Sequence[Row]) -> Chart:
    points = [
        {
            "label": row["region"], "series": row["group"], "value": row["value"],
            "low": row["low"], "high": row["high"],
            "tip": f"{row['region']}, {row['group']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}, n = {row['n']}",
        }
        for row in panel
    ]  # fmt: skip
    cells = [
        (row["region"], row["group"], number(row["value"]), interval(row["low"], row["high"]),
         count(row["n"]))
        for row in panel
    ]  # fmt: skip
    columns = ["Region", "Group", "#Value", "#Interval", "#Images"]
    label = f"{name}, by region and group"
    chart = intervals(points, label, Axis(zero=True), title=name, series=distinct(panel, "group"))
    return _with_table(chart, Table.of(name, columns, cells, source="regions"))


def _word_maps(result: AuditResult) -> Iterator[Block]:
    known = [row for row in rows(result, "words") if has(row["similarity"])]
    for (model, groups, version), panel in panels(known, *_PLACE).items():
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
    return _with_table(chart, Table.of(group, columns, cells, source="words"))


def external(result: AuditResult) -> Section | None:
    """Return the results of targets or regions against external figures."""
    keys = (*_PLACE, "metric", "figure")
    related = panels(rows(result, "outside_correlations"), *keys)
    known = [row for row in rows(result, "outside") if has(row["outside"]) and has(row["value"])]
    charts = [
        _against(key, panel, related.get(key, [])) for key, panel in panels(known, *keys).items()
    ]
    if not charts:
        return None
    text = (
        "A point is a target or a region. r is Pearson's correlation; with few points its interval "
        "is wide. A correlation is no cause."
    )
    blocks: tuple[Block, ...] = (Words((text,), "note"), Grid(_first(charts)))
    blocks += (_correlations(related),) if related else ()
    return Section("external", "Against external figures", blocks)


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
    return _with_table(chart, Table.of(name, columns, cells, source="outside"))


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
    table = rows(result, "labels")
    if not table:
        return None
    charts = [
        _shares(f"{model}, {scope(groups, version)}", panel)
        for (model, groups, version), panel in panels(table, *_PLACE).items()
    ]
    blocks: list[Block] = [Grid(_first(charts))]
    scored = rows(result, "label_scores")
    if scored:
        cells = [
            (row["label"], row["set"], number(row["value"]), row["model"],
             scope(row["groups"], row["version"]))
            for row in sorted(scored, key=lambda row: -row["value"])
        ]  # fmt: skip
        columns = ["Label", "Most frequent for", "#Association score", "Model", "Groups"]
        caption = "Labels frequent for one group only, and their association"
        blocks.append(Table.of(caption, columns, cells, source="label_scores"))
    return Section("labels", "Predicted labels by group", tuple(blocks))


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
    return _with_table(chart, Table.of(name, columns, cells, source="labels"))


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
