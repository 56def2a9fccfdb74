"""Steps from a table as tools write it to the columns and rows of an audit."""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import DataError, InputError, Strings
from equipoise.core.labels import is_text
from equipoise.data.number_marks import DECIMAL_COMMA, check_marks, has_thousands_mark
from equipoise.data.problems import check_columns, counted, listed, looks_missing, show
from equipoise.data.tables import Columns, OpenTable, TableSource, as_text, open_table

LIST = "[]"
"""Separator of cells that are written as lists."""
TableStep: TypeAlias = Callable[[OpenTable], OpenTable]
"""Takes a table and returns it with other columns or rows."""
MOST_ROWS = 20_000_000
"""Rows that counts may stand for."""

_FIELD = re.compile(r"\{(\w*)\}")


@dataclass(frozen=True)
class DecimalCommas:
    """Numbers with a decimal comma, in columns that hold nothing else."""

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with decimal points.

        Raises
        ------
        DataError
            When numbers have marks of thousands, too; as their column is read.
        """

        def columns(names: Strings) -> Columns:
            stored = table.columns(names)
            return {name: _with_points(cells, name, table.name) for name, cells in stored.items()}

        return replace(table, columns=columns, kinds={})


def _with_points(column: pa.ChunkedArray, name: str, file: str) -> pa.ChunkedArray:
    if not is_text(column.type):
        return column
    cells = pl.Series(name, column)
    check_marks(cells, file, decimal_comma=True)
    is_number = cells.str.contains(DECIMAL_COMMA) | (cells.str.strip_chars() == "")
    return _arrow(cells.str.replace(",", ".", literal=True)) if is_number.all() else column


@dataclass(frozen=True)
class FromName:
    """Columns in the names of files.

    Attributes
    ----------
    column : str
        Column of the names; folders before them are passed over unless the pattern has a slash.
    patterns : tuple of str
        Texts with the name of a column in braces, such as "{age}_{gender}_{rest}"; `{}` stands for
        any text. The first that fits a name counts. Columns that it lacks are missing there.
    """

    column: str
    patterns: Strings

    def __post_init__(self) -> None:
        """Check the patterns.

        Raises
        ------
        InputError
            When one of them names no column, or a column twice.
        """
        for pattern in self.patterns:
            names = [name for name in _FIELD.findall(pattern) if name]
            if len({*names}) < len(names) or not _FIELD.search(pattern):
                raise InputError(
                    f"given {pattern!r}; expected a pattern with different names in braces, such "
                    "as '{age}_{gender}_{rest}'"
                )

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with the columns of the names.

        Raises
        ------
        DataError
            When names fit no pattern; with the first of them.
        """
        fields = dict.fromkeys(name for text in self.patterns for name in _FIELD.findall(text))
        names = tuple(name for name in fields if name)
        clash = next((name for name in names if name in table.names), None)
        if clash is not None:
            raise DataError(
                "the table has a column of this name already",
                file=table.name,
                column=clash,
                expected="other names in `from_name:`",
                fix="rename the column in the pattern",
            )

        @cache
        def parts() -> pl.DataFrame:
            return self._parts(_texts(table, self.column), names, table.name)

        return _with_columns(table, names, lambda name: parts()[name])

    def _parts(self, cells: pl.Series, names: Strings, file: str) -> pl.DataFrame:
        """Return a column for each name in the patterns."""
        distinct = cells.drop_nulls().unique(maintain_order=True)
        forms = [_expression(pattern) for pattern in self.patterns]
        rows, unlike = [], list[str]()
        for text in distinct.to_list():
            matches = (form.fullmatch(_base_name(text, form)) for form in forms)
            match = next(filter(None, matches), None)
            rows.append({} if match is None else match.groupdict())
            unlike += [text] if match is None else []
        if unlike:
            raise DataError(
                f"{len(unlike)} of {counted(len(distinct), 'name')} don't match the pattern: "
                f"{listed(unlike, 3)}",
                file=file,
                column=self.column,
                row=int((cells == unlike[0]).fill_null(value=False).arg_max() or 0) + 1,
                expected=" or ".join(map(repr, self.patterns)),
                fix="correct the pattern, or list another one for these names, such as '{}', which "
                "leaves their columns empty",
            )
        schema = dict.fromkeys(names, pl.String)
        table = pl.DataFrame(rows, schema=schema).with_columns(distinct.alias(""))
        return cells.to_frame("").join(table, on="", how="left", maintain_order="left")


def _expression(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern."""
    texts = _FIELD.split(pattern)
    any_text = "." if "/" not in pattern else "[^/]"
    parts = [
        (f"(?P<{text}>{any_text}*?)" if text else f"{any_text}*?") if odd else re.escape(text)
        for place, text in enumerate(texts)
        for odd in [place % 2]
    ]
    return re.compile("".join(parts), re.DOTALL)


def _base_name(text: str, form: re.Pattern[str]) -> str:
    return text if "/" in form.pattern else text.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True)
class Missing:
    """Texts of columns that stand for a missing value.

    Attributes
    ----------
    texts : mapping of str to tuple of str
        Column to its texts.
    """

    texts: Mapping[str, Strings]

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with these cells empty."""

        def emptied(name: str) -> pl.Series:
            cells = _texts(table, name)
            return cells.set(cells.is_in([*self.texts[name]]), None)

        return _with_columns(table, _present(table, self.texts), emptied)


@dataclass(frozen=True)
class Values:
    """Codes of columns and their meanings.

    Attributes
    ----------
    meanings : mapping of str to mapping of str to str or None
        Column to its codes, and the value of each; None is missing.
    """

    meanings: Mapping[str, Mapping[str, str | None]]

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with values for codes.

        Raises
        ------
        DataError
            When a cell is no code that the step names; with the first of them.
        """

        def decoded(name: str) -> pl.Series:
            # Cells that hold a value already stay as they are.
            meanings: dict[str, str | None] = {
                text: text for text in self.meanings[name].values() if text is not None
            }
            meanings |= self.meanings[name]
            cells = _texts(table, name)
            _check_cells(
                cells,
                cells.is_null() | (cells == "") | cells.is_in([*meanings]),
                table.name,
                "isn't a code under `values:`",
                f"one of {listed(self.meanings[name])}",
                "add the code to `values:`; `null` as its value makes it missing",
            )
            return cells.replace(old=[*meanings], new=[*meanings.values()])

        return _with_columns(table, _present(table, self.meanings), decoded)


@dataclass(frozen=True)
class Bands:
    """Bands of numbers, as a column "age band" of the column "age".

    Attributes
    ----------
    bounds : mapping of str to tuple of float
        Column to where its bands begin.
    """

    bounds: Mapping[str, Sequence[float]]

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises
        ------
        InputError
            When bands overlap.
        """
        for name, bounds in self.bounds.items():
            if not bounds or any(end <= start for start, end in pairwise(bounds)):
                raise InputError(
                    f"{name}: bands that begin at {', '.join(f'{bound:g}' for bound in bounds)} "
                    "overlap; expected rising numbers, such as [0, 18, 40, 65]"
                )

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with a column of bands for each column of numbers.

        Raises
        ------
        DataError
            When a cell is no number; with the first of them.
        """
        _present(table, self.bounds)
        names = {f"{name} band": name for name in self.bounds}
        return _with_columns(
            table, tuple(names), lambda name: self._bands(table, names[name]).alias(name)
        )

    def _bands(self, table: OpenTable, name: str) -> pl.Series:
        cells, bounds = _texts(table, name), self.bounds[name]
        distinct = cells.drop_nulls().unique()
        empty = distinct.filter(
            pl.Series(
                [not text.strip() or looks_missing(text) for text in distinct], dtype=pl.Boolean
            )
        )
        cells = cells.set(cells.is_in(empty.to_list()), None)
        numbers = cells.str.strip_chars().cast(pl.Float64, strict=False)
        _check_cells(
            cells,
            cells.is_null() | numbers.is_not_null(),
            table.name,
            "isn't a number, and the column is cut into bands",
            "numbers, or empty cells",
            "correct the cell, or name its text under `missing:` of the table",
        )
        present = numbers.drop_nulls()
        names = band_names(bounds, integers=bool((present == present.floor()).all()))
        places = np.searchsorted([*bounds], numbers.fill_null(0.0), side="right")
        bands = pl.Series(names).gather(places)
        return bands.set(numbers.is_null(), None)


def band_names(bounds: Sequence[float], *, integers: bool = True) -> list[str]:
    """Return names of bands: under 18, 18–29, and 30 and over; of decimals 18 to under 30."""
    integers = integers and all(float(bound).is_integer() for bound in bounds)
    between = (
        f"{start:g}–{end - 1:g}" if integers else f"{start:g} to under {end:g}"
        for start, end in pairwise(bounds)
    )
    return [f"under {bounds[0]:g}", *between, f"{bounds[-1]:g} and over"]


@dataclass(frozen=True)
class Split:
    """A column of several values a cell, as a column of true and false for each value.

    Attributes
    ----------
    column : str
    separator : str
        What is between values; "[]" if cells are lists, such as "['a', 'b']".
    """

    column: str
    separator: str

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with a column such as "findings: Mass" for each value.

        Raises
        ------
        DataError
            When a value is empty, or a cell is no list; with the row.
        """
        values = self._values(table)
        distinct = values.explode(empty_as_null=True, keep_nulls=True).drop_nulls().unique().sort()
        columns = {f"{self.column}: {value}": value for value in distinct}
        names = tuple(name for name in table.names if name != self.column)

        split = {**table.split, self.column: columns}
        without = replace(table, names=names, split=split)
        return _with_columns(
            without, tuple(columns), lambda name: values.list.contains(columns[name]).alias(name)
        )

    def _values(self, table: OpenTable) -> pl.Series:
        """Return the values of each row; null where the cell is empty."""
        check_columns(table.names, (self.column,), table.name)
        if self.separator == LIST and self.column in table.lists:
            values = pl.Series(table.columns((self.column,))[self.column]).cast(pl.List(pl.String))
        elif self.separator == LIST:
            values = self._listed(_texts(table, self.column), table.name)
        else:
            cells = _texts(table, self.column)
            values = cells.set(cells.str.strip_chars() == "", None).str.split(self.separator)
        values = values.list.eval(pl.element().str.strip_chars())
        empty = values.list.eval(pl.element().fill_null("") == "").list.any().fill_null(value=False)
        if empty.any():
            row = int(empty.arg_max() or 0)
            raise DataError(
                f"{show(self.separator.join(map(str, values[row])))} has an empty value",
                file=table.name,
                column=self.column,
                row=row + 1,
                expected=f"values with {self.separator!r} between them",
                fix="remove the separator at an end, or the one of two in a row",
            )
        return values

    def _listed(self, cells: pl.Series, file: str) -> pl.Series:
        """Return the values of cells that are lists in the form of Python or JSON."""
        values = {text: _list_of(text) for text in cells.drop_nulls().unique()}
        _check_cells(
            cells,
            cells.is_null()
            | cells.is_in([text for text, value in values.items() if value is not None]),
            file,
            "isn't a list",
            "lists such as ['a', 'b'] or [\"a\", \"b\"], or an empty cell",
            "correct the cell, or name the separator of the values under `split:`",
        )
        rows = [values.get(text) or None if text is not None else None for text in cells]
        return pl.Series(cells.name, rows, dtype=pl.List(pl.String))


def _list_of(text: str) -> list[str] | None:
    if not text.strip():
        return []
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return [*map(str, value)] if isinstance(value, list | tuple | set) else None


@dataclass(frozen=True)
class Count:
    """Numbers of equal rows, which become as many rows.

    Attributes
    ----------
    cells : mapping of str to mapping of str to str
        Column of numbers to the cells of its rows, by column: {"TP": {"label": "yes", "prediction":
        "yes"}, …}. One column whose rows have no cells of their own stands for the row.
    """

    cells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __call__(self, table: OpenTable, /) -> OpenTable:
        """Return the table with a row for each that was counted.

        Raises
        ------
        DataError
            When a number is negative, no whole number or empty; or all of them are 0.
        """
        check_columns(table.names, self.cells, table.name)
        counts = np.array([self._numbers(table, name) for name in self.cells])
        total, new_names = (
            int(counts.sum()),
            tuple(dict.fromkeys(n for c in self.cells.values() for n in c)),
        )
        if not 0 < total <= MOST_ROWS:
            raise DataError(
                f"the counts stand for {total:,} rows",
                file=table.name,
                column=listed(self.cells),
                expected=f"1 to {MOST_ROWS:,} rows",
                fix="check the numbers, or their column under `count:`",
            )
        kind, row = np.divmod(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape[1])
        rows, kinds = pa.array(row.astype(np.int32)), pa.array(kind.astype(np.int32))

        def columns(names: Strings) -> Columns:
            stored = table.columns(
                tuple(name for name in names if name not in new_names) or table.names[:1]
            )
            return {
                name: _repeated([cells.get(name) for cells in self.cells.values()], kinds)
                if name in new_names
                else _repeated(stored[name], rows)
                for name in names
            }

        other_names = (name for name in table.names if name not in self.cells)
        return replace(
            table, names=tuple(dict.fromkeys((*other_names, *new_names))), columns=columns, kinds={}
        )

    def _numbers(self, table: OpenTable, name: str) -> Sequence[int]:
        """Return the numbers of a column."""
        cells = _texts(table, name)
        check_counts(cells, table.name)
        return cells.str.strip_chars().cast(pl.Float64).cast(pl.Int64).to_list()


def check_counts(cells: pl.Series, file: str) -> None:
    """Refuse a column in which a cell is no number of rows.

    Raises
    ------
    DataError
        With the first such cell.
    """
    numbers = cells.str.strip_chars().cast(pl.Float64, strict=False)
    _check_cells(
        cells.fill_null(""),
        (numbers >= 0)
        & (numbers == numbers.floor())
        & (numbers <= MOST_ROWS)
        & ~has_thousands_mark(cells.str.replace_all(".", ",", literal=True)),
        file,
        "isn't a count",
        f"a whole number from 0 to {MOST_ROWS:,}",
        "correct the cell, without a mark of thousands; write 0 for none; or rename a column that "
        "holds no counts",
    )


def _repeated(cells: pa.ChunkedArray | Sequence[str | None], places: pa.Array) -> pa.ChunkedArray:
    """Return cells at places, which may repeat, each stored once."""
    column = cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([pa.array(cells)])
    if isinstance(column.type, pa.DictionaryType) or not is_text(column.type):
        return column.take(places)
    stored = pl.Series(column).to_arrow()
    return pa.chunked_array([pa.DictionaryArray.from_arrays(places, stored)])


def split_labels(
    source: TableSource, id_column: str, *, encoding: str = "utf-8", delimiter: str = ","
) -> pl.DataFrame:
    """Return a row for each image and value of its columns of several values.

    Parameters
    ----------
    source : TableSource
    id_column : str
    encoding, delimiter : str
        Of a CSV.

    Returns
    -------
    polars.DataFrame
        "image_id" and "label"; where several columns are split, the column stands before the value.
    """
    table = open_table(source, role="images", encoding=encoding, delimiter=delimiter)
    ids = as_text(table.read((id_column,))[id_column], table.name, id_column)
    parts = [
        pl.DataFrame(
            {"image_id": ids.filter(has), "label": name if len(table.split) > 1 else value}
        )
        for columns in table.split.values()
        for name, value in columns.items()
        for has in [pl.Series(table.columns((name,))[name]).fill_null(value=False)]
    ]
    return pl.concat(parts).sort("image_id", "label")


def _texts(table: OpenTable, name: str) -> pl.Series:
    check_columns(table.names, (name,), table.name)
    return as_text(table.columns((name,))[name], table.name, name)


def _present(table: OpenTable, names: Mapping[str, object]) -> Strings:
    check_columns(table.names, names, table.name)
    return tuple(names)


def _arrow(column: pl.Series) -> pa.ChunkedArray:
    return pa.chunked_array([column.to_arrow()])


def _with_columns(
    table: OpenTable, names: Strings, column_of: Callable[[str], pl.Series]
) -> OpenTable:
    """Return a table with some columns anew."""

    def columns(requested: Strings) -> Columns:
        stored = tuple(name for name in requested if name not in names)
        columns = table.columns(stored) if stored else {}
        return {
            name: _arrow(column_of(name)) if name in names else columns[name] for name in requested
        }

    all_names = tuple(dict.fromkeys((*table.names, *names)))
    lists = tuple(name for name in table.lists if name not in names)
    return replace(table, names=all_names, columns=columns, kinds={}, lists=lists)


def _check_cells(
    cells: pl.Series, valid: pl.Series, file: str, problem: str, expected: str, fix: str
) -> None:
    """Refuse the first cell that isn't valid, and say how many there are."""
    wrong = (~valid.fill_null(value=False)).arg_true()
    if not len(wrong):
        return
    row = int(wrong[0])
    more = f" (and {counted(len(wrong) - 1, 'more row')})" if len(wrong) > 1 else ""
    raise DataError(
        f"{show(cells[row])} {problem}{more}",
        file=file,
        column=cells.name,
        row=row + 1,
        expected=expected,
        fix=fix,
    )
