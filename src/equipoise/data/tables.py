"""One way in for every table: CSV, Parquet, JSON lines and data frames."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import DataError
from equipoise.data.cells import as_numbers, as_text
from equipoise.data.csv_file import read_csv
from equipoise.data.files import hash_file, read_whole, unknown_extension
from equipoise.data.frames import FRAME, read_frame
from equipoise.data.json_lines import read_json_lines
from equipoise.data.parquet_file import read_parquet

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
    columns = _parse(path, content, wanted, encoding, delimiter)
    return columns, {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


def _parse(
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
