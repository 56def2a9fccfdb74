"""What scores of targets are made of, what images add, further groups, and models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult
from equipoise.report import charts_associations as charts
from equipoise.report.blocks import Block, Chart, Grid, Section, Table, Words
from equipoise.report.charts_names import spread
from equipoise.report.sections.associations import MODALITIES, MOST_PANELS, MOST_TARGETS, sides_of
from equipoise.report.tables import distinct, has, panels, rows, scope
from equipoise.report.text import count, interval, listed, number


def parts(result: AuditResult) -> Section | None:
    """The four parts of MCAS of each target, stacked."""
    found = rows(result, "mcas_parts")
    if not found:
        return None
    plots = []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        name = f"{model}, {scope(groups, version)}"
        plots.append(_stack(name, groups, panel))
    note = (
        "Each bar is one of the four associations that add up to MCAS, to the side that it leans "
        "to; the diamond is their sum. Bars on both sides cancel each other."
    )
    return Section(
        "mcas", "MCAS and its parts", (Words((note,), "note"), Grid(tuple(plots[:MOST_PANELS])))
    )


def _stack(name: str, groups: str, panel: Sequence[Any]) -> Chart:
    total: dict[str, float] = {}
    for row in panel:
        total[row["target"]] = total.get(row["target"], 0.0) + row["value"]
    kept = sorted(
        sorted(total, key=lambda one: -abs(total[one]))[:MOST_TARGETS], key=lambda o: -total[o]
    )
    place = {one: index for index, one in enumerate(kept)}
    shown = sorted((r for r in panel if r["target"] in place), key=lambda r: place[r["target"]])
    data = [
        {
            "label": row["target"], "series": row["part"], "value": row["value"],
            "total": total[row["target"]], "place": MODALITIES.index(row["part"]),
            "tip": f"{row['target']}, {row['part']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}; MCAS {number(total[row['target']])}",
        }
        for row in shown
    ]  # fmt: skip
    cells = []
    for (target,), four in panels(shown, "target").items():
        by_part = {row["part"]: number(row["value"]) for row in four}
        cells.append(
            (target, *(by_part.get(one, "–") for one in MODALITIES), number(total[target]))
        )
    table = Table.of(
        name, ["Target", *(f"#{one}" for one in MODALITIES), "#MCAS"], cells, source="mcas_parts"
    )
    spec = charts.parts("rows", MODALITIES, len(kept), sides_of(groups) or ("second", "first"))
    return Chart(f"MCAS by its parts: {name}", spec, {"rows": data}, table, name)


def amplification(result: AuditResult) -> Section | None:
    """Bias amplification against diffusion bias of each target, and what cannot be estimated."""
    found = rows(result, "amplification")
    if not found:
        return None
    plots, lost = [], []
    for (model, groups, version), panel in panels(found, "model", "groups", "version").items():
        name = f"{model}, {scope(groups, version)}"
        known = [row for row in panel if has(row["bias_amplification"])]
        missing = [row["target"] for row in panel if not has(row["bias_amplification"])]
        if missing:
            lost.append(
                f"{name}: not estimable for {listed(missing, 12)}, whose texts lean to neither "
                "group with certainty: the quotient would explode."
            )
        plots.append(_amplified(name, known, panel))
    note = (
        "To the right: the images' association differs in size from that of their texts. Up: the "
        "association between images and texts, relative to the texts' own; above 1 it is "
        "amplified. Dashed: local regression, where there are five points."
    )
    blocks: list[Block] = [Words((note,), "note")]
    if lost:
        blocks.append(Words(tuple(lost), "list"))
    drawn = tuple(plot for plot in plots if plot is not None)
    if drawn:
        blocks.append(Grid(drawn[:MOST_PANELS]))
    return Section("amplification", "What generated images add to their texts", tuple(blocks))


def _amplified(name: str, known: Sequence[Any], panel: Sequence[Any]) -> Chart | None:
    if not known:
        return None
    data = [
        {
            "series": row["model"], "name": row["target"], "x": row["diffusion_bias"],
            "y": row["bias_amplification"], "low": row["amplification_low"],
            "high": row["amplification_high"], "fitted": row["fitted"],
            "tip": f"{row['target']}: diffusion bias {number(row['diffusion_bias'])}, "
            f"amplification {number(row['bias_amplification'])} "
            f"{interval(row['amplification_low'], row['amplification_high'])}",
        }
        for row in sorted(known, key=lambda row: (row["diffusion_bias"], row["target"]))
    ]  # fmt: skip
    cells = [
        (
            row["target"], number(row["diffusion_bias"]),
            interval(row["diffusion_low"], row["diffusion_high"]),
            number(row["bias_amplification"]),
            interval(row["amplification_low"], row["amplification_high"]), row["reason"] or "",
        )
        for row in panel
    ]  # fmt: skip
    columns = [
        "Target",
        "#Diffusion bias",
        "#Interval",
        "#Amplification",
        "#Its interval",
        "Why not",
    ]
    table = Table.of(name, columns, cells, source="amplification")
    smooth = any(has(row["fitted"]) for row in known)
    spec = charts.scatter(
        "rows", ("diffusion bias", "bias amplification"), (known[0]["model"],), smooth=smooth
    )
    label = f"Bias amplification against diffusion bias: {name}"
    return Chart(label, spec, {"rows": spread(data, charts.SCATTER_HEIGHT)}, table, name)


def further(result: AuditResult) -> Section | None:
    """Angle of each target under xMCAS, the neutral one, and similarity to further groups."""
    found = rows(result, "xmcas")
    if not found:
        return None
    cells = []
    for (model, groups, version, target), panel in panels(
        found, "model", "groups", "version", "target"
    ).items():
        by_part = {(row["part"], row["group"]): row for row in panel}
        first = panel[0]
        near = [
            f"{group} {number(row['value'])}"
            for (part, group), row in by_part.items()
            if part == "similarity"
        ]
        cells.append(
            (
                target, f"{model}, {scope(groups, version)}", number(first["theta"]),
                number(first["neutral"]),
                number(by_part["euclidean", ""]["value"]), number(by_part["mcas", ""]["value"]),
                ", ".join(near),
            )
        )  # fmt: skip
    columns = ["Target", "Model", "#Angle (rad)", "#Neutral (rad)", "#Distance", "#MCAS",
               "Similarity to further groups"]  # fmt: skip
    note = (
        "The angle weighs how close a target is to further groups against how much it leans "
        "between the first two. Below the neutral angle further groups are represented less "
        "than evenly."
    )
    table = Table.of("xMCAS by target", columns, cells, source="xmcas")
    return Section("further", "Further groups (xMCAS)", (Words((note,), "note"), table))


def totals(result: AuditResult) -> Section | None:
    """Total absolute association of every model over the same targets."""
    found = rows(result, "totals")
    if not found or len(distinct(found, "model")) < 2:
        return None
    plots = []
    for (groups, version), panel in panels(found, "groups", "version").items():
        name = scope(groups, version)
        data = [
            {
                "label": row["model"], "series": "total", "value": row["value"],
                "low": row["low"], "high": row["high"], "chance_low": 0.0,
                "chance_high": row["chance"],
                "tip": f"{row['model']}: {number(row['value'])} "
                f"{interval(row['low'], row['high'])}, by chance {number(row['chance'])}",
            }
            for row in panel
        ]  # fmt: skip
        cells = [
            (row["model"], number(row["value"]), interval(row["low"], row["high"]),
             number(row["chance"]), count(row["targets"]))
            for row in panel
        ]  # fmt: skip
        columns = ["Model", "#Total", "#Interval", "#By chance", "#Targets"]
        table = Table.of(name, columns, cells, source="totals")
        spec = charts.forest("rows", ("total",), len(panel), None)
        plots.append(
            Chart(f"Total absolute association: {name}", spec, {"rows": data}, table, name)
        )
    note = (
        "The sizes of the associations of all targets, added up: how strongly a model associates "
        "them with either group. Grey: up to what chance gives on average."
    )
    return Section("encoders", "Models side by side", (Words((note,), "note"), Grid(tuple(plots))))
