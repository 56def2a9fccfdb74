"""Sections of pages that are data: a heading, a text and one table of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from equipoise.core import AuditResult
from equipoise.report.blocks import MAX_ROWS, Row, Section, Table, Value, rows
from equipoise.report.text import count


@dataclass(frozen=True, kw_only=True)
class TableSection:
    """A section of one table of the run; left out where the table has no rows.

    Attributes
    ----------
    name, heading, text : str
        Of the section.
    caption : str
        Of the table.
    source : str
        Name of the table in the run.
    columns : mapping
        As `Table.of` takes them.
    keeps : callable
        Whether a row is shown.
    limit : int
        Rows that are shown at first.
    """

    name: str
    heading: str
    caption: str
    source: str
    columns: Mapping[str, Value]
    text: str = ""
    keeps: Callable[[Row], bool] = bool
    limit: int = MAX_ROWS

    def __call__(self, result: AuditResult) -> Section | None:
        """Return the section of a run."""
        found = [row for row in rows(result, self.source) if self.keeps(row)]
        if not found:
            return None
        table = Table.of(self.caption, self.columns, found, source=self.source, limit=self.limit)
        return Section.of(self.name, self.heading, self.text, table)


def images(result: AuditResult) -> tuple[str, str]:
    """Return how many images findings are of, as a fact of the page."""
    return "Images", count(max((finding.n for finding in result.findings), default=0))
