"""Arrays, tables of numbers and live outputs as sources of rows, matched with items."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import DataError, InputError
from equipoise.core.files import open_regular
from equipoise.data.arrays import EXTENSIONS, FORMATS, ArrayFile, ArraySource
from equipoise.data.cells import (
    Mask,
    as_text,
    is_list,
    is_numbers,
    numbers_of,
    spells_numbers,
    stack,
)
from equipoise.data.files import hash_file, read_whole, to_utf8, translated, unknown_extension
from equipoise.data.frames import (
    FRAME,
    cell_text,
    frame_names,
    is_frame,
    list_columns,
    read_frame,
    read_lists,
)
from equipoise.data.join import EXAMPLES, Positions, check_ids, check_matches, check_share, match
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.data.problems import check_columns
from equipoise.data.tables import csv_names, open_parquet, read_csv, read_parquet, read_table

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
            found = stack(map(_valid_column, parts), parquet.metadata.num_rows, name, column)
        # What decoding took would be kept for the next table.
        pa.default_memory_pool().release_unused()
        return found

    kinds = dict(zip(schema.names, schema.types, strict=True))
    lists = tuple(column for column, kind in kinds.items() if is_list(kind))
    return ColumnFile(name, tuple(schema.names), read, lists, vectors, digest, kinds)


def _valid_column(part: pa.RecordBatch) -> pa.Array:
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


ID_FORMATS = ".txt, .csv, .tsv, .parquet, .pq, .jsonl, .ndjson or .npy"
ALONE = ("have no item in", "have no row in")


@dataclass(frozen=True, eq=False)
class RowIds:
    """Ids of the rows of a matrix.

    Attributes
    ----------
    texts : polars.Series
        Named as their column, or "" where there is none.
    file : str
        Where they are.
    inputs : mapping
        Of the file, where it is one of its own.
    """

    texts: pl.Series
    file: str
    inputs: Mapping[str, Mapping[str, Any]]


def ids_in_memory(values: Any, place: str) -> RowIds:
    """Return ids that are given as a sequence or array."""
    return RowIds(_texts(np.asarray(values), place), place, {})


def ids_in_array(arrays: ArrayFile, name: str) -> RowIds:
    """Return ids that are an array of a file of arrays."""
    place = arrays.place(name)
    return RowIds(_texts(arrays.read(name), place), place, {})


def ids_in_file(path: Path, encoding: str, delimiter: str) -> RowIds:
    """Return ids that have a file of their own.

    Raises
    ------
    DataError
        When the file cannot be read, or has no column `id`.
    """
    name, extension = str(path), path.suffix.lower()
    if extension == ".npy":
        arrays = ArrayFile.open(path)
        ids = ids_in_array(arrays, "")
        return RowIds(ids.texts, name, {name: {**arrays.digest, "rows": len(ids.texts)}})
    if extension == ".txt":
        return _lines(path, encoding)
    if extension not in ID_FORMATS.replace(" or", ",").split(", "):
        raise unknown_extension(path, ID_FORMATS)
    table = read_table(path, texts=("id",), encoding=encoding, delimiter=delimiter)
    return RowIds(table.texts["id"], name, {name: table.digest})


def _lines(path: Path, encoding: str) -> RowIds:
    content = read_whole(path, ID_FORMATS, "an id a line")
    text = (
        to_utf8(content, str(path), encoding, header=False).decode("utf-8").removeprefix("\ufeff")
    )
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    digest = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "rows": len(lines),
    }
    return RowIds(pl.Series("", lines), str(path), {str(path): digest})


def _texts(values: npt.NDArray[Any], place: str) -> pl.Series:
    if values.ndim != 1 or values.dtype.kind not in "USOiuf":
        raise DataError(
            f"the ids have shape {values.shape} and type {values.dtype}",
            file=place,
            expected="one text or whole number per row",
            fix="save the ids as a one-dimensional array of text",
        )
    if values.dtype.kind in "SUO":
        return _texts_of(values, place)
    native = values.astype(values.dtype.newbyteorder("="))
    return as_text(pa.chunked_array([pa.array(native)]), place, "")


def _texts_of(values: npt.NDArray[Any], place: str) -> pl.Series:
    try:
        cells = (np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values).tolist()
    except ValueError:
        raise DataError(
            "the ids are not utf-8",
            file=place,
            expected="text",
            fix="save the ids as text: np.asarray(ids, dtype=str)",
        ) from None
    texts = [cell_text(cell, place, None, row) for row, cell in enumerate(cells, 1)]
    return pl.Series("", texts, dtype=pl.String)


def align(
    items: Items,
    ids: RowIds | None,
    absent: npt.NDArray[np.bool_],
    *,
    place: str,
    fix: str,
    max_unmatched: float,
    failed: frozenset[str] = frozenset(),
) -> tuple[Positions, dict[str, Any]]:
    """Return the row of each item, -1 where it has none, and what was counted.

    Parameters
    ----------
    items : Items
    ids : RowIds or None
        Of all rows; None: rows follow the items.
    absent : ndarray of bool, shape (rows,)
        Rows that are empty, so that their items have none.
    place : str
        How errors name the matrix.
    fix : str
        How to give ids to it.
    max_unmatched : float in [0, 1]
    failed : frozenset of str
        Ids of the items that a live model failed on: they aren't unmatched.
    """
    if not 0 <= max_unmatched <= 1:
        raise InputError(f"max_unmatched is {max_unmatched}; expected a share from 0 to 1")
    if len(absent) == 0:
        raise DataError(
            "there are no rows of data",
            file=place,
            expected="at least one row of data",
            fix="check that the table was written completely",
        )
    item_ids = pl.Series(items.id, items.ids, dtype=pl.String)
    alone: list[str] = []
    if ids is None:
        rows = _by_order(items, absent, place, fix)
        check_share(item_ids, rows < 0, items.name, f"{ALONE[1]} {place}", max_unmatched)
    else:
        _check_length(ids, len(absent), place)
        check_ids(ids.texts, ids.file, fix="remove the repeated rows")
        present = np.flatnonzero(~absent)
        texts = ids.texts.gather(present)
        positions = match(texts, item_ids)
        check_matches(
            (item_ids, items.name), (texts, ids.file), positions, max_unmatched, alone=ALONE,
            failed=failed,
        )  # fmt: skip
        rows = np.full(len(items), -1, dtype=np.int64)
        rows[positions[positions >= 0]] = present[positions >= 0]
        alone = texts.filter(pl.Series(positions < 0)).sort().to_list()
    without = items.ids[rows < 0].tolist()
    return rows, {
        "rows": len(absent),
        "empty": int(absent.sum()),
        "matched": int((rows >= 0).sum()),
        "items_without_row": len(without),
        "items_without_row_examples": sorted(without)[:EXAMPLES],
        "rows_without_item": len(alone),
        "rows_without_item_examples": alone[:EXAMPLES],
    }


def _by_order(items: Items, absent: npt.NDArray[np.bool_], place: str, fix: str) -> Positions:
    if len(absent) != len(items):
        raise DataError(
            f"there are {len(absent)} rows and no ids, and {items.name} has {len(items)} items",
            file=place,
            expected="a row per item in the order of the items, or ids",
            fix=fix,
        )
    return np.where(absent, -1, np.arange(len(items), dtype=np.int64))


def _check_length(ids: RowIds, rows: int, place: str) -> None:
    if len(ids.texts) != rows:
        raise DataError(
            f"there are {len(ids.texts)} ids for the {rows} rows of {place}",
            file=ids.file,
            expected="an id per row",
            fix="save the ids of the same run",
        )


BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class Grid:
    """A two-dimensional array with a row per item.

    Attributes
    ----------
    name : str
        The path as given, or what the array is for.
    place : str
        How errors name it.
    values : ndarray, shape (rows, columns)
        Mapped into memory where possible.
    digest : mapping
        "sha256" and "bytes".
    arrays : ArrayFile or None
    """

    name: str
    place: str
    values: npt.NDArray[Any]
    digest: Mapping[str, Any]
    arrays: ArrayFile | None = None

    @property
    def several(self) -> bool:
        """Whether the file can hold more arrays, which have names."""
        return self.arrays is not None and self.arrays.several


def open_source(source: ArraySource | Outputs, what: str) -> Grid | ColumnFile:
    """Open a file, array, data frame or the numbers of a live model.

    Raises
    ------
    DataError
        When it cannot be read, or holds no two-dimensional array of numbers.
    """
    if isinstance(source, Outputs):
        return Grid(source.source, source.source, source.numbers, {})
    if isinstance(source.file, str | os.PathLike):
        path = Path(source.file)
        is_array = path.suffix.lower() in EXTENSIONS
        opened = _grid_in_file(path, source.array) if is_array else open_columns(source, what)
    elif is_frame(source.file):
        opened = open_columns(source, what)
    else:
        opened = _grid_in_memory(source.file, what)
    _check_options(source, opened)
    return opened


def _check_options(source: ArraySource, opened: Grid | ColumnFile) -> None:
    """Raise on an option that cannot apply, which would otherwise be passed over."""
    grid = isinstance(opened, Grid)
    name, several = opened.name, isinstance(opened, Grid) and opened.several
    wrong = {
        "array": source.array is not None and not several,
        "id": source.id is not None and grid,
        "column": source.column is not None and grid,
        "names": bool(source.names) and not grid and source.column is None,
    }
    reasons = {
        "array": "only an .npz or .safetensors has arrays with names",
        "id": "an array has no column of ids: give `ids:`",
        "column": "an array has no columns with names",
        "names": "the columns of a table have names",
    }
    for option in (option for option, given in wrong.items() if given):
        raise DataError(
            f"`{option}:` does not apply: {reasons[option]}",
            file=name,
            fix=f"take `{option}:` out",
        )


def _grid_in_file(path: Path, array: str | None) -> Grid:
    arrays = ArrayFile.open(path)
    name = arrays.named(array)
    place = arrays.place(name)
    return Grid(str(path), place, _checked(arrays.read(name), place), arrays.digest, arrays)


def _grid_in_memory(given: Any, what: str) -> Grid:
    place = f"{what} (array)"
    if isinstance(given, np.ma.MaskedArray):
        raise _no_array("the array is masked", place, "fill it: values.filled(np.nan)")
    if not hasattr(given, "__array__"):
        raise _no_array(f"{type(given).__name__} is no array of numbers", place)
    try:
        values = np.asarray(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise _no_array(f"{type(given).__name__} is no array of numbers ({error})", place) from None
    if values.dtype.hasobject:
        raise _no_array(f"{type(given).__name__} is no array of numbers", place)
    return Grid(place, place, _checked(values, place), hash_array(values))


def _no_array(problem: str, place: str, fix: str = "pass np.asarray(..., np.float32)") -> DataError:
    return DataError(problem, file=place, expected="a path, an array or a data frame", fix=fix)


def _checked(values: npt.NDArray[Any], place: str) -> npt.NDArray[Any]:
    if values.ndim != 2:
        raise DataError(
            f"the array has the shape {values.shape}",
            file=place,
            expected="two dimensions: a row per item",
            fix="average or select over the other dimensions before saving"
            if values.ndim > 2
            else "save an array with a row per item",
        )
    if 0 in values.shape:
        raise DataError(
            f"the array has the shape {values.shape}",
            file=place,
            expected="at least one row and one column",
            fix="check that it was written completely",
        )
    return values


def hash_array(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Hash an array in blocks of rows; equal arrays hash equally whatever their strides."""
    hashed = hashlib.sha256(f"{values.dtype.str}\0{values.shape}\0".encode())
    step = max(1, BLOCK_BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        hashed.update(np.ascontiguousarray(values[start : start + step]).data)
    return {"sha256": hashed.hexdigest(), "bytes": values.nbytes}


def inputs_of(
    opened: Grid | ColumnFile, ids: RowIds | None, columns: Iterable[tuple[str, npt.NDArray[Any]]]
) -> dict[str, Mapping[str, Any]]:
    """Return hash, bytes and rows of each file; of a data frame, those of what was read of it.

    Parameters
    ----------
    opened : Grid or ColumnFile
    ids : RowIds or None
    columns : iterable of (name, ndarray)
        What was read, of one or more columns each; looked at for a data frame only.
    """
    rows, digest = 0, dict(opened.digest)
    hashed, size = hashlib.sha256(), 0
    for name, values in columns:
        rows = len(values)
        if digest:
            break
        part = hash_array(values)
        hashed.update(f"{name}\0{part['sha256']}\0".encode())
        size += part["bytes"]
    if not digest:
        texts = "" if ids is None else "\0".join(ids.texts.fill_null("").to_list())
        hashed.update(texts.encode())
        digest = {"sha256": hashed.hexdigest(), "bytes": size + len(texts.encode())}
    return {opened.name: {**digest, "rows": rows}, **({} if ids is None else ids.inputs)}


def ids_of(source: ArraySource | Outputs, opened: Grid | ColumnFile, items: Items) -> RowIds | None:
    """Return the ids of the rows, or None where rows follow the items.

    A table that has a column named as the items' ids is matched by it.
    """
    if isinstance(source, Outputs):
        return RowIds(source.ids, source.source, source.inputs)
    if source.ids is not None:
        return _declared(source, opened)
    if isinstance(opened, Grid):
        return None
    name = source.id or (items.id if items.id in opened.names else None)
    if name is None:
        return None
    check_columns(opened.names, (name,), opened.name)
    texts = as_text(opened.read((name,))[name], opened.name, name)
    return RowIds(texts, opened.name, {})


def _declared(source: ArraySource, opened: Grid | ColumnFile) -> RowIds:
    ids = source.ids
    if not isinstance(ids, str | os.PathLike):
        return ids_in_memory(ids, f"ids of {opened.name}")
    arrays = opened.arrays if isinstance(opened, Grid) else None
    if arrays is not None and str(ids) in arrays.headers:
        return ids_in_array(arrays, str(ids))
    if arrays is not None and arrays.several and not Path(ids).suffix:
        raise arrays.no_array(str(ids))
    return ids_in_file(Path(ids), source.encoding, source.delimiter)


def is_live(source: ArraySource | Outputs) -> bool:
    """Return whether equipoise ran the model that a source is from."""
    return isinstance(source, Outputs) and source.live


def unmatched(source: ArraySource | Outputs, limit: float) -> UnmatchedLimit:
    """Return the limit of unmatched items of a source: images that a live model failed on aren't.

    Parameters
    ----------
    source : ArraySource or Outputs
    limit : float in [0, 1]
        Of a file.
    """
    if isinstance(source, Outputs):
        return {"max_unmatched": limit, "failed": frozenset(source.failed)}
    return {"max_unmatched": limit, "failed": frozenset()}


class UnmatchedLimit(TypedDict):
    """Arguments of `align`."""

    max_unmatched: float
    failed: frozenset[str]


def how_to_give_ids(opened: Grid | ColumnFile) -> str:
    """Return the advice for a matrix whose rows cannot follow the items."""
    if isinstance(opened, Grid):
        return "give `ids:` (a file of ids, or the name of an array of ids in the same file)"
    return "give `id:` with the column of ids"
