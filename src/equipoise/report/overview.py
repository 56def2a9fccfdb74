"""Tables that stand side by side: the groups of every model, and the models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import SYMBOLS, Block, Chart, Grid, Section, Table
from equipoise.report.plots import Axis, scatter
from equipoise.report.summary import group_value_name
from equipoise.report.tables import panels, rows, scope
from equipoise.report.text import interval, number, percent, title
from equipoise.report.words import compares, contrast, has_shares

MOST_COLUMNS = 6

Key = tuple[str, str, str]


def group_table(result: AuditResult, metrics: Sequence[str]) -> Section | None:
    """Return the table by group of an audit; None where no finding has values by group.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.
    """
    places: dict[Key, dict[str, Finding]] = {}
    for metric in metrics:
        for one in result.findings:
            if one.metric == metric and any(not math.isnan(part.value) for part in one.by_group):
                columns = places.setdefault((one.model, one.groups, one.version), {})
                about = f" ({one.subject})" if one.subject else ""
                columns.setdefault(f"{group_value_name(one)}{about}", one)
    if not places:
        return None
    places = _tested(places)
    every = {name: one for columns in places.values() for name, one in columns.items()}
    # Numbers for the whole come before those of single subjects.
    titles = sorted(every, key=lambda name: bool(every[name].subject))[:MOST_COLUMNS]
    cells = [
        (part.group, model, scope(groups, version), part.n,
         *(_group_cell(part.group, columns.get(name)) for name in titles))
        for (model, groups, version), columns in places.items()
        if not {*titles}.isdisjoint(columns)
        for part in {part.group: part for one in columns.values() for part in one.by_group}.values()
    ]  # fmt: skip
    header = ["Group", "Model", "Attributes", "#n", *(f"#{name}" for name in titles)]
    caption = (
        f"Value with its interval for each group. {SYMBOLS[Verdict.DISPARITY]} marks the group "
        "that is worst off where the difference is a disparity."
    )
    table = Table.of(caption, header, cells, source="findings")
    return Section("groups", "Results by group", (table,))


def _tested(places: Mapping[Key, dict[str, Finding]]) -> dict[Key, dict[str, Finding]]:
    """Leave out versions without a verdict where another version of the model has one."""
    tested = {
        key
        for key, columns in places.items()
        if any(one.verdict != Verdict.NONE for one in columns.values())
    }
    known = {key[:2] for key in tested}
    return {key: own for key, own in places.items() if key in tested or key[:2] not in known}


def _group_cell(group: str, finding: Finding | None) -> str:
    own = next((one for one in finding.by_group if one.group == group), None) if finding else None
    if finding is None or own is None:
        return "–"
    if math.isnan(own.value):
        return own.note or "–"
    spec, share = spec_of(finding.metric), has_shares(finding)
    value = percent(own.value) if share else number(own.value)
    ends = interval(100 * own.low, 100 * own.high, 1) if share else interval(own.low, own.high)
    ends = "" if math.isnan(own.low) else f" {ends}"
    apart = contrast(finding)
    harmed = finding.verdict == Verdict.DISPARITY and spec.harm != "either"
    worst = harmed and apart is not None and apart[0] is own
    return f"{value}{ends}{f' {SYMBOLS[finding.verdict]}' if worst else ''}"


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
            blocks.append(_side_by_side({key: _whole(one) for key, one in found.items()}, caption))
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


def _whole(finding: Finding) -> str:
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
