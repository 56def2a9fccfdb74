"""The page of an audit of text-to-image models."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equipoise.audits.engines.associations.charts import (
    MODALITIES,
    MOST_TARGETS,
    PLACE,
    interval_chart,
    largest,
    scores,
    section_of,
    sides,
    xmcas_table,
)
from equipoise.core import AuditResult
from equipoise.core.finding import Family
from equipoise.report.blocks import Block, Chart, Fold, Section, Table, Words
from equipoise.report.mark_names import spread
from equipoise.report.names import title
from equipoise.report.page import Page
from equipoise.report.plots import COLORS, SCATTER_HEIGHT, Axis, curves, intervals, scatter
from equipoise.report.tables import Row, distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, listed, number, percent

MOST_CLASSES, MOST_SERIES = 6, len(COLORS)
TARGETS = "targets"
CORRECTED, UNCORRECTED = "corrected for errors", "as classified"
_CURVED = ("share_mad", "mcas", "bias_amplification", "diffusion_bias", "share_gap")
_SHARES = (
    "Share of each neutral prompt's images that show the class. Circles: corrected for the errors "
    "of the classifier on labelled images; intervals include the uncertainty of both sets of "
    "images. The correction assumes that errors on labelled images are those on generated ones."
)
_UNCORRECTED = (
    "Share of each neutral prompt's images that the classifier puts in the class. Without labelled "
    "images its errors are not corrected, and intervals leave them out."
)
_LEANING = (
    "MCAS of each target: how much closer its images and prompt are to images and texts of one "
    "group than to those of the other. Point: the value. Line: its interval. Grey band: 95 of 100 "
    "random exchanges of the groups' images and texts."
)
_PLANE = (
    "Each mark is a target or a prompt of an attribute. To the sides: the group it is closer to "
    "(MCAS). Up: its similarity to the further group. Dashed lines cross at the neutral point, "
    "where no group is closer than another. Cosines of encoders have an offset of their own, so "
    "compare marks with those of the attributes. Lines: intervals. A name without room is in its "
    "tooltip."
)
_COMPONENTS = (
    "The four associations that add up to MCAS. II: images with images. ITP: texts of the target "
    "with images of the groups. ITA: images of the target with texts of the groups. TT: texts with "
    "texts. Where II lies farther out than TT, images exaggerate what their prompts say."
)
_ENCODERS = (
    "MCAS of each target in the space of each encoder. Where marks of a row lie apart, the result "
    "depends on the encoder; sd is the standard deviation over encoders."
)
_GUIDANCE = (
    "Guidance exaggerates what a prompt says. A line that leaves zero as guidance grows shows that "
    "disparities grow, too. Lines: the targets that change most. Shade: the interval of the first."
)
_ERRORS = (
    "Labelled images of each class, by the class that the classifier gives them. The larger the "
    "condition number, the more the correction amplifies errors; 1 is a classifier without errors."
)


def facts(result: AuditResult) -> Sequence[tuple[str, str]]:
    """Return the images by state, the models on them, and the shares that are corrected."""
    resolved, counts = result.manifest.resolved, result.manifest.counts
    images = [
        f"{name}: "
        + ", ".join(f"{count(n)} {_state(state)}" for state, n in sorted(counts[name].items()))
        for name in _names(resolved.get("generators"))
        if counts.get(name)
    ]
    corrected = [share["of"] for share in resolved.get("shares", ()) if share.get("labelled")]
    return (
        ("Requested images by state", "; ".join(images)),
        ("Models on the images", listed(_names(resolved.get("models")))),
        ("Corrected by labelled images", listed(corrected)),
    )


def _names(section: object) -> list[str]:
    return [*section] if isinstance(section, Mapping) else []


def _state(state: str) -> str:
    return "generated" if state == "image" else state


def shares(result: AuditResult) -> Section | None:
    """Return the shares of classes by target, beside shares from outside."""
    table = rows(result, "shares")
    if not table:
        return None
    charts = []
    for (model, groups, version), panel in panels(table, *PLACE).items():
        classes = distinct(panel, "class")
        # Of two classes, the share of one gives the other's.
        for name in classes[:1] if len(classes) == 2 else classes[:MOST_CLASSES]:
            own = [row for row in panel if row["class"] == name]
            charts.append(_shares(own, name, f"{model}, {scope(groups, version)}"))
    text = _SHARES if any(row["corrected"] for row in table) else _UNCORRECTED
    more = Fold("All shares", (_share_table(table),)), *_errors(result), *_states(result)
    return section_of("shares", "Shares of classes by target", text, charts, *more)


def _shares(panel: Sequence[Row], name: str, where: str) -> Chart:
    known = [row for row in panel if has(row["share"])]
    points, outside = [], ""
    for row in sorted(known, key=lambda row: -row["share"])[:MOST_TARGETS]:
        if row["corrected"]:
            points.append(_point(row, CORRECTED, "share", "low", "high"))
        points.append(_point(row, UNCORRECTED, "raw", "raw_low", "raw_high"))
        if has(row["outside"]):
            outside = row["outside_name"]
            points.append(_point(row, outside, "outside", "outside", "outside"))
    drawn = distinct(points, "series")
    series = [kind for kind in (CORRECTED, UNCORRECTED, outside) if kind in drawn]
    axis = Axis(f"share of {name}", percent=True, domain=(0.0, 1.0))
    label = f"Share of {name} by target: {where}"
    return intervals(points, label, axis, title=f"{name}: {where}", series=series)


def _point(row: Row, series: str, value: str, low: str, high: str) -> Row:
    ends = "" if value == "outside" else f" {_percents(row[low], row[high])}"
    return {
        "label": row["target"], "series": series, "value": row[value], "low": row[low],
        "high": row[high],
        "tip": f"{row['target']}, {series}: {percent(row[value])}{ends}, {row['images']} images",
    }  # fmt: skip


def _percents(low: float, high: float) -> str:
    return f"[{percent(low)}, {percent(high)}]" if has(low) and has(high) else ""


def _percent(value: float) -> str:
    return percent(value) if has(value) else "–"


def _share_table(table: Sequence[Row]) -> Table:
    cells = [
        (
            row["target"], row["class"], _percent(row["share"]), _percents(row["low"], row["high"]),
            _percent(row["raw"]), _percents(row["raw_low"], row["raw_high"]),
            _percent(row["outside"]), count(row["images"]), row["model"],
            scope(row["groups"], row["version"]), row["reason"] or "",
        )
        for row in table
    ]  # fmt: skip
    columns = [
        "Target", "Class", "#Share", "#Interval", "#As classified", "#Its interval", "#Outside",
        "#Images", "Model", "Of", "~Note",
    ]  # fmt: skip
    return Table.of("Shares of classes", columns, cells, source="shares")


def _errors(result: AuditResult) -> list[Block]:
    blocks: list[Block] = []
    for (groups,), panel in panels(rows(result, "share_confusions"), "groups").items():
        cells = [
            (
                label,
                count(own[0]["n"]),
                *(percent(row["count"] / max(row["n"], 1)) for row in own),
            )
            for (label,), own in panels(panel, "label").items()
        ]
        columns = ["Label", "#Images", *(f"#As {name}" for name in distinct(panel, "said"))]
        name = f"{groups}: condition number {number(panel[0]['condition'])}"
        table = Table.of(name, columns, cells, source="share_confusions")
        fold = Fold(f"Errors of the classifier: {groups}", (Words((_ERRORS,), "note"), table))
        blocks.append(fold)
    return blocks


def _states(result: AuditResult) -> list[Block]:
    table = rows(result, "image_states")
    if not table:
        return []
    states, cells = sorted(distinct(table, "state")), []
    for (model, groups, version, target), own in panels(table, *PLACE, "target").items():
        counts = {row["state"]: row["count"] for row in own}
        numbers = (count(counts.get(state, 0)) for state in states)
        cells.append((target, f"{model}, {scope(groups, version)}", *numbers))
    columns = ["Target", "Model", *(f"#{state}" for state in states)]
    name = "Requested images by state or class"
    return [Fold(name, (Table.of(name, columns, cells, source="image_states"),))]


def leaning(result: AuditResult) -> Section | None:
    """Return MCAS of every target, left or right of 0, over its chance band."""
    tested = (
        finding
        for finding in result.findings
        if finding.metric == "mcas" and finding.family is not Family.DESCRIPTIVE
    )
    return scores(result, tested, _LEANING)


def plane(result: AuditResult) -> Section | None:
    """Return targets and attributes by MCAS and similarity to a further group."""
    table = rows(result, "plane")
    if not table:
        return None
    charts = [
        _plane(panel, group, f"{model}, {scope(groups, version)}", groups)
        for (model, groups, version), panel in panels(table, *PLACE).items()
        for group in distinct([row for row in panel if row["part"] == "similarity"], "group")
    ]
    fold = Fold("Angles and distances of targets and attributes", (xmcas_table(table, "plane"),))
    return section_of("plane", "Similarity to further groups", _PLANE, charts, fold)


def _plane(panel: Sequence[Row], group: str, name: str, groups: str) -> Chart:
    points = []
    for (kind, target), own in panels(panel, "set", "target").items():
        by_part = {(row["part"], row["group"]): row for row in own}
        x, y = by_part.get(("mcas", "")), by_part.get(("similarity", group))
        if x is None or y is None:
            continue
        points.append(
            {
                "series": kind, "name": target if kind == TARGETS else "",
                "x": x["value"], "x_low": x["low"], "x_high": x["high"],
                "y": y["value"], "y_low": y["low"], "y_high": y["high"],
                "tip": f"{target}: MCAS {number(x['value'])} {interval(x['low'], x['high'])}, "
                f"similarity to {group} {number(y['value'])}, angle {number(x['theta'])} rad, "
                f"distance {number(by_part['euclidean', '']['value'])}",
            }
        )  # fmt: skip
    neutral = 1 / (2 + len({row["group"] for row in panel if row["part"] == "similarity"}))
    near = _near(neutral, points)
    beyond = "" if near else f" (neutral: {neutral:.3g}, beyond the axis)"
    through = (0.0, neutral if near else math.nan)
    return scatter(
        spread(points, SCATTER_HEIGHT, through),
        f"MCAS and similarity to {group}: {name}",
        Axis(sides(groups)),
        Axis(f"similarity to {group}{beyond}"),
        title=f"{name}; up: {group}",
        series=distinct(points, "series"),
        rules=[("x", 0.0), *([("y", neutral)] if near else [])],
    )


def _near(neutral: float, points: Sequence[Row]) -> bool:
    """Whether marks would stay apart on an axis that reaches to the neutral point."""
    ends = [row[end] for row in points for end in ("y", "y_low", "y_high") if has(row[end])]
    low, high = min(ends, default=neutral), max(ends, default=neutral)
    return low - (high - low) <= neutral <= high + (high - low)


def components(result: AuditResult) -> Section | None:
    """Return the four parts of MCAS of each target."""
    table = [row for row in rows(result, "components") if row["set"] == TARGETS]
    charts = [
        _side_by_side(panel, f"{model}, {scope(groups, version)}", "part", "components")
        for (model, groups, version), panel in panels(table, *PLACE).items()
    ]
    return section_of("components", "Parts of MCAS", _COMPONENTS, charts)


def encoders(result: AuditResult) -> Section | None:
    """Return MCAS of each target by encoder."""
    charts = []
    for (model, groups, strength), panel in panels(
        rows(result, "encoders"), "model", "groups", "guidance"
    ).items():
        at = f", guidance {float(strength):g}" if has(panel[0]["guidance"]) else ""
        charts.append(_side_by_side(panel, f"{model}, {groups}{at}", "encoder", "encoders"))
    return section_of("encoders", "Results by encoder", _ENCODERS, charts)


def _side_by_side(panel: Sequence[Row], name: str, key: str, source: str) -> Chart:
    totals: dict[str, float] = {}
    for row in panel:
        totals[row["target"]] = totals.get(row["target"], 0.0) + row["value"]
    order = {target: place for place, target in enumerate(largest(totals))}
    shown = [row for row in panel if row["target"] in order]
    shown.sort(key=lambda row: order[row["target"]])
    names = distinct(shown, key)
    return interval_chart(
        shown, name, Axis(sides(panel[0]["groups"]), zero=True), ["target", key], source,
        {"#sd": lambda row: number(row["sd"])} if key == "encoder" else {},
        series=[part for part in MODALITIES if part in names] if key == "part" else names,
    )  # fmt: skip


def guidance(result: AuditResult) -> Section | None:
    """Return the results at each strength of guidance."""
    table = [row for row in rows(result, "guidance") if has(row["value"])]
    ordered = sorted(table, key=lambda row: _CURVED.index(row["metric"]))
    charts = [
        _curve(panel, title(metric), f"{model}, {groups} ({by})")
        for (model, groups, by, metric), panel in panels(
            ordered, "model", "groups", "by", "metric"
        ).items()
        if len({row["guidance"] for row in panel}) > 1
    ]
    return section_of("guidance", "Results by guidance", _GUIDANCE, charts)


def _curve(panel: Sequence[Row], name: str, where: str) -> Chart:
    change: dict[str, float] = {}
    for (subject,), own in panels(panel, "subject").items():
        values = [row["value"] for row in own]
        change[subject] = max(values) - min(values)
    kept = sorted(change, key=lambda subject: (subject != "", -change[subject]))[:MOST_SERIES]
    points = [
        {
            "series": _subject(row), "x": row["guidance"], "value": row["value"],
            # Many shades on each other hide the lines; the table has all intervals.
            "low": row["low"] if row["subject"] == kept[0] else None,
            "high": row["high"] if row["subject"] == kept[0] else None,
            "tip": f"{_subject(row)} at guidance {row['guidance']:g}: "
            f"{number(row['value'])} {interval(row['low'], row['high'])}",
        }
        for row in sorted(panel, key=lambda row: row["guidance"])
        if row["subject"] in kept
    ]  # fmt: skip
    cells = [
        (_subject(row), number(row["guidance"]), number(row["value"]),
         interval(row["low"], row["high"]))
        for row in panel
    ]  # fmt: skip
    columns = ["Target", "#Guidance", "#Value", "#Interval"]
    series = [subject or "mean over targets" for subject in kept]
    axes = Axis("guidance"), Axis(name, zero=True)
    label = f"{name} against guidance: {where}"
    chart = curves(points, label, *axes, title=f"{name}: {where}", series=series)
    return replace(chart, table=Table.of(name, columns, cells, source="guidance"))


def _subject(row: Row) -> str:
    return row["subject"] or "mean over targets"


PAGE = Page(
    leads=("share_mad", "share_gap", "mcas", "xmcas"),
    by_group=("share_mad", "share_gap", "association_score"),
    subjects="targets",
    sections=(shares, leaning, plane, components, guidance, encoders),
    facts=facts,
)
