"""Readers of every kind of table: CSV, Parquet, JSON lines and data frames."""

import csv
import datetime as dt
import decimal
import io
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from narwhals.typing import IntoFrame
from polars.selectors import by_name

from equipoise.core import AnyArray, Booleans, DataError, Facts, Strings, record
from equipoise.core.files import footer_start
from equipoise.core.labels import is_text
from equipoise.core.types import FileFacts
from equipoise.data.addresses import extension_of, read_address, shown
from equipoise.data.files import (
    hash_file,
    hash_parts,
    is_address,
    most_unpacked,
    read_whole,
    split_lines,
    to_utf8,
    too_large,
    unknown_extension,
)
from equipoise.data.headers import check_names
from equipoise.data.json_tables import cell_paths, cells_at, json_lines, json_records
from equipoise.data.problems import check_columns, counted, is_whole, listed, show
from equipoise.data.results import read_results
from equipoise.data.spreadsheets import XLSX, read_sheet
from equipoise.stats.threads import each

EXACT_INTEGERS = 2.0**53
# Answers in words: a column of them is one of labels, which the user has to write as 1 and 0.
WORDS = ("yes", "no", "y", "n", "t", "f", "positive", "negative", "present", "absent")


def is_numbers(kind: pa.DataType) -> bool:
    """Whether every cell of a column of this type is a number or a boolean."""
    types = pa.types
    real = types.is_floating(kind) or types.is_decimal(kind)
    return bool(real or types.is_integer(kind) or types.is_boolean(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type are lists."""
    kind = getattr(kind, "storage_type", kind)
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type have a plain text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        return False
    types = pa.types
    times = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return bool(is_text(kind) or is_numbers(kind) or times or types.is_null(kind))


def as_text(column: pa.ChunkedArray, file: str, name: str) -> pl.Series:
    """Return a column as text; null, NaN and NaT are missing.

    Whole numbers lose their decimal point (1.0 is "1"), so that an id compares equal whether a
    table stores it as text, integer or float. Booleans are "true" and "false".

    Raises
    ------
    DataError
        When cells are lists, structs, bytes or another type that has no plain text.
    """
    if not is_plain(column.type):
        raise no_plain_value(f"the column holds {column.type}", file, name)
    plain = _readable(column, name)
    return float_texts(plain) if plain.dtype.is_float() else plain.cast(pl.String)


def as_numbers(
    column: pa.ChunkedArray, file: str, name: str, missing: Sequence[str] = ()
) -> pl.Series:
    """Return a column as floats; null and empty cells are missing, NaN stays NaN.

    Texts "true" and "false" in any case are 1 and 0. Columns of booleans hold no numbers.

    Raises
    ------
    DataError
        When a cell is not a number; the first such row is named.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    numbers = is_numbers(kind) and not pa.types.is_boolean(kind)
    if not (is_text(kind) or numbers or pa.types.is_null(kind)):
        raise no_plain_value(f"the column holds {kind}", file, name, expected="numbers")
    plain = _readable(column, name)
    if plain.dtype != pl.String:
        return plain.cast(pl.Float64)
    texts = plain.str.strip_chars()
    texts = texts.set(texts.is_in(["", *missing]), None)
    spelled = texts.cast(pl.Float64, strict=False)
    if spelled.null_count() > texts.null_count():
        folded = texts.str.to_lowercase()
        digits = texts.set(folded == "true", "1").set(folded == "false", "0")
        spelled = digits.cast(pl.Float64, strict=False)
    wrong = (texts.is_not_null() & spelled.is_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{show(texts[row])} is not a number",
            file=file,
            column=name,
            row=row + 1,
            expected="a number with a decimal point; 1 and 0 for yes and no",
            fix="correct the cell, leave it empty, list its text under `missing:`, or name other "
            "columns",
        )
    return spelled


def check_finite(numbers: pl.Series, file: str, column: str) -> None:
    """Refuse infinite numbers; missing ones pass.

    Raises
    ------
    DataError
        With the first row of them.
    """
    infinite = numbers.is_infinite().fill_null(value=False)
    if infinite.any():
        row = int(infinite.arg_max() or 0)
        raise DataError(
            f"{numbers[row]} is not finite, or too large",
            file=file,
            column=column,
            row=row + 1,
            expected="a finite number, or an empty cell",
            fix="correct the cell, or leave it empty",
        )


def as_float_array(
    column: pa.ChunkedArray, file: str, name: str, missing: Sequence[str] = ()
) -> AnyArray:
    """Return the floats of `as_numbers` as an array; missing cells are NaN.

    Float types are kept. Booleans are 1 and 0.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        values: AnyArray = column.to_numpy()
        return values
    return as_numbers(column, file, name, missing).fill_null(np.nan).to_numpy()


def spells_numbers(column: pa.ChunkedArray, missing: Sequence[str] = ()) -> bool:
    """Whether an unnamed column holds numbers and not text.

    Answers in words count as numbers, so that reading them says what to do.
    """
    if not is_text(column.type):
        return is_numbers(column.type)
    cells = pl.Series("", column).str.strip_chars().unique().drop_nulls()
    spellings = cells.filter(~cells.is_in(["", *missing])).str.to_lowercase()
    numbers = spellings.cast(pl.Float64, strict=False).is_not_null()
    return bool(numbers.any() or spellings.is_in([*WORDS, "true", "false"]).all())


def _readable(column: pa.ChunkedArray, name: str) -> pl.Series:
    """Return a plain column as polars reads it without loss.

    Decimals, dates and times become text here: polars cuts fractions of seconds and panics on
    years that it does not know.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _readable(column.cast(kind.value_type), name)
    if pa.types.is_null(kind):
        return pl.Series(name, [None] * len(column), dtype=pl.String)
    if pa.types.is_timestamp(kind):
        # To naive first: the instant in UTC, for which no table of time zones is needed.
        column = column.cast(pa.timestamp(kind.unit))
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    elif pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        column = column.cast(pa.large_string())
    return pl.Series(name, column)


def no_plain_value(
    problem: str,
    file: str,
    name: str | None,
    row: int | None = None,
    *,
    expected: str = "text, numbers, booleans or dates",
) -> DataError:
    """Return the error of a column, or a cell, of a type that can't be read."""
    return DataError(
        problem,
        file=file,
        column=name,
        row=row,
        expected=expected,
        fix="name another column, or store one plain value per cell",
    )


def float_texts(values: pl.Series) -> pl.Series:
    """Return floats as text, by the same rule for all formats; NaN is missing."""
    number = pl.col("value")
    integral = (number == number.floor()) & (number.abs() < EXACT_INTEGERS)
    text = pl.when(integral).then(number.cast(pl.Int64, strict=False).cast(pl.String))
    frame = values.fill_nan(None).to_frame("value")
    return frame.select(text.otherwise(number.cast(pl.String)).alias(values.name)).to_series()


def number_texts(values: Iterable[float | None]) -> list[str | None]:
    """Return numbers as text, by the same rule."""
    return float_texts(pl.Series([*values], dtype=pl.Float64)).to_list()


class Stack:
    """Vectors of a list column; threads may add parts after the first vector.

    Parameters
    ----------
    rows : int
        Rows of all parts.
    file, name : str
        The file and the column, for errors.
    packed : int, optional
        Bytes of a compressed file, which bound those of the vectors.

    Attributes
    ----------
    values : ndarray, shape (rows, d)
        d is 0 before the first vector.
    absent : ndarray of bool, shape (rows,)
        Rows without a vector; their values are 0.
    """

    def __init__(self, rows: int, file: str, name: str, packed: int | None = None) -> None:
        self._place, self._packed = {"file": file, "column": name}, packed
        self._check(rows)
        self.values: AnyArray = np.zeros((rows, 0))
        self.absent: Booleans = np.ones(rows, dtype=bool)

    def add(self, part: pa.Array, start: int) -> None:
        """Add a part of the column that begins at a row.

        Raises
        ------
        DataError
            When cells are no lists of floats, differ in length, or hold null.
        """
        lists = getattr(part, "storage", part)
        if not is_list(lists.type) or not pa.types.is_floating(lists.type.value_type):
            raise self._error(f"the column holds {lists.type}")
        present = start + np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
        if not len(present):
            return
        lists = lists.drop_null()
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        width = self.values.shape[1] or int(lengths[0])
        if len(wrong_lengths := np.flatnonzero((lengths != width) | (lengths == 0))):
            raise self._error(
                f"the vector has the length {lengths[wrong_lengths[0]]}",
                int(present[wrong_lengths[0]]),
            )
        flat = lists.flatten()
        if flat.null_count:
            hole = int(flat.is_null().to_numpy(zero_copy_only=False).argmax())
            raise self._error("the vector holds null", int(present[hole // width]))
        numbers = flat.to_numpy(zero_copy_only=False)
        if not self.values.shape[1]:
            self._check(len(self.values) * width * numbers.dtype.itemsize)
            self.values = np.zeros((len(self.values), width), numbers.dtype)
        no_gaps = len(present) == len(part)
        destination = slice(start, start + len(part)) if no_gaps else present
        self.values[destination] = numbers.reshape(-1, width)
        self.absent[destination] = False

    def _check(self, size: int) -> None:
        if self._packed is not None and size > most_unpacked(self._packed):
            fix = "save the vectors as .npy, which is read piece by piece"
            file, column = self._place.values()
            raise too_large(size, self._packed, file, column, fix)

    def finish(self) -> tuple[AnyArray, Booleans]:
        """Return the vectors, shape (rows, d), and a mask of rows without a vector.

        Raises
        ------
        DataError
            When no row has a vector.
        """
        if not self.values.shape[1]:
            raise self._error("every cell is empty")
        return self.values, self.absent

    def _error(self, problem: str, row: int | None = None) -> DataError:
        return DataError(
            problem,
            **self._place,
            row=None if row is None else row + 1,
            expected="lists of as many floats in every row, or an empty cell (null)",
            fix="embed all items with one model and save float32, or name another column",
        )


Columns = dict[str, pa.ChunkedArray]
ROW_NUMBER = "row number"
"""Column of the ids of a table that has none."""
FRAME = " (data frame)"
"""What follows the role of a table that is no file, where errors name it."""

FORMATS = ".csv, .tsv, .parquet, .pq, .jsonl, .ndjson, .json or .xlsx"
LISTS = (".txt", ".lst", ".data")
"""How lists without a header end, too."""
_LIST_FIX = (
    "of a list without a header, name the columns: `table: {file: …, header: [NAME]}`; "
    "or convert the file"
)
FILE = "file"
"""Column of the files of a folder."""
ROWS_AT_ONCE = 1 << 14
# Parts of a file that threads read.
_PARTS = 64
# Rows that polars decodes at once, and bytes of a row group, which it holds meanwhile.
_ROWS_OF_POLARS, _MOST_OF_POLARS = 1 << 18, 1 << 29
_POLARS_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
# How the header of a page of a dictionary begins: its type, two sizes, and no checksum.
_NO_CHECKSUM = re.compile(rb"(?:\x15[\x80-\xff]*[\x00-\x7f]){3}\x4c", re.DOTALL)
SCALARS = (str, bool, int, float, decimal.Decimal, dt.date, dt.time, np.generic)


@record
class NamedFrame:
    """A data frame with the name of its source.

    Attributes
    ----------
    frame : data frame
    name : str
        What errors and `inputs` call it.
    left_out : tuple of str
        Ids of rows that were taken out of it on purpose.
    """

    frame: Any
    name: str
    left_out: Strings = ()


@record
class OpenTable:
    """A table that reads its columns on demand.

    Attributes
    ----------
    name : str
        The path as given, or what the data frame is for.
    digest : mapping
        "sha256" and "bytes"; empty for a data frame.
    names : tuple of str
        Of all columns.
    columns : callable
        Takes names of columns and returns them as Arrow. A CSV is parsed at each call; of
        Parquet, only these columns are read.
    kinds : mapping of str to pyarrow.DataType
        Types of the columns, where they are known before reading.
    lists : tuple of str
        Columns whose cells are lists.
    split : mapping of str to mapping of str to str
        By a column that had several values a cell: the columns that it became, and their values.
    delimiter : str
        What separates the cells of a CSV; "" for other tables.
    """

    name: str
    digest: FileFacts
    names: Strings
    columns: Callable[[Strings], Columns]
    kinds: Mapping[str, pa.DataType]
    lists: Strings = ()
    split: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    delimiter: str = ""

    def read(self, names: Strings) -> Columns:
        """Return some columns; `ROW_NUMBER` counts the rows from 1.

        Raises
        ------
        DataError
            When a column is missing or doubled, or the table cannot be read.
        """
        stored = tuple(name for name in names if name != ROW_NUMBER or name in self.names)
        check_columns(self.names, stored, self.name)
        columns = self.columns(stored or self.names[:1])
        if len(stored) < len(names):
            rows = len(next(iter(columns.values())))
            columns[ROW_NUMBER] = pa.chunked_array([np.arange(1, rows + 1)])
        return columns

    def vectors(self, column: str) -> tuple[AnyArray, Booleans]:
        """Return a list column, shape (rows, d), and a mask of rows without a vector."""
        check_columns(self.names, (column,), self.name)
        if not self.kinds:
            cells = self.columns((column,))[column]
            stack, start = Stack(len(cells), self.name, column), 0
            for part in cells.chunks:
                stack.add(part, start)
                start += len(part)
            return stack.finish()
        if n_rows := self._rows_for_polars(column):
            try:
                return self._by_polars(column, n_rows)
            except (*_POLARS_ERRORS, pa.ArrowException):
                pass  # pyarrow reads what polars can't, or says what is wrong.
        with self._parquet() as parquet:
            groups, rows = range(parquet.num_row_groups), _rows_of_groups(parquet)
            stack, starts = (
                Stack(sum(rows), self.name, column, self._bytes),
                np.cumsum([0, *rows]).tolist(),
            )
            parts, start = parquet.iter_batches(ROWS_AT_ONCE, columns=[column]), 0
            # The first vectors set the length that errors hold others against.
            while not stack.values.shape[1] and (part := next(parts, None)) is not None:
                stack.add(_valid(part), start)
                start += part.num_rows

        def read(group_range: range) -> None:
            start = starts[group_range.start]
            with self._parquet() as parquet:
                for part in parquet.iter_batches(
                    ROWS_AT_ONCE, row_groups=[*group_range], columns=[column], use_threads=False
                ):
                    stack.add(_valid(part), start)
                    start += part.num_rows

        step = max(1, -(-len(groups) // _PARTS))
        each(read, [groups[place : place + step] for place in range(0, len(groups), step)])
        # What decoding took would be kept for the next table.
        pa.default_memory_pool().release_unused()
        return stack.finish()

    def _by_polars(self, column: str, rows: int) -> tuple[AnyArray, Booleans]:
        """Return the result of `vectors`, read by polars in its own threads."""
        stack, start = Stack(rows, self.name, column, self._bytes), 0
        scan = pl.scan_parquet(Path(self.name).absolute(), glob=False).select(by_name(column))
        for offset in range(0, rows, _ROWS_OF_POLARS):
            batch_rows = min(_ROWS_OF_POLARS, rows - offset)
            cells = scan.slice(offset, batch_rows).collect().to_series()
            for part in cells.get_chunks():
                stack.add(_valid(pa.record_batch([part.to_arrow()], names=[column])), start)
                start += len(part)
        if start != rows:
            raise pl.exceptions.ComputeError(f"{start} rows instead of {rows}")
        return stack.finish()

    def _rows_for_polars(self, column: str) -> int:
        """Return the number of rows for polars to read; 0 leaves them to pyarrow.

        Of dictionaries of float16 pyarrow takes three times as long. It alone verifies checksums,
        and reads a row group piece by piece.
        """
        with self._parquet() as parquet, pa.OSFile(self.name) as file:
            schema = parquet.schema
            # The lists and their elements have names of their own.
            columns = [schema.column(n).path.rsplit(".", 2)[0] for n in range(len(schema))]
            if column not in columns or not parquet.num_row_groups:
                return 0
            # Reading a row checks what the footer says of the column, which ends the process if
            # it is damaged and looked at before. Writers encode all row groups alike.
            next(parquet.iter_batches(1, row_groups=[0], columns=[column]), None)
            metadata = parquet.metadata
            chunk = metadata.row_group(0).column(columns.index(column))
            if chunk.physical_type != "FIXED_LEN_BYTE_ARRAY" or not chunk.has_dictionary_page:
                return 0
            sizes = (
                metadata.row_group(group).total_byte_size
                for group in range(metadata.num_row_groups)
            )
            if max(sizes) > _MOST_OF_POLARS:
                return 0
            header = file.read_at(64, chunk.dictionary_page_offset)
            return sum(_rows_of_groups(parquet)) if _NO_CHECKSUM.match(header) else 0

    @property
    def _bytes(self) -> int:
        return self.digest["bytes"]

    def _parquet(self) -> AbstractContextManager[pq.ParquetFile]:
        # Before version 26 pyarrow reads no list of a fixed size of which one is null.
        return open_parquet(Path(self.name), stored_types=True)


def _rows_of_groups(parquet: pq.ParquetFile) -> list[int]:
    """Return the rows of each row group; a damaged footer can give other rows in all."""
    metadata = parquet.metadata
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if sum(rows) != metadata.num_rows:
        raise pa.ArrowInvalid(f"{sum(rows)} rows in row groups, {metadata.num_rows} in all")
    return rows


def _valid(part: pa.RecordBatch) -> pa.Array:
    """Return the only column of a batch, after checking it for overlapping lists."""
    part.validate(full=True)
    return part.column(0)


@record
class TableRecipe:
    """A table and the steps that make the audit's columns of it.

    Attributes
    ----------
    table : path or data frame
        A folder stands for the list of its files.
    records : str or None
        Path of the rows in a JSON file.
    header : tuple of str
        Names of the columns of a list without a header.
    folder : bool
        Whether the table is the list of the files in a folder.
    results : str or None
        The reader of what another tool wrote, a file or a folder; see `equipoise.data.results`.
    steps : tuple of callable
        Each takes the table and returns it with other columns or rows; see
        `equipoise.data.table_steps`.
    """

    table: Any
    records: str | None = None
    header: Strings = ()
    folder: bool = False
    results: str | None = None
    steps: tuple[Callable[[OpenTable], OpenTable], ...] = ()


TableSource: TypeAlias = str | os.PathLike[str] | IntoFrame | NamedFrame | TableRecipe
"""A file, a data frame of pandas, polars, pyarrow or another library, or a recipe."""


def open_table(
    source: TableSource, *, role: str = "table", encoding: str = "utf-8", delimiter: str = ","
) -> OpenTable:
    """Open a file or data frame; see `read_table`.

    Raises
    ------
    DataError
        When it cannot be read, is no table, or its extension is unknown.
    """
    recipe = source if isinstance(source, TableRecipe) else TableRecipe(source)
    opened = _open_source(recipe, role, encoding, delimiter)
    for step in recipe.steps:
        opened = step(opened)
    return opened


def _open_source(recipe: TableRecipe, role: str, encoding: str, delimiter: str) -> OpenTable:
    """Open the table that a recipe starts from."""
    source, header = recipe.table, recipe.header
    if isinstance(source, NamedFrame):
        return _open_frame(source.frame, source.name, source.name)
    if not isinstance(source, str | os.PathLike):
        return _open_frame(source, role, f"{role}{FRAME}")
    if recipe.results is not None:
        records, digest = read_results(recipe.results, Path(source))
        return _of_records(records, digest, str(source))
    if recipe.folder:
        return _open_folder(Path(source))
    path, name = Path(source), str(source)
    extension, content = path.suffix.lower(), None
    if isinstance(source, str) and is_address(source):
        extension, content, name = extension_of(source), read_address(source), shown(source)
    if extension in (".parquet", ".pq"):
        return _open_parquet(path) if content is None else _open_parquet_bytes(content, name)
    content = read_whole(path, FORMATS) if content is None else content
    if extension in LISTS and len(header) == 1:
        return _open_lines(content, name, encoding, header)
    if extension in (".csv", ".tsv", *(LISTS if header else ())):
        # A .tsv that is separated by commas is rarer than a user who names no delimiter.
        tabs = extension == ".tsv" and delimiter == ","
        opened = _open_csv(content, name, encoding, "\t" if tabs else delimiter, header)
        _check_delimiter(opened, delimiter)
        return opened
    return _open_content(content, extension, recipe, name, encoding)


def _check_delimiter(table: OpenTable, named: str) -> None:
    """Refuse a delimiter that is named, and that the first line doesn't have."""
    if named not in (",", table.delimiter):
        raise DataError(
            f"{show(table.delimiter)} separates the cells of the first line, not {show(named)}",
            file=table.name,
            expected=f"cells separated by {show(named)}, as `delimiter:` says",
            fix="correct `delimiter:`, or remove it",
        )


def _open_content(
    content: bytes, extension: str, recipe: TableRecipe, name: str, encoding: str
) -> OpenTable:
    """Open the content of a workbook, or of a file of JSON."""
    digest = hash_parts([content])
    if extension == XLSX:
        return replace(_open_frame(read_sheet(content, name), name, name), digest=digest)
    if extension in (".jsonl", ".ndjson"):
        text = to_utf8(content, name, encoding).decode("utf-8-sig")
        return _of_records(json_lines(text, name), digest, name)
    if extension == ".json":
        text = to_utf8(content, name, encoding, header=False).decode("utf-8-sig")
        records = json_records(text, name, recipe.records, recipe.header)
        return _of_records(records, digest, name)
    raise unknown_extension(Path(name), FORMATS, _LIST_FIX if extension in LISTS else None)


def is_frame(source: TableSource) -> bool:
    """Whether something is a data frame of a library that narwhals knows."""
    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


def _open_frame(source: Any, role: str, name: str) -> OpenTable:
    problem, expected = "several columns have the same name", "different column names"
    try:
        frame = nw.from_native(source)
        frame = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except (TypeError, nw.exceptions.DuplicateError) as error:
        if isinstance(error, TypeError):
            name, problem = role, f"the table is of type {type(source).__name__}"
            expected = "a path or a data frame (pandas, polars, pyarrow, ...)"
        raise DataError(problem, file=name, expected=expected, fix=f"give {expected}") from None
    # By position, since pandas allows names that are no text.
    series = [frame[:, place] for place in range(len(frame.columns))]
    names = tuple(str(column) for column in frame.columns)
    return OpenTable(
        name,
        {},
        names,
        lambda columns: {
            column: _column(series[names.index(column)], name, column) for column in columns
        },
        {},
        tuple(column for column, cells in zip(names, series, strict=True) if _holds_lists(cells)),
    )


def _holds_lists(series: nw.Series[Any]) -> bool:
    if series.dtype != nw.Object:
        return isinstance(series.dtype, nw.List | nw.Array)
    first = next((value for value in series.to_list() if value is not None), None)
    return isinstance(first, list | tuple | np.ndarray)


def _column(series: nw.Series[Any], file: str, name: str) -> pa.ChunkedArray:
    if series.dtype == nw.Object:
        return _of_objects(series.to_list(), file, name)
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind == "f":
        # pandas has one mark for "no number" and "missing": keep it, a probability must see it.
        return pa.chunked_array([pa.array(series.to_numpy())])
    try:
        column = series.to_arrow()
    except (pa.ArrowException, nw.exceptions.NarwhalsError):
        raise no_plain_value(f"the column is of type {native.dtype}", file, name) from None
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _of_objects(values: Sequence[Any], file: str, name: str) -> pa.ChunkedArray:
    """Return Python objects as Arrow: in their type, or mixed types as text."""
    try:
        column = pa.array(values, from_pandas=True)
        plain = is_plain(column.type) and not pa.types.is_temporal(column.type)
        if (plain and not pa.types.is_decimal(column.type)) or is_list(column.type):
            return pa.chunked_array([column])
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    texts = [cell_text(value, file, name, row) for row, value in enumerate(values, 1)]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def cell_text(value: object, file: str, name: str | None, row: int) -> str | None:
    """Return the text of a cell in a column of mixed Python objects."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, SCALARS):
        raise no_plain_value(f"the cell is {show(value)}", file, name, row)
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    # How floats, decimals and times of any library print what is missing.
    if not isinstance(value, str) and text in ("nan", "NaN", "sNaN", "NaT"):
        return None
    if not is_whole(text):
        raise no_plain_value(f"the cell is {show(text)}", file, name, row)
    return text


HEADER_BYTES = 1 << 20
BLOCK_BYTES = 1 << 24
MAX_BLOCK_BYTES = 2**31 - 1


# The first line of tables that Excel writes for other countries, with the delimiter.
_SEPARATOR_LINE = re.compile(rb'\A(?:\xef\xbb\xbf)?"?sep=([\t -~])"?\r?\n', re.IGNORECASE)


def _open_csv(
    content: bytes, name: str, encoding: str, delimiter: str, header: Strings = ()
) -> OpenTable:
    utf8 = to_utf8(content, name, encoding)
    if stated := _SEPARATOR_LINE.match(utf8):
        delimiter, utf8 = stated[1].decode(), utf8[stated.end() :]
    start = utf8[:HEADER_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff")
    delimiter, first_line = _first_line(start, delimiter, header)
    _check_first_line(first_line, header, name)
    if not header:
        check_names(start, delimiter, name)
    names = header or tuple(first_line)

    def columns(requested: Strings) -> Columns:
        _check_quotes(utf8, name, delimiter)
        places = [f"f{names.index(column)}" for column in requested]
        table = _parse(utf8, places, name, delimiter)
        # The header is row 0 of what the parser returns: it sees no names, so it may repeat none.
        rows = table if header else table.slice(1)
        return {column: rows[place] for column, place in zip(requested, places, strict=True)}

    return OpenTable(name, hash_parts([content]), names, columns, {}, delimiter=delimiter)


def _open_lines(content: bytes, name: str, encoding: str, names: Strings) -> OpenTable:
    """Open a list without a header whose lines are the cells of its only column."""
    text = to_utf8(content, name, encoding, header=False).decode("utf-8-sig")
    lines = [line for line in split_lines(text) if line]
    column = pa.chunked_array([pa.array(lines, pa.string())])
    return OpenTable(name, hash_parts([content]), names, lambda _: {names[0]: column}, {})


def _first_line(start: str, delimiter: str, header: Strings) -> tuple[str, list[str]]:
    """Return the delimiter of a CSV, and the cells of its first line.

    A header that the delimiter leaves whole was written with another. In a list without a header,
    whose cells are any text, only several columns without a named delimiter are guessed.
    """
    guessed = not header or (len(header) > 1 and delimiter == ",")
    marks = (",;\t| " if header else ",;\t|") if guessed else ""
    lines = {mark: _header(start, mark) for mark in (delimiter, *marks)}
    fitting = [mark for mark, cells in lines.items() if header and len(cells) == len(header)]
    several = [mark for mark, cells in lines.items() if len(cells) > 1]
    mark = next(iter([*fitting, *several]), delimiter)
    return mark, lines[mark]


def _check_first_line(cells: Sequence[str], header: Strings, name: str) -> None:
    """Refuse a first line that is no header, or has not the cells of a given header."""
    if not cells or any("\0" in cell for cell in cells):
        raise DataError(
            "the first line is not a header of column names",
            file=name,
            expected="a text file with column names in its first line",
            fix="check that this is a CSV, and `delimiter:`; give `encoding:` if it is UTF-16",
        )
    if header and len(cells) != len(header):
        raise DataError(
            f"the row has {counted(len(cells), 'cell')}: {listed(cells)}",
            file=name,
            row=1,
            expected=f"{counted(len(header), 'cell')}, as `header:` names",
            fix="name every column under `header:`, quote a cell that holds the delimiter, and "
            "check `delimiter:`",
        )


def _open_folder(folder: Path) -> OpenTable:
    """Open the list of the files in a folder and the folders inside it; hidden ones aside."""
    if not folder.is_dir():
        raise DataError(
            "the folder doesn't exist",
            file=str(folder),
            expected="the folder of the files",
            fix="correct the path; it is relative to the configuration",
        )
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    visible = sorted(
        path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)
    )
    column = pa.chunked_array([pa.array(visible, pa.large_string())])
    digest = hash_parts(f"{path}\n".encode() for path in visible)
    return OpenTable(str(folder), digest, (FILE,), lambda _: {FILE: column}, {})


def _header(start: str, delimiter: str) -> list[str]:
    """Return the cells of the first line with any; [] if it can't be parsed."""
    try:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        return next((row for row in rows if row), [])
    except (csv.Error, TypeError, ValueError):
        return []


def _check_quotes(utf8: bytes, file: str, delimiter: str) -> None:
    """Refuse an unclosed quote, which would swallow the rest of the file."""
    if utf8.count(b'"') % 2 == 0:
        return
    record = 0
    text = io.StringIO(utf8.decode("utf-8"), newline="")
    try:
        for row in csv.reader(text, delimiter=delimiter, strict=True):
            record += bool(row)
    except csv.Error as error:
        if "unexpected end of data" not in str(error):
            return
        raise DataError(
            "a quote opened in this row is never closed",
            file=file,
            row=record or None,
            expected="quotes in pairs",
            fix="close the quote, or double it inside a quoted cell",
        ) from None


def _parse(utf8: bytes, places: list[str], file: str, delimiter: str) -> pa.Table:
    ragged: list[Any] = []

    def note(row: Any) -> str:
        ragged.append(row)
        return "skip"

    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(places, pa.string()),
        include_columns=places,
        strings_can_be_null=False,
    )
    file_block, problem = min(len(utf8) + 1, MAX_BLOCK_BYTES), ""
    # A cell larger than a block needs the file as one; one thread alone knows the rows' numbers.
    # Threads gain nothing in a file of one block, and may still run when a short process ends.
    threaded = len(utf8) > BLOCK_BYTES
    for threads, block in ((threaded, BLOCK_BYTES), (threaded, file_block), (False, file_block)):
        read = arrow_csv.ReadOptions(
            autogenerate_column_names=True, use_threads=threads, block_size=block
        )
        # A thread that calls Python while the process ends would abort it.
        parse = arrow_csv.ParseOptions(
            delimiter=delimiter,
            newlines_in_values=True,
            invalid_row_handler=None if threads else note,
        )
        try:
            table = arrow_csv.read_csv(pa.BufferReader(utf8), read, parse, convert)
        except (pa.ArrowException, KeyError) as error:
            problem = str(error)
            continue
        if not ragged:
            return table
    if ragged:
        row = ragged[0]
        raise DataError(
            f"the row has {counted(row.actual_columns, 'cell')}: {show(row.text)}",
            file=file,
            row=row.number - 1,
            expected=f"{row.expected_columns} cells, as in the header",
            fix=f"quote cells that hold {delimiter!r}, and write empty cells out",
        )
    raise DataError(
        f"the file cannot be parsed as CSV ({show(problem)})",
        file=file,
        expected="one header and rows of as many cells",
        fix="check `delimiter:` and the quotes",
    )


def _of_records(records: Sequence[Facts], digest: FileFacts, name: str) -> OpenTable:
    """Open a table of objects; a missing key is a missing cell."""
    paths = cell_paths(records)
    return OpenTable(
        name,
        digest,
        tuple(paths),
        lambda columns: {
            column: _of_objects(cells_at(records, paths[column], name), name, column)
            for column in columns
        },
        {},
        tuple(key for key in paths if any(isinstance(record.get(key), list) for record in records)),
    )


_BYTES_AT_ONCE = 1 << 20
# The name under which a footer keeps the types that the writer had, and one that nothing reads.
_TYPES, _NO_TYPES = b"ARROW:schema", b"ARROW_schema"


def _open_parquet(path: Path) -> OpenTable:
    digest = hash_file(path, FORMATS)
    with open_parquet(path) as parquet:
        schema = parquet.schema_arrow
    kinds = dict(zip(schema.names, schema.types, strict=True))
    fields = {name: parts for name, parts in _struct_fields(schema) if name not in kinds}

    def columns(names: Strings) -> Columns:
        with open_parquet(path) as parquet:
            table = read_columns(parquet, names, path)
        return {
            column: pc.struct_field(table[parts[0]], parts[1:]) if parts else table[column]
            for column in names
            for parts in [fields.get(column, ())]
        }

    lists = tuple(column for column, kind in kinds.items() if is_list(kind))
    return OpenTable(str(path), digest, (*schema.names, *fields), columns, kinds, lists)


def _open_parquet_bytes(content: bytes, name: str) -> OpenTable:
    """Open the content of a Parquet file."""
    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
        table.validate(full=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(name) from None
    if table.nbytes > most_unpacked(len(content)):
        fix = "split the file"
        raise too_large(table.nbytes, len(content), name, None, fix)
    lists = tuple(member.name for member in table.schema if is_list(member.type))
    columns = {member: table[member] for member in table.column_names}
    return OpenTable(
        name,
        hash_parts([content]),
        tuple(columns),
        lambda names: {column: columns[column] for column in names},
        {},
        lists,
    )


def _damaged(name: str) -> DataError:
    return DataError(
        "the file is truncated, damaged or no Parquet",
        file=name,
        expected="a whole Parquet file",
        fix="write or copy it again",
    )


def _struct_fields(
    fields: Iterable[pa.Field], above: Strings = ()
) -> Iterator[tuple[str, Strings]]:
    """Yield the dotted name, and its parts, of each plain column inside structs."""
    for member in fields:
        parts = (*above, member.name)
        if pa.types.is_struct(member.type):
            yield from _struct_fields(member.type, parts)
        elif above:
            yield ".".join(parts), parts


@contextmanager
def open_parquet(path: Path, *, stored_types: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; any error inside the block becomes a DataError.

    Parameters
    ----------
    path : Path
    stored_types : bool
        Read what Parquet itself holds, whatever types the writer had: lists of a fixed size are
        lists.

    Raises
    ------
    DataError
        When the file is truncated or damaged.
    """
    try:
        with pa.OSFile(str(path)) as source:
            # Pieces of a column are read as they are asked for; a map would count as memory held.
            metadata = _without_types(source) if stored_types else None
            yield pq.ParquetFile(
                source,
                metadata=metadata,
                buffer_size=_BYTES_AT_ONCE,
                pre_buffer=False,
                page_checksum_verification=True,
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise _damaged(str(path)) from None


def read_columns(parquet: pq.ParquetFile, columns: Sequence[str], path: Path) -> pa.Table:
    """Read columns of an open file in batches, up to a bound on memory.

    Raises
    ------
    DataError
        When they take more memory than `most_unpacked`.
    """
    batches, size, packed = [], 0, path.stat().st_size
    for batch in parquet.iter_batches(ROWS_AT_ONCE, columns=[*columns]):
        size += batch.nbytes
        if size > most_unpacked(packed):
            raise too_large(size, packed, str(path), None, "split the file, or name fewer columns")
        batches.append(batch)
    # Without rows or columns, batches lack what the table has: its columns or its rows.
    filled = batches and len(columns)
    table = pa.Table.from_batches(batches) if filled else parquet.read(columns=[*columns])
    table = table.replace_schema_metadata(parquet.schema_arrow.metadata)
    # Damaged pages can hold bytes that are no text; later steps rely on valid text.
    table.validate(full=True)
    return table


def _without_types(source: pa.NativeFile) -> pq.FileMetaData:
    """Return the footer of a file without the types that the writer had."""
    source.seek(footer_start(source))
    before, marker, after = source.read().rpartition(_TYPES)
    renamed = before + (_NO_TYPES if marker else b"") + after
    return pq.read_metadata(pa.BufferReader(b"PAR1" + renamed))


@record
class Table:
    """The requested columns of a table.

    Attributes
    ----------
    name : str
        The path as given, or what the data frame is for; errors and `inputs` use it.
    texts : mapping of str to polars.Series
        Text columns; null is missing.
    numbers : mapping of str to polars.Series
        Float columns; null is missing.
    rows : int
    digest : mapping
        "sha256" and "bytes" of the file (for a data frame: of the columns used, in a form that
        is the same for every library), and "rows".
    """

    name: str
    texts: Mapping[str, pl.Series]
    numbers: Mapping[str, pl.Series]
    rows: int
    digest: FileFacts

    def filter(self, mask: pl.Series) -> Self:
        """Return the rows where a mask is true."""
        texts, numbers = (
            {name: column.filter(mask) for name, column in columns.items()}
            for columns in (self.texts, self.numbers)
        )
        return replace(self, texts=texts, numbers=numbers, rows=int(mask.sum()))


def read_table(
    source: TableSource,
    *,
    texts: Iterable[str],
    numbers: Iterable[str] = (),
    role: str = "table",
    encoding: str = "utf-8",
    delimiter: str = ",",
) -> Table:
    """Read some columns of a file or data frame.

    Parameters
    ----------
    source : path, data frame or NamedFrame
        A CSV, Parquet or JSON lines file, told by its extension; or any data frame that
        narwhals knows (pandas, polars, pyarrow, ...).
    texts, numbers : iterable of str
        Columns to read as text and as numbers.
    role : str
        What the table is for; stands for the file name where the source is a data frame.
    encoding, delimiter : str
        Of a CSV; `encoding` also of JSON lines.

    Raises
    ------
    DataError
        When the file cannot be read, lacks a column, has no row, a cell is of a wrong type, or a
        number is infinite.
    """
    opened = open_table(source, role=role, encoding=encoding, delimiter=delimiter)
    text_names, number_names = tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(numbers))
    columns, name = opened.read(tuple(dict.fromkeys((*text_names, *number_names)))), opened.name
    rows = len(next(iter(columns.values())))
    if rows == 0:
        raise no_rows(name)
    as_texts = {column: as_text(columns[column], name, column) for column in text_names}
    as_floats = {column: as_numbers(columns[column], name, column) for column in number_names}
    for column, cells in as_floats.items():
        check_finite(cells, name, column)
    # Of a data frame the columns used, in one form, so that equal data hash equally in any library.
    digest = opened.digest or hash_parts(
        part for column in (*as_texts.values(), *as_floats.values()) for part in _canonical(column)
    )
    return Table(name, as_texts, as_floats, rows, {**digest, "rows": rows})


def no_rows(name: str) -> DataError:
    """Return the error of a table without rows."""
    return DataError(
        "there are no rows of data",
        file=name,
        expected="at least one row of data",
        fix="check that the table was written completely",
    )


def _canonical(column: pl.Series) -> Iterator[bytes]:
    """Yield a column's name, mask of missing cells, and values as bytes.

    A serialised Arrow table would not do: what lies beneath its missing cells differs.
    """
    yield f"{column.name}\0{column.dtype}\0".encode()
    yield np.packbits(column.is_null().to_numpy()).tobytes()
    if column.dtype.is_float():
        yield column.fill_nan(math.nan).fill_null(0.0).to_numpy().tobytes()
        return
    texts = column.fill_null("")
    yield texts.str.len_bytes().cast(pl.UInt64).to_numpy().tobytes()
    yield str(texts.str.join("").item()).encode()
