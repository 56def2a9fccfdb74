"""The models side by side, as a table and as points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.report.blocks import SYMBOLS, Block, Chart, Grid, Section, Table
from equipoise.report.comparison import compares
from equipoise.report.names import title
from equipoise.report.plots import Axis, scatter
from equipoise.report.tables import panels, rows, scope
from equipoise.report.text import interval, number

Wholes = dict[tuple[str, str], dict[tuple[str, str], Finding]]


def models(result: AuditResult, pairs: Sequence[tuple[str, str]] = ()) -> Section | None:
    """Return the models side by side, as a table and as points.

    Parameters
    ----------
    result : AuditResult
    pairs : sequence of (str, str)
        Metrics to plot: the second against the first, one point a model.
    """
    blocks: list[Block] = []
    if compares(result):
        for (groups,), panel in panels(rows(result, "ranking"), "groups").items():
            cells = {
                (row["model"], row["metric"]): f"{number(row['value'])} ({row['rank'] or '–'})"
                for row in panel
            }
            caption = f"Over {scope(groups, 'default')}: value, and rank in brackets"
            blocks.append(_side_by_side(cells, caption))
    else:
        wholes = _wholes(result)
        if len({model for found in wholes.values() for model, _ in found}) < 2:
            return None
        for key, found in wholes.items():
            name = scope(*key)
            caption = f"By {name}: value, interval and the verdict's symbol"
            blocks.append(_side_by_side({key: _cell(one) for key, one in found.items()}, caption))
            plots = tuple(chart for x, y in pairs if (chart := _points(found, x, y, name)))
            blocks.append(Grid(plots))
    return Section("models", "The models side by side", tuple(blocks)) if blocks else None


def _wholes(result: AuditResult) -> Wholes:
    """Findings over all classes: per groups and version, by model and metric."""
    every: Wholes = {}
    for f in result.findings:
        if f.model and not f.subject and f.family != Family.LEAF:
            every.setdefault((f.groups, f.version), {}).setdefault((f.model, f.metric), f)
    # A number without groups, such as accuracy, stands beside those of every grouping.
    grouped = {key: found for key, found in every.items() if key[0]}
    return {key: every.get(("", key[1]), {}) | found for key, found in (grouped or every).items()}


def _side_by_side(cells: Mapping[tuple[str, str], str], caption: str) -> Table:
    names = dict.fromkeys(model for model, _ in cells)
    values = [
        (title(metric), *(cells.get((model, metric)) for model in names))
        for metric in dict.fromkeys(metric for _, metric in cells)
    ]
    columns = ["Metric", *(f"#{model}" for model in names)]
    return Table.of(caption, columns, values, source="findings")


def _cell(finding: Finding) -> str:
    mark = "" if finding.verdict == Verdict.NONE else SYMBOLS[finding.verdict]
    return f"{number(finding.value)} {interval(finding.ci_low, finding.ci_high)} {mark}".strip()


def _points(found: Mapping[tuple[str, str], Finding], x: str, y: str, name: str) -> Chart | None:
    names = tuple(dict.fromkeys(model for model, _ in found))
    marks = [
        {
            "series": model,
            "x": across.value,
            "y": up.value,
            "tip": f"{model}: {title(x)} {number(across.value)}, {title(y)} {number(up.value)}",
        }
        for model in names
        if (across := found.get((model, x)))
        and (up := found.get((model, y)))
        and not math.isnan(up.value)
    ]
    if not marks:
        return None
    heading = f"{title(y)} against {title(x)}"
    label = f"{heading}, {name}, one point a model"
    return scatter(marks, label, Axis(title(x)), Axis(title(y)), title=heading, series=names)
