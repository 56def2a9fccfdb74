"""Parts of the pages of rankings: every K, shares by query, and the spread over queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from equipoise.core import AuditResult
from equipoise.report import plots
from equipoise.report.blocks import Chart, Grid, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.plots import Axis, heat_map, tone
from equipoise.report.tables import Row, distinct, panels, rows, scope
from equipoise.report.text import count, interval, number, percent

MOST_ROWS, MOST_GROUPS = 20, 14
_NAMED = 3
CAVEAT = (
    "Every trained model has preferences, and with many images even a small one has a small p. The "
    "number of disparities doesn't tell strong preferences from weak ones: read the excess over "
    "chance, and how far apart the similarities are."
)


def curves(result: AuditResult) -> Section | None:
    """Return the mean of every measure at every K, over the chance band."""
    means = [row for row in rows(result, "curves") if not row["query"]]
    charts = [*_curves(means)]
    if not charts:
        return None
    text = (
        "Line: mean over queries with its interval. Grey: where the mean lies in 95 of 100 random "
        "orders. Among few images shares are uneven by chance, so a curve within the grey shows no "
        "preference of the model."
    )
    if any(math.isinf(row["value"]) for row in means):
        text += (
            " A curve has gaps where the mean is infinite: a group without an image in the first K "
            "has a skew of −∞, so MinSkew often starts at a larger K."
        )
    return Section("curves", "Results at every K", (Words((text,), "note"), Grid(tuple(charts))))


def _curves(means: Sequence[Row]) -> Iterator[Chart]:
    for (groups, version, metric), panel in panels(means, "groups", "version", "metric").items():
        points = [
            {
                "x": row["k"], "series": row["model"], "value": row["value"], "low": row["low"],
                "high": row["high"], "chance_low": row["chance_low"],
                "chance_high": row["chance_high"],
                "tip": f"{row['model']}, K = {row['k']}: {number(row['value'])} "
                f"{interval(row['low'], row['high'])}, by chance {number(row['chance'])}",
            }
            for row in panel
            if math.isfinite(row["value"])
        ]  # fmt: skip
        if len(points) > 1:
            name = f"{title(metric)}, {scope(groups, version)}"
            axes = Axis("K: number of top images"), Axis(title(metric))
            models = distinct(panel, "model")
            label = f"{name}, at every K, over the chance band"
            yield plots.curves(points, label, *axes, title=name, series=models, marks=False)


def share_map(cells: Sequence[Row], pool: Mapping[str, int], name: str) -> Chart:
    """Draw each group's share of the first K, a row for each query.

    Parameters
    ----------
    cells : sequence of mapping
        Fields: query, group, share, tip; rows in the order of the map.
    pool : mapping of str to int
        Images of each group, which column titles show as shares.
    name : str
    """
    total = max(1, sum(pool.values()))
    names = {group: f"{group} ({100 * n / total:.0f} %)" for group, n in pool.items()}
    data = [
        {
            "row": cell["query"], "column": names[cell["group"]], "value": cell["share"],
            "shown": f"{100 * cell['share']:.0f} %", "tone": tone(cell["share"], 0.0, 1.0),
            "tip": f"{cell['query']}, {cell['group']}: {percent(cell['share'])} of the first K, "
            f"{cell['tip']}",
        }
        for cell in cells
    ]  # fmt: skip
    axis = Axis("share of the first K", percent=True)
    label = f"Shares of the first K by query: {name}"
    return heat_map(data, label, axis, columns=[*names.values()], title=name)


def distributions(result: AuditResult, caption: str, *, within: bool | None = None) -> Table | None:
    """Return the spread of every measure over queries, with its extremes by name.

    Parameters
    ----------
    result : AuditResult
    caption : str
    within : bool, optional
        Only measures that hold other attributes fixed, or only those that don't.
    """
    cells = [
        (
            title(row["metric"]), row["model"], scope(row["groups"], row["version"]),
            number(row["mean"]), number(row["sd"]), number(row["lowest"]),
            f"{number(row['first_quartile'])}, {number(row['median'])}, "
            f"{number(row['third_quartile'])}",
            number(row["highest"]), _named(row["highest_queries"]), _named(row["lowest_queries"]),
            count(row["queries"]), count(row["not_estimable"]),
        )
        for row in rows(result, "query_distributions")
        if within is None or within == is_within(row)
    ]  # fmt: skip
    if not cells:
        return None
    columns = [
        "Metric", "Model", "Attributes", "#Mean", "#SD", "#Lowest", "#Quartiles", "#Highest",
        "Highest in", "Lowest in", "#Queries", "#Not estimable",
    ]  # fmt: skip
    return Table.of(caption, columns, cells, source="query_distributions")


def is_within(row: Row) -> bool:
    """Return whether a row holds other attributes fixed."""
    return str(row["version"]).startswith("within")


def _named(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
