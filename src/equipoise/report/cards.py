"""Findings as cards: a sentence that unfolds into its chart and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.core import Finding, Verdict
from equipoise.report.blocks import (
    Badge,
    Block,
    Card,
    Chart,
    Facts,
    Fold,
    Heading,
    Section,
    Table,
    Words,
)
from equipoise.report.comparison import is_comparison, pair_of
from equipoise.report.contrast import contrast
from equipoise.report.differences import differences_chart
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.tables import Row, parameters_text, scope
from equipoise.report.text import count, interval, number, p_value, plural
from equipoise.report.words import (
    figures,
    harmful_side,
    has_shares,
    heading,
    name_of,
    ranked,
    sentence,
    worse_side,
)

SHOWN, MOST = 8, 60

_TITLES = {
    Verdict.DISPARITY: "Disparities",
    Verdict.INCONCLUSIVE: "Not enough data",
    Verdict.BELOW_THRESHOLD: "Too small to matter",
    Verdict.NOT_ESTIMABLE: "Can't be estimated",
    Verdict.NONE: "Values without a verdict",
}
_NO_VERDICT = (
    "These values are described, not judged. Each one's reason names the finding that is tested "
    "instead, if there is one."
)


def cards(findings: Sequence[Finding], *, judged: bool = True) -> Section | None:
    """Return the section of all findings: disparities first, largest excess first.

    Parameters
    ----------
    findings : sequence of Finding
    judged : bool
        Whether findings have verdicts; the changes of a mitigation have none.
    """
    if not findings:
        return None
    blocks: list[Block] = []
    ordered = ranked(findings)
    for verdict, title in _TITLES.items():
        own = [one for one in ordered if one.verdict == verdict]
        if not own:
            continue
        differ = verdict == Verdict.DISPARITY and is_comparison(own[0])
        name = "Changes" if not judged else "Differences" if differ else title
        blocks.append(Heading(f"{name} ({count(len(own))})"))
        if verdict == Verdict.NONE and judged:
            blocks.append(Words((_NO_VERDICT,), "note"))
        blocks += _cards(own)
    return Section("findings", "Findings", tuple(blocks))


def _cards(findings: Sequence[Finding]) -> list[Block]:
    """Return one card for all findings with the same sentence; later ones are folded."""
    merged: dict[str, list[Finding]] = {}
    for one in findings:
        merged.setdefault(sentence(one), []).append(one)
    every = [*merged.items()]
    shown = SHOWN if findings[0].verdict in (Verdict.DISPARITY, Verdict.INCONCLUSIVE) else 0
    blocks: list[Block] = [_card(text, same) for text, same in every[:shown]]
    rest = tuple(_card(text, same) for text, same in every[shown:MOST])
    if rest:
        blocks.append(
            Fold(f"Show {plural(len(rest), 'more finding' if shown else 'finding')}", rest)
        )
    left = sum(len(same) for _, same in every[MOST:])
    if left:
        text = f"{plural(left, 'further finding')} of this kind: see findings.parquet."
        blocks.append(Words((text,), "note"))
    return blocks


def _card(text: str, same: Sequence[Finding]) -> Card:
    blocks: list[Block] = []
    drawn = [one for one in same if not math.isnan(one.value) and not math.isnan(one.ci_low)]
    if drawn:
        blocks.append(differences_chart(drawn) if pair_of(drawn[0]) else estimates(drawn))
    first = same[0]
    if any(not math.isnan(part.value) for part in first.by_group):
        blocks.append(_groups_chart(first))
    elif first.by_group:
        blocks.append(_groups_table(first))
    blocks += [Facts(_facts(one)) for one in same]
    lines = tuple(dict.fromkeys(figures(one) for one in same if not math.isnan(one.value)))
    badge = None if first.audit == "mitigation" else Badge(first.verdict, is_comparison(first))
    return Card(badge, text, lines, tuple(blocks))


def _facts(finding: Finding) -> tuple[tuple[str, str], ...]:
    excluded = "; ".join(f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    pair = pair_of(finding)
    values = zip((pair.first, pair.second), pair.values, strict=True) if pair else ()
    changes = finding.audit == "mitigation"
    direction = "Who is worse" if pair else "What changed" if changes else "Who is worse off"
    pairs = (
        ("Finding", heading(finding)),
        ("Values", ", ".join(f"{model} {number(value)}" for model, value in values)),
        ("n", count(finding.n)),
        ("Excluded", excluded),
        ("p, q", f"{p_value(finding.p_value)}, {p_value(finding.q_value)}"),
        ("Interval", finding.method),
        ("Null hypothesis", finding.null),
        ("Resampled", finding.unit),
        (direction, finding.direction),
        ("Note", finding.reason),
        ("Parameters", "" if pair else parameters_text(finding.parameters)),
        ("Reference", finding.citation),
    )
    return tuple((name, text) for name, text in pairs if text)


def estimates(findings: Sequence[Finding], *, title: str = "") -> Chart:
    """Return the values of findings with intervals, over what chance gives."""
    labels = _labels(findings)
    rows = [_row(one, label) for one, label in zip(findings, labels, strict=True)]
    verdicts = [*dict.fromkeys(one.verdict.value for one in findings)]
    key = " Grey bar: chance; tick: threshold." if any("chance_low" in row for row in rows) else ""
    label = f"{title or heading(findings[0])}. Point: value; line: interval.{key}"
    return intervals(rows, label, Axis(), title=title, series=verdicts, palette=VERDICTS)


def _row(finding: Finding, label: str) -> Row:
    return {
        "label": label,
        "series": finding.verdict.value,
        "value": finding.value,
        "low": finding.ci_low,
        "high": finding.ci_high,
        "chance_low": finding.chance_low,
        "chance_high": finding.chance_high,
        "line": finding.chance + harmful_side(finding) * finding.threshold,
        "tip": f"{label}, {finding.verdict.value}: {figures(finding)}",
    }


def _labels(findings: Sequence[Finding]) -> list[str]:
    """Name rows by subject and metric, what differs first: narrow pages cut the end."""
    plain = [f"{one.subject}: {name_of(one)}" if one.subject else name_of(one) for one in findings]
    return [
        f"Within class: {label}" if plain.count(label) > 1 and "within" in one.null else label
        for label, one in zip(plain, findings, strict=True)
    ]


def _groups_chart(finding: Finding) -> Chart:
    parts = sorted(
        (part for part in finding.by_group if not math.isnan(part.value)), key=lambda p: p.value
    )
    ends = contrast(finding.by_group, worse_side(finding))
    share = has_shares(finding)
    rows = [
        {
            "label": f"{part.group} (n = {part.n})",
            "series": "worst" if ends and part == ends.worst else "other",
            "value": part.value,
            "low": part.low,
            "high": part.high,
            "tip": f"{part.group}: {number(part.value)} {interval(part.low, part.high)}",
        }
        for part in parts
    ]
    axis = Axis("value of each group", percent=share, domain=(0.0, 1.0) if share else None)
    palette = {"worst": ("var(--disparity)", "triangle-up"), "other": ("var(--m1)", "circle")}
    drawn = intervals(
        rows, f"By group: {heading(finding)}", axis, title="By group", series=("other",),
        palette=palette,
    )  # fmt: skip
    return Chart(drawn.label, drawn.spec, drawn.data, _groups_table(finding), drawn.title)


def _groups_table(finding: Finding) -> Table:
    cells = [
        (part.group, count(part.n), number(part.value), interval(part.low, part.high), part.note)
        for part in finding.by_group
    ]
    columns = ["Group", "#n", "#Value", "#Interval", "Note"]
    return Table.of(f"By group: {heading(finding)}", columns, cells, source="findings")


def all_findings(findings: Sequence[Finding]) -> Section | None:
    """Return every finding as a row of one table."""
    if not findings:
        return None
    columns = [
        "Metric", "Subject", "#Value", "#Interval", "#Chance", "Verdict", "Model", "Attributes",
        "#Excess", "#q", "#Chance band", "#n", "~Note", "~Null hypothesis",
    ]  # fmt: skip
    cells = [
        (
            name_of(one), one.subject, number(one.value), interval(one.ci_low, one.ci_high),
            number(one.chance), Badge(one.verdict), one.model, scope(one.groups, one.version),
            number(one.excess), p_value(one.q_value), interval(one.chance_low, one.chance_high),
            count(one.n), one.reason, one.null,
        )
        for one in ranked(findings)
    ]  # fmt: skip
    return Section(
        "evidence", "All findings", (Table.of("All findings", columns, cells, source="findings"),)
    )
