"""JSON lines: one object a line, its values as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from equipoise.core import DataError
from equipoise.data.cells import float_texts
from equipoise.data.json_text import RepeatedKeyError, parse_json
from equipoise.data.problems import check_columns, is_whole, show
from equipoise.data.text_file import to_utf8

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
