"""Parts of the pages of rankings: every K, shares by query, and the spread over queries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult
from equipoise.report import plots
from equipoise.report.blocks import (
    Chart,
    Grid,
    Row,
    Section,
    Table,
    Words,
    distinct,
    panels,
    points,
    rows,
    scope,
    scope_of,
    value_of,
)
from equipoise.report.plots import Axis, heat_map, tone
from equipoise.report.text import interval, listed, number, percent, title

MOST_ROWS, MOST_GROUPS = 20, 14
_NAMED, _QUARTILES = 3, "first_quartile median third_quartile"
CAVEAT = (
    "Every trained model has preferences, and with many images even a small one has a small p. The "
    "number of disparities doesn't tell strong preferences from weak ones: read the excess over "
    "chance, and how far apart the similarities are."
)


def curves(result: AuditResult) -> Section | None:
    """Return the mean of every measure at every K, over the chance band."""
    means = [row for row in rows(result, "curves") if not row["query"]]
    charts = []
    for (groups, version, metric), panel in panels(means, "groups", "version", "metric").items():
        name = f"{title(metric)}, {scope(groups, version)}"
        finite = [row for row in panel if math.isfinite(row["value"])]
        if len(finite) > 1:
            charts.append(
                plots.curves(
                    points(
                        finite,
                        lambda row: f"{row['model']}, K = {row['k']}: {number(row['value'])} "
                        f"{interval(row['low'], row['high'])}, by chance {number(row['chance'])}",
                        "value", "low", "high", "chance_low", "chance_high", x="k", series="model",
                    ),
                    f"{name}, at every K, over the chance band", Axis("K: number of top images"),
                    Axis(title(metric)), title=name, series=distinct(panel, "model"), marks=False,
                )
            )  # fmt: skip
    text = (
        "Line: mean over queries with its interval. Grey: where the mean lies in 95 of 100 random "
        "orders. Among few images shares are uneven by chance, so a curve within the grey shows no "
        "preference of the model. A curve has gaps where the mean is infinite: a group without an "
        "image in the first K has a skew of −∞."
    )
    blocks = (Words((text,), "note"), Grid(tuple(charts)))
    return Section("curves", "Results at every K", blocks) if charts else None


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
    kept = [
        row
        for row in rows(result, "query_distributions")
        if within is None or within == is_within(row)
    ]
    columns = {
        "Metric": lambda row: title(row["metric"]),
        "Model": "model",
        "Attributes": scope_of,
        "#Mean": "mean",
        "#SD": "sd",
        "#Lowest": "lowest",
        "#Quartiles": lambda row: ", ".join(map(number, value_of(row, _QUARTILES))),
        "#Highest": "highest",
        "Highest in": lambda row: listed(row["highest_queries"], _NAMED),
        "Lowest in": lambda row: listed(row["lowest_queries"], _NAMED),
        "#Queries": "queries",
        "#Not estimable": "not_estimable",
    }
    return Table.of(caption, columns, kept, source="query_distributions") if kept else None


def is_within(row: Row) -> bool:
    """Return whether a row holds other attributes fixed."""
    return str(row["version"]).startswith("within")
