"""A result that shows itself: in a terminal, in a notebook, as tables for a paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING

from equipoise.core import AuditResult, Family
from equipoise.core.finding import findings_to_table
from equipoise.core.views import Mark, Plot, TextTable
from equipoise.report.blocks import Page, Statement, Summary, Table, Words
from equipoise.report.by_group import group_table
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.overview import all_findings
from equipoise.report.summary import summarize
from equipoise.report.text import count, listed, plural, verdict_title, visible
from equipoise.report.words import compares, has_shares, is_comparison, models_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def first_screen(result: AuditResult, page: Page) -> Summary:
    """Return the first screen of a result's report."""
    if page.summary:
        summary = page.summary(result)
    elif result.findings:
        summary = summarize(result, page.leads, page.caveat, page.steps)
    else:
        summary = Summary((Statement(None, "This run has no findings."),))
    return replace(summary, warnings=result.manifest.warnings)


def page_title(result: AuditResult, page: Page) -> str:
    """Return the title of the report of a result."""
    chosen = result.manifest.resolved.get("report")
    if page.noun == "Audit" and isinstance(chosen, Mapping) and chosen.get("title"):
        return str(chosen["title"])
    names = models_of(result)
    if not names:
        return page.noun
    return f"{page.noun} of {listed(names) if len(names) <= 3 else f'{len(names)} models'}"


def shared_page(result: AuditResult) -> Page:
    """Return the page of comparisons or of any audit, for a result of unknown kind."""
    return COMPARISON if compares(result) else Page()


@dataclass(frozen=True, repr=False)
class Result(AuditResult):
    """Findings with the tables behind them, which show themselves.

    Attributes
    ----------
    findings, manifest, tables, conclusions
        As of `AuditResult`.
    page : Page or None
        How the kind of audit presents its findings; what all kinds share unless given.

    Examples
    --------
    >>> import equipoise, polars as pl
    >>> from equipoise import report
    >>> people = pl.DataFrame(
    ...     {
    ...         "gender": ["women", "men"] * 60,
    ...         "label": [1, 1, 0, 0] * 30,
    ...         "pred": [0, 1, 0, 0] * 30,
    ...     }
    ... )
    >>> result = equipoise.audit(people, target="label", pred="pred", groups="gender")
    >>> result.table().columns[:3]
    ('Group', 'n', 'Accuracy')
    """

    page: Page | None = field(default=None, compare=False)

    @property
    def shown_page(self) -> Page:
        """How the findings are presented."""
        return self.page or shared_page(self)

    def table(self) -> TextTable:
        """Return the results by group; all findings where no metric has values by group."""
        section = group_table(self, self.shown_page.by_group) or all_findings(self.findings)
        blocks = section.blocks if section else ()
        tables = [block for block in blocks if isinstance(block, Table)]
        if not tables:
            return TextTable("No findings", (), ())
        notes = [" ".join(block.items) for block in blocks if isinstance(block, Words)]
        table = text_table(tables[0])
        return replace(table, caption=". ".join([table.caption, *notes[:1]]))

    def plot(self) -> Plot:
        """Return the chart of the first screen, which notebooks show."""
        summary = first_screen(self, self.shown_page)
        rows = summary.chart.rows if summary.chart else ()
        marks = (
            Mark(str(row["label"]), series=str(row.get("series", "")), **{
                name: math.nan if row.get(name) is None else row[name]
                for name in ("value", "low", "high")
            })
            for row in rows if "label" in row
        )  # fmt: skip
        leading_findings = [
            statement.finding for statement in summary.statements if statement.finding is not None
        ]
        shares = bool(leading_findings) and all(map(has_shares, leading_findings))
        return Plot(summary.chart.title if summary.chart else "", tuple(marks), shares)

    def to_pandas(self) -> pd.DataFrame:
        """Return the findings, one a row, as a pandas data frame."""
        frame: pd.DataFrame = findings_to_table(self.findings).to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the findings, one a row, as a polars data frame."""
        frame: pl.DataFrame = import_module("polars").from_arrow(findings_to_table(self.findings))
        return frame

    def __repr__(self) -> str:
        verdicts = Counter(
            verdict_title(finding.verdict, comparison=is_comparison(finding))
            for finding in self.findings
            if finding.family is not Family.FOLD
        )
        counts = ", ".join(f"{n} {word}" for word, n in verdicts.most_common())
        lines = [f"{page_title(self, self.shown_page)}: {plural(len(self.findings), 'finding')}"]
        lines[0] += f" ({counts})" if counts else ""
        lines += [
            f"- {statement.text}" for statement in first_screen(self, self.shown_page).statements
        ]
        return "\n".join(map(visible, lines))

    def _repr_html_(self) -> str:
        summary, plot = first_screen(self, self.shown_page), self.plot()
        paragraphs = "".join(_paragraph(statement) for statement in summary.statements)
        steps = "".join(f"<li>{_html(step)}</li>" for step in summary.steps)
        return (
            f"<h3>{_html(page_title(self, self.shown_page))}</h3>"
            + "".join(f"<p><b>Warning:</b> {_html(text)}</p>" for text in summary.warnings)
            + paragraphs
            + (plot.to_svg() if plot.marks else "")
            + (f"<p>What to do next</p><ul>{steps}</ul>" if steps else "")
            + self.table()._repr_html_()
        )


def _paragraph(statement: Statement) -> str:
    badge = f"<b>{_html(str(statement.badge))}.</b> " if statement.badge else ""
    small = f"<br><small>{_html(statement.certainty)}</small>" if statement.certainty else ""
    return f"<p>{badge}{_html(statement.text)}{small}</p>"


def _html(text: str) -> str:
    return escape(visible(text))


def text_table(table: Table) -> TextTable:
    """Return a table of a page as text; a row after the last says how many were left out."""
    rows = [tuple(map(str, row)) for row in table.rows]
    if table.total > len(rows):
        cut_text = f"… and {count(table.total - len(rows))} more"
        rows.append((cut_text, *[""] * (len(table.columns) - 1)))
    return TextTable(table.caption, tuple(column.title for column in table.columns), tuple(rows))
