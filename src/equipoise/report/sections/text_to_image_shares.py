"""Whom images of neutral prompts show, and how that grows with guidance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_text_to_image as charts
from equipoise.report.blocks import Block, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.sections.associations import MOST_PANELS
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, number, percent

Row = Mapping[str, Any]

MOST_TARGETS, MOST_CLASSES = 40, 6
CORRECTED, SAID = "corrected for errors", "as the classifier says"
_SHARES = (
    "Among the images of each neutral prompt, how many show the class. Circles: corrected for what "
    "the classifier gets wrong on labelled images, with intervals that carry the uncertainty of "
    "both sets of images. Triangles: as the classifier says. Diamonds: shares from outside. The "
    "correction supposes that errors on the labelled images are those on the generated ones."
)
_PLAIN = (
    "Among the images of each neutral prompt, how many the classifier says show the class. Without "
    "labelled images its errors are not corrected, and intervals do not know of them. Diamonds: "
    "shares from outside."
)
_CURVE = (
    "Guidance exaggerates what a prompt says. Where a line leaves zero as guidance grows, it "
    "exaggerates whom the model shows and leans to as well. Lines: the subjects that change most; "
    "thin lines: intervals."
)
_ERRORS = (
    "Of the labelled images of each class, how many the classifier called what. The larger the "
    "condition number, the more the correction blows up errors; 1 is a classifier that never errs."
)


def shares(result: AuditResult) -> Section | None:
    """Shares of classes by target, corrected and as said, beside shares from outside."""
    found = rows(result, "shares")
    if not found:
        return None
    plots = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        classes = distinct(panel, "class")
        # Of two classes one share tells the other.
        for name in classes[:1] if len(classes) == 2 else classes[:MOST_CLASSES]:
            here = [row for row in panel if row["class"] == name]
            plots.append(_plot(here, name, f"{model}, {scope(groups, version)}"))
    note = _SHARES if any(row["corrected"] for row in found) else _PLAIN
    blocks: list[Block] = [Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS]))]
    blocks += [Fold("Every share", (_table(found),)), *_errors(result), *_states(result)]
    return Section("shares", "Whom images of neutral prompts show", tuple(blocks))


def _plot(panel: Sequence[Row], name: str, where: str) -> Chart:
    shown = sorted((row for row in panel if has(row["share"])), key=lambda row: -row["share"])[
        :MOST_TARGETS
    ]
    data, outside = [], ""
    for row in shown:
        if row["corrected"]:
            data.append(_mark(row, CORRECTED, "share", "low", "high"))
        data.append(_mark(row, SAID, "raw", "raw_low", "raw_high"))
        if has(row["outside"]):
            outside = row["outside_name"]
            data.append(_mark(row, outside, "outside", "outside", "outside"))
    kinds = tuple(
        one for one in (CORRECTED, SAID, outside) if one and any(r["kind"] == one for r in data)
    )
    spec = charts.shares("rows", f"share of {name}", kinds, len(shown))
    label = f"Share of {name} by target: {where}"
    return Chart(label, spec, {"rows": data}, None, f"{name}: {where}")


def _mark(row: Row, kind: str, value: str, low: str, high: str) -> Row:
    ends = "" if value == "outside" else f" {_percents(row[low], row[high])}"
    return {
        "target": row["target"], "kind": kind, "value": row[value], "low": row[low],
        "high": row[high],
        "tip": f"{row['target']}, {kind}: {percent(row[value])}{ends}, {row['images']} images",
    }  # fmt: skip


def _percents(low: float, high: float) -> str:
    return f"[{percent(low)}, {percent(high)}]" if has(low) and has(high) else ""


def _table(found: Sequence[Row]) -> Table:
    cells = [
        (
            row["target"], row["class"], _percent(row["share"]), _percents(row["low"], row["high"]),
            _percent(row["raw"]), _percents(row["raw_low"], row["raw_high"]),
            _percent(row["outside"]), count(row["images"]), row["model"],
            scope(row["groups"], row["version"]), row["reason"] or "",
        )
        for row in found
    ]  # fmt: skip
    columns = [
        "Target", "Class", "#Share", "#Interval", "#As said", "#Its interval", "#Outside",
        "#Images", "Model", "Of", "~Why not",
    ]  # fmt: skip
    return Table.of("Shares of classes", columns, cells, source="shares")


def _percent(value: float) -> str:
    return percent(value) if has(value) else "–"


def _errors(result: AuditResult) -> list[Block]:
    found = rows(result, "share_confusions")
    blocks: list[Block] = []
    for (groups,), panel in panels(found, "groups").items():
        outcomes = distinct(panel, "said")
        cells = [
            (
                label,
                count(some[0]["n"]),
                *(percent(row["count"] / max(row["n"], 1)) for row in some),
            )
            for (label,), some in panels(panel, "label").items()
        ]
        columns = ["Labelled", "#Images", *(f"#Called {one}" for one in outcomes)]
        name = f"{groups}: condition number {number(panel[0]['condition'])}"
        table = Table.of(name, columns, cells, source="share_confusions")
        fold = Fold(f"How far the classifier errs: {groups}", (Words((_ERRORS,), "note"), table))
        blocks.append(fold)
    return blocks


def _states(result: AuditResult) -> list[Block]:
    found = rows(result, "image_states")
    if not found:
        return []
    states = sorted(distinct(found, "state"))
    cells = []
    keys = ("model", "groups", "version", "target")
    for (model, groups, version, target), some in panels(found, *keys).items():
        held = {row["state"]: row["count"] for row in some}
        numbers = (count(held.get(one, 0)) for one in states)
        cells.append((target, f"{model}, {scope(groups, version)}", *numbers))
    columns = ["Target", "Model", *(f"#{one}" for one in states)]
    table = Table.of("What became of every image", columns, cells, source="image_states")
    return [Fold("What became of every image that was asked for", (table,))]


def guidance(result: AuditResult) -> Section | None:
    """Numbers at each strength of guidance."""
    found = [row for row in rows(result, "guidance") if has(row["value"])]
    if not found:
        return None
    plots = []
    order = ("share_mad", "mcas", "bias_amplification", "diffusion_bias", "share_gap")
    keys = ("model", "groups", "by", "metric")
    split = panels(sorted(found, key=lambda row: order.index(row["metric"])), *keys)
    for (model, groups, by, metric), panel in split.items():
        if len({row["guidance"] for row in panel}) > 1:
            plots.append(_curve(panel, title(metric), f"{model}, {groups} ({by})"))
    if not plots:
        return None
    blocks = (Words((_CURVE,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    return Section("guidance", "How guidance changes it", blocks)


def _curve(panel: Sequence[Row], name: str, where: str) -> Chart:
    change: dict[str, float] = {}
    for (subject,), some in panels(panel, "subject").items():
        values = [row["value"] for row in some]
        change[subject] = max(values) - min(values)
    kept = sorted(change, key=lambda one: (one != "", -change[one]))[: charts.MOST_SERIES]
    data = [
        {
            "series": row["subject"] or "mean over targets", "guidance": row["guidance"],
            "value": row["value"], "low": row["low"], "high": row["high"],
            "tip": f"{row['subject'] or 'mean over targets'} at guidance {row['guidance']:g}: "
            f"{number(row['value'])} {interval(row['low'], row['high'])}",
        }
        for row in sorted(panel, key=lambda row: row["guidance"])
        if row["subject"] in kept
    ]  # fmt: skip
    cells = [
        (row["subject"] or "mean over targets", number(row["guidance"]), number(row["value"]),
         interval(row["low"], row["high"]))
        for row in panel
    ]  # fmt: skip
    table = Table.of(name, ["Target", "#Guidance", "#Value", "#Interval"], cells, source="guidance")
    spec = charts.curve(
        "rows", name, tuple(one or "mean over targets" for one in kept), share=False
    )
    return Chart(
        f"{name} against guidance: {where}", spec, {"rows": data}, table, f"{name}: {where}"
    )
