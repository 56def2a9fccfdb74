"""How many findings of each model have which verdict, where there are several models."""

from __future__ import annotations

from collections import Counter

from equipoise.core import AuditResult
from equipoise.report.asking import declared_models
from equipoise.report.blocks import SYMBOLS, Badge, Section, Table
from equipoise.report.comparison import compares
from equipoise.report.sections.tables import mitigates
from equipoise.report.text import count

TITLE = "Findings by verdict"
_NO_MODEL = "no model"


def told_by_model(result: AuditResult) -> bool:
    """Whether verdicts are counted model by model: in an audit of several models."""
    if compares(result) or mitigates(result):
        return False
    return len(declared_models(result)) > 1


def verdicts(result: AuditResult) -> Section | None:
    """Count the findings of each model by verdict; None where one count tells all.

    Models are in the order in which they were declared; findings of no model come last.
    """
    if not told_by_model(result):
        return None
    counted = Counter((finding.model, finding.verdict) for finding in result.findings)
    present = [one for one in SYMBOLS if any(verdict == one for _, verdict in counted)]
    models = declared_models(result)
    if any(not model for model, _ in counted):
        models.append("")
    cells = [
        (model or _NO_MODEL, *(count(counted[model, one]) for one in present)) for model in models
    ]
    columns = ["Model", *(f"#{Badge(one)}" for one in present)]
    table = Table.of("Each model's findings", columns, cells, source="findings")
    return Section("verdicts", TITLE, (table,))
