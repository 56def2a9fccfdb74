"""The models side by side, as a table and as points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.report.blocks import Badge, Block, Chart, Grid, Section, Table
from equipoise.report.comparison import compares
from equipoise.report.differences import side_by_side
from equipoise.report.names import title
from equipoise.report.plots import Axis, scatter
from equipoise.report.tables import scope
from equipoise.report.text import interval, number

MODELS_AS_COLUMNS = 5

Wholes = dict[tuple[str, str], dict[tuple[str, str], Finding]]


def models(result: AuditResult, pairs: Sequence[tuple[str, str]] = ()) -> Section | None:
    """Return the models side by side, as a table and as points.

    Parameters
    ----------
    result : AuditResult
    pairs : sequence of (str, str)
        Metrics to plot: the second against the first, one point a model.
    """
    if compares(result):
        tables = tuple(side_by_side(result))
        return Section("models", "The models side by side", tables) if tables else None
    wholes = _wholes(result)
    if len({model for found in wholes.values() for model, _ in found}) < 2:
        return None
    blocks: list[Block] = []
    for (groups, version), found in wholes.items():
        name = scope(groups, version)
        blocks.append(_side_by_side(found, name))
        plots = tuple(chart for x, y in pairs if (chart := _points(found, x, y, name)))
        blocks += [Grid(plots)] if plots else []
    return Section("models", "The models side by side", tuple(blocks))


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    every: Wholes = {}
    for f in result.findings:
        if f.model and not f.subject and f.family != Family.LEAF:
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
    caption = f"By {name}: value, interval and the verdict's symbol, none where described only"
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


def _points(found: Mapping[tuple[str, str], Finding], x: str, y: str, name: str) -> Chart | None:
    names = tuple(dict.fromkeys(model for model, _ in found))
    rows: list[dict[str, Any]] = [
        {
            "series": model,
            "x": across.value,
            "y": up.value,
            "tip": f"{model}: {title(x)} {number(across.value)}, {title(y)} {number(up.value)}",
        }
        for model in names
        if (across := found.get((model, x))) and (up := found.get((model, y)))
    ]
    if all(math.isnan(row["y"]) for row in rows):
        return None
    heading = f"{title(y)} against {title(x)}"
    label = f"{heading}, {name}, one point a model"
    return scatter(rows, label, Axis(title(x)), Axis(title(y)), title=heading, series=names)
