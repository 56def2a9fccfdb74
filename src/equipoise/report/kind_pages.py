"""Pages of kinds whose folder has no `page.py` yet, made from their voices."""

from __future__ import annotations

from equipoise.core import AuditResult
from equipoise.report.comparison import compares
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.page import Page
from equipoise.report.voices import voice


def page_of(result: AuditResult) -> Page:
    """Return the page of a result's kind."""
    if compares(result):
        return COMPARISON
    spoken = voice(result.findings[0].audit) if result.findings else None
    if spoken is None:
        return Page()
    return Page(
        leads=spoken.foremost,
        by_group=spoken.foremost,
        subjects=spoken.parts,
        sections=spoken.sections(),
        facts=spoken.facts,
        caveat=spoken.caveat,
    )
