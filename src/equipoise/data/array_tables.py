"""Columns of numbers and columns of vectors in Parquet, CSV and data frames."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import DataError
from equipoise.core.files import open_regular
from equipoise.data.array_files import FORMATS
from equipoise.data.arrays import ArraySource
from equipoise.data.csv_file import csv_names, read_csv
from equipoise.data.files import hash_file, read_whole, translated, unknown_extension
from equipoise.data.frames import FRAME, frame_names, list_columns, read_frame, read_lists
from equipoise.data.numbers import is_numbers, numbers_of, spells_numbers
from equipoise.data.parquet_file import open_parquet, read_parquet
from equipoise.data.problems import check_columns
from equipoise.data.vector_cells import Mask, is_list, stack

Columns = dict[str, pa.ChunkedArray]
ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class ColumnFile:
    """A table whose columns are read when they are asked for.

    Attributes
    ----------
    name : str
        The path as given, or what the data frame is for.
    names : tuple of str
        All columns.
    read : callable
        Takes names of columns and returns them as Arrow. A CSV is parsed at each call; of
        Parquet, only the columns asked for are read.
    vectors : tuple of str
        The columns whose cells are lists.
    stack : callable
        Takes the name of such a column; returns its vectors and which rows have none.
    digest : mapping
        "sha256" and "bytes"; empty for a data frame.
    kinds : mapping of str to pyarrow.DataType
        Types of the columns, where they are known before reading.
    """

    name: str
    names: tuple[str, ...]
    read: Callable[[tuple[str, ...]], Columns]
    vectors: tuple[str, ...]
    stack: Callable[[str], tuple[npt.NDArray[Any], Mask]]
    digest: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Return how errors name the table."""
        return self.name


def open_columns(source: ArraySource, role: str) -> ColumnFile:
    """Find the columns of a Parquet, CSV or data frame.

    Raises
    ------
    DataError
        When the file cannot be read, or its extension names no format.
    """
    if not isinstance(source.file, str | os.PathLike):
        return _open_frame(source.file, role)
    path = Path(source.file)
    extension = path.suffix.lower()
    if extension in (".parquet", ".pq"):
        return _open_parquet(path)
    if extension in (".csv", ".tsv"):
        tabs = extension == ".tsv" and source.delimiter == ","
        return _open_csv(path, source.encoding, "\t" if tabs else source.delimiter)
    with translated(path, FORMATS), open_regular(path):
        raise unknown_extension(path, FORMATS)


def _open_frame(frame: Any, role: str) -> ColumnFile:
    name = f"{role}{FRAME}"

    def read(wanted: tuple[str, ...]) -> Columns:
        return read_frame(frame, wanted, name)

    def vectors(column: str) -> tuple[npt.NDArray[Any], Mask]:
        cells = read_lists(frame, column, role)
        return stack(cells.chunks, len(cells), name, column)

    return ColumnFile(name, frame_names(frame, role), read, list_columns(frame, role), vectors)


def _may_have_gaps(metadata: pq.FileMetaData, column: str) -> bool:
    """Whether a column may have cells without a value, by what the file tells of itself."""
    for group in range(metadata.num_row_groups):
        chunks = metadata.row_group(group)
        for place in range(chunks.num_columns):
            chunk = chunks.column(place)
            if chunk.path_in_schema.startswith(f"{column}."):
                told = chunk.statistics
                if told is None or not told.has_null_count or told.null_count:
                    return True
    return False


def _open_parquet(path: Path) -> ColumnFile:
    digest, name = hash_file(path, FORMATS), str(path)
    with open_parquet(path, name) as parquet:
        schema = parquet.schema_arrow

    def read(wanted: tuple[str, ...]) -> Columns:
        return read_parquet(path, wanted, name)

    def vectors(column: str) -> tuple[npt.NDArray[Any], Mask]:
        check_columns(schema.names, (column,), name)
        with open_parquet(path, name) as parquet:
            gaps = _may_have_gaps(parquet.metadata, column)
        # Lists of no fixed size take more memory to read.
        with open_parquet(path, name, stored_types=gaps) as parquet:
            parts = parquet.iter_batches(ROWS_AT_ONCE, columns=[column])
            found = stack(map(_checked, parts), parquet.metadata.num_rows, name, column)
        # What decoding took would be kept for the next table.
        pa.default_memory_pool().release_unused()
        return found

    kinds = dict(zip(schema.names, schema.types, strict=True))
    lists = tuple(column for column, kind in kinds.items() if is_list(kind))
    return ColumnFile(name, tuple(schema.names), read, lists, vectors, digest, kinds)


def _checked(part: pa.RecordBatch) -> pa.Array:
    """Return the one column of a batch; damaged pages can hold lists that overlap."""
    part.validate(full=True)
    return part.column(0)


def _open_csv(path: Path, encoding: str, delimiter: str) -> ColumnFile:
    content, name = read_whole(path, FORMATS), str(path)
    digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}

    def read(wanted: tuple[str, ...]) -> Columns:
        return read_csv(content, wanted, name, encoding, delimiter)

    def vectors(column: str) -> tuple[npt.NDArray[Any], Mask]:
        raise DataError(
            "cells of a CSV hold no vectors",
            file=name,
            column=column,
            expected="a column per dimension",
            fix="list them as `columns:`, or save the vectors as Parquet or .npy",
        )

    names = csv_names(content, name, encoding, delimiter)
    return ColumnFile(name, names, read, (), vectors, digest)


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """The columns of numbers of a table.

    Attributes
    ----------
    table : ColumnFile
    chosen : mapping of str to str
        Name to column.
    missing : tuple of str
    held : mapping of str to ndarray
        By column, of tables that are parsed whole.
    left_out : tuple of str
        Columns of text or lists that nobody asked for.
    """

    table: ColumnFile
    chosen: Mapping[str, str]
    missing: tuple[str, ...]
    held: Mapping[str, npt.NDArray[Any]]
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: ColumnFile, source: ArraySource, besides: Iterable[str]) -> NumberColumns:
        """Choose the columns: those asked for, or all of numbers `besides` the ids.

        Raises
        ------
        DataError
            When a column is missing, or a cell of one asked for is not a number.
        """
        everything = {name: name for name in table.names if name not in {*besides}}
        chosen = everything if source.chosen is None else source.chosen
        check_columns(table.names, chosen.values(), table.name)
        left = set(table.vectors).intersection(everything) if chosen is everything else set()
        cells: Columns = {}
        if not table.kinds:
            cells = table.read(tuple(c for c in dict.fromkeys(chosen.values()) if c not in left))
        if chosen is everything:
            left |= {
                name
                for name in chosen
                if name not in left and not _is_one(table, name, cells, source)
            }
        kept = {name: column for name, column in chosen.items() if column not in left}
        if not kept:
            raise _no_numbers(table)
        held = {
            column: numbers_of(cells[column], table.name, column, source.missing)
            for column in dict.fromkeys(kept.values())
            if column in cells
        }
        return cls(table, kept, source.missing, held, tuple(sorted(left)))

    def column(self, name: str) -> npt.NDArray[Any]:
        """Return one column in its stored float type, shape (rows,)."""
        column = self.chosen[name]
        if column in self.held:
            return self.held[column]
        cells = self.table.read((column,))[column]
        return numbers_of(cells, self.table.name, column, self.missing)

    def stacked(self) -> tuple[npt.NDArray[Any], Mask]:
        """Return all columns beside each other, and which rows are empty in all of them."""
        columns = [self.column(name) for name in self.chosen]
        values = np.empty((len(columns[0]), len(columns)), np.result_type(*columns))
        for place, column in enumerate(columns):
            values[:, place] = column
        return values, np.logical_and.reduce(np.isnan(values), axis=1)


def _is_one(table: ColumnFile, name: str, cells: Columns, source: ArraySource) -> bool:
    """Whether a column that nobody named is one of numbers."""
    if name in cells:
        return spells_numbers(cells[name], source.missing)
    return is_numbers(table.kinds[name])


def _no_numbers(table: ColumnFile) -> DataError:
    lists = "give `column:` with the one of lists, and `names:`; or " if table.vectors else ""
    return DataError(
        "there is no column of numbers",
        file=table.name,
        expected="a column of numbers beside the ids",
        fix=f"{lists}name the columns as `columns:`",
    )
