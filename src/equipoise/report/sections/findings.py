"""The findings in words, ranked; each unfolds into its plot and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from equipoise.core import AuditResult, Family, Finding, Verdict
from equipoise.report import charts
from equipoise.report.blocks import (
    Badge,
    Block,
    Card,
    Chart,
    Facts,
    Fold,
    Grid,
    Heading,
    Section,
    Table,
    Words,
)
from equipoise.report.comparison import compares, is_comparison, pair_of
from equipoise.report.contrast import contrast
from equipoise.report.sections.differences import differences_chart
from equipoise.report.sections.tables import mitigates, parameters_text, rows, scope
from equipoise.report.text import count, interval, number, p_value, plural
from equipoise.report.voices import voice
from equipoise.report.words import (
    figures,
    harmful_side,
    heading,
    name_of,
    ranked,
    sentence,
    worse_side,
)

SHOWN, MOST = 8, 60
LEAVES_IN_OVERVIEW = 12

_LEADS = {
    Verdict.DISPARITY: "Disparities",
    Verdict.INCONCLUSIVE: "Inconclusive",
    Verdict.BELOW_THRESHOLD: "Below the threshold",
    Verdict.NOT_ESTIMABLE: "Not estimable",
    Verdict.NONE: "Described without a verdict",
}


_NO_VERDICT = (
    "A value without a verdict is described, not judged: it says neither that there is a disparity "
    "nor that there is none. Its reason says why, and names what is tested in its place, if "
    "anything is."
)


def findings(result: AuditResult) -> Section | None:
    """Every finding in words, disparities first, largest excess first."""
    if not result.findings:
        return None
    between = compares(result)
    intro = _changes(result) if mitigates(result) else _summary(result.findings, between=between)
    blocks: list[Block] = [Words((f"{intro} Open one for its plot and numbers.",))]
    ordered = ranked(result.findings)
    for verdict, word in _LEADS.items():
        found = [finding for finding in ordered if finding.verdict == verdict]
        lead = "Differences" if between and verdict == Verdict.DISPARITY else word
        lead = "Changes" if mitigates(result) else lead
        if found:
            said = verdict == Verdict.NONE and not mitigates(result)
            note = [Words((_NO_VERDICT,), "note")] if said else []
            blocks += [Heading(f"{lead} ({count(len(found))})"), *note, *_cards(found)]
    return Section("findings", "What was found", tuple(blocks))


def _summary(found: Sequence[Finding], *, between: bool) -> str:
    tested = [f for f in found if f.verdict not in (Verdict.NONE, Verdict.NOT_ESTIMABLE)]
    shown = sum(f.verdict == Verdict.DISPARITY for f in found)
    open_ones = sum(f.verdict == Verdict.INCONCLUSIVE for f in found)
    if not tested:
        return f"{plural(len(found), 'finding')}, none with a verdict; why is said with each."
    one, many = ("a difference", "differences") if between else ("a disparity", "disparities")
    largest = "difference" if between else "excess over chance"
    return (
        f"Of {plural(len(tested), 'finding')} with a verdict, "
        f"{plural(shown, f'is {one}', f'are {many}')} and "
        f"{plural(open_ones, 'is', 'are')} inconclusive. The largest {largest}, "
        "in units of its threshold, comes first."
    )


def _changes(result: AuditResult) -> str:
    roles = [row["role"] for row in rows(result, "mitigation")]
    biases = plural(roles.count("bias"), "disparity", "disparities")
    return (
        f"{plural(len(result.findings), 'number')} before and after a recipe: {biases} of "
        f"withheld subjects, and {roles.count('utility')} of accuracy and recall. A change is no "
        "disparity of its own and has no verdict; what follows of each recipe is said in short."
    )


def _cards(found: list[Finding]) -> list[Block]:
    """Make one card of all findings that come to the same sentence."""
    merged: dict[str, list[Finding]] = {}
    for finding in found:
        merged.setdefault(sentence(finding), []).append(finding)
    cards = list(merged.items())
    shown = SHOWN if found[0].verdict in (Verdict.DISPARITY, Verdict.INCONCLUSIVE) else 0
    blocks: list[Block] = [_card(text, same) for text, same in cards[:shown]]
    rest = tuple(_card(text, same) for text, same in cards[shown:MOST])
    if rest:
        noun = "more statement" if shown else "statement"
        blocks.append(Fold(f"Show {plural(len(rest), noun)}", rest))
    left = sum(len(same) for _, same in cards[MOST:])
    if left:
        note = f"{plural(left, 'further finding')} of this kind: see findings.parquet."
        blocks.append(Words((note,), "note"))
    return blocks


def _card(text: str, same: list[Finding]) -> Card:
    blocks: list[Block] = []
    drawn = [f for f in same if not math.isnan(f.value) and not math.isnan(f.ci_low)]
    if drawn:
        blocks.append(differences_chart(drawn) if pair_of(drawn[0]) else _estimate_chart(drawn))
    first = same[0]
    if any(not math.isnan(part.value) for part in first.by_group):
        blocks.append(_groups_chart(first))
    elif first.by_group:
        blocks.append(_groups_table(first))
    blocks += [Facts(_facts(finding)) for finding in same]
    lines = tuple(dict.fromkeys(figures(f) for f in same if not math.isnan(f.value)))
    badge = None if first.audit == "mitigation" else Badge(first.verdict, is_comparison(first))
    return Card(badge, text, lines, tuple(blocks))


def _facts(finding: Finding) -> tuple[tuple[str, str], ...]:
    left = "; ".join(f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    pair = pair_of(finding)
    values = zip((pair.first, pair.second), pair.values, strict=True) if pair else ()
    changes = finding.audit == "mitigation"
    of = {"subject": "Subjects", "query": "Queries"}.get(finding.unit if changes else "", "Images")
    pairs = (
        ("About", heading(finding)),
        ("Values", ", ".join(f"{model} {number(value)}" for model, value in values)),
        (f"{of} behind it", count(finding.n)),
        ("Left out", left),
        ("p, q", f"{p_value(finding.p_value)}, {p_value(finding.q_value)}"),
        ("Interval", finding.method),
        ("Null hypothesis", finding.null),
        ("Unit of resampling", finding.unit),
        (
            "Who is worse" if pair else "What changed" if changes else "Who is worse off",
            finding.direction,
        ),
        ("To know", finding.reason),
        ("Parameters", "" if pair else parameters_text(finding.parameters)),
        ("Definition", finding.citation),
    )
    return tuple((name, text) for name, text in pairs if text)


def _estimate_row(finding: Finding, label: str) -> dict[str, Any]:
    return {
        "label": label,
        "value": finding.value,
        "low": finding.ci_low,
        "high": finding.ci_high,
        "chance_low": finding.chance_low,
        "chance_high": finding.chance_high,
        "line": finding.chance + harmful_side(finding) * finding.threshold,
        "verdict": finding.verdict.value,
        "tip": f"{label}, {finding.verdict.value}: {figures(finding)}",
    }


def _estimate_chart(found: Sequence[Finding], *, name: str = "") -> Chart:
    verdicts = tuple(dict.fromkeys(f.verdict.value for f in found))
    spec = charts.estimates("rows", verdicts, len(found))
    data = [_estimate_row(f, label) for f, label in zip(found, _labels(found), strict=True)]
    tested = any(not math.isnan(f.chance) for f in found)
    key = " Grey bar: what chance gives; tick: where the threshold begins." if tested else ""
    label = f"{name or heading(found[0])}. Point: value; line: interval.{key}"
    return Chart(label, spec, {"rows": data}, None, name)


def _labels(found: Sequence[Finding]) -> list[str]:
    """Name rows by class and metric, what differs first: narrow pages cut the end."""
    plain = [f"{f.subject}: {name_of(f)}" if f.subject else name_of(f) for f in found]
    return [
        f"Within class: {label}" if plain.count(label) > 1 and "within" in finding.null else label
        for label, finding in zip(plain, found, strict=True)
    ]


def _groups_chart(finding: Finding) -> Chart:
    parts = sorted(
        (part for part in finding.by_group if not math.isnan(part.value)), key=lambda p: p.value
    )
    found = contrast(finding.by_group, worse_side(finding))
    share = all(0 <= part.value <= 1 for part in parts)
    data = [
        {
            "group": f"{part.group} (n = {part.n})", "value": part.value, "low": part.low,
            "high": part.high, "role": "worst" if found and part == found.worst else "other",
            "tip": f"{part.group}: {number(part.value)} {interval(part.low, part.high)}, "
            f"n = {part.n}",
        }
        for part in parts
    ]  # fmt: skip
    label = f"By group: {heading(finding)}"
    spec = charts.groups("rows", "per group", len(data), share=share)
    return Chart(label, spec, {"rows": data}, _groups_table(finding), "By group")


def _groups_table(finding: Finding) -> Table:
    cells = [
        (part.group, count(part.n), number(part.value), interval(part.low, part.high), part.note)
        for part in finding.by_group
    ]
    columns = ["Group", "#Images", "#Value", "#Interval", "Note"]
    return Table.of(f"By group: {heading(finding)}", columns, cells, source="findings")


def evidence(result: AuditResult) -> Section | None:
    """Every finding as a plot per model and groups, and all of them in one table."""
    # The differences of a comparison, and the changes of a recipe, have sections of their own.
    if not result.findings or compares(result) or mitigates(result):
        return None
    panels: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in result.findings:
        panels.setdefault((finding.model, finding.groups, finding.version), []).append(finding)
    plots = [plot for key, found in panels.items() if (plot := _panel(key, found))]
    blocks: list[Block] = []
    if plots:
        blocks += [Words((_KEY,), "note"), Grid(tuple(plots))]
    blocks.append(_findings_table(result.findings))
    return Section("evidence", "Every finding with its interval and chance level", tuple(blocks))


_KEY = (
    "Point: the value, with the verdict as shape and colour. Line: its interval. Grey bar: what "
    "chance gives. Tick: where the threshold begins. A label that is cut is whole in its tooltip."
)


def _panel(key: tuple[str, str, str], found: list[Finding]) -> Chart | None:
    tested = [f for f in found if f.verdict not in (Verdict.NONE, Verdict.NOT_ESTIMABLE)]
    leaves = ranked(f for f in tested if f.family == Family.LEAF)[:LEAVES_IN_OVERVIEW]
    shown = [f for f in tested if f.family != Family.LEAF] + leaves
    if not shown:
        return None
    model, groups, version = key
    return _estimate_chart(shown, name=f"{model}, {scope(groups, version)}")


def _findings_table(found: Sequence[Finding]) -> Table:
    about = "About" if voice(found[0].audit) else "Class"
    columns = [
        "Metric", about, "#Value", "#Interval", "#Chance", "Verdict", "Model", "Groups",
        "#Excess", "#q", "#Chance band", "#Images", "~Reason", "~Null hypothesis",
    ]  # fmt: skip
    cells = [
        (
            name_of(f), f.subject, number(f.value), interval(f.ci_low, f.ci_high),
            number(f.chance), Badge(f.verdict), f.model, scope(f.groups, f.version),
            number(f.excess), p_value(f.q_value), interval(f.chance_low, f.chance_high),
            count(f.n), f.reason, f.null,
        )
        for f in ranked(found)
    ]  # fmt: skip
    return Table.of("All findings", columns, cells, source="findings")
