"""One way in for every table: CSV, Parquet, JSON lines and data frames."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import hashlib
import io
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from equipoise.core import DataError
from equipoise.data.cells import as_numbers, as_text, float_texts
from equipoise.data.files import (
    RepeatedKeyError,
    hash_file,
    parse_json,
    read_whole,
    to_utf8,
    unknown_extension,
)
from equipoise.data.problems import check_columns, is_whole, show

FRAME = " (data frame)"
"""What follows the role of a table that is no file, where errors name it."""

# How floats, decimals and times of any library print what is missing.
NOT_A_VALUE = ("nan", "NaN", "sNaN", "NaT")
SCALARS = (
    str,
    bool,
    int,
    float,
    decimal.Decimal,
    dt.date,
    dt.time,
    np.generic,
)


def read_frame(source: Any, wanted: tuple[str, ...], file: str) -> dict[str, pa.ChunkedArray]:
    """Return some columns of a data frame as Arrow; errors call it `file`.

    Raises
    ------
    DataError
        When the source is no data frame, a column is missing or doubled, or a cell is no plain
        value.
    """
    frame = _eager(source, file.removesuffix(FRAME))
    names = [str(name) for name in frame.columns]
    check_columns(names, wanted, file)
    # By position, since pandas allows names that are no text.
    return {column: _column(frame[:, names.index(column)], file, column) for column in wanted}


def is_frame(source: Any) -> bool:
    """Whether something is a data frame of a library that narwhals knows."""
    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


def frame_names(source: Any, role: str) -> tuple[str, ...]:
    """Return the names of all columns of a data frame as text."""
    return tuple(str(name) for name in _eager(source, role).columns)


def list_columns(source: Any, role: str) -> tuple[str, ...]:
    """Return the names of the columns whose cells are lists or arrays."""
    frame = _eager(source, role)
    nested = [_holds_lists(frame[:, place]) for place in range(len(frame.columns))]
    return tuple(str(name) for name, lists in zip(frame.columns, nested, strict=True) if lists)


def _holds_lists(series: nw.Series[Any]) -> bool:
    if series.dtype != nw.Object:
        return isinstance(series.dtype, nw.List | nw.Array)
    first = next((value for value in series.to_list() if value is not None), None)
    return isinstance(first, list | tuple | np.ndarray)


def read_lists(source: Any, name: str, role: str) -> pa.ChunkedArray:
    """Return a column whose cells are lists, as Arrow.

    Raises
    ------
    DataError
        When the column is missing, or its cells cannot be held in one type.
    """
    file = f"{role}{FRAME}"
    frame = _eager(source, role)
    names = [str(name) for name in frame.columns]
    check_columns(names, (name,), file)
    series = frame[:, names.index(name)]
    if series.dtype != nw.Object:
        column = series.to_arrow()
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    try:
        return pa.chunked_array([pa.array(series.to_list(), from_pandas=True)])
    except pa.ArrowException:
        raise DataError(
            "the cells are not lists of numbers of one type",
            file=file,
            column=name,
            expected="one list of floats per cell",
            fix="build the vectors with np.asarray(cell, dtype=np.float32)",
        ) from None


def _eager(source: Any, role: str) -> nw.DataFrame[Any]:
    try:
        frame = nw.from_native(source)
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except TypeError:
        raise DataError(
            f"the table is of type {type(source).__name__}",
            file=role,
            expected="a path or a data frame (pandas, polars, pyarrow, ...)",
            fix="give the path of a file, or build a data frame",
        ) from None
    except nw.exceptions.DuplicateError:
        raise DataError(
            "several columns have the same name",
            file=f"{role}{FRAME}",
            expected="different column names",
            fix="rename all but one of them",
        ) from None


def _column(series: nw.Series[Any], file: str, name: str) -> pa.ChunkedArray:
    if series.dtype == nw.Object:
        texts = [cell_text(value, file, name, row) for row, value in enumerate(series.to_list(), 1)]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind == "f":
        # pandas has one mark for "no number" and "missing": keep it, a probability must see it.
        return pa.chunked_array([pa.array(series.to_numpy())])
    try:
        column = series.to_arrow()
    except (pa.ArrowException, nw.exceptions.NarwhalsError):
        raise _no_plain_value(f"the column is of type {native.dtype}", file, name, None) from None
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def cell_text(value: object, file: str, name: str | None, row: int) -> str | None:
    """Text of one cell of a column of mixed Python objects."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, SCALARS):
        raise _no_plain_value(f"the cell is of type {type(value).__name__}", file, name, row)
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    if not isinstance(value, str) and text in NOT_A_VALUE:
        return None
    if not is_whole(text):
        raise _no_plain_value(f"the cell is {show(text)}", file, name, row)
    return text


def _no_plain_value(problem: str, file: str, name: str | None, row: int | None) -> DataError:
    return DataError(
        problem,
        file=file,
        column=name,
        row=row,
        expected="text, numbers, booleans or dates",
        fix="name another column, or store one plain value per cell",
    )


HEADER_BYTES = 1 << 20
BLOCK_BYTES = 1 << 24
MAX_BLOCK_BYTES = 2**31 - 1
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


def read_csv(
    content: bytes, wanted: tuple[str, ...], file: str, encoding: str, delimiter: str
) -> dict[str, pa.ChunkedArray]:
    """Read some columns of a CSV as text.

    Raises
    ------
    DataError
        When the text is of another encoding, a column is missing or doubled, or a row has
        another number of cells than the header.
    """
    _check_delimiter(delimiter, file)
    utf8 = to_utf8(content, file, encoding)
    header = _header(utf8, file, delimiter)
    check_columns(header, wanted, file, _delimiter_hint(header, delimiter))
    _check_quotes(utf8, file, delimiter)
    places = [f"f{header.index(column)}" for column in wanted]
    table = _parse(utf8, places, file, delimiter)
    # The header is row 0 of what the parser returns: it sees no names, so it may repeat none.
    return {column: table[place][1:] for column, place in zip(wanted, places, strict=True)}


def csv_names(content: bytes, file: str, encoding: str, delimiter: str) -> tuple[str, ...]:
    """Return the names of all columns.

    Raises
    ------
    DataError
        When the text is of another encoding, or the first line is no header.
    """
    _check_delimiter(delimiter, file)
    return tuple(_header(to_utf8(content, file, encoding), file, delimiter))


def _check_delimiter(delimiter: str, file: str) -> None:
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise DataError(
            f"the delimiter {show(delimiter)} cannot separate cells",
            file=file,
            expected="one ASCII character such as ',' or ';'",
            fix="correct `delimiter:`",
        )


def _header(utf8: bytes, file: str, delimiter: str) -> list[str]:
    start = utf8[:HEADER_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff")
    try:
        rows = csv.reader(io.StringIO(start, newline=""), delimiter=delimiter)
        header = next((row for row in rows if row), [])
    except csv.Error:
        header = []
    if not header or any("\0" in name for name in header):
        raise DataError(
            "the first line is not a header of column names",
            file=file,
            expected="a text file with column names in its first line",
            fix="check that this is a CSV, and give `encoding:` if it is UTF-16",
        )
    return header


def _delimiter_hint(header: list[str], delimiter: str) -> str:
    if len(header) > 1:
        return ""
    others = [mark for mark in SEPARATORS if mark != delimiter and mark in header[0]]
    if not others:
        return ""
    return f"cells look separated by {SEPARATORS[others[0]]}: give `delimiter: {others[0]!r}`"


def _check_quotes(utf8: bytes, file: str, delimiter: str) -> None:
    """Refuse a quote that is never closed: it would swallow the rest of the file as one cell."""
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

    table = _parse_blocks(utf8, places, file, delimiter, note, threads=True)
    if ragged:
        # Only a single thread knows the numbers of the rows.
        ragged.clear()
        _parse_blocks(utf8, places, file, delimiter, note, threads=False)
        raise _ragged_row(ragged[0], file, delimiter)
    return table


def _parse_blocks(
    utf8: bytes, places: list[str], file: str, delimiter: str, note: Any, *, threads: bool
) -> pa.Table:
    parse = pc.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note)
    convert = pc.ConvertOptions(
        column_types=dict.fromkeys(places, pa.string()),
        include_columns=places,
        strings_can_be_null=False,
    )
    problem = ""
    # A cell larger than a block cannot be parsed: the second try takes the file as one block.
    for block in (BLOCK_BYTES, min(len(utf8) + 1, MAX_BLOCK_BYTES)):
        read = pc.ReadOptions(autogenerate_column_names=True, use_threads=threads, block_size=block)
        try:
            return pc.read_csv(
                pa.BufferReader(utf8), read_options=read, parse_options=parse,
                convert_options=convert,
            )  # fmt: skip
        except (pa.ArrowException, KeyError) as error:
            problem = str(error)
    raise DataError(
        f"the file cannot be parsed as CSV ({show(problem)})",
        file=file,
        expected="one header and rows of as many cells",
        fix="check `delimiter:` and the quotes",
    )


def _ragged_row(row: Any, file: str, delimiter: str) -> DataError:
    return DataError(
        f"the row has {row.actual_columns} cells: {show(row.text)}",
        file=file,
        row=row.number - 1,
        expected=f"{row.expected_columns} cells, as in the header",
        fix=f"quote cells that hold {SEPARATORS.get(delimiter, 'the delimiter')}, "
        "and write empty cells out",
    )


_BLANK = " \t\r\v\f"


def read_json_lines(
    content: bytes, wanted: tuple[str, ...], file: str, encoding: str
) -> dict[str, pa.ChunkedArray]:
    """Read some keys of a JSON lines file as text; a key that a line lacks is missing there.

    Raises
    ------
    DataError
        When a line is no JSON object or has a key twice, a value is a list or an object, or no
        line has the key.
    """
    columns: dict[str, list[Any]] = {column: [] for column in wanted}
    keys: dict[str, None] = {}
    for record in _records(content, file, encoding):
        if not record.keys() <= keys.keys():
            keys |= dict.fromkeys(record)
        for column, cells in columns.items():
            cells.append(record.get(column))
    if any(columns.values()):
        check_columns([*keys], wanted, file)
    return {
        column: pa.chunked_array([_texts(cells, file, column).to_arrow()])
        for column, cells in columns.items()
    }


def keys_of_json_lines(content: bytes, file: str, encoding: str = "utf-8") -> list[str]:
    """Return every key of a JSON lines file, in the order of their first lines.

    Raises
    ------
    DataError
        When a line is no JSON object or has a key twice.
    """
    return [*dict.fromkeys(key for record in _records(content, file, encoding) for key in record)]


def _records(content: bytes, file: str, encoding: str) -> Iterator[dict[str, Any]]:
    text = to_utf8(content, file, encoding).decode("utf-8-sig")
    lines = (line for line in text.split("\n") if line.strip(_BLANK))
    for row, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
        except RepeatedKeyError as error:
            raise error.located(file, row) from None
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise DataError(
                f"the line is no JSON object: {show(line)}",
                file=file,
                row=row,
                expected='one object a line, such as {"id": "1", "prediction": "cat"}',
                fix="correct the line",
            )
        yield record


def _texts(cells: list[Any], file: str, column: str) -> pl.Series:
    """Turn values into text where they lie, floats by the rule of all formats."""
    floats = [row for row, cell in enumerate(cells) if type(cell) is float]
    written = float_texts(pl.Series([cells[row] for row in floats], dtype=pl.Float64))
    for row, text in zip(floats, written, strict=True):
        cells[row] = text
    for row, cell in enumerate(cells):
        if not (cell is None or (type(cell) is str and cell.isascii())):
            cells[row] = _text(cell, file, column, row + 1)
    return pl.Series(column, cells, dtype=pl.String)


def _text(value: object, file: str, column: str, row: int) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if isinstance(value, dict | list) or not is_whole(text):
        raise DataError(
            f"the value is {show(text)}",
            file=file,
            column=column,
            row=row,
            expected="one text, number or boolean",
            fix="name another key, or store one plain value per key",
        )
    return text


_BYTES_AT_ONCE = 1 << 20
# The name under which a footer keeps the types that the writer had, and one that nothing reads.
_TYPES, _NO_TYPES = b"ARROW:schema", b"ARROW_schema"
# What ends a file: the length of the footer in four bytes, and four letters.
_END = 8


def read_parquet(path: Path, wanted: tuple[str, ...], file: str) -> dict[str, pa.ChunkedArray]:
    """Read some columns of a Parquet file.

    Raises
    ------
    DataError
        When the file is truncated or damaged, or a column is missing or doubled.
    """
    with open_parquet(path, file) as parquet:
        check_columns(parquet.schema_arrow.names, wanted, file)
        table = parquet.read(columns=[*wanted]).select([*wanted])
        # Damaged pages can hold bytes that are no text; later steps rely on valid text.
        table.validate(full=True)
    return {column: table[column] for column in wanted}


@contextmanager
def open_parquet(path: Path, file: str, *, stored_types: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; what it is read with inside the block fails with one error.

    Parameters
    ----------
    path : Path
    file : str
        The path as given, for messages.
    stored_types : bool
        Read what Parquet itself holds, whatever types the writer had: lists of a fixed size are
        lists. Before version 26 pyarrow reads none of a fixed size of which one is null.

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
        raise DataError(
            "the file is truncated, damaged or no Parquet",
            file=file,
            expected="a whole Parquet file",
            fix="write or copy it again",
        ) from None


def _without_types(source: pa.NativeFile) -> pq.FileMetaData:
    """Return the footer of a file without the types that the writer had."""
    size = source.size()
    source.seek(max(0, size - _END))
    length = int.from_bytes(source.read(4), "little")
    source.seek(max(0, size - _END - length))
    footer = source.read()
    before, found, after = footer.rpartition(_TYPES)
    renamed = before + (_NO_TYPES if found else b"") + after
    return pq.read_metadata(pa.BufferReader(b"PAR1" + renamed))


Columns = dict[str, pa.ChunkedArray]
PARQUET = (".parquet", ".pq")
FORMATS = ".csv, .tsv, .parquet, .pq, .jsonl or .ndjson"


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table that were asked for.

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
    digest: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class NamedFrame:
    """A data frame that was made of what somebody named.

    Attributes
    ----------
    frame : data frame
    name : str
        What errors and `inputs` call it.
    """

    frame: Any
    name: str


def read_table(
    source: Any,
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
        When the file cannot be read, lacks a column, has no row, or a cell is of a wrong type.
    """
    text_names, number_names = tuple(dict.fromkeys(texts)), tuple(dict.fromkeys(numbers))
    wanted = tuple(dict.fromkeys((*text_names, *number_names)))
    if isinstance(source, str | os.PathLike):
        name = str(source)
        columns, digest = _read(Path(source), wanted, encoding, delimiter)
    elif isinstance(source, NamedFrame):
        name, columns, digest = source.name, read_frame(source.frame, wanted, source.name), {}
    else:
        name = f"{role}{FRAME}"
        columns, digest = read_frame(source, wanted, name), {}
    rows = len(next(iter(columns.values())))
    if rows == 0:
        raise DataError(
            "there are no rows of data",
            file=name,
            expected="at least one row of data",
            fix="check that the table was written completely",
        )
    as_texts = {column: as_text(columns[column], name, column) for column in text_names}
    as_floats = {column: as_numbers(columns[column], name, column) for column in number_names}
    digest = digest or _frame_digest([*as_texts.values(), *as_floats.values()])
    return Table(name, as_texts, as_floats, rows, digest | {"rows": rows})


def _read(
    path: Path, wanted: tuple[str, ...], encoding: str, delimiter: str
) -> tuple[Columns, dict[str, Any]]:
    """Return columns and digest of a file; of Parquet, other columns are hashed, not held."""
    if path.suffix.lower() in PARQUET:
        digest = hash_file(path, FORMATS)
        return read_parquet(path, wanted, str(path)), digest
    content = read_whole(path, FORMATS)
    columns = _parse_text(path, content, wanted, encoding, delimiter)
    return columns, {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _parse_text(
    path: Path, content: bytes, wanted: tuple[str, ...], encoding: str, delimiter: str
) -> Columns:
    name, extension = str(path), path.suffix.lower()
    # A .tsv that is separated by commas is rarer than a user who names no delimiter.
    separator = "\t" if extension == ".tsv" and delimiter == "," else delimiter
    readers: dict[tuple[str, ...], Callable[[], Columns]] = {
        (".csv", ".tsv"): lambda: read_csv(content, wanted, name, encoding, separator),
        (".jsonl", ".ndjson"): lambda: read_json_lines(content, wanted, name, encoding),
    }
    for extensions, reader in readers.items():
        if extension in extensions:
            return reader()
    raise unknown_extension(path, FORMATS)


def _frame_digest(columns: list[pl.Series]) -> dict[str, Any]:
    """Hash the columns used in one form, so that equal data hash equally in any frame library.

    A serialised Arrow table would not do: what lies beneath its missing cells differs.
    """
    hashed, size = hashlib.sha256(), 0
    for part in (part for column in columns for part in _canonical(column)):
        hashed.update(part)
        size += len(part)
    return {"sha256": hashed.hexdigest(), "bytes": size}


def _canonical(column: pl.Series) -> Iterator[bytes]:
    """Name, which cells are missing, and the cells: floats, or lengths of texts and their bytes."""
    yield f"{column.name}\0{column.dtype}\0".encode()
    yield np.packbits(column.is_null().to_numpy()).tobytes()
    if column.dtype.is_float():
        yield column.fill_nan(math.nan).fill_null(0.0).to_numpy().tobytes()
        return
    texts = column.fill_null("")
    yield texts.str.len_bytes().cast(pl.UInt64).to_numpy().tobytes()
    yield str(texts.str.join("").item()).encode()
