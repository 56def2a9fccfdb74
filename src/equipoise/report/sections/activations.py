"""How much of a model's maps lies inside a region, by group."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_activations
from equipoise.report.blocks import Chart, Grid, Section, Table, Words
from equipoise.report.tables import panels, rows
from equipoise.report.text import count, interval, number

Row = Mapping[str, Any]

MOST_GROUPS, MOST_PLOTS = 20, 12
_NOTE = (
    "Mark and line: share of the maps inside the region, with its interval. Tick: share of the "
    "image that the region takes, which a map that prefers nothing has in it. Grey: where the "
    "share lies in 95 of 100 exchanges of maps between images, as of a model that looks at the "
    "same place whatever it sees. Only what exceeds both says that the model looks where the "
    "region is."
)


def shares(result: AuditResult) -> Section | None:
    """Every group's share of maps inside every region, beside its area and what chance gives."""
    found = rows(result, "activation_shares")
    if not found:
        return None
    plots = [
        _plot(panel, f"{model}, {region}, {groups}")
        for (model, region, groups), panel in panels(found, "model", "region", "groups").items()
        if len(panel) <= MOST_GROUPS
    ]
    blocks = (Words((_NOTE,), "note"), Grid(tuple(plots[:MOST_PLOTS])), _table(found))
    return Section("shares", "How much of each map lies inside the region", blocks)


def _plot(panel: Sequence[Row], name: str) -> Chart:
    names = ("group", "share", "low", "high", "area", "chance_low", "chance_high")
    data = [
        {key: row[key] for key in names} | {"tip": _tip(row)}
        for row in panel
        if not math.isnan(row["share"])
    ]
    spec = charts_activations.shares("rows", max(1, len(data)))
    label = f"Share of maps inside the region by group: {name}. Grey: what chance gives."
    return Chart(label, spec, {"rows": data}, None, name)


def _tip(row: Row) -> str:
    spread = "" if math.isnan(row["low"]) else f" {interval(row['low'], row['high'])}"
    return (
        f"{row['group']} (n = {row['n']}): {number(row['share'])}{spread}; "
        f"area {number(row['area'])}, chance {number(row['chance'])}"
    )


def _table(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["group"], row["groups"], row["model"], row["region"], count(row["n"]),
            number(row["share"]), interval(row["low"], row["high"]), number(row["area"]),
            number(row["chance"]),
        )
        for row in found
    ]  # fmt: skip
    columns = ["Group", "By", "Model", "Region", "#Images", "#Share", "#Interval", "#Area",
               "#Chance"]  # fmt: skip
    caption = "Share of maps inside regions"
    return Table.of(caption, columns, cells, source="activation_shares")
