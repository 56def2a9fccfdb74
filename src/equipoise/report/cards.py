"""Findings as cards: a sentence that unfolds into its chart and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from equipoise.core import Family, Finding, Verdict
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
    parameters_text,
    scope_of,
)
from equipoise.report.comparison_page import differences_chart
from equipoise.report.overview import groups_chart
from equipoise.report.plots import VERDICTS, Axis, intervals
from equipoise.report.text import VERDICT_TITLES, count, number, p_value, plural
from equipoise.report.words import (
    figures,
    harmful_side,
    heading,
    is_comparison,
    name_of,
    pair_of,
    ranked,
    sentence,
)

SHOWN, MOST = 8, 60
_OPEN = (Verdict.DISPARITY, Verdict.DETECTED, Verdict.INCONCLUSIVE)

_TITLES = {**VERDICT_TITLES, Verdict.DISPARITY: "Disparities"}


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
    ordered = ranked(one for one in findings if one.family is not Family.FOLD)
    for verdict, title in _TITLES.items():
        own = [one for one in ordered if one.verdict == verdict]
        if not own:
            continue
        differ = verdict == Verdict.DISPARITY and is_comparison(own[0])
        name = "Changes" if not judged else "Differences" if differ else title
        blocks.append(Heading(f"{name} ({count(len(own))})"))
        blocks += _cards(own)
    return Section("findings", "Findings", tuple(blocks))


def _cards(findings: Sequence[Finding]) -> list[Block]:
    """Return one card for all findings with the same sentence; later ones are folded."""
    merged: dict[str, list[Finding]] = {}
    for one in findings:
        merged.setdefault(sentence(one), []).append(one)
    every = [_card(text, same) for text, same in [*merged.items()][:MOST]]
    shown = SHOWN if findings[0].verdict in _OPEN else 0
    rest = tuple(every[shown:])
    folded = [Fold(f"Show {plural(len(rest), 'finding')}", rest)] if rest else []
    left = sum(len(same) for same in [*merged.values()][MOST:])
    text = f"{plural(left, 'further finding')} of this kind: see findings.parquet."
    return [*every[:shown], *folded, *([Words((text,), "note")] if left else [])]


def _card(text: str, same: Sequence[Finding]) -> Card:
    blocks: list[Block] = []
    drawn = [one for one in same if not math.isnan(one.value) and not math.isnan(one.ci_low)]
    if drawn:
        blocks.append(differences_chart(drawn) if pair_of(drawn[0]) else _estimates(drawn))
    first = same[0]
    if first.by_group:
        caption, columns = f"By group: {heading(first)}", {
            "Group": "group", "#n": "n", "#Value": "value", "#Interval": "low high", "Note": "note",
        }  # fmt: skip
        table = Table.of(caption, columns, first.by_group, source="findings")
        valued = any(not math.isnan(part.value) for part in first.by_group)
        blocks.append(replace(groups_chart(first, [first]), table=table) if valued else table)
    blocks += [Facts(_facts(one)) for one in same]
    lines = tuple(dict.fromkeys(figures(one) for one in same if not math.isnan(one.value)))
    badge = None if first.audit == "mitigation" else Badge(first.verdict, is_comparison(first))
    return Card(badge, text, lines, tuple(blocks))


def _facts(finding: Finding) -> tuple[tuple[str, str], ...]:
    excluded = "; ".join(f"{item.reason}: {count(item.count)}" for item in finding.excluded)
    pair = pair_of(finding)
    values = zip((pair.first, pair.second), pair.values, strict=True) if pair else ()
    return (
        ("Finding", heading(finding)),
        ("Values", ", ".join(f"{model} {number(value)}" for model, value in values)),
        ("n", count(finding.n)),
        ("Excluded", excluded),
        ("p, q", f"{p_value(finding.p_value)}, {p_value(finding.q_value)}"),
        ("Interval", finding.method),
        ("Null hypothesis", finding.null),
        ("Resampled", finding.unit),
        ("Direction", finding.direction),
        ("Note", finding.reason),
        ("Parameters", "" if pair else parameters_text(finding.parameters)),
        ("Reference", finding.citation),
    )


def _estimates(findings: Sequence[Finding]) -> Chart:
    """Return the values of findings with intervals, over what chance gives."""
    marks = []
    for one in findings:
        label = f"{one.subject}: {name_of(one)}" if one.subject else name_of(one)
        # Two findings about one number differ in what they hold it against.
        label = f"Within class: {label}" if "within" in one.null else label
        word = VERDICT_TITLES[one.verdict]
        marks.append({
            "label": label, "series": word, "value": one.value, "low": one.ci_low,
            "high": one.ci_high, "chance_low": one.chance_low, "chance_high": one.chance_high,
            "line": one.chance + harmful_side(one) * one.threshold,
            "tip": f"{label}, {word}: {figures(one)}",
        })  # fmt: skip
    verdicts = [*dict.fromkeys(VERDICT_TITLES[one.verdict] for one in findings)]
    key = "Point: value; line: interval. Grey bar: chance; tick: threshold."
    label = f"{heading(findings[0])}. {key}"
    return intervals(marks, label, Axis(), series=verdicts, palette=VERDICTS)


def all_findings(findings: Sequence[Finding]) -> Section | None:
    """Return every finding as a row of one table."""
    columns = {
        "Metric": name_of, "Subject": "subject", "#Value": "value", "#Interval": "ci_low ci_high",
        "#Chance": "chance", "Verdict": lambda one: Badge(one.verdict, is_comparison(one)),
        "Model": "model", "Attributes": scope_of, "#Excess": "excess", "#q": "q_value",
        "#Chance band": "chance_low chance_high", "#n": "n", "~Note": "reason",
        "~Null hypothesis": "null",
    }  # fmt: skip
    table = Table.of("All findings", columns, ranked(findings), source="findings")
    return Section("evidence", "All findings", (table,)) if findings else None
