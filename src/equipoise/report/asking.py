"""Parts of the question that a report answers: its models and groups, and a verb that agrees."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.comparison import pair_of
from equipoise.report.text import listed


def models_of(result: AuditResult) -> list[str]:
    """Return the models in order of first appearance in the findings, some of which have none."""
    names: dict[str, None] = {}
    for finding in result.findings:
        pair = pair_of(finding)
        names.update(dict.fromkeys((pair.first, pair.second) if pair else (finding.model,)))
    return [name for name in names if name]


def groups_of(result: AuditResult) -> list[str]:
    """Return the groups in order of first appearance in the findings, some of which have none."""
    return list(dict.fromkeys(f.groups for f in result.findings if f.groups))


def doing(verb: str, models: Sequence[str]) -> str:
    """Return "Does a" or "Do a and b" of the verb "Do", "does a" or "do a and b" of "do"."""
    return f"{verb}{'es' if len(models) == 1 else ''} {listed(models)}"
