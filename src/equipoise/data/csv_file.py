"""CSV: cells stay the text they are, and every malformed file has one error."""

from __future__ import annotations

import csv
import io
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from equipoise.core import DataError
from equipoise.data.problems import check_columns, show
from equipoise.data.text_file import to_utf8

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
