"""Sections, charts and tables that the pages of associations share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Block, Cell, Chart, Fold, Grid, Section, Table, Words
from equipoise.report.names import title
from equipoise.report.plots import Axis, intervals
from equipoise.report.tables import Row, has, panels, rows, scope
from equipoise.report.text import count, interval, number
from equipoise.report.words import figures

MOST_TARGETS, MOST_PANELS = 40, 24
MODALITIES = ("II", "ITP", "ITA", "TT")
PLACE = ("model", "groups", "version")
_NO_COLUMNS: Mapping[str, Callable[[Row], Cell]] = MappingProxyType({})


def section_of(
    name: str, heading: str, text: str, charts: Iterable[Chart], *more: Block
) -> Section | None:
    """Return a section of a note, charts and further blocks; None without any."""
    every = tuple(charts)[:MOST_PANELS]
    if not every and not more:
        return None
    grid = (Words((text,), "note"), Grid(every)) if every else ()
    return Section(name, heading, (*grid, *more))


def sides(groups: str) -> str:
    """Return which set is on which side of 0, for two sets that are compared."""
    first, separator, second = groups.partition(" against ")
    return f"← closer to {second} · closer to {first} →" if separator else ""


def largest(totals: Mapping[str, float]) -> list[str]:
    """Return the targets with the largest values, in the order of their values."""
    kept = sorted(totals, key=lambda name: -abs(totals[name]))[:MOST_TARGETS]
    return sorted(kept, key=lambda name: (-totals[name], name))


def scores(result: AuditResult, findings: Iterable[Finding], text: str) -> Section | None:
    """Return the scores of all targets, by metric, groups and model."""
    split: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        if has(finding.value):
            key = (finding.metric, finding.groups, finding.model)
            split.setdefault(key, []).append(finding)
    charts = [_scores(result, *key, own) for key, own in [*split.items()][:MOST_PANELS]]
    return section_of("scores", "Results by target", text, charts, *summaries(result))


def _scores(
    result: AuditResult, metric: str, groups: str, model: str, panel: Sequence[Finding]
) -> Chart:
    values: dict[str, list[float]] = {}
    for finding in panel:
        values.setdefault(finding.subject, []).append(finding.value)
    means = {name: math.fsum(own) / len(own) for name, own in values.items()}
    kept = sorted(values, key=lambda name: -max(map(abs, values[name])))[:MOST_TARGETS]
    shown = [finding for finding in panel if finding.subject in kept]
    shown.sort(key=lambda f: (-means[f.subject], f.subject))
    points = [
        {
            "label": f.subject, "series": f.version, "value": f.value, "low": f.ci_low,
            "high": f.ci_high, "chance_low": f.chance_low, "chance_high": f.chance_high,
            "tip": f"{f.subject} ({f.version}), {f.verdict.value}: {figures(f)}",
        }
        for f in shown
    ]  # fmt: skip
    categories = {row["target"]: row["category"] for row in rows(result, "target_categories")}
    cells = [
        (
            f.subject, *([categories.get(f.subject, "")] if categories else []),
            version_text(f.version), number(f.value), interval(f.ci_low, f.ci_high),
            interval(f.chance_low, f.chance_high),
            "" if f.verdict == Verdict.NONE else f.verdict.value, f.direction,
        )
        for f in shown
    ]  # fmt: skip
    name = f"{title(metric)}, {model}: {groups}"
    if len(values) > len(kept):
        name += f" ({len(kept)} largest of {count(len(values))})"
    axis = Axis("" if metric in ("weat", "differential_association") else sides(groups), zero=True)
    label = f"{name}. Value, interval and chance band of each target."
    series = sorted({f.version for f in shown}, key=_modality_first)
    columns = [
        "Target", *(["Category"] if categories else []), "Compared", "#Value", "#Interval",
        "#Chance band", "Verdict", "~In words",
    ]  # fmt: skip
    chart = intervals(points, label, axis, title=name, series=series)
    return replace(chart, table=Table.of(name, columns, cells, source="findings"))


def _modality_first(version: str) -> tuple[int, str]:
    first = version.split(", ", maxsplit=1)[0]
    return (MODALITIES.index(first) if first in MODALITIES else len(MODALITIES), version)


def version_text(version: str) -> str:
    """Return a version, "" for the only one."""
    return "" if version == "default" else version


def summaries(result: AuditResult) -> list[Block]:
    """Return mean and spread of scores by category and direction, folded."""
    cells = [
        (
            row["category"], _direction(row), row["model"], title(row["metric"]),
            version_text(row["version"]), count(row["targets"]), number(row["mean"]),
            number(row["sd"]),
        )
        for row in rows(result, "score_summaries")
    ]  # fmt: skip
    columns = ["Category", "Direction", "Model", "Score", "Compared", "#Targets", "#Mean", "#Sd"]
    table = Table.of("Scores by category and direction", columns, cells, source="score_summaries")
    return [Fold("Mean and spread of scores by category", (table,))] if cells else []


def _direction(row: Row) -> str:
    first, _, second = row["groups"].partition(" against ")
    return {"first": f"to {first}", "second": f"to {second}"}.get(row["direction"], "both")


def interval_chart(
    panel: Sequence[Row],
    name: str,
    axis: Axis,
    keys: Sequence[str],
    source: str,
    columns: Mapping[str, Callable[[Row], Cell]] = _NO_COLUMNS,
    *,
    series: Sequence[str] = (),
) -> Chart:
    """Draw the values of rows with their intervals.

    Parameters
    ----------
    panel : sequence of mapping
        Rows with value, low and high, and maybe chance, the end of a band from 0.
    name : str
    axis : Axis
    keys : sequence of str
        Columns of the label, and maybe of the series.
    source : str
        The rows' table.
    columns : mapping of str to callable
        Further columns of the chart's table.
    series : sequence of str
    """
    points, cells = [], []
    for row in panel:
        own, ends = [row[key] for key in keys], interval(row["low"], row["high"])
        point = {
            "label": own[0], "value": row["value"], "low": row["low"], "high": row["high"],
            "tip": f"{', '.join(own)}: {number(row['value'])} {ends}",
        }  # fmt: skip
        point |= {"series": own[1]} if len(own) > 1 else {}
        point |= {"chance_low": 0.0, "chance_high": row["chance"]} if "chance" in row else {}
        points.append(point)
        more = (cell(row) for cell in columns.values())
        cells.append((*own, number(row["value"]), ends, *more))
    header = [*(key.capitalize() for key in keys), "#Value", "#Interval", *columns]
    chart = intervals(points, name, axis, title=name, series=series)
    return replace(chart, table=Table.of(name, header, cells, source=source))


def xmcas_table(table: Sequence[Row], source: str) -> Table:
    """Return angles, distances and similarities to further groups, by target."""
    of = ["set"] if "set" in table[0] else []
    cells = []
    for (*place, target), own in panels(table, *PLACE, *of, "target").items():
        by_part = {row["part"]: row for row in own if not row["group"]}
        near = [f"{r['group']} {number(r['value'])}" for r in own if r["part"] == "similarity"]
        mcas, distance = by_part["mcas"], by_part["euclidean"]
        cells.append(
            (
                target, *place[3:], f"{place[0]}, {scope(place[1], place[2])}",
                number(mcas["theta"]), number(mcas["neutral"]), number(distance["value"]),
                number(mcas["value"]), interval(mcas["low"], mcas["high"]), ", ".join(near),
            )
        )  # fmt: skip
    columns = [
        "Target", *("Of" for _ in of), "Model", "#Angle (rad)", "#Neutral (rad)", "#Distance",
        "#MCAS", "#Its interval", "Similarity to further groups",
    ]  # fmt: skip
    return Table.of("xMCAS by target", columns, cells, source=source)
