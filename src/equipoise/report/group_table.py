"""The table by group: one row for each group, with n and the kind's main metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.metrics.spec import spec_of
from equipoise.report.blocks import SYMBOLS, Section, Table
from equipoise.report.summary import group_value_name
from equipoise.report.tables import scope
from equipoise.report.text import interval, number, percent
from equipoise.report.words import contrast, has_shares

MOST_COLUMNS = 6

Key = tuple[str, str, str]


def group_table(result: AuditResult, metrics: Sequence[str]) -> Section | None:
    """Return the table by group of an audit; None where no finding has values by group.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.
    """
    places: dict[Key, dict[str, Finding]] = {}
    for metric in metrics:
        for one in result.findings:
            if one.metric == metric and any(not math.isnan(part.value) for part in one.by_group):
                columns = places.setdefault((one.model, one.groups, one.version), {})
                about = f" ({one.subject})" if one.subject else ""
                columns.setdefault(f"{group_value_name(one)}{about}", one)
    if not places:
        return None
    places = _tested(places)
    every = {name: one for columns in places.values() for name, one in columns.items()}
    # Numbers for the whole come before those of single subjects.
    titles = sorted(every, key=lambda name: bool(every[name].subject))[:MOST_COLUMNS]
    cells = [
        (part.group, model, scope(groups, version), part.n,
         *(_cell(part.group, columns.get(name)) for name in titles))
        for (model, groups, version), columns in places.items()
        if not {*titles}.isdisjoint(columns)
        for part in {part.group: part for one in columns.values() for part in one.by_group}.values()
    ]  # fmt: skip
    header = ["Group", "Model", "Attributes", "#n", *(f"#{name}" for name in titles)]
    caption = (
        f"Value with its interval for each group. {SYMBOLS[Verdict.DISPARITY]} marks the group "
        "that is worst off where the difference is a disparity."
    )
    table = Table.of(caption, header, cells, source="findings")
    return Section("groups", "Results by group", (table,))


def _tested(places: Mapping[Key, dict[str, Finding]]) -> dict[Key, dict[str, Finding]]:
    """Leave out versions without a verdict where another version of the model has one."""
    tested = {
        key
        for key, columns in places.items()
        if any(one.verdict != Verdict.NONE for one in columns.values())
    }
    known = {key[:2] for key in tested}
    return {key: own for key, own in places.items() if key in tested or key[:2] not in known}


def _cell(group: str, finding: Finding | None) -> str:
    own = next((one for one in finding.by_group if one.group == group), None) if finding else None
    if finding is None or own is None:
        return "–"
    if math.isnan(own.value):
        return own.note or "–"
    spec, share = spec_of(finding.metric), has_shares(finding)
    value = percent(own.value) if share else number(own.value)
    ends = interval(100 * own.low, 100 * own.high, 1) if share else interval(own.low, own.high)
    ends = "" if math.isnan(own.low) else f" {ends}"
    apart = contrast(finding)
    harmed = finding.verdict == Verdict.DISPARITY and spec.harm != "either"
    worst = harmed and apart is not None and apart[0] is own
    return f"{value}{ends}{f' {SYMBOLS[finding.verdict]}' if worst else ''}"
