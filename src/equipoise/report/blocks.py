"""What a page is made of, without any HTML, and reading the tables of a result for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, TypeVar

from equipoise.core import AuditResult, Finding, Verdict
from equipoise.core.conclusion import Conclusion
from equipoise.core.types import Json
from equipoise.report.selecting import Selector
from equipoise.report.text import count, interval, number, p_value, percent, title, verdict_title

MAX_ROWS = 200
SCROLLED = 25  # a table with more rows scrolls within the page

Rows = Sequence[Mapping[str, Any]]
Pairs = tuple[tuple[str, str], ...]
"""Names, each with what is known under it."""
Value = str | tuple[str, str] | Callable[[Any], Any]
"""What a column shows of a row: the value of a name, an interval of two, or of a function."""


@dataclass(frozen=True)
class Badge:
    """A verdict in a table cell or beside a sentence: always a word and a symbol.

    Attributes
    ----------
    verdict : Verdict
    comparison : bool
        Whether it is about two models, whose differences are no disparities.
    limit : str
        The smallest size that matters, where it is shown.
    ratio : str
        The ratio of errors that the verdict rests on; "" where it rests on the size.
    name : str
        What people read in place of the verdict's title; "" for the title.
    """

    verdict: Verdict
    comparison: bool = False
    limit: str = ""
    ratio: str = ""
    name: str = ""

    @property
    def word(self) -> str:
        """What people read for the verdict."""
        return self.name or verdict_title(
            self.verdict, comparison=self.comparison, limit=self.limit, ratio=self.ratio
        )

    @property
    def symbol(self) -> str:
        """The verdict's symbol; no two verdicts share one."""
        return SYMBOLS[self.verdict]

    def __str__(self) -> str:
        return f"{self.symbol} {self.word}"


SYMBOLS: Mapping[Verdict, str] = {
    Verdict.DISPARITY: "▲",
    Verdict.DETECTED: "△",
    Verdict.INCONCLUSIVE: "◆",
    Verdict.BELOW_THRESHOLD: "▽",
    Verdict.NOT_ESTIMABLE: "○",
    Verdict.NONE: "–",
}


@dataclass(frozen=True)
class Mark:
    """A symbol beside a number, and what it says."""

    symbol: str
    text: str


@dataclass(frozen=True)
class Number:
    """A number with its interval in a table cell.

    Attributes
    ----------
    text : str
        As people read it.
    value, low, high : float
        NaN where unknown.
    marks : tuple of Mark
        How it differs from the others.
    """

    text: str
    value: float
    low: float
    high: float
    marks: tuple[Mark, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.text, *(mark.symbol for mark in self.marks)))


Cell = str | Badge | Number


class Format(Enum):
    """How a column shows its values."""

    TEXT = "text"
    NUMBER = "number"
    SHARE = "share"
    P_VALUE = "p-value"
    CLIPPED = "clipped"

    @property
    def numeric(self) -> bool:
        """Whether cells are aligned and sorted as numbers."""
        return self in (NUMBER, SHARE, P_VALUE)

    @property
    def clipped(self) -> bool:
        """Whether cells are cut to a line."""
        return self is CLIPPED

    def make_cell(self, value: Any) -> Cell:
        """Return a value as people read it: pairs as intervals, None and NaN as "–"."""
        if isinstance(value, str | Badge | Number):
            return value
        if isinstance(value, tuple):
            return self._make_interval(*value)
        if not has(value):
            return "–"
        if self is SHARE:
            return percent(value)
        if self is P_VALUE:
            return p_value(value)
        if isinstance(value, int):
            return count(value)
        return number(value)

    def _make_interval(self, low: float | None, high: float | None) -> str:
        if low is None or high is None:
            return "–"
        if self is SHARE:
            return interval(100 * low, 100 * high, 1)
        return interval(low, high)


TEXT = Format.TEXT
NUMBER = Format.NUMBER
"""Floats as numbers, whole numbers as counts."""
SHARE = Format.SHARE
"""Numbers from 0 to 1 as percentages."""
P_VALUE = Format.P_VALUE
CLIPPED = Format.CLIPPED
"""Text cut to a line; all of it shows when the pointer rests on the cell."""


@dataclass(frozen=True)
class Column:
    """A table's column.

    Attributes
    ----------
    title : str
    value : str, pair of str, or callable, optional
        Key or attribute of the rows, two of them for an interval, or a function of a row.
        Without it rows are sequences, whose cells are taken in order.
    format : Format
    """

    title: str
    value: Value | None = None
    format: Format = TEXT

    @property
    def numeric(self) -> bool:
        """Whether cells are aligned and sorted as numbers."""
        return self.format.numeric

    @property
    def clipped(self) -> bool:
        """Whether cells are cut to a line."""
        return self.format.clipped

    def make_cell(self, row: Any, place: int) -> Cell:
        """Return the cell of a row in this column, the `place`-th of its table."""
        if self.value is None:
            return self.format.make_cell(row[place])
        return self.format.make_cell(value_of(row, self.value))


def number_columns(titles: Iterable[str]) -> list[Column]:
    """Return a column of numbers under each title, for rows that are sequences."""
    return [Column(title, format=NUMBER) for title in titles]


@dataclass(frozen=True)
class Table:
    """A table, cut where it would be too long for a page.

    Attributes
    ----------
    caption : str
    columns : tuple of Column
    rows : tuple of tuple of Cell
        The first cell of a row is its header.
    total : int
        Rows there were before the cut.
    source : str
        The file of the run that has them all.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    source: str = ""

    @classmethod
    def of(
        cls,
        caption: str,
        columns: Iterable[Column],
        rows: Iterable[Any],
        *,
        source: str = "",
        limit: int = MAX_ROWS,
    ) -> Table:
        """Build a table from its columns and rows of values.

        Parameters
        ----------
        caption : str
        columns : iterable of Column
        rows : iterable
            Mappings or objects where columns have a value, else sequences of cells.
        source : str
        limit : int
            Rows after it are left out.
        """
        heads, all_rows, cells = tuple(columns), [*rows], []
        for row in all_rows[:limit]:
            cells.append(tuple(column.make_cell(row, place) for place, column in enumerate(heads)))
        return cls(caption, heads, tuple(cells), len(all_rows), source)

    @property
    def long(self) -> bool:
        """Whether it scrolls, instead of taking the height that it needs."""
        return len(self.rows) > SCROLLED


def value_of(row: Any, value: Value) -> Any:
    """Return what a row, a mapping or an object, holds for a column; see `Column`."""
    if callable(value):
        return value(row)
    if isinstance(value, tuple):
        low, high = value
        return value_of(row, low), value_of(row, high)
    if isinstance(row, Mapping):
        return row[value]
    return getattr(row, value)


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite chart with the words and numbers that stand in for it.

    Attributes
    ----------
    label : str
        What the chart shows, for those who do not see it.
    spec : mapping
        Vega-Lite specification whose data are called "rows".
    rows : rows
        Its data; equal rows are kept once a page.
    table : Table or None
        The same numbers; None where a neighbouring table has them.
    title : str
    note : str
        How to read it, below it.
    exported : bool
        Whether the page saves it as a picture and as a table.
    """

    label: str
    spec: Mapping[str, Any]
    rows: Rows
    table: Table | None = None
    title: str = ""
    note: str = ""
    exported: bool = False


@dataclass(frozen=True)
class Words:
    """Paragraphs, or list items."""

    items: tuple[str, ...]
    style: Literal["paragraphs", "list", "note", "steps"] = "paragraphs"


@dataclass(frozen=True)
class Heading:
    """A heading one level below the section's."""

    text: str


@dataclass(frozen=True)
class Facts:
    """Pairs of a name and what is known under it."""

    pairs: Pairs


@dataclass(frozen=True)
class Code:
    """Lines kept as they are, folded away under a summary."""

    summary: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A statement with its chart, and its evidence folded away.

    Attributes
    ----------
    badge : Badge or None
    sentence : str
    figures : tuple of str
        How sure it is, a line for each finding that it states.
    blocks : tuple of Block
        What unfolds.
    chart : Chart or None
        What is seen without unfolding.
    """

    badge: Badge | None
    sentence: str
    figures: tuple[str, ...]
    blocks: tuple[Block, ...] = ()
    chart: Chart | None = None


@dataclass(frozen=True)
class Grid:
    """Charts side by side where the page is wide enough."""

    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Picture:
    """A picture inside the page.

    Attributes
    ----------
    source : str
        A data URI of a PNG or JPEG.
    caption : str
    """

    source: str
    caption: str


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side, with what they share as a title.

    Attributes
    ----------
    title : str
    pictures : tuple of Picture
    total : int
        Pictures there were before the cut.
    """

    title: str
    pictures: tuple[Picture, ...]
    total: int


@dataclass(frozen=True)
class Fold:
    """Blocks behind a summary."""

    summary: str
    blocks: tuple[Block, ...]


Block = Table | Chart | Words | Heading | Facts | Code | Card | Grid | Gallery | Fold


@dataclass(frozen=True)
class Section:
    """A part of the page, with the identifier that docs/report.md explains."""

    id: str
    title: str
    blocks: tuple[Block, ...] = field(default_factory=tuple)

    @classmethod
    def of(cls, slug: str, title: str, *parts: Block | str | Sequence[Chart] | None) -> Section:
        """Build a section: texts become notes, charts a grid; what is empty is left out."""
        return cls(slug, title, tuple(filter(None, map(_block, parts))))


def _block(part: Block | str | Sequence[Chart] | None) -> Block | None:
    """Return a part as a block; None of an empty part and of charts without marks."""
    if not part or (isinstance(part, Chart) and not part.rows):
        return None
    if isinstance(part, str):
        return Words((part,), "note")
    if isinstance(part, Block):
        return part
    charts = tuple(chart for chart in part if chart.rows)
    return Grid(charts) if charts else None


@dataclass(frozen=True)
class Remark:
    """What else was concluded about a model, in a line.

    Attributes
    ----------
    badge : Badge or None
    text : str
    agreement : str
        The other findings that show the same difference.
    line : str
        It in a line of a terminal.
    groups : str
        The attribute that it is about.
    """

    badge: Badge | None
    text: str
    agreement: str
    line: str
    groups: str = ""


@dataclass(frozen=True)
class Statement:
    """What the report says first about one model.

    Attributes
    ----------
    badge : Badge or None
    text : str
        The conclusion that leads, in a sentence that names groups and values.
    certainty : str
        How sure that is: interval, chance level and q.
    short_certainty : str
        That in a line.
    agreement : str
        How many other numbers say the same.
    finding : Finding or None
        The finding that states it; None where a model has none with a verdict.
    others : tuple of Remark
        The model's other conclusions, the weightiest first.
    conclusion : Conclusion or None
        The conclusion that leads.
    """

    badge: Badge | None
    text: str
    certainty: str = ""
    short_certainty: str = ""
    agreement: str = ""
    finding: Finding | None = None
    others: tuple[Remark, ...] = ()
    conclusion: Conclusion | None = None

    @property
    def is_disparity(self) -> bool:
        """Whether the conclusion that leads is a disparity."""
        return self.badge is not None and self.badge.verdict == Verdict.DISPARITY

    def open_and_folded(self, n_open: int) -> tuple[list[Remark], list[Remark]]:
        """Split the other conclusions into those that a page shows, and those that it folds.

        The first about each attribute stays open beside the weightiest `n_open`.
        """
        seen = {"" if self.conclusion is None else self.conclusion.groups}
        shown, folded = list[Remark](), list[Remark]()
        for place, remark in enumerate(self.others):
            is_open = place < n_open or (n_open > 0 and remark.groups not in seen)
            (shown if is_open else folded).append(remark)
            seen.add(remark.groups)
        return shown, folded


Role = Literal["", "worse", "other"]
"""Which group of a conclusion a text or a mark is about."""


@dataclass(frozen=True)
class Span:
    """A part of the page's title.

    Attributes
    ----------
    text : str
    role : Role
        "worse" or "other" of a group's name, which has the colour of the group in the chart.
    """

    text: str
    role: Role = ""


@dataclass(frozen=True)
class Step:
    """What to do next.

    Attributes
    ----------
    text : str
    command : str
        A line for the terminal; "" where there is none.
    """

    text: str
    command: str = ""


@dataclass(frozen=True)
class Summary:
    """The first screen of a page.

    Attributes
    ----------
    statements : tuple of Statement
    chart : Chart or None
    steps : tuple of str
        What to do next.
    caveat : str
    warnings : tuple of str
        What makes findings say little; shown before the statements.
    title : tuple of Span
        The conclusion that leads; the first statement unless given.
    verdict : str
        One line: is it real, is it large, what is the limit.
    commands : tuple of Step
        What to do next in the terminal, before `steps`.
    advice : tuple of str
        What to do next, computed from the run: a line each in the terminal.
    table : Table or None
        Below the chart.
    """

    statements: tuple[Statement, ...]
    chart: Chart | None = None
    steps: tuple[str, ...] = ()
    caveat: str = ""
    warnings: tuple[str, ...] = ()
    title: tuple[Span, ...] = ()
    verdict: str = ""
    commands: tuple[Step, ...] = ()
    advice: tuple[str, ...] = ()
    table: Table | None = None

    @property
    def leading_findings(self) -> list[Finding]:
        """The findings that lead, in the order of the statements."""
        return [statement.finding for statement in self.statements if statement.finding]


MakeSection = Callable[[AuditResult], Section | None]


@dataclass(frozen=True)
class Page:
    """What the report of one kind of audit shows.

    Every page has the same order: statements, chart and next steps; results by group; findings;
    then the sections of the kind, data, limitations and provenance, folded.

    Attributes
    ----------
    leads : tuple of Selector
        Metrics of the statements, most important first.
    of_answers : tuple of str
        Metrics that compare rows with an answer; where too few have one, this comes first.
    by_group : tuple of Selector
        Metrics of the table by group.
    front : tuple of callable
        Sections that take the place of the table by group, open.
    subjects : str
        Plural of what a finding's subject is: "classes", "queries".
    sections : tuple of callable
        Each makes a section from a result, or None where the result lacks its tables.
    facts : callable
        Makes pairs of name and text about the data.
    caveat : str
        What to know before reading a disparity.
    look : str
        Which images to look at about a disparity, with the fields {group}, the one that is worst
        off, and {subject}; shown where a run has images.
    steps : tuple of str
        What else to do about a disparity, with the same fields.
    advice : callable
        Makes further sentences on what to do about a disparity from a result.
    commands : tuple of str
        Commands that can look further into a run of the kind: "causes", "compare".
    mitigable : tuple of str
        How names of models begin that `equipoise mitigate` can load.
    summary : callable, optional
        Makes the first screen in place of `summary.summarize`.
    noun : str
        What the title calls the page.
    judged : bool
        Whether findings have verdicts.
    """

    leads: tuple[Selector, ...] = ()
    of_answers: tuple[str, ...] = ()
    by_group: tuple[Selector, ...] = ()
    front: tuple[MakeSection, ...] = ()
    subjects: str = "subjects"
    sections: tuple[MakeSection, ...] = ()
    facts: Callable[[AuditResult], Sequence[tuple[str, str]]] = lambda _: ()
    caveat: str = ""
    look: str = "Look at images of {group}, and check their labels."
    steps: tuple[str, ...] = ()
    advice: Callable[[AuditResult], Sequence[str]] = lambda _: ()
    commands: tuple[Literal["causes", "compare"], ...] = ("compare",)
    mitigable: tuple[str, ...] = ()
    summary: Callable[[AuditResult], Summary] | None = None
    noun: str = "Audit"
    judged: bool = True


Row = Mapping[str, Any]
Record = TypeVar("Record")
"""A row of a table, or an object with attributes such as a finding."""
Key = tuple[str, ...]


def rows(result: AuditResult, name: str) -> list[dict[str, Any]]:
    """Return a table's rows, none when the result lacks it; unknown numbers are NaN."""
    table = result.tables.get(name)
    if table is None:
        return []
    table_rows: list[dict[str, Any]] = table.to_pylist()
    for column in table.schema:
        if str(column.type) in ("double", "float"):
            for row in table_rows:
                if row[column.name] is None:
                    row[column.name] = math.nan
    return table_rows


def panels(records: Iterable[Record], *keys: str) -> dict[Key, list[Record]]:
    """Split rows or findings by the values of columns, in order of first appearance."""
    split: dict[Key, list[Record]] = {}
    for entry in records:
        split.setdefault(tuple(str(value_of(entry, key)) for key in keys), []).append(entry)
    return split


def distinct(records: Iterable[Any], key: str) -> tuple[str, ...]:
    """Return a column's values in order of first appearance, of rows or findings."""
    return tuple(dict.fromkeys(str(value_of(entry, key)) for entry in records))


def scope(groups: str, version: str) -> str:
    """Return the name of a panel: its groups, and the version unless it is the only one."""
    name = groups or "all images"
    if version == "default":
        return name
    return f"{name} ({version})"


PLACE = ("model", "groups", "version")


def where(row: Row) -> str:
    """Return the model, groups and version of a row."""
    return f"{row['model']}, {scope(row['groups'], row['version'])}"


def by_place(table: Iterable[Row]) -> list[tuple[str, list[Row]]]:
    """Split rows by model, groups and version, under the name of each."""
    return [(where(place_rows[0]), place_rows) for place_rows in panels(table, *PLACE).values()]


def scope_of(row: Any) -> str:
    """Return the name of the panel of a row or finding."""
    return scope(value_of(row, "groups"), value_of(row, "version"))


def title_of(row: Any) -> str:
    """Return the title of the metric of a row or finding."""
    return title(value_of(row, "metric"))


def has(value: float | None) -> bool:
    """Whether there is a number."""
    return value is not None and not math.isnan(value)


def parameters_text(parameters: Mapping[str, Json]) -> str:
    """Return a finding's parameters as "name: value" pairs."""
    sorted_parameters = sorted(parameters.items())
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in sorted_parameters)


def points(
    table_rows: Iterable[Row], tip: Callable[[Any], str], *names: str, **columns: str
) -> list[dict[str, Any]]:
    """Return rows as points of a chart, with a tooltip.

    Fields are columns of the same name (`names`), or of another (`columns`: field to column).
    """
    fields = dict(zip(names, names, strict=True)) | columns
    marks = []
    for row in table_rows:
        mark = {name: row[key] for name, key in fields.items()}
        marks.append({**mark, "tip": tip(row)})
    return marks


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
    columns : sequence of Column
    keeps : callable
        Whether a row is shown.
    order : callable, optional
        What rows are sorted by; the order of the table unless given.
    charts : callable
        Charts of the rows that are shown.
    limit : int
        Rows that are shown at first.
    """

    name: str
    heading: str
    caption: str
    source: str
    columns: Sequence[Column]
    text: str = ""
    keeps: Callable[[Row], Any] = bool
    order: Callable[[Row], Any] | None = None
    charts: Callable[[Sequence[Row]], Sequence[Chart]] = lambda _: ()
    limit: int = MAX_ROWS

    def __call__(self, result: AuditResult) -> Section | None:
        """Return the section of a run."""
        kept_rows = [*filter(self.keeps, rows(result, self.source))]
        if not kept_rows:
            return None
        if self.order is not None:
            kept_rows.sort(key=self.order)
        table = Table.of(
            self.caption, self.columns, kept_rows, source=self.source, limit=self.limit
        )
        return Section.of(self.name, self.heading, self.text, self.charts(kept_rows), table)


def image_count(result: AuditResult) -> tuple[str, str]:
    """Return how many images findings are of, as a fact of the page."""
    return "Images", count(max((finding.n for finding in result.findings), default=0))
