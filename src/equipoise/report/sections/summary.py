"""The few sentences that a reader takes away."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.report.blocks import Section, Words
from equipoise.report.text import plural
from equipoise.report.words import names_groups, ranked, sentence

MOST_MODELS = 8


def summary(result: AuditResult) -> Section | None:
    """One statement a model: its largest disparity, or that none was found."""
    models = list(dict.fromkeys(finding.model for finding in result.findings))
    if not models:
        return None
    ordered = ranked(result.findings)
    items = [
        _statement(model, [finding for finding in ordered if finding.model == model])
        for model in models[:MOST_MODELS]
    ]
    if len(models) > MOST_MODELS:
        items.append(f"{plural(len(models) - MOST_MODELS, 'further model')}: see below.")
    return Section("summary", "In short", (Words(tuple(items), "list"),))


def _statement(model: str, found: Sequence[Finding]) -> str:
    disparities = [finding for finding in found if finding.verdict == Verdict.DISPARITY]
    if disparities:
        named = [f for f in disparities if names_groups(f)]
        whole = [f for f in named if not f.subject]
        return sentence((whole or named or disparities)[0])
    unsure = sum(finding.verdict == Verdict.INCONCLUSIVE for finding in found)
    below = sum(finding.verdict == Verdict.BELOW_THRESHOLD for finding in found)
    return (
        f"{model}: no disparity was found; {plural(below, 'finding')} below the threshold, "
        f"{unsure} inconclusive."
    )
