"""Models side by side; differences, ranking and disagreements of a comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.report import charts, comparison_charts
from equipoise.report.blocks import Badge, Block, Chart, Grid, Section, Table, Words
from equipoise.report.sections.tables import distinct, panels, rows, scope
from equipoise.report.text import count, interval, number, p_value, percent
from equipoise.report.words import title

MODELS_AS_COLUMNS = 5
_POINTS = ("accuracy", "worst_group_accuracy", "accuracy_gap")

Wholes = dict[tuple[str, str], dict[tuple[str, str], Finding]]


def models(result: AuditResult) -> Section | None:
    """The models side by side, as a table and as points."""
    wholes = _wholes(result)
    if len({model for found in wholes.values() for model, _ in found}) < 2:
        return None
    blocks: list[Block] = []
    for (groups, version), found in wholes.items():
        name = scope(groups, version)
        blocks.append(_side_by_side(found, name))
        plots = _points(found, name)
        if plots:
            blocks.append(Grid(tuple(plots)))
    return Section("models", "The models side by side", tuple(blocks))


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    every: Wholes = {}
    for f in result.findings:
        if not f.subject and f.family != Family.LEAF:
            every.setdefault((f.groups, f.version), {}).setdefault((f.model, f.metric), f)
    # A number without groups, such as accuracy, stands beside those of every grouping.
    grouped = {key: found for key, found in every.items() if key[0]}
    if not grouped:
        return every
    return {key: every.get(("", key[1]), {}) | found for key, found in grouped.items()}


def _side_by_side(found: dict[tuple[str, str], Finding], name: str) -> Table:
    """Metrics as rows while the models fit beside each other, else models as rows."""
    metrics = list(dict.fromkeys(metric for _, metric in found))
    names = list(dict.fromkeys(model for model, _ in found))
    caption = f"By {name}: value, interval and the verdict's symbol"
    if len(names) <= MODELS_AS_COLUMNS:
        cells = [(title(m), *(_cell(found.get((model, m))) for model in names)) for m in metrics]
        columns = ["Metric", *(f"#{model}" for model in names)]
    else:
        cells = [(model, *(_cell(found.get((model, m))) for m in metrics)) for model in names]
        columns = ["Model", *(f"#{title(metric)}" for metric in metrics)]
    return Table.of(caption, columns, cells, source="findings")


def _cell(finding: Finding | None) -> str:
    if finding is None or math.isnan(finding.value):
        return "–"
    mark = "" if finding.verdict == Verdict.NONE else f" {Badge(finding.verdict).symbol}"
    return f"{number(finding.value)} {interval(finding.ci_low, finding.ci_high)}{mark}"


def _points(found: dict[tuple[str, str], Finding], name: str) -> list[Chart]:
    names = tuple(dict.fromkeys(model for model, _ in found))
    height = next((m for m in ("skewsize", "effect_size_mean") if _known(found, names, m)), None)
    if height is None:
        return []
    plots = []
    for metric in _POINTS:
        data = [
            {"model": model, "x": x.value, "y": y.value,
             "tip": f"{model}: {title(metric)} {number(x.value)}, "
             f"{title(height)} {number(y.value)}"}
            for model in names
            if (x := found.get((model, metric))) and (y := found.get((model, height)))
        ]  # fmt: skip
        if data:
            label = f"{title(height)} against {title(metric)}, {name}, one point a model"
            spec = comparison_charts.model_points("rows", title(metric), title(height), names)
            plots.append(
                Chart(label, spec, {"rows": data}, None, f"{title(height)} against {title(metric)}")
            )
    return plots


def _known(found: dict[tuple[str, str], Finding], names: Sequence[str], metric: str) -> bool:
    values = [found[model, metric].value for model in names if (model, metric) in found]
    return any(not math.isnan(value) for value in values)


def differences(result: AuditResult) -> Section | None:
    """Paired differences between models with intervals and tests."""
    found = rows(result, "differences")
    if not found:
        return None
    note = (
        "Each line is the first model minus the second on the same images; 0 means no difference."
    )
    plots = []
    for (groups, version), panel in panels(found, "groups", "version").items():
        data = [_difference_row(row) for row in panel if not math.isnan(row["difference"])][:60]
        if data:
            spec = charts.estimates(
                "rows", distinct(data, "verdict"), len(data), zero=True, title="difference"
            )
            name = scope(groups, version)
            plots.append(
                Chart(f"Differences between models, {name}", spec, {"rows": data}, None, name)
            )
    columns = ["Metric", "Class", "Groups", "Models", "#First", "#Second", "#Difference",
               "#Interval", "#q", "#Images", "Verdict", "Reason"]  # fmt: skip
    cells = [
        (
            title(r["metric"]), r["subject"] or "", scope(r["groups"], r["version"]),
            f"{r['model_a']} − {r['model_b']}", number(r["value_a"]), number(r["value_b"]),
            number(r["difference"]), interval(r["low"], r["high"]), p_value(r["q_value"]),
            count(r["n"]), Badge(Verdict(r["verdict"])), r["reason"] or "",
        )
        for r in found
    ]  # fmt: skip
    table = Table.of("Differences", columns, cells, source="differences")
    blocks: list[Block] = [Words((note,), "note"), *plots, table]
    return Section("differences", "How the models differ", tuple(blocks))


def _difference_row(row: Any) -> dict[str, Any]:
    subject = f", {row['subject']}" if row["subject"] else ""
    label = f"{title(row['metric'])}{subject}"
    pair = f"{row['model_a']} − {row['model_b']}"
    return {
        "label": f"{label}: {pair}", "value": row["difference"], "low": row["low"],
        "high": row["high"], "verdict": row["verdict"],
        "tip": f"{label}: {pair} = {number(row['difference'])} {interval(row['low'], row['high'])}",
    }  # fmt: skip


def ranking(result: AuditResult) -> Section | None:
    """The order of the models per metric, with the ranks that the data leave open."""
    # A metric that cannot be estimated for a model ranks it nowhere.
    found = [row for row in rows(result, "ranking") if row["rank"] is not None]
    if not found:
        return None
    plots = []
    for (metric, groups), panel in panels(found, "metric", "groups").items():
        keys = ("model", "rank", "rank_low", "rank_high")
        data = [
            {key: row[key] for key in keys}
            | {"tip": f"{row['model']}: {number(row['value'])}, rank {row['rank']}"}
            for row in sorted(panel, key=lambda row: row["rank"])
        ]
        name = f"{title(metric)}, {groups}"
        spec = comparison_charts.ranking("rows", len(data))
        plots.append(Chart(f"Ranks of the models: {name}", spec, {"rows": data}, None, name))
    columns = ["Metric", "Groups", "Model", "#Value", "#Rank", "Rank from, to", "#Best in"]
    cells = [
        (
            title(r["metric"]), r["groups"], r["model"], number(r["value"]), str(r["rank"]),
            f"{r['rank_low']} to {r['rank_high']}", percent(r["share_best"]),
        )
        for r in found
    ]  # fmt: skip
    note = (
        "The line spans the ranks that resampling the images gives a model; “best in” is the share "
        "of the resamples in which it came first."
    )
    table = Table.of("Ranking", columns, cells, source="ranking")
    return Section(
        "ranking", "Which model ranks first", (Words((note,), "note"), Grid(tuple(plots)), table)
    )


def disagreements(result: AuditResult) -> Section | None:
    """Where two metrics prefer different models."""
    found = rows(result, "disagreements")
    if not found:
        return None
    items = tuple(f"{row['groups']}: {row['sentence']}" for row in found[:60])
    return Section("disagreements", "Where metrics disagree", (Words(items, "list"),))
