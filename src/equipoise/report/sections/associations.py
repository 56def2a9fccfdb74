"""Scores of targets over their chance bands, and their summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report import charts_associations as charts
from equipoise.report.blocks import Block, Chart, Fold, Table
from equipoise.report.names import title
from equipoise.report.tables import rows
from equipoise.report.text import count, interval, number
from equipoise.report.words import figures

MOST_TARGETS, MOST_PANELS = 40, 24
MODALITIES = ("II", "ITP", "ITA", "TT")


def forest(
    result: AuditResult, metric: str, groups: str, model: str, found: Sequence[Finding]
) -> Chart:
    """Return the scores of targets over their chance bands, the largest of many."""
    categories = {row["target"]: row["category"] for row in rows(result, "target_categories")}
    size: dict[str, float] = {}
    for finding in found:
        size[finding.subject] = max(size.get(finding.subject, 0.0), abs(finding.value))
    kept = set(sorted(size, key=lambda one: -size[one])[:MOST_TARGETS])
    shown = [finding for finding in found if finding.subject in kept]
    series = sorted({finding.version for finding in shown}, key=_place_of)
    mean = {
        name: sum(f.value for f in shown if f.subject == name)
        / sum(f.subject == name for f in shown)
        for name in kept
    }
    shown.sort(key=lambda f: (-mean[f.subject], f.subject))
    data = [
        {
            "label": finding.subject, "series": finding.version, "value": finding.value,
            "low": finding.ci_low, "high": finding.ci_high, "chance_low": finding.chance_low,
            "chance_high": finding.chance_high,
            "tip": f"{finding.subject} ({finding.version}), {finding.verdict.value}: "
            f"{figures(finding)}",
        }
        for finding in shown
    ]  # fmt: skip
    sides = sides_of(groups)
    crossed = metric in ("weat", "differential_association")
    spec = charts.forest("rows", (*series,), len(kept), None if crossed else sides)
    name = f"{title(metric)}, {model}: {groups}"
    if len(size) > len(kept):
        name += f" (the {len(kept)} largest of {count(len(size))})"
    label = f"{name}. Value, interval and chance band of each target."
    return Chart(label, spec, {"rows": data}, _forest_table(name, shown, categories), name)


def sides_of(groups: str) -> tuple[str, str] | None:
    """Return what lies to the left and to the right of 0, for two sets that are compared."""
    first, separator, second = groups.partition(" against ")
    return (second, first) if separator else None


def _place_of(version: str) -> tuple[int, str]:
    first = version.split(", ", maxsplit=1)[0]
    return (MODALITIES.index(first) if first in MODALITIES else len(MODALITIES), version)


def _forest_table(name: str, found: Sequence[Finding], categories: Mapping[str, str]) -> Table:
    cells = [
        (
            f.subject, categories.get(f.subject, ""),
            "" if f.version == "default" else f.version, number(f.value),
            interval(f.ci_low, f.ci_high), interval(f.chance_low, f.chance_high),
            "" if f.verdict == Verdict.NONE else f.verdict.value, f.direction,
        )
        for f in found
    ]  # fmt: skip
    columns = [
        "Target",
        "Category",
        "Compared",
        "#Value",
        "#Interval",
        "#Chance band",
        "Verdict",
        "~In words",
    ]
    return Table.of(name, columns, cells, source="findings")


def summaries(result: AuditResult) -> list[Block]:
    """Return mean and spread of scores by category and direction, folded away."""
    found = rows(result, "score_summaries")
    if not found:
        return []
    names: dict[str, str | int] = {"both": "both ways", "first": 0, "second": 1}
    cells = [
        (
            row["category"], _leaning_name(row["groups"], names[row["direction"]]), row["model"],
            title(row["metric"]), "" if row["version"] == "default" else row["version"],
            count(row["targets"]), number(row["mean"]), number(row["sd"]),
        )
        for row in found
    ]  # fmt: skip
    columns = ["Category", "Leaning", "Model", "Score", "Compared", "#Targets", "#Mean", "#Sd"]
    table = Table.of("Scores by category and direction", columns, cells, source="score_summaries")
    return [Fold("Mean and spread of scores by category", (table,))]


def _leaning_name(groups: str, side: str | int) -> str:
    pair = groups.split(" against ")
    return side if isinstance(side, str) else f"to {pair[side]}" if len(pair) == 2 else str(side)
