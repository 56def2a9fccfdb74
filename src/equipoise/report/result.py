"""A result that shows itself: in a terminal, in a notebook, as tables for a paper."""

from __future__ import annotations

import math
import webbrowser
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING, Protocol

from equipoise.core import AuditResult, Finding, RunError
from equipoise.core.finding import REAL, findings_to_table
from equipoise.core.frames import Frame, frame_of_table
from equipoise.core.views import Mark, Plot, TextTable
from equipoise.report.blocks import Page, Row, Statement, Step, Summary, Table, Words
from equipoise.report.by_group import group_table
from equipoise.report.comparison_page import PAGE as COMPARISON
from equipoise.report.next_steps import Place, look, next_steps
from equipoise.report.overview import all_findings
from equipoise.report.page_verdicts import conclusions_about_groups, with_page_verdicts
from equipoise.report.summary import summarize
from equipoise.report.text import count, enclose, listed, plural, verdict_title, visible
from equipoise.report.tracking import tracked, tracker_of
from equipoise.report.words import compares, has_shares, metric_verdict, models_of

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes


def first_screen(result: AuditResult, page: Page, place: Place | None = None) -> Summary:
    """Return the first screen of a result's report; with commands where the run has a place."""
    if page.summary:
        summary = page.summary(result)
    elif result.findings:
        summary = summarize(result, page.leads, page.caveat, page.steps, page.of_answers)
    else:
        summary = Summary((Statement(None, "This run has no findings."),))
    if not summary.statements:
        summary = replace(summary, statements=(Statement(None, "This run has no conclusions."),))
    commands = _commands(result, page, place, summary)
    advice = summary.advice
    if any(statement.is_disparity for statement in summary.statements):
        advice = (*page.advice(result), *advice)
    return replace(
        summary, warnings=result.manifest.warnings, commands=commands, advice=advice,
        steps=(*advice, *summary.steps),
    )  # fmt: skip


def _commands(
    result: AuditResult, page: Page, place: Place | None, summary: Summary
) -> tuple[Step, ...]:
    """Return what can be done next about what was found; nothing where nothing was."""
    finding = next((f for f in summary.leading_findings if f.verdict in REAL), None)
    if finding is None:
        return ()
    if place is None:
        return (Step(look(page, finding)),) if "gallery" in result.tables else ()
    return next_steps(result, page, place, finding)


def page_title(result: AuditResult, page: Page) -> str:
    """Return the title of the report of a result."""
    chosen = result.manifest.resolved.get("report")
    if page.noun == "Audit" and isinstance(chosen, Mapping) and chosen.get("title"):
        return str(chosen["title"])
    names = models_of(result)
    models = listed(names)
    if len(names) > 3:
        models = f"{len(names)} models"
    return page.noun + enclose(" of ", models)


def shared_page(result: AuditResult) -> Page:
    """Return the page of comparisons or of any audit, for a result of unknown kind."""
    return COMPARISON if compares(result) else Page()


class Origin(Protocol):
    """Where a result comes from: an audit of this process, or a run on the disk."""

    @property
    def run(self) -> Path | None:
        """The run that holds the result; None before it is saved."""

    def save(self, result: Result, run: Path, *, overwrite: bool) -> Result:
        """Write a result with all that belongs to it."""

    def images(self, finding: Finding) -> pl.DataFrame:
        """Return the images behind a finding."""

    def compare(self, result: Result, other: Result | str | PathLike[str]) -> Result:
        """Compare the models of two results."""


@dataclass(frozen=True, repr=False)
class Result(AuditResult):
    """Findings with the tables behind them, which show themselves.

    Attributes
    ----------
    findings, manifest, tables, conclusions
        As of `AuditResult`.
    page : Page or None
        How the kind of audit presents its findings; what all kinds share unless given.
    origin : Origin or None
        Where it comes from; None where all that is known of it is here.

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
    origin: Origin | None = field(default=None, compare=False)

    @property
    def shown_page(self) -> Page:
        """How the findings are presented."""
        return self.page or shared_page(self)

    def table(self) -> TextTable:
        """Return the results by group; all findings where no metric has values by group."""
        judged_result = with_page_verdicts(self, self.shown_page.leads)
        section = group_table(judged_result, self.shown_page.by_group) or all_findings(
            judged_result.findings
        )
        if section is None:
            return TextTable("No findings", (), ())
        table = text_table(next(block for block in section.blocks if isinstance(block, Table)))
        notes = [" ".join(block.items) for block in section.blocks if isinstance(block, Words)]
        return replace(table, caption=". ".join([table.caption, *notes]))

    def plot(self, ax: Axes | None = None) -> Plot:
        """Return the chart of the first screen, which notebooks show; `ax` is drawn into, too."""
        summary = first_screen(self, self.shown_page)
        chart = summary.chart
        marks = () if chart is None else tuple(_mark(row) for row in chart.rows if "label" in row)
        plot = Plot("" if chart is None else chart.title, marks, _are_shares(summary))
        if ax is not None:
            plot.draw(ax)
        return plot

    @property
    def groups(self) -> dict[str, dict[str, int]]:
        """Number of items in each group, by the attributes that make the groups."""
        sizes = self.tables.get("group_sizes")
        groups: dict[str, dict[str, int]] = {}
        for row in [] if sizes is None else sizes.to_pylist():
            groups.setdefault(row["groups"], {})[row["group"]] = row["n"]
        return groups

    def images(self, finding: Finding) -> pl.DataFrame:
        """Return the images behind a finding, one a row.

        Returns
        -------
        polars.DataFrame
            `image_id`; `group`; and of a model with labels `subject`, `outcome`, `label` and
            `score`.

        Raises
        ------
        RunError
            When the result has no images.
        """
        return self._known_origin.images(finding)

    def save(self, run: str | PathLike[str], *, overwrite: bool = False) -> Result:
        """Write the result as a run, with its report and all that `compare` and `review` read.

        Parameters
        ----------
        run : path
            Folder that appears when it is whole.
        overwrite : bool
            Replace an existing run, but never one that a comparison is made of.

        Returns
        -------
        Result
            As `equipoise.load` reads it.

        Raises
        ------
        RunError
            When the folder is taken or can't be written, or is the run that the result is of.
        """
        return self._known_origin.save(self, Path(run), overwrite=overwrite)

    def log(self, to: str | None = None, *, step: int | None = None) -> None:
        """Log numbers, verdicts and the report to the active run of an experiment tracker.

        Each finding that was tested has its value and the ends of its interval as metrics, and its
        verdict. The report and `findings.json` are artefacts.

        Parameters
        ----------
        to : str, optional
            "mlflow" or "wandb"; the tracker with an active run unless given.
        step : int, optional
            The step of the training that the result is of.

        Raises
        ------
        InputError
            When no tracker has this name; or without a name no run is active, or several.
        RunError
            When the result can't be saved, or the tracker has no active run.
        """
        tracker, run = tracker_of(to), self._known_origin.run
        with TemporaryDirectory(prefix="equipoise-") as folder:
            if run is None:
                run = Path(folder, "run")
                self.save(run)
            tracker.log(tracked(self, run, step))

    def open(self) -> Path:
        """Show the report in a browser, and return its file."""
        run = self._known_origin.run
        if run is None:
            run = Path(mkdtemp(prefix="equipoise-"), "run")
            self.save(run)
        report = run / "report.html"
        webbrowser.open(report.resolve().as_uri())
        return report

    def compare(self, other: Result | str | PathLike[str]) -> Result:
        """Compare the models of two results, as `equipoise.compare` does.

        Parameters
        ----------
        other : Result or path
            About the same images, or subjects.
        """
        return self._known_origin.compare(self, other)

    @property
    def _known_origin(self) -> Origin:
        if self.origin is None:
            raise RunError(
                "the origin of this result is unknown. Expected: a result of equipoise.audit, "
                "load or compare"
            )
        return self.origin

    def to_frame(self) -> Frame:
        """Return the findings, one a row, as a polars data frame."""
        return frame_of_table(findings_to_table(self.findings))

    def __repr__(self) -> str:
        conclusions = conclusions_about_groups(self, self.shown_page.leads)
        verdicts = Counter(
            metric_verdict(self.findings[conclusion.finding])
            or verdict_title(conclusion.verdict, comparison=bool(conclusion.standings))
            for conclusion in conclusions
        )
        counts = ", ".join(f"{n} {word}" for word, n in verdicts.most_common())
        n_text = plural(len(conclusions), "conclusion") + enclose(" (", counts, ")")
        lines = [f"{page_title(self, self.shown_page)}: {n_text}"]
        for statement in first_screen(self, self.shown_page).statements:
            lines.append(f"- {statement.text}")
            if statement.is_disparity and statement.short_certainty:
                lines.append(f"  {statement.short_certainty}")
        return "\n".join(map(visible, lines))

    def _repr_html_(self) -> str:
        summary, plot = first_screen(self, self.shown_page), self.plot()
        parts = [f"<h3>{_html(page_title(self, self.shown_page))}</h3>"]
        parts += [f"<p><b>Warning:</b> {_html(text)}</p>" for text in summary.warnings]
        parts += map(_paragraph, summary.statements)
        if plot.marks:
            parts.append(plot.to_svg())
        texts = [*(step.text for step in summary.commands if not step.command), *summary.steps]
        steps = "".join(f"<li>{_html(text)}</li>" for text in texts)
        parts.append(enclose("<p>What to do next</p><ul>", steps, "</ul>"))
        parts.append(self.table()._repr_html_())
        return "".join(parts)


def _are_shares(summary: Summary) -> bool:
    """Whether the findings that lead have groups whose values are shares."""
    findings = summary.leading_findings
    return bool(findings) and all(map(has_shares, findings))


def _mark(row: Row) -> Mark:
    """Return a row of a chart as a mark."""
    value, low, high = (
        math.nan if row.get(name) is None else row[name] for name in ("value", "low", "high")
    )
    return Mark(str(row["label"]), value, low, high, series=str(row.get("series", "")))


def _paragraph(statement: Statement) -> str:
    badge = enclose("<b>", _html(str(statement.badge or "")), ".</b> ")
    small = enclose("<br><small>", _html(statement.certainty), "</small>")
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
