"""Whom queries show first: at every K, by query, and over all queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding
from equipoise.report import charts_retrieval
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.charts_heat import tone
from equipoise.report.names import title
from equipoise.report.tables import panels, rows, scope
from equipoise.report.text import count, interval, number, percent

Row = Mapping[str, Any]

MOST_QUERIES, MOST_GROUPS = 20, 14
_NAMED = 3
_AXES = {
    "max_skew": "MaxSkew of the first K",
    "min_skew": "MinSkew of the first K",
    "ndkl": "NDKL of the first K",
}


def curves(result: AuditResult) -> Section | None:
    """Every measure at every K, over the band of chance."""
    found = [row for row in rows(result, "curves") if not row["query"]]
    if not found:
        return None
    plots = []
    for (groups, version, metric), panel in panels(found, "groups", "version", "metric").items():
        plot = _curve(panel, metric, scope(groups, version))
        if plot is not None:
            plots.append(plot)
    if not plots:
        return None
    note = (
        "Line: the mean over queries; the area around it: its interval. Grey: where the mean lies "
        "in 95 of 100 random orders. Among few images shares are uneven by chance, so a curve that "
        "stays within the grey says nothing of the model."
    )
    if any(math.isinf(row["value"]) for row in found):
        note += (
            " A curve has gaps where the mean is infinite: a group that is absent from the first "
            "K has a skew of −∞, so MinSkew often begins at a larger K."
        )
    return Section(
        "curves", "Every K, beside what chance gives", (Words((note,), "note"), Grid(tuple(plots)))
    )


def _curve(panel: Sequence[Row], metric: str, where: str) -> Chart | None:
    models = tuple(dict.fromkeys(str(row["model"]) for row in panel))
    data = [
        {
            "model": row["model"], "k": row["k"], "value": row["value"], "low": row["low"],
            "high": row["high"], "chance_low": row["chance_low"],
            "chance_high": row["chance_high"],
            "tip": f"{row['model']}, K = {row['k']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}, by chance {number(row['chance'])}",
        }
        for row in panel
        if math.isfinite(row["value"])
    ]  # fmt: skip
    if len(data) < 2:
        return None
    name = f"{title(metric)}: {where}"
    spec = charts_retrieval.curves("rows", _AXES.get(metric, metric), models)
    label = f"{name}, at every K; grey: the band of chance."
    return Chart(label, spec, {"rows": data}, None, name)


def queries(result: AuditResult) -> Section | None:
    """Shares among the first K of the queries that lean most, and the spread over queries.

    None of counterfactual sets, whose sections say both by subject.
    """
    if "proportions" in result.tables:
        return None
    blocks: list[Block] = [*_shares(result)]
    table = distributions(result, "Over the queries")
    if table is not None:
        blocks.append(table)
    if not blocks:
        return None
    return Section("queries", "Which queries lean most", tuple(blocks))


def _shares(result: AuditResult) -> list[Block]:
    found = [
        f for f in result.findings
        if f.metric == "max_skew" and f.by_group and not math.isnan(f.value)
    ]  # fmt: skip
    panelled: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in found:
        key = (finding.model, finding.groups, finding.version)
        panelled.setdefault(key, []).append(finding)
    plots = [
        _map(chosen, model, scope(groups, version))
        for (model, groups, version), chosen in panelled.items()
        if len(chosen[0].by_group) <= MOST_GROUPS
    ]
    if not plots:
        return []
    note = (
        f"Share of each group among the first K; up to {MOST_QUERIES} queries, largest excess over "
        "chance first. Compare with the group's share of the pool, in brackets."
    )
    return [Words((note,), "note"), Grid(tuple(plots))]


def _map(found: Sequence[Finding], model: str, where: str) -> Chart:
    ordered = sorted(found, key=lambda f: -f.excess if math.isfinite(f.excess) else 0.0)
    shown = ordered[:MOST_QUERIES]
    pooled: dict[str, int] = {}
    for finding in shown:
        for part in finding.by_group:
            pooled[part.group] = pooled.get(part.group, 0) + part.n
    total = max(1, sum(pooled.values()))
    names = {group: f"{group} ({100 * n / total:.0f} %)" for group, n in pooled.items()}
    data = [
        {
            "query": finding.subject or "the query", "group": names[part.group],
            "share": part.value, "shown": f"{100 * part.value:.0f} %",
            "tone": tone(part.value, 0.0, 1.0),
            "tip": f"{finding.subject}, {part.group}: {percent(part.value)} of the first, of "
            f"{part.n} in the pool",
        }
        for finding in shown
        for part in finding.by_group
        if not math.isnan(part.value)
    ]  # fmt: skip
    spec = charts_retrieval.shares("rows", tuple(names.values()), len(shown))
    name = f"{model}, {where}"
    return Chart(f"Shares among the first K by query: {name}", spec, {"rows": data}, None, name)


def distributions(result: AuditResult, caption: str, *, held: bool | None = None) -> Table | None:
    """Return the spread of every measure over queries, with its extremes by name.

    Parameters
    ----------
    result : AuditResult
    caption : str
    held : bool, optional
        Only measures that hold other attributes fixed, or only those that do not.
    """
    found = [
        row
        for row in rows(result, "query_distributions")
        if held is None or held == row["version"].startswith("within")
    ]
    if not found:
        return None
    cells = [
        (
            title(row["metric"]), row["model"], scope(row["groups"], row["version"]),
            number(row["mean"]), number(row["sd"]), number(row["lowest"]),
            f"{number(row['first_quartile'])}, {number(row['median'])}, "
            f"{number(row['third_quartile'])}",
            number(row["highest"]), _named(row["highest_queries"]), _named(row["lowest_queries"]),
            count(row["queries"]), count(row["not_estimable"]),
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Metric", "Model", "Groups", "#Mean", "#sd", "#Lowest", "#Quartiles", "#Highest",
        "Highest in", "Lowest in", "#Queries", "#Not estimable",
    ]  # fmt: skip
    return Table.of(caption, columns, cells, source="query_distributions")


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
