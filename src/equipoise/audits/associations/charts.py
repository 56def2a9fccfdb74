"""Sections, charts and tables that the pages of associations share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import fsum
from typing import Any

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import (
    CLIPPED,
    NUMBER,
    PLACE,
    Badge,
    Block,
    Chart,
    Column,
    Fold,
    Row,
    Section,
    Table,
    by_place,
    distinct,
    has,
    panels,
    points,
    rows,
    title_of,
    where,
)
from equipoise.report.plots import Axis, bars, intervals
from equipoise.report.text import interval, number, title, verdict_title

MOST_TARGETS, MOST_PANELS = 40, 24
COMPARED = Column("Compared", lambda row: "" if row["version"] == "default" else row["version"])
"""The column of a row's version, "" for the only one."""


def section_of(
    name: str, heading: str, text: str, charts: Iterable[Chart], *more: Block
) -> Section | None:
    """Return a section of a note, charts and further blocks; None without any."""
    first_charts = tuple(charts)[:MOST_PANELS]
    if not first_charts and not more:
        return None
    return Section.of(name, heading, text if first_charts else None, first_charts, *more)


def sides_of_zero(sides: Sequence[str]) -> str:
    """Return which set is on which side of 0, for two sets that are compared."""
    if len(sides) != 2:
        return ""
    first, second = sides
    return f"← closer to {second} · closer to {first} →"


def sides_by_groups(result: AuditResult) -> dict[str, Sequence[str]]:
    """Return the two compared sets by the findings' name of their groups."""
    return {finding.groups: finding.sides for finding in result.findings}


def tabled(
    chart: Chart, columns: Sequence[Column], table_rows: Iterable[Any], source: str
) -> Chart:
    """Return a chart with the table of its numbers."""
    return replace(chart, table=Table.of(chart.title, columns, table_rows, source=source))


def by_target(panel: Iterable[Row], key: str = "target") -> dict[str, list[Row]]:
    """Split rows by target and keep the targets with the largest mean values."""
    split = {target: target_rows for (target,), target_rows in panels(panel, key).items()}
    means = {
        target: fsum(row["value"] for row in target_rows) / len(target_rows)
        for target, target_rows in split.items()
    }
    largest = sorted(means, key=lambda name: -abs(means[name]))[:MOST_TARGETS]
    return {name: split[name] for name in sorted(largest, key=lambda name: (-means[name], name))}


def target_scores(result: AuditResult, findings: Iterable[Finding], text: str) -> Section | None:
    """Return the scores of all targets, by metric, groups and model."""
    estimable = [vars(finding) for finding in findings if has(finding.value)]
    charts = [
        _scores(metric, groups, model, score_rows)
        for (metric, groups, model), score_rows in panels(
            estimable, "metric", "groups", "model"
        ).items()
    ]
    return section_of("scores", "Results by target", text, charts, *_summaries(result))


def _scores(metric: str, groups: str, model: str, panel: Sequence[Row]) -> Chart:
    rows_shown = [*chain.from_iterable(by_target(panel, "subject").values())]
    pairs = spec_of(metric).targets == "two"
    name = f"{title(metric)}, {model}: {groups}"
    chart = intervals(
        points(
            rows_shown,
            lambda row: f"{row['subject']} ({row['version']}), {verdict_title(row['verdict'])}: "
            f"{number(row['value'])} {interval(row['ci_low'], row['ci_high'])}",
            "value", "chance_low", "chance_high", label="subject", series="version",
            low="ci_low", high="ci_high",
        ),
        f"{name}. Value, interval and chance band of each target.",
        Axis("" if pairs else sides_of_zero(panel[0]["sides"]), zero=True),
        title=name,
        series=distinct(rows_shown, "version"),
    )  # fmt: skip
    columns = [
        Column("Target", "subject"),
        COMPARED,
        Column("Value", "value", NUMBER),
        Column("Interval", ("ci_low", "ci_high"), NUMBER),
        Column("Chance band", ("chance_low", "chance_high"), NUMBER),
        Column(
            "Verdict", lambda row: "" if row["verdict"] == Verdict.NONE else Badge(row["verdict"])
        ),
        Column("In words", "direction", CLIPPED),
    ]
    return tabled(chart, columns, rows_shown, "findings")


def _summaries(result: AuditResult) -> Iterable[Block]:
    """Yield mean and spread of scores by category, direction and declared side, folded."""
    columns = [
        Column("Category", "category"),
        Column("Direction", "direction"),
        Column("Declared side", "declared"),
        Column("Sets", "groups"),
        Column("Model", "model"),
        Column("Score", title_of),
        COMPARED,
        Column("Targets", "targets", NUMBER),
        Column("Mean", "mean", NUMBER),
        Column("Sd", "sd", NUMBER),
        Column("Minimum", "minimum", NUMBER),
        Column("Maximum", "maximum", NUMBER),
    ]
    if table := rows(result, "score_summaries"):
        name = "Mean and spread of scores by category, direction and declared side"
        yield Fold(name, (Table.of(name, columns, table, source="score_summaries"),))


def parts_of_mcas(table: Iterable[Row], sides: Mapping[str, Sequence[str]]) -> Section | None:
    """Return the four parts of MCAS of each target, stacked; `sides` are those by groups."""
    text = (
        "A bar is one of the four associations that add up to MCAS. The diamond is their sum. "
        "Bars on both sides of 0 cancel each other. II: images with images. ITP: texts of the "
        "target with images of the groups. ITA: images of the target with texts of the groups. "
        "TT: texts with texts. Where II is longer than TT, images exaggerate what texts say."
    )
    charts = [_stack(*place, sides) for place in by_place(table)]
    return section_of("mcas", "Parts of MCAS", text, charts)


def _stack(name: str, panel: Sequence[Row], sides: Mapping[str, Sequence[str]]) -> Chart:
    bar_rows = []
    for target_rows in by_target(panel).values():
        total = sum(row["value"] for row in target_rows)
        bar_rows += [{**row, "total": total} for row in target_rows]
    chart = bars(
        points(
            bar_rows,
            lambda row: f"{row['target']}, {row['part']}: {number(row['value'])} "
            f"{interval(row['low'], row['high'])}; MCAS {number(row['total'])}",
            "value", "total", label="target", series="part",
        ),
        f"MCAS by its parts: {name}", Axis(sides_of_zero(sides[panel[0]["groups"]])), title=name,
        series=distinct(bar_rows, "part"), stacked=True,
    )  # fmt: skip
    columns = [
        Column("Target", "target"),
        Column("Part", "part"),
        Column("Value", "value", NUMBER),
        Column("Interval", ("low", "high"), NUMBER),
        Column("MCAS", "total", NUMBER),
    ]
    return tabled(chart, columns, bar_rows, "mcas_parts")


def xmcas_table(table: Sequence[Row], source: str) -> Table:
    """Return angles, distances and similarities to further groups, by target."""
    of = ["set"] if "set" in table[0] else []
    joined = []
    for target_rows in panels(table, *PLACE, *of, "target").values():
        by_part = {row["part"]: row for row in target_rows if not row["group"]}
        similarities = [
            f"{r['group']} {number(r['value'])}" for r in target_rows if r["part"] == "similarity"
        ]
        distance = by_part["euclidean"]["value"]
        joined.append({**by_part["mcas"], "distance": distance, "near": ", ".join(similarities)})
    columns = [
        Column("Target", "target"),
        *([Column("Of", "set")] if of else []),
        Column("Model", where),
        Column("Angle (rad)", "theta", NUMBER),
        Column("Neutral (rad)", "neutral", NUMBER),
        Column("Distance", "distance", NUMBER),
        Column("MCAS", "value", NUMBER),
        Column("Its interval", ("low", "high"), NUMBER),
        Column("Similarity to further groups", "near"),
    ]
    return Table.of("xMCAS by target", columns, joined, source=source)
