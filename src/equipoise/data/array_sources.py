"""Arrays, tables of numbers and live outputs as sources of rows, matched with items."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

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
from equipoise.data.join import (
    EXAMPLES,
    Positions,
    check_ids,
    check_matches,
    check_share,
    match,
)
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.data.problems import check_columns
from equipoise.data.tables import (
    FRAME,
    cell_text,
    csv_names,
    frame_names,
    is_frame,
    list_columns,
    open_parquet,
    read_csv,
    read_frame,
    read_lists,
    read_parquet,
    read_table,
)

Columns = dict[str, pa.ChunkedArray]
Array = npt.NDArray[Any]
ROWS_AT_ONCE = 1 << 14
BLOCK_BYTES = 1 << 24
ID_FORMATS = ".txt, .csv, .tsv, .parquet, .pq, .jsonl, .ndjson or .npy"
_ALONE = ("have no item in", "have no row in")
_NOT_OF_ARRAYS = {
    "id": "an array has no column of ids: give `ids:`",
    "column": "an array has no columns with names",
}


@dataclass(frozen=True, eq=False)
class RowIds:
    """Ids of the rows of a source.

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
    inputs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _no_vectors(column: str) -> tuple[Array, Mask]:
    raise KeyError(column)


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened source: a two-dimensional array, or a table whose columns are read on demand.

    Attributes
    ----------
    source : ArraySource or Outputs
    name : str
        The path as given, or what the array or data frame is for.
    place : str
        How errors name it.
    digest : mapping
        "sha256" and "bytes"; empty for a data frame.
    values : ndarray, shape (rows, columns), or None
        Of an array, mapped into memory where possible.
    arrays : ArrayFile or None
    names, vectors : tuple of str
        All columns of a table, and those whose cells are lists.
    kinds : mapping of str to pyarrow.DataType
        Types of the columns, where they are known before reading.
    read : callable
        Takes names of columns and returns them as Arrow. A CSV is parsed at each call; of
        Parquet, only the columns asked for are read.
    stack : callable
        Takes the name of a column of lists; returns its vectors and which rows have none.
    """

    source: ArraySource | Outputs
    name: str
    place: str
    digest: Mapping[str, Any] = field(default_factory=dict)
    values: Array | None = None
    arrays: ArrayFile | None = None
    names: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    kinds: Mapping[str, pa.DataType] = field(default_factory=dict)
    read: Callable[[tuple[str, ...]], Columns] = field(default=lambda _: {})
    stack: Callable[[str], tuple[Array, Mask]] = field(default=_no_vectors)

    @property
    def given(self) -> ArraySource:
        """What the user gave, with options; none for live outputs."""
        return ArraySource(None) if isinstance(self.source, Outputs) else self.source

    @property
    def live(self) -> bool:
        """Whether equipoise ran the model that the numbers are from."""
        return isinstance(self.source, Outputs) and self.source.live

    def join(
        self,
        items: Items,
        absent: Mask,
        columns: Iterable[tuple[str, Array]],
        max_unmatched: float,
    ) -> tuple[Positions, dict[str, Any], Mapping[str, Mapping[str, Any]]]:
        """Match the rows with items.

        Parameters
        ----------
        items : Items
        absent : ndarray of bool, shape (rows,)
            Rows that are empty, so that their items have none.
        columns : iterable of (name, ndarray)
            What was read; hashed for a data frame.
        max_unmatched : float in [0, 1]

        Returns
        -------
        rows : ndarray of int64
            Row of each item, -1 where it has none.
        counts, inputs : mapping
        """
        if not 0 <= max_unmatched <= 1:
            raise InputError(f"max_unmatched is {max_unmatched}; expected a share from 0 to 1")
        if len(absent) == 0:
            raise DataError(
                "there are no rows of data",
                file=self.place,
                expected="at least one row of data",
                fix="check that the table was written completely",
            )
        ids = self._ids(items)
        rows, alone = (
            (self._by_order(items, absent, max_unmatched), [])
            if ids is None
            else self._by_id(items, ids, absent, max_unmatched)
        )
        without = items.ids[rows < 0].tolist()
        counts = {
            "rows": len(absent),
            "empty": int(absent.sum()),
            "matched": int((rows >= 0).sum()),
            "items_without_row": len(without),
            "items_without_row_examples": sorted(without)[:EXAMPLES],
            "rows_without_item": len(alone),
            "rows_without_item_examples": alone[:EXAMPLES],
        }
        if isinstance(self.source, Outputs):
            return rows, counts, self.source.inputs
        digest = self.digest or _digest_of(ids, columns)
        inputs = {self.name: {**digest, "rows": len(absent)}, **(ids.inputs if ids else {})}
        return rows, counts, inputs

    def _ids(self, items: Items) -> RowIds | None:
        """Return the ids of the rows, or None where rows follow the items.

        A table that has a column named as the items' ids is matched by it.
        """
        if isinstance(self.source, Outputs):
            return RowIds(self.source.ids, self.source.source, self.source.inputs)
        if self.source.ids is not None:
            return self._declared_ids(self.source)
        name = self.source.id or (items.id if items.id in self.names else None)
        if name is None or self.values is not None:
            return None
        check_columns(self.names, (name,), self.name)
        return RowIds(as_text(self.read((name,))[name], self.name, name), self.name)

    def _declared_ids(self, source: ArraySource) -> RowIds:
        ids, arrays = source.ids, self.arrays
        if not isinstance(ids, str | os.PathLike):
            place = f"ids of {self.name}"
            return RowIds(_id_texts(np.asarray(ids), place), place)
        if arrays is not None and str(ids) in arrays.headers:
            place = arrays.place(str(ids))
            return RowIds(_id_texts(arrays.read(str(ids)), place), place)
        if arrays is not None and arrays.several and not Path(ids).suffix:
            raise arrays.no_array(str(ids))
        return _ids_in_file(Path(ids), source.encoding, source.delimiter)

    def _by_order(self, items: Items, absent: Mask, limit: float) -> Positions:
        if len(absent) != len(items):
            raise DataError(
                f"there are {len(absent)} rows and no ids, and {items.name} has {len(items)} items",
                file=self.place,
                expected="a row per item in the order of the items, or ids",
                fix="give `id:` with the column of ids"
                if self.values is None
                else "give `ids:` (a file of ids, or the name of an array of ids in the same file)",
            )
        texts = pl.Series(items.id, items.ids, dtype=pl.String)
        check_share(texts, absent, items.name, f"{_ALONE[1]} {self.place}", limit)
        return np.where(absent, -1, np.arange(len(items), dtype=np.int64))

    def _by_id(
        self, items: Items, ids: RowIds, absent: Mask, limit: float
    ) -> tuple[Positions, list[str]]:
        if len(ids.texts) != len(absent):
            raise DataError(
                f"there are {len(ids.texts)} ids for the {len(absent)} rows of {self.place}",
                file=ids.file,
                expected="an id per row",
                fix="save the ids of the same run",
            )
        check_ids(ids.texts, ids.file, fix="remove the repeated rows")
        known, present = pl.Series(items.id, items.ids, dtype=pl.String), np.flatnonzero(~absent)
        texts = ids.texts.gather(present)
        positions = match(texts, known)
        # Images that a live model failed on aren't unmatched.
        failed = frozenset(self.source.failed) if isinstance(self.source, Outputs) else frozenset()
        check_matches(
            (known, items.name), (texts, ids.file), positions, limit, alone=_ALONE, failed=failed
        )
        rows = np.full(len(items), -1, dtype=np.int64)
        rows[positions[positions >= 0]] = present[positions >= 0]
        return rows, texts.filter(pl.Series(positions < 0)).sort().to_list()


def open_source(source: ArraySource | Outputs, what: str) -> Opened:
    """Open a file, array, data frame or the numbers of a live model.

    Raises
    ------
    DataError
        When it cannot be read, or holds no two-dimensional array of numbers.
    """
    if isinstance(source, Outputs):
        return Opened(source, source.source, source.source, values=source.numbers)
    file = source.file
    if not isinstance(file, str | os.PathLike):
        opened = _open_frame(source, what) if is_frame(file) else _open_array(source, what)
    elif Path(file).suffix.lower() in EXTENSIONS:
        arrays = ArrayFile.open(Path(file))
        name = arrays.named(source.array)
        place = arrays.place(name)
        values = _two_dimensional(arrays.read(name), place)
        opened = Opened(source, str(Path(file)), place, arrays.digest, values, arrays)
    else:
        opened = _open_table(source, Path(file))
    _check_options(source, opened)
    return opened


def _check_options(source: ArraySource, opened: Opened) -> None:
    """Raise on an option that cannot apply, which would otherwise be passed over."""
    wrong: dict[str, str] = {}
    if source.array is not None and not (opened.arrays and opened.arrays.several):
        wrong["array"] = "only an .npz or .safetensors has arrays with names"
    if opened.values is not None:
        wrong |= {k: why for k, why in _NOT_OF_ARRAYS.items() if getattr(source, k) is not None}
    elif source.names and source.column is None:
        wrong["names"] = "the columns of a table have names"
    for option, reason in wrong.items():
        raise DataError(
            f"`{option}:` does not apply: {reason}", file=opened.name, fix=f"take `{option}:` out"
        )


def _open_array(source: ArraySource, what: str) -> Opened:
    given, place = source.file, f"{what} (array)"
    problem = f"{type(given).__name__} is no array of numbers"
    fix = "pass np.asarray(..., np.float32)"
    values = None
    if isinstance(given, np.ma.MaskedArray):
        problem, fix = "the array is masked", "fill it: values.filled(np.nan)"
    elif hasattr(given, "__array__"):
        try:
            values = np.asarray(given)
        except (TypeError, ValueError, RuntimeError) as error:
            problem += f" ({error})"
    if values is None or values.dtype.hasobject:
        raise DataError(problem, file=place, expected="a path, an array or a data frame", fix=fix)
    return Opened(source, place, place, hash_array(values), _two_dimensional(values, place))


def _two_dimensional(values: Array, place: str) -> Array:
    if values.ndim == 2 and 0 not in values.shape:
        return values
    raise DataError(
        f"the array has the shape {values.shape}",
        file=place,
        expected="two dimensions, with at least one row and one column",
        fix="average or select over the other dimensions before saving"
        if values.ndim > 2
        else "save an array with a row per item, written completely",
    )


def _open_frame(source: ArraySource, role: str) -> Opened:
    frame, name = source.file, f"{role}{FRAME}"

    def vectors(column: str) -> tuple[Array, Mask]:
        cells = read_lists(frame, column, role)
        return stack(cells.chunks, len(cells), name, column)

    return Opened(
        source,
        name,
        name,
        names=frame_names(frame, role),
        vectors=list_columns(frame, role),
        read=lambda wanted: read_frame(frame, wanted, name),
        stack=vectors,
    )


def _open_table(source: ArraySource, path: Path) -> Opened:
    extension = path.suffix.lower()
    if extension in (".parquet", ".pq"):
        return _open_parquet(source, path)
    if extension not in (".csv", ".tsv"):
        with translated(path, FORMATS), open_regular(path):
            raise unknown_extension(path, FORMATS)
    content, name = read_whole(path, FORMATS), str(path)
    delimiter = "\t" if extension == ".tsv" and source.delimiter == "," else source.delimiter

    def vectors(column: str) -> tuple[Array, Mask]:
        raise DataError(
            "cells of a CSV hold no vectors",
            file=name,
            column=column,
            expected="a column per dimension",
            fix="list them as `columns:`, or save the vectors as Parquet or .npy",
        )

    return Opened(
        source,
        name,
        name,
        {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)},
        names=csv_names(content, name, source.encoding, delimiter),
        read=lambda wanted: read_csv(content, wanted, name, source.encoding, delimiter),
        stack=vectors,
    )


def _open_parquet(source: ArraySource, path: Path) -> Opened:
    digest, name = hash_file(path, FORMATS), str(path)
    with open_parquet(path, name) as parquet:
        schema = parquet.schema_arrow

    def vectors(column: str) -> tuple[Array, Mask]:
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
    return Opened(
        source,
        name,
        name,
        digest,
        names=tuple(schema.names),
        vectors=tuple(column for column, kind in kinds.items() if is_list(kind)),
        kinds=kinds,
        read=lambda wanted: read_parquet(path, wanted, name),
        stack=vectors,
    )


def _may_have_gaps(metadata: pq.FileMetaData, column: str) -> bool:
    """Whether a column may have cells without a value, by what the file tells of itself."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema.startswith(f"{column}."):
                told = chunk.statistics
                if told is None or not told.has_null_count or told.null_count:
                    return True
    return False


def _valid_column(part: pa.RecordBatch) -> pa.Array:
    """Return the one column of a batch; damaged pages can hold lists that overlap."""
    part.validate(full=True)
    return part.column(0)


def hash_array(values: Array) -> dict[str, Any]:
    """Hash an array in blocks of rows; equal arrays hash equally whatever their strides."""
    hashed = hashlib.sha256(f"{values.dtype.str}\0{values.shape}\0".encode())
    step = max(1, BLOCK_BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        hashed.update(np.ascontiguousarray(values[start : start + step]).data)
    return {"sha256": hashed.hexdigest(), "bytes": values.nbytes}


def _digest_of(ids: RowIds | None, columns: Iterable[tuple[str, Array]]) -> dict[str, Any]:
    """Hash what was read of a data frame."""
    hashed, size = hashlib.sha256(), 0
    for name, values in columns:
        part = hash_array(values)
        hashed.update(f"{name}\0{part['sha256']}\0".encode())
        size += part["bytes"]
    texts = "" if ids is None else "\0".join(ids.texts.fill_null("").to_list())
    hashed.update(texts.encode())
    return {"sha256": hashed.hexdigest(), "bytes": size + len(texts.encode())}


def _ids_in_file(path: Path, encoding: str, delimiter: str) -> RowIds:
    """Return ids that have a file of their own.

    Raises
    ------
    DataError
        When the file cannot be read, or has no column `id`.
    """
    name, extension = str(path), path.suffix.lower()
    if extension == ".npy":
        arrays = ArrayFile.open(path)
        texts = _id_texts(arrays.read(""), name)
        return RowIds(texts, name, {name: {**arrays.digest, "rows": len(texts)}})
    if extension == ".txt":
        content = read_whole(path, ID_FORMATS, "an id a line")
        text = to_utf8(content, name, encoding, header=False).decode("utf-8-sig")
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        digest = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        return RowIds(pl.Series("", lines), name, {name: {**digest, "rows": len(lines)}})
    if extension not in ID_FORMATS.replace(" or", ",").split(", "):
        raise unknown_extension(path, ID_FORMATS)
    table = read_table(path, texts=("id",), encoding=encoding, delimiter=delimiter)
    return RowIds(table.texts["id"], name, {name: table.digest})


def _id_texts(values: Array, place: str) -> pl.Series:
    if values.ndim != 1 or values.dtype.kind not in "USOiuf":
        raise DataError(
            f"the ids have shape {values.shape} and type {values.dtype}",
            file=place,
            expected="one text or whole number per row",
            fix="save the ids as a one-dimensional array of text",
        )
    if values.dtype.kind not in "SUO":
        native = values.astype(values.dtype.newbyteorder("="))
        return as_text(pa.chunked_array([pa.array(native)]), place, "")
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


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """The columns of numbers of a table.

    Attributes
    ----------
    table : Opened
    chosen : mapping of str to str
        Name to column.
    held : mapping of str to ndarray
        By column, of tables that are parsed whole.
    left_out : tuple of str
        Columns of text or lists that nobody asked for.
    """

    table: Opened
    chosen: Mapping[str, str]
    held: Mapping[str, Array] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Opened, items: Items) -> NumberColumns:
        """Choose the columns: those asked for, or all of numbers beside the ids.

        Raises
        ------
        DataError
            When a column is missing, or a cell of one asked for is not a number.
        """
        source, left = table.given, set()
        chosen = source.chosen
        if chosen is None:
            chosen = {n: n for n in table.names if n != (source.id or items.id)}
            left = {*table.vectors} & {*chosen}
        check_columns(table.names, chosen.values(), table.name)
        wanted = tuple(c for c in dict.fromkeys(chosen.values()) if c not in left)
        cells = {} if table.kinds else table.read(wanted)
        if source.chosen is None:
            left |= {
                name
                for name in wanted
                if not (
                    spells_numbers(cells[name], source.missing)
                    if name in cells
                    else is_numbers(table.kinds[name])
                )
            }
        kept = {name: column for name, column in chosen.items() if column not in left}
        if not kept:
            lists = "give `column:` with the one of lists, and `names:`; or " * bool(table.vectors)
            raise DataError(
                "there is no column of numbers",
                file=table.name,
                expected="a column of numbers beside the ids",
                fix=f"{lists}name the columns as `columns:`",
            )
        columns = cls(table, kept, left_out=tuple(sorted(left)))
        held = {c: columns.numbers(cells[c], c) for c in {*kept.values()} if c in cells}
        return replace(columns, held=held)

    def numbers(self, cells: pa.ChunkedArray, column: str) -> Array:
        """Return cells in their stored float type, shape (rows,)."""
        return numbers_of(cells, self.table.name, column, self.table.given.missing)

    def column(self, name: str) -> Array:
        """Return one column in its stored float type, shape (rows,)."""
        column = self.chosen[name]
        if column in self.held:
            return self.held[column]
        return self.numbers(self.table.read((column,))[column], column)

    def stacked(self) -> tuple[Array, Mask]:
        """Return all columns beside each other, and which rows are empty in all of them."""
        columns = [self.column(name) for name in self.chosen]
        values = np.empty((len(columns[0]), len(columns)), np.result_type(*columns))
        for place, column in enumerate(columns):
            values[:, place] = column
        return values, np.logical_and.reduce(np.isnan(values), axis=1)
