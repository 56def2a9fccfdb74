"""The table by group: a row for each group, n and the main metrics; on the page and as files."""

import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyarrow.csv import write_csv

from equipoise.core import Aggregate, AuditResult, Finding, GroupValue, Verdict
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import (
    NUMBER,
    SYMBOLS,
    Column,
    Mark,
    Number,
    Section,
    Table,
    has,
    scope,
)
from equipoise.report.selecting import Selector, measure_of, selects
from equipoise.report.summary import group_value_name, in_points
from equipoise.report.text import interval, number, percent
from equipoise.report.words import contrast, has_shares

MOST_COLUMNS = 6
FILE = "groups"
"""Stem of the files of a run that have the table with every metric."""

_LOWER = Mark("↓", "lower than all other groups together")
_HIGHER = Mark("↑", "higher than all other groups together")
_WORST = Mark(SYMBOLS[Verdict.DISPARITY], "worst off of all groups")

Key = tuple[str, str, str]


@dataclass(frozen=True)
class GroupTable:
    """Values of each metric by group.

    Attributes
    ----------
    places : mapping of (model, attributes, version) to mapping of column to Finding
        Findings whose values by group fill the columns.
    columns : tuple of str
        Every column, most important first.
    disparity_marks : mapping
        How a group's number differs from that of all others, by (finding's key, group): "lower"
        or "higher"; only disparities.
    """

    places: Mapping[Key, Mapping[str, Finding]]
    columns: tuple[str, ...]
    disparity_marks: Mapping[tuple[str, ...], Mark]

    @classmethod
    def of(cls, result: AuditResult, metrics: Sequence[Selector]) -> "GroupTable":
        """Return the table of a result, of findings of some metrics, most important first."""
        places: dict[Key, dict[str, Finding]] = {}
        for metric in metrics:
            for finding in result.findings:
                if selects(metric, finding) and any(has(part.value) for part in finding.by_group):
                    columns = places.setdefault(
                        (finding.model, finding.groups, finding.version), {}
                    )
                    about = f" ({finding.subject})" if finding.subject else ""
                    columns.setdefault(f"{_column(finding)}{about}", finding)
        # Versions without a verdict, such as raw answers, give way to one of the model that has
        # some.
        tested = {
            key
            for key, columns in places.items()
            if any(finding.verdict != Verdict.NONE for finding in columns.values())
        }
        judged = {key[:2] for key in tested}
        places = {k: columns for k, columns in places.items() if k in tested or k[:2] not in judged}
        titles = dict.fromkeys(name for columns in places.values() for name in columns)
        disparity_marks = {
            _place(finding, finding.metric, finding.group): _LOWER if finding.value < 0 else _HIGHER
            for finding in result.findings
            if finding.aggregate is Aggregate.AGAINST_REST and finding.verdict == Verdict.DISPARITY
        }
        return cls(places, tuple(titles), disparity_marks)

    @property
    def leading(self) -> tuple[str, ...]:
        """The columns that the page has room for."""
        findings_by_name = {
            name: finding for columns in self.places.values() for name, finding in columns.items()
        }
        # Of many subjects, such as classes, the first few would say little; of two one stands for
        # both.
        metric_counts = Counter(map(measure_of, findings_by_name.values()))
        single = {
            measure_of(finding): name
            for name, finding in reversed(findings_by_name.items())
            if metric_counts[measure_of(finding)] < 3
        }
        wanted_names = [
            name
            for name, finding in findings_by_name.items()
            if not finding.subject or name in single.values()
        ]
        return tuple((wanted_names or [*findings_by_name])[:MOST_COLUMNS])

    def rows(
        self, leading: Sequence[str] = ()
    ) -> Iterator[tuple[Key, GroupValue, Mapping[str, Number]]]:
        """Yield each group of each place with its numbers by column.

        Parameters
        ----------
        leading : sequence of str
            Columns to read; all of them, as numbers without texts, unless given.
        """
        for place, columns in self.places.items():
            first: dict[str, GroupValue] = {}
            cells: dict[str, dict[str, Number]] = {}
            for name, finding in columns.items():
                if leading and name not in leading:
                    continue
                worst, shares = _worst(finding), bool(leading) and has_shares(finding)
                for part in finding.by_group:
                    first.setdefault(part.group, part)
                    marks = self._marks(finding, part, worst)
                    text = _text(finding, part, shares=shares) if leading else ""
                    number = Number(text, part.value, part.low, part.high, marks)
                    cells.setdefault(part.group, {})[name] = number
            for group, counted in first.items():
                yield place, counted, cells[group]

    def _marks(
        self, finding: Finding, group_value: GroupValue, worst: GroupValue | None
    ) -> tuple[Mark, ...]:
        rest_metric = spec_of_finding(finding).rest_metric
        disparity_mark = self.disparity_marks.get(_place(finding, rest_metric, group_value.group))
        return (
            *([disparity_mark] if disparity_mark else []),
            *([_WORST] if group_value is worst else []),
        )


def _worst(finding: Finding) -> GroupValue | None:
    """Return the group that is worst off in a disparity, where a side is worse."""
    harmed = finding.verdict == Verdict.DISPARITY and spec_of_finding(finding).harm != "either"
    contrasted = contrast(finding) if harmed else None
    # Differences of the subjects can cancel out, so that no group is worse off on the whole.
    if contrasted and not contrasted[0].low <= contrasted[2].value <= contrasted[0].high:
        return contrasted[0]
    return None


def _place(finding: Finding, metric: str, group: str) -> tuple[str, ...]:
    return finding.model, finding.groups, finding.version, metric, finding.subject, group


def _column(finding: Finding) -> str:
    """Return the name of a group's number, with its unit where that isn't in the cells."""
    points = in_points(finding) and not has_shares(finding)
    return f"{group_value_name(finding)}{', points' if points else ''}"


def _text(finding: Finding, group_value: GroupValue, *, shares: bool) -> str:
    if math.isnan(group_value.value):
        return group_value.note or "–"
    scale, digits = (100, 1) if in_points(finding) else (1, 3)
    value = percent(group_value.value) if shares else number(scale * group_value.value, digits)
    if math.isnan(group_value.low):
        return value
    return f"{value} {interval(scale * group_value.low, scale * group_value.high, digits)}"


def group_table(result: AuditResult, metrics: Sequence[Selector]) -> Section | None:
    """Return the table by group of an audit, or None without values by group.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.
    """
    group_table = GroupTable.of(result, metrics)
    if not group_table.places:
        return None
    titles = group_table.leading
    rows = [*group_table.rows(titles)]
    # A column that says the same in every row says nothing.
    models = len({model for (model, _, _), _, _ in rows}) > 1
    scopes = {scope(groups, version) for (_, groups, version), _, _ in rows}
    columns = [
        Column("Group"),
        *[Column("Model")] * models,
        *[Column("Attributes")] * (len(scopes) > 1),
        Column("n", format=NUMBER),
        *(Column(name, format=NUMBER) for name in titles),
    ]
    cells = [
        (part.group, *[place[0]] * models, *[scope(*place[1:])] * (len(scopes) > 1), part.n,
         *(numbers.get(name, "–") for name in titles))
        for place, part, numbers in rows
    ]  # fmt: skip
    marks = {mark: None for row in rows for name in titles if name in row[2]
             for mark in row[2][name].marks}  # fmt: skip
    key = "; ".join(f"{mark.symbol} {mark.text}" for mark in sorted(marks, key=_ORDER.index))
    level = next(iter(result.findings)).level
    about = "" if len(scopes) > 1 else f" by {next(iter(scopes))}"
    caption = f"Value of each group{about} with its {100 * level:g} % interval"
    table = Table.of(caption, columns, cells, source=FILE)
    note = f"Cells with a disparity are marked: {key}." if key else None
    return Section.of("groups", "Results by group", note, table)


_ORDER = (_LOWER, _HIGHER, _WORST)


def group_file(result: AuditResult, metrics: Sequence[Selector]) -> pa.Table | None:
    """Return the table by group with every metric, for a file, or None.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.

    Returns
    -------
    pyarrow.Table or None
        A row for each group of each model, set of attributes and version, with `n` and, of each
        metric, its value, both ends of its interval (`… low`, `… high`) and its marks in words.
    """
    group_table = GroupTable.of(result, metrics)
    if not group_table.places:
        return None
    rows = [
        {"group": part.group, "model": model, "attributes": groups, "version": version, "n": part.n}
        | {name + end: value for name, number in numbers.items() for end, value in _fields(number)}
        for (model, groups, version), part, numbers in group_table.rows()
    ]
    numbers = [(name + end, kind) for name in group_table.columns for end, kind in _KINDS.items()]
    text = ((name, pa.string()) for name in ("group", "model", "attributes", "version"))
    return pa.Table.from_pylist(rows, pa.schema([*text, ("n", pa.int64()), *numbers]))


_KINDS = {"": pa.float64(), " low": pa.float64(), " high": pa.float64(), " differs": pa.string()}


def _fields(number: Number) -> Iterator[tuple[str, float | str | None]]:
    for end, value in (("", number.value), (" low", number.low), (" high", number.high)):
        yield end, None if math.isnan(value) else value
    yield " differs", "; ".join(mark.text for mark in number.marks)


def as_csv(table: pa.Table) -> str:
    """Return a table as CSV with a header."""
    data = io.BytesIO()
    write_csv(table, data)
    return data.getvalue().decode("utf-8")
