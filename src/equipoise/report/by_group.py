"""The table by group: a row for each group, n and the main metrics; on the page and as files."""

import io
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import itemgetter

import pyarrow as pa
from pyarrow.csv import write_csv

from equipoise.core import Aggregate, AuditResult, Fields, Finding, GroupValue, Verdict
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.blocks import (
    NUMBER,
    SYMBOLS,
    Column,
    Mark,
    Number,
    Section,
    Table,
    distinct,
    has,
    scope,
)
from equipoise.report.selecting import Selector, measure_of, selects
from equipoise.report.text import enclose, interval, number, percent, size_title
from equipoise.report.words import contrast, group_value_name, has_shares, in_points

MOST_COLUMNS = 6
MOST_CELLS = 200
"""Cells of the page's table; the rows that are left out are in the file."""
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
                if selects(metric, finding) and _says_something(finding):
                    key = finding.model, finding.groups, finding.version
                    places.setdefault(key, {}).setdefault(_column(finding), finding)
        _drop_untested(places)
        titles = chain.from_iterable(places.values())
        disparity_marks: dict[tuple[str, ...], Mark] = {}
        for finding in result.findings:
            against_rest = finding.aggregate is Aggregate.AGAINST_REST
            if against_rest and finding.verdict == Verdict.DISPARITY:
                place = _place(finding, finding.metric, finding.group)
                disparity_marks[place] = _HIGHER
                if finding.value < 0:
                    disparity_marks[place] = _LOWER
        return cls(places, tuple(dict.fromkeys(titles)), disparity_marks)

    @property
    def leading(self) -> tuple[str, ...]:
        """The columns that the page has room for."""
        findings_by_name: dict[str, Finding] = {}
        for columns in self.places.values():
            findings_by_name.update(columns)
        # Of many subjects, such as classes, the first few would say little; of two one stands for
        # both.
        metric_counts = Counter(map(measure_of, findings_by_name.values()))
        names = []
        single_measures = set()
        for name, finding in findings_by_name.items():
            measure = measure_of(finding)
            single = metric_counts[measure] < 3 and measure not in single_measures
            if single:
                single_measures.add(measure)
            if single or not finding.subject:
                names.append(name)
        return tuple((names or [*findings_by_name])[:MOST_COLUMNS])

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
                    text = ""
                    if leading:
                        text = _text(finding, part, shares=shares)
                    number = Number(text, part.value, part.low, part.high, marks)
                    cells.setdefault(part.group, {})[name] = number
            for group, counted in first.items():
                yield place, counted, cells[group]

    def _marks(
        self, finding: Finding, group_value: GroupValue, worst: GroupValue | None
    ) -> tuple[Mark, ...]:
        rest_metric = spec_of_finding(finding).rest_metric
        disparity_mark = self.disparity_marks.get(_place(finding, rest_metric, group_value.group))
        marks = [disparity_mark] if disparity_mark else []
        if group_value is worst:
            marks.append(_WORST)
        return tuple(marks)


def _says_something(finding: Finding) -> bool:
    """Whether a group has a value: of shares of rows that don't count, one above 0."""
    values = [part.value for part in finding.by_group if has(part.value)]
    return any(values) if spec_of_finding(finding).of_exclusion else bool(values)


def _drop_untested(places: dict[Key, dict[str, Finding]]) -> None:
    """Drop versions without a verdict, such as raw answers, where the model has a tested one."""
    untested = []
    tested = set()
    for place, columns in places.items():
        if any(finding.verdict != Verdict.NONE for finding in columns.values()):
            tested.add(place[:2])
        else:
            untested.append(place)
    for place in untested:
        if place[:2] in tested:
            del places[place]


def _worst(finding: Finding) -> GroupValue | None:
    """Return the group that is worst off in a disparity, where a side is worse."""
    if finding.verdict != Verdict.DISPARITY or spec_of_finding(finding).harm == "either":
        return None
    contrasted = contrast(finding)
    # Differences of the subjects can cancel out, so that no group is worse off on the whole.
    if contrasted and not contrasted[0].low <= contrasted[2].value <= contrasted[0].high:
        return contrasted[0]
    return None


def _place(finding: Finding, metric: str, group: str) -> tuple[str, ...]:
    return finding.model, finding.groups, finding.version, metric, finding.subject, group


def _column(finding: Finding) -> str:
    """Return the name of a group's number, with its unit where that isn't in the cells."""
    name = group_value_name(finding)
    if in_points(finding) and not has_shares(finding):
        name += ", points"
    return name + enclose(" (", finding.subject, ")")


def _text(finding: Finding, group_value: GroupValue, *, shares: bool) -> str:
    if math.isnan(group_value.value):
        return group_value.note or "–"
    scale, digits = (100, 1) if in_points(finding) else (1, 3)
    value = number(scale * group_value.value, digits)
    if shares:
        value = percent(group_value.value)
    if math.isnan(group_value.low):
        return value
    return f"{value} {interval(scale * group_value.low, scale * group_value.high, digits)}"


def group_table(
    result: AuditResult, metrics: Sequence[Selector], most: int = sys.maxsize
) -> Section | None:
    """Return the table by group of an audit, or None without values by group.

    Parameters
    ----------
    result : AuditResult
    metrics : sequence of str
        Metrics whose findings have values by group, most important first.
    most : int
        Cells that there is room for: groups with a disparity come first, then those of a single
        attribute.
    """
    group_table = GroupTable.of(result, metrics)
    if not group_table.places:
        return None
    titles, rows = group_table.leading, list[Fields]()
    for (model, groups, version), part, numbers in group_table.rows(titles):
        rows.append({
            "group": part.group, "model": model, "scope": scope(groups, version), "n": part.n,
            "numbers": numbers,
        })  # fmt: skip
    # A column that says the same in every row says nothing.
    columns, scopes = [Column("Group", "group")], distinct(rows, "scope")
    if len(distinct(rows, "model")) > 1:
        columns.append(Column("Model", "model"))
    about = f" by {scopes[0]}"
    if len(scopes) > 1:
        columns.append(Column("Attributes", "scope"))
        about = ""
    measured = [finding for place in group_table.places.values() for finding in place.values()]
    size, *other_sizes = {*map(size_title, measured)}
    columns.append(Column("n" if other_sizes else size, "n", NUMBER))
    columns += [Column(name, partial(_number_cell, name), NUMBER) for name in titles]
    level = next(iter(result.findings)).level
    caption = f"Value of each group{about}"
    bare = _columns_without_interval(rows, titles)
    if len(bare) < len(titles):
        where = " where it has one" if bare else ""
        caption += f" with its {100 * level:g} % interval{where}"
    chosen = _weightiest(rows, max(1, most // len(columns)))
    table = replace(Table.of(caption, columns, chosen, source=FILE), total=len(rows))
    return Section.of("groups", "Results by group", _explain_marks(rows), table)


def _columns_without_interval(rows: Sequence[Fields], titles: Sequence[str]) -> list[str]:
    """Return the columns in which no group has an interval."""
    return [
        title
        for title in titles
        if all(math.isnan(row["numbers"][title].low) for row in rows if title in row["numbers"])
    ]


def _weightiest(rows: Sequence[Fields], most: int) -> list[Fields]:
    """Return the rows that there is room for, in their order."""
    weights = [
        (not any(cell.marks for cell in row["numbers"].values()), row["scope"].count(" × "), place)
        for place, row in enumerate(rows)
    ]
    return [rows[place] for *_, place in sorted(sorted(weights)[:most], key=itemgetter(2))]


def _number_cell(name: str, row: Fields) -> Number | str:
    """Return a group's number in a column, or "–"."""
    number: Number | str = row["numbers"].get(name, "–")
    return number


def _explain_marks(rows: Sequence[Fields]) -> str:
    """Return the note on the marks that some number has."""
    marks = set[Mark]()
    for row in rows:
        for cell in row["numbers"].values():
            marks.update(cell.marks)
    key = "; ".join(f"{mark.symbol} {mark.text}" for mark in _ORDER if mark in marks)
    return enclose("Cells with a disparity are marked: ", key, ".")


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
    rows = []
    for (model, groups, version), part, numbers in group_table.rows():
        row: Fields = {
            "group": part.group, "model": model, "attributes": groups, "version": version,
            "n": part.n,
        }  # fmt: skip
        for name, cell in numbers.items():
            for end, value in _fields(cell):
                row[name + end] = value
        rows.append(row)
    schema = dict.fromkeys(("group", "model", "attributes", "version"), pa.string())
    schema["n"] = pa.int64()
    for name in group_table.columns:
        for end, kind in _KINDS.items():
            schema[name + end] = kind
    return pa.Table.from_pylist(rows, pa.schema(schema))


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
