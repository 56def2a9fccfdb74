"""Images that a model has nothing for, by group: whose images are missing from every number."""

from __future__ import annotations

from collections.abc import Sequence

from equipoise.core import AuditResult
from equipoise.report.blocks import Block, Section, Table, Words
from equipoise.report.sections.tables import Row, panels, rows
from equipoise.report.text import count, percent

_STAGES = {"read": "Not read", "decode": "Not decoded", "model": "Model failed"}


def failures(result: AuditResult) -> Section | None:
    """Images that could not be read or decoded, or on which the model failed, by group."""
    found = rows(result, "failures")
    if not found:
        return None
    note = Words(
        (
            "These images are in no number of the model. Where one group lost a larger share than "
            "another, its numbers are of those images that are left.",
        ),
        "note",
    )
    tables: list[Block] = [
        _table(f"{model}, {on}", own) for (model, on), own in panels(found, "model", "on").items()
    ]
    return Section("failures", "Images that could not be used", (note, *tables))


def _table(what: str, found: Sequence[Row]) -> Table:
    stages = [stage for stage in _STAGES if any(row["stage"] == stage for row in found)]
    cells = []
    for (groups, group), own in panels(found, "groups", "group").items():
        by_stage = {row["stage"]: row["n"] for row in own}
        lost, of = sum(by_stage.values()), own[0]["of"]
        cells.append(
            (
                group or "All images",
                groups,
                count(of),
                *(count(by_stage.get(stage, 0)) for stage in stages),
                percent(lost / of),
            )
        )
    columns = ["Group", "By", "#Images", *(f"#{_STAGES[stage]}" for stage in stages), "#Share"]
    return Table.of(f"Images without an output of {what}", columns, cells, source="failures")
