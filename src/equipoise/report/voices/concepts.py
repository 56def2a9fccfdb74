"""How the report speaks of audits of concepts."""

from __future__ import annotations

from equipoise.core import AuditResult
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    return f"What do {len(result.findings)} findings about concepts say?"


VOICE = Voice(_question, "concepts")
