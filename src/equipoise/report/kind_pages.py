"""Pages of kinds whose folder has no `page.py` yet, made from their voices."""

from __future__ import annotations

from math import isnan

from equipoise.core import AuditResult
from equipoise.report.augmentation import in_short
from equipoise.report.comparison import changed, compares, leading, over_subjects
from equipoise.report.page import Page
from equipoise.report.sections import (
    augmentation,
    differences,
    planted_scenes,
)
from equipoise.report.summary import Statement, Summary
from equipoise.report.tables import rows
from equipoise.report.voices import voice
from equipoise.report.words import sentence


def page_of(result: AuditResult) -> Page:
    """Return the page of a result's kind."""
    if compares(result):
        return _COMPARISON
    mitigates = "mitigation_recipes" in result.tables
    audit = "mitigation" if mitigates else result.findings[0].audit if result.findings else ""
    spoken = voice(audit)
    if spoken is None:
        return Page()
    said = spoken.in_short(result)
    made = Summary(tuple(Statement(None, text) for text in said))
    return Page(
        leads=spoken.foremost,
        by_group=spoken.foremost,
        subjects=spoken.parts,
        sections=(planted_scenes.planted_scenes, *spoken.sections()),
        facts=spoken.facts,
        caveat=spoken.caveat,
        summary=(lambda _: made) if said else None,
        noun="Mitigation" if mitigates else "Audit",
        judged=not mitigates,
    )


def _between(result: AuditResult) -> Summary:
    """Say which model is better in what leads, and which metrics disagree."""
    if "augmentation" in result.tables:
        return Summary(tuple(Statement(None, text) for text in in_short(result)))
    leads = leading(result.findings)
    texts = [sentence(one) for one in leads] + changed(result)
    if not all(map(over_subjects, result.findings)):
        disagreements = rows(result, "disagreements")
        texts += [f"Metrics disagree: {row['sentence']}" for row in disagreements]
    first = [one for one in leads if one.model == leads[0].model and not isnan(one.value)]
    chart = differences.differences_chart(first, name=first[0].model) if first else None
    return Summary(tuple(Statement(None, text) for text in texts[:8]), chart)


_COMPARISON = Page(
    summary=_between,
    noun="Comparison",
    subjects="classes",
    sections=(
        augmentation.augmentation,
        differences.differences,
        differences.changes,
        differences.ranking,
        differences.disagreements,
    ),
)
