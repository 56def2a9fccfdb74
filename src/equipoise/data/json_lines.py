"""JSON lines: one object a line, its values as text."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa

from equipoise.core import DataError
from equipoise.data.problems import check_columns, is_whole, show
from equipoise.data.text_file import to_utf8


def read_json_lines(
    content: bytes, wanted: tuple[str, ...], file: str, encoding: str
) -> dict[str, pa.ChunkedArray]:
    """Read some keys of a JSON lines file as text; a key that a line lacks is missing there.

    Raises
    ------
    DataError
        When a line is no JSON object, a value is a list or an object, or no line has the key.
    """
    utf8 = to_utf8(content, file, encoding).removeprefix(b"\xef\xbb\xbf")
    frame = _fast(utf8, wanted)
    if frame is None:
        frame = _slow(utf8, wanted, file)
    empty = [column for column in wanted if frame[column].null_count() == frame.height]
    if empty:
        check_columns([*_keys(utf8, file)], empty, file)
    return {column: pa.chunked_array([frame[column].to_arrow()]) for column in wanted}


def _fast(utf8: bytes, wanted: tuple[str, ...]) -> pl.DataFrame | None:
    """Parse with polars; None where a line is malformed or a value may be nested."""
    try:
        frame = pl.read_ndjson(io.BytesIO(utf8), schema=dict.fromkeys(wanted, pl.String))
    except pl.exceptions.PolarsError:
        return None
    nested = frame.select(pl.any_horizontal(pl.all().str.contains(r"^[\[{]|\x00").any())).item()
    return None if nested else frame


def _slow(utf8: bytes, wanted: tuple[str, ...], file: str) -> pl.DataFrame:
    """Parse line by line, which is slow and knows the line of every problem."""
    columns: dict[str, list[str | None]] = {column: [] for column in wanted}
    for row, record in _records(utf8, file):
        for column, cells in columns.items():
            cells.append(_text(record.get(column), file, column, row))
    return pl.DataFrame(columns, schema=dict.fromkeys(wanted, pl.String))


def _records(utf8: bytes, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = (line for line in utf8.split(b"\n") if line.strip())
    for row, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise DataError(
                f"the line is no JSON object: {show(line.decode('utf-8'))}",
                file=file,
                row=row,
                expected='one object a line, such as {"id": "1", "prediction": "cat"}',
                fix="correct the line",
            )
        yield row, record


def _text(value: object, file: str, column: str, row: int) -> str | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
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


def _keys(utf8: bytes, file: str) -> dict[str, None]:
    return {key: None for _, record in _records(utf8, file) for key in record}
