"""The page of an audit of activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import Chart, Page, Row, Section, Table, has, panels, points, rows
from equipoise.report.plots import Axis, intervals
from equipoise.report.text import count, interval, percent, source

MOST_GROUPS, MOST_PANELS = 20, 12


def facts(result: AuditResult) -> tuple[tuple[str, str], ...]:
    """Return how many images there are, and how maps were made."""
    data = result.manifest.resolved.get("data", {})
    n = max((finding.n for finding in result.findings), default=0)
    unit = data.get("unit")
    return (
        ("Images with a region and a map", f"{count(n)}, from {source(data)}"),
        ("Maps", _maps(result)),
        ("Resampled together", f"images of one {unit}" if unit else ""),
    )


def _maps(result: AuditResult) -> str:
    """Name the method and layer of each model's maps."""
    models: Mapping[str, Row] = result.manifest.resolved.get("models", {})
    texts = []
    for name, model in models.items():
        question = f", question {model['question']!r}" if model.get("question") else ""
        method = f"{model.get('method')}, {model.get('layer') or 'default layer'}{question}"
        texts.append(f"{name}: {method if model.get('model') else 'from a file'}")
    return "; ".join(texts)


def shares(result: AuditResult) -> Section | None:
    """Return each group's share of maps inside each region, with its area and chance band."""
    table = rows(result, "activation_shares")
    if not table:
        return None
    text = (
        "Mark and line: share of the maps inside the region, with its interval. Tick: share of the "
        "image that the region covers, which is the share of a map that prefers nothing. Grey: "
        "where 95 of 100 shares lie if maps are exchanged between images, as for a model that "
        "always looks at the same place. The model looks at the region only where the share is "
        "above both."
    )
    charts = [
        _chart(panel, ", ".join(key))
        for key, panel in panels(table, "model", "region", "groups").items()
        if len(panel) <= MOST_GROUPS
    ]
    columns = {
        "Group": "group", "Model": "model", "Attributes": "groups", "Region": "region", "#n": "n",
        "#Share": "share", "#Interval": "low high", "#Area": "area", "#By chance": "chance",
    }  # fmt: skip
    caption = "Share of maps inside regions"
    every = Table.of(caption, columns, table, source="activation_shares")
    heading = "Share of the maps inside each region"
    return Section.of("shares", heading, text, charts[:MOST_PANELS], every)


def _chart(panel: Sequence[Row], name: str) -> Chart:
    marks = points(
        [row for row in panel if has(row["share"])],
        lambda row: f"{row['group']} (n = {row['n']}): {percent(row['share'])} "
        f"{interval(row['low'], row['high'])}; area {percent(row['area'])}, "
        f"chance {percent(row['chance'])}",
        "low", "high", "chance_low", "chance_high", label="group", value="share", line="area",
    )  # fmt: skip
    label = f"Share of maps inside the region by group: {name}. Grey: chance."
    return intervals(marks, label, Axis("share of the map", percent=True), title=name)


PAGE = Page(
    leads=("activation_share_gap",),
    by_group=("activation_share_gap",),
    subjects="regions",
    sections=(shares,),
    facts=facts,
)
