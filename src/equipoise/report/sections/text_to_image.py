"""Where targets lie between groups, what their scores are made of, and encoders side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from equipoise.core import AuditResult, Finding
from equipoise.core.finding import Family
from equipoise.report import charts_associations, charts_text_to_image
from equipoise.report.blocks import Chart, Fold, Grid, Section, Table, Words
from equipoise.report.charts_names import spread
from equipoise.report.sections.associations import (
    MODALITIES,
    MOST_PANELS,
    forest,
    sides_of,
    summaries,
)
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import interval, number

Row = Mapping[str, Any]

MOST_TARGETS = 40
_TARGETS = "targets"
_LEANING = (
    "MCAS of each target: how much closer its images and prompt are to images and texts of one "
    "group than to those of the other. Point: the value. Line: its interval. Grey: what 95 of 100 "
    "exchanges of the groups' images and texts give."
)
_PLANE = (
    "Each mark is a target or a prompt of an attribute. To the sides: the group that it leans to, "
    "over images and texts (MCAS). Up: how similar it is to the further group. The cross is the "
    "neutral point of the source, where no group is closer than another; far from all marks it is "
    "named beside the axis. Cosines of encoders have an offset of their own, so read marks "
    "against those of the attributes. Lines: intervals. A name without room is in its tooltip."
)
_COMPONENTS = (
    "The four associations that MCAS adds up, each with its interval. II: images with images, "
    "ITP: texts of the target with images of the groups, ITA: images of the target with texts of "
    "the groups, TT: texts with texts. Where II lies farther out than TT, images exaggerate what "
    "their prompts say already."
)
_ENCODERS = (
    "MCAS of each target in the space of each encoder. Where marks of a row lie apart, the number "
    "depends on who looks at the images; sd is their standard deviation over encoders."
)


def leaning(result: AuditResult) -> Section | None:
    """MCAS of every target, left or right of 0, over its chance band."""
    split: dict[tuple[str, str], list[Finding]] = {}
    for finding in result.findings:
        tested = finding.audit == "text_to_image" and finding.family is not Family.DESCRIPTIVE
        if finding.metric == "mcas" and tested and has(finding.value):
            split.setdefault((finding.groups, finding.model), []).append(finding)
    if not split:
        return None
    plots = [forest(result, "mcas", *key, found) for key, found in split.items()]
    blocks = (Words((_LEANING,), "note"), Grid(tuple(plots[:MOST_PANELS])), *summaries(result))
    return Section("leans", "Whom targets lean to", blocks)


def plane(result: AuditResult) -> Section | None:
    """Targets and attributes in the plane of MCAS and similarity to a further group."""
    found = rows(result, "plane")
    if not found:
        return None
    plots = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        for group in distinct([r for r in panel if r["part"] == "similarity"], "group"):
            plots.append(_plane(panel, group, f"{model}, {scope(groups, version)}", groups))
    blocks = (Words((_PLANE,), "note"), Grid(tuple(plots[:MOST_PANELS])), _folded(found))
    return Section("plane", "Where targets lie between all groups", blocks)


def _folded(found: Sequence[Row]) -> Fold:
    return Fold("Angles and distances of targets and attributes", (_plane_table(found),))


def _plane(panel: Sequence[Row], group: str, name: str, groups: str) -> Chart:
    data = []
    for (kind, target), some in panels(panel, "set", "target").items():
        by_part = {(row["part"], row["group"]): row for row in some}
        x, y = by_part.get(("mcas", "")), by_part.get(("similarity", group))
        if x is None or y is None:
            continue
        data.append(
            {
                "series": kind, "name": target if kind == _TARGETS else "",
                "x": x["value"], "x_low": x["low"], "x_high": x["high"],
                "y": y["value"], "y_low": y["low"], "y_high": y["high"],
                "tip": f"{target}: MCAS {number(x['value'])} {interval(x['low'], x['high'])}, "
                f"similarity to {group} {number(y['value'])}, angle {number(x['theta'])} rad, "
                f"distance {number(by_part['euclidean', '']['value'])}",
            }
        )  # fmt: skip
    neutral = 1 / (2 + len({row["group"] for row in panel if row["part"] == "similarity"}))
    near = _near(neutral, data)
    sides = sides_of(groups) or ("second", "first")
    spec = charts_text_to_image.plane(
        "rows", sides, group, distinct(data, "series"), neutral, near=near
    )
    label = f"MCAS and similarity to {group}: {name}"
    through = (0.0, neutral if near else math.nan)
    shown = spread(data, charts_text_to_image.PLANE_HEIGHT, through)
    return Chart(label, spec, {"rows": shown}, None, f"{name}; up: {group}")


def _near(neutral: float, data: Sequence[Row]) -> bool:
    """Whether marks would stay apart on an axis that reaches to the neutral point."""
    ends = [row[end] for row in data for end in ("y", "y_low", "y_high") if has(row[end])]
    low, high = min(ends, default=neutral), max(ends, default=neutral)
    return low - (high - low) <= neutral <= high + (high - low)


def _plane_table(found: Sequence[Row]) -> Table:
    cells = []
    keys = ("model", "groups", "version", "set", "target")
    for (model, groups, version, kind, target), some in panels(found, *keys).items():
        by_part = {(row["part"], row["group"]): row for row in some}
        near = [f"{g} {number(r['value'])}" for (p, g), r in by_part.items() if p == "similarity"]
        mcas = by_part["mcas", ""]
        cells.append(
            (
                target, kind, number(mcas["value"]), interval(mcas["low"], mcas["high"]),
                ", ".join(near), number(mcas["theta"]), number(mcas["neutral"]),
                number(by_part["euclidean", ""]["value"]), model, scope(groups, version),
            )
        )  # fmt: skip
    columns = [
        "Prompt or target", "Of", "#MCAS", "#Interval", "Similarity to further groups",
        "#Angle (rad)", "#Neutral (rad)", "#Distance", "Model", "Groups",
    ]  # fmt: skip
    return Table.of("xMCAS of targets and attributes", columns, cells, source="plane")


def components(result: AuditResult) -> Section | None:
    """The four parts of MCAS of each target, each with its interval."""
    found = [row for row in rows(result, "components") if row["set"] == _TARGETS]
    if not found:
        return None
    plots = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        plots.append(_forest(panel, f"{model}, {scope(groups, version)}", groups, "part"))
    blocks = (Words((_COMPONENTS,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    return Section("components", "What scores are made of", blocks)


def _forest(panel: Sequence[Row], name: str, groups: str, key: str) -> Chart:
    total: dict[str, float] = {}
    for row in panel:
        total[row["target"]] = total.get(row["target"], 0.0) + row["value"]
    largest = sorted(total, key=lambda one: -abs(total[one]))[:MOST_TARGETS]
    order = sorted(largest, key=lambda one: -total[one])
    place = {one: index for index, one in enumerate(order)}
    shown = sorted(
        (row for row in panel if row["target"] in place), key=lambda r: place[r["target"]]
    )
    data = [
        {
            "label": row["target"], "series": row[key], "value": row["value"], "low": row["low"],
            "high": row["high"], "chance_low": None, "chance_high": None,
            "tip": f"{row['target']}, {row[key]}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}",
        }
        for row in shown
    ]  # fmt: skip
    series = tuple(
        one for one in (MODALITIES if key == "part" else distinct(panel, key))
        if any(row["series"] == one for row in data)
    )  # fmt: skip
    more = [("#Sd over encoders", "sd")] if key == "encoder" else []
    columns = ["Target", key.capitalize(), "#Value", "#Interval", *(title for title, _ in more)]
    cells = [
        (
            row["target"], row[key], number(row["value"]), interval(row["low"], row["high"]),
            *(number(row[column]) for _, column in more),
        )
        for row in shown
    ]  # fmt: skip
    source = "encoders" if key == "encoder" else "components"
    spec = charts_associations.forest("rows", series, len(order), sides_of(groups))
    table = Table.of(name, columns, cells, source=source)
    return Chart(f"{name}, by {key}", spec, {"rows": data}, table, name)


def encoders(result: AuditResult) -> Section | None:
    """MCAS of each target by encoder."""
    found = rows(result, "encoders")
    if not found:
        return None
    plots = []
    for (model, groups, guidance), panel in panels(found, "model", "groups", "guidance").items():
        strength = f", guidance {float(guidance):g}" if has(panel[0]["guidance"]) else ""
        plots.append(_forest(panel, f"{model}, {groups}{strength}", groups, "encoder"))
    blocks = (Words((_ENCODERS,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    return Section("encoders", "Encoders side by side", blocks)
