"""How the report speaks of audits of associations."""

from __future__ import annotations

from equipoise.core import AuditResult
from equipoise.report.voices import Voice


def _question(result: AuditResult) -> str:
    return f"What do {len(result.findings)} findings about targets say?"


VOICE = Voice(_question, "targets")
