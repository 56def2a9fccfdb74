"""Where arrays are: arrays, tables of numbers and live outputs, matched with items."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import AnyArray, Booleans, DataError, InputError, Integers
from equipoise.data.cells import as_text, is_numbers, numbers_of, spells_numbers
from equipoise.data.files import hash_file, read_text, unknown_extension
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.data.problems import (
    check_columns,
    check_ids,
    check_matches,
    check_share,
    listed,
    match,
    show,
)
from equipoise.data.sources import CsvOptions
from equipoise.data.tables import OpenTable, cell_text, is_frame, no_rows, open_table, read_table

FORMATS = ".npy, .npz, .safetensors, .parquet, .pq, .csv, .tsv, .jsonl or .ndjson"
EXTENSIONS = (".npy", ".npz", ".safetensors")
ID_FORMATS = ".txt, .csv, .tsv, .parquet, .pq, .jsonl, .ndjson or .npy"
BLOCK_BYTES = 1 << 24


@dataclass(frozen=True, eq=False)
class ArraySource(CsvOptions):
    """A matrix with one row per item: embeddings, scores, or labels 0 and 1.

    The options of a CSV hold for a file of ids, too.

    Attributes
    ----------
    file : path, array or data frame
        .npy, .npz, .safetensors, or any table that `read_table` reads; or a two-dimensional
        array; or any data frame.
    array : str or None
        Name of the array in an .npz or .safetensors; None: the only two-dimensional one.
    ids : str, path, sequence of ids, or None
        Ids of the rows: the name of an array in the same .npz or .safetensors; or a file of ids
        (.txt with one a line; .csv or .parquet with a column `id`; .npy); or the ids.
        None with `id` None: rows follow the table of items.
    id : str or None
        Column of the ids in a table or data frame.
    column : str or None
        Column whose cells are vectors (lists of floats), for embeddings.
    columns : mapping of str to str, tuple of str, or None
        Columns to use; a mapping gives them names. For arrays: a name out of `names`, or the
        number of the column from 0, as text. None: every column of numbers.
    names : tuple of str
        Names of all columns of an array without names.

    Raises
    ------
    InputError
        When two options contradict each other, or a name repeats.
    """

    file: Path | Any
    array: str | None = None
    ids: str | Path | Sequence[Any] | Any | None = None
    id: str | None = None
    column: str | None = None
    columns: Mapping[str, str] | tuple[str, ...] | None = None
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.id is not None and self.ids is not None:
            raise InputError("id and ids both say where the ids are; give one of them")
        if self.column is not None and self.columns is not None:
            raise InputError("column names one column of vectors, columns many; give one of them")
        for option in ("names", "columns"):
            given = [*(getattr(self, option) or ())]
            twice = sorted({name for name in given if given.count(name) > 1})
            if twice:
                raise InputError(f"{option} has {listed(twice)} more than once")

    @property
    def chosen(self) -> Mapping[str, str] | None:
        """Name to column, or None where every column is used."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return self.columns
        return {name: name for name in self.columns}


@dataclass(frozen=True)
class ArrayFile:
    """A file of arrays: its values are read on demand.

    Attributes
    ----------
    path : Path
    names : tuple of str
        Of the arrays; none in an .npy, which holds a single one.
    digest : mapping
        "sha256" and "bytes".
    """

    path: Path
    names: tuple[str, ...]
    digest: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> ArrayFile:
        """Read which arrays there are.

        Raises
        ------
        DataError
            When the file is missing, empty, damaged or not what its extension says.
        """
        digest = hash_file(path, FORMATS, "an array with a row per item")
        with _arrays_in(path, str(path)) as (names, _):
            return cls(path, tuple(names), digest)

    def place(self, name: str) -> str:
        """Return how errors name one of the arrays."""
        return f"{self.path}, array {name!r}" if name else str(self.path)

    def named(self, name: str | None) -> str:
        """Return a name of an array; for None that of the only two-dimensional one.

        Raises
        ------
        DataError
            When there is no such array, or several might be meant.
        """
        if not self.names or name in self.names:
            return name or ""
        flat = [] if name else [one for one in self.names if self.read(one).ndim == 2]
        if len(flat) == 1:
            return flat[0]
        raise DataError(
            f"the file holds {listed(self.names) or 'no arrays'}",
            file=str(self.path),
            expected=f"an array {show(name)}" if name else "one array with a row per item",
            fix="give `array:` with the name of a two-dimensional array",
        )

    def read(self, name: str) -> AnyArray:
        """Return an array; that of an .npy is mapped into memory.

        Raises
        ------
        DataError
            When the values are pickled objects, of a type that numpy lacks, or cut off.
        """
        place = self.place(name)
        with _arrays_in(self.path, place) as (_, get):
            values = np.asanyarray(get(name))
        if values.dtype.kind == "V" or not values.dtype.itemsize:
            raise DataError(
                f"the values are of type {values.dtype}, which numpy lacks",
                file=place,
                expected="float16, float32 or float64",
                fix="save them as float32: tensor.float()",
            )
        return values


@contextmanager
def _arrays_in(path: Path, place: str) -> Iterator[tuple[Iterable[str], Callable[[str], AnyArray]]]:
    """Yield the names of the arrays in a file, and what reads one; any failure is one error."""
    extension = path.suffix.lower()
    try:
        if extension == ".npy":
            yield (), lambda _: np.lib.format.open_memmap(path, mode="r")
        elif extension == ".npz":
            with np.load(path) as archive:
                yield archive.files, archive.__getitem__
        else:
            from safetensors import safe_open

            with safe_open(path, framework="numpy") as tensors:
                yield tensors.keys(), tensors.get_tensor
    except Exception as error:  # noqa: BLE001 - damaged files raise errors of any kind
        raise DataError(
            f"the file is truncated, damaged or holds no plain array ({error})",
            file=place,
            expected="a whole file of numbers; pickled objects are never read",
            fix="write or copy it again: np.asarray(values, np.float32), or dtype=str for ids",
        ) from None


@dataclass(frozen=True, eq=False)
class Opened:
    """An opened source: a two-dimensional array, or a table whose columns are read on demand.

    Attributes
    ----------
    given : ArraySource
        What the user gave, with options; of live outputs only the names of the columns.
    name : str
        The path as given, or what the array or data frame is for.
    place : str
        How errors name it.
    digest : mapping
        "sha256" and "bytes"; empty for a data frame.
    values : ndarray, shape (rows, columns), or None
        Of an array, mapped into memory where possible.
    arrays : ArrayFile or None
    table : OpenTable or None
    outputs : Outputs or None
        Of a model that equipoise ran.
    """

    given: ArraySource
    name: str
    place: str
    digest: Mapping[str, Any] = field(default_factory=dict)
    values: AnyArray | None = None
    arrays: ArrayFile | None = None
    table: OpenTable | None = None
    outputs: Outputs | None = None

    def join(
        self,
        items: Items,
        absent: Booleans,
        columns: Iterable[tuple[str, AnyArray]],
        max_unmatched: float,
    ) -> tuple[Integers, dict[str, Any], Mapping[str, Mapping[str, Any]]]:
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
        if len(absent) == 0:
            raise no_rows(self.place)
        ids, file, inputs = self._ids(items)
        known, alone = pl.Series(items.id, items.ids, dtype=pl.String), 0
        if ids is not None and len(ids) == len(absent):
            check_ids(ids, file)
            present = np.flatnonzero(~absent)
            texts = ids.gather(present)
            positions = match(texts, known)
            # Images that a live model failed on aren't unmatched.
            failed = self.outputs.failed if self.outputs else ()
            check_matches((known, items.name), (texts, file), positions, max_unmatched, failed)
            rows = np.full(len(items), -1, dtype=np.int64)
            rows[positions[positions >= 0]] = present[positions >= 0]
            alone = int((positions < 0).sum())
        elif ids is None and len(absent) == len(items):
            check_share(known, absent, items.name, self.place, max_unmatched)
            rows = np.where(absent, -1, np.arange(len(items), dtype=np.int64))
        else:
            other = f"{len(items)} items in {items.name}" if ids is None else f"{len(ids)} ids"
            raise DataError(
                f"there are {len(absent)} rows for the {other}",
                file=file,
                expected="an id per row, or without ids a row per item in their order",
                fix="give `ids:` (or `id:`, the column of ids) of the same run",
            )
        counts = {
            "rows": len(absent),
            "empty": int(absent.sum()),
            "matched": int((rows >= 0).sum()),
            "items_without_row": int((rows < 0).sum()),
            "rows_without_item": alone,
        }
        if self.outputs:
            return rows, counts, inputs
        digest = self.digest or _digest_of(ids, columns)
        return rows, counts, {self.name: {**digest, "rows": len(absent)}, **inputs}

    def _ids(self, items: Items) -> tuple[pl.Series | None, str, Mapping[str, Mapping[str, Any]]]:
        """Return the ids of the rows, the file they are in, and its digest if it is another.

        There are none where rows follow the items. A table that has a column named as the items'
        ids is matched by it.
        """
        if self.outputs:
            return self.outputs.ids, self.place, self.outputs.inputs
        source, arrays = self.given, self.arrays
        ids = source.ids
        if ids is None:
            names = self.table.names if self.table else ()
            name = source.id or (items.id if items.id in names else None)
            if name is None or self.table is None:
                return None, self.place, {}
            return as_text(self.table.read((name,))[name], self.name, name), self.name, {}
        if not isinstance(ids, str | os.PathLike):
            place = f"ids of {self.name}"
            return _id_texts(np.asarray(ids), place), place, {}
        if arrays and arrays.names and (str(ids) in arrays.names or not Path(ids).suffix):
            place = arrays.place(arrays.named(str(ids)))
            return _id_texts(arrays.read(str(ids)), place), place, {}
        texts, digest = _ids_in_file(Path(ids), source.encoding, source.delimiter)
        return texts, str(ids), {str(ids): {**digest, "rows": len(texts)}}


def open_source(source: ArraySource | Outputs, what: str, *, vectors: bool = False) -> Opened:
    """Open a file, array, data frame or the numbers of a live model.

    Raises
    ------
    DataError
        When it cannot be read, or holds no two-dimensional array of numbers.
    """
    if isinstance(source, Outputs):
        given, place = ArraySource(None, names=source.names), source.source
        return Opened(given, place, place, values=source.numbers, outputs=source)
    file, arrays = source.file, None
    is_path = isinstance(file, str | os.PathLike)
    if is_path and Path(file).suffix.lower() in EXTENSIONS:
        arrays = ArrayFile.open(Path(file))
        name = arrays.named(source.array)
        values = arrays.read(name)
        opened = Opened(source, str(file), arrays.place(name), arrays.digest, values, arrays)
    elif is_path or is_frame(file):
        table = open_table(file, role=what, encoding=source.encoding, delimiter=source.delimiter)
        opened = Opened(source, table.name, table.name, table.digest, table=table)
    else:
        place, values = f"{what} (array)", _in_memory(file, what)
        opened = Opened(source, place, place, hash_array(values), values)
    if opened.values is not None and (opened.values.ndim != 2 or 0 in opened.values.shape):
        raise DataError(
            f"the array has the shape {opened.values.shape}",
            file=opened.place,
            expected="two dimensions, with at least one row and one column",
            fix="save an array with a row per item; average or select over other dimensions",
        )
    # An option that cannot apply would otherwise be passed over.
    unused = {"array": source.array is not None and not (arrays and arrays.names)}
    if opened.values is not None:
        unused |= {"id": source.id is not None, "column": source.column is not None}
        unused |= {"columns": vectors and source.columns is not None}
        unused |= {"names": vectors and bool(source.names)}
    elif source.column is None:
        unused["names"] = bool(source.names)
    for option in (option for option, wrong in unused.items() if wrong):
        raise DataError(
            f"`{option}:` does not apply to this kind of file or array",
            file=opened.name,
            fix=f"take `{option}:` out",
        )
    return opened


def _in_memory(given: Any, what: str) -> AnyArray:
    problem, values = f"{type(given).__name__} is no array of numbers", None
    if hasattr(given, "__array__") and not isinstance(given, np.ma.MaskedArray):
        try:
            values = np.asarray(given)
        except (TypeError, ValueError, RuntimeError) as error:
            problem += f" ({error})"
    if values is None or values.dtype.hasobject:
        raise DataError(
            problem,
            file=f"{what} (array)",
            expected="a path, an array without a mask or a data frame",
            fix="pass np.asarray(..., np.float32)",
        )
    return values


def hash_array(values: AnyArray) -> dict[str, Any]:
    """Hash an array in blocks of rows; equal arrays hash equally whatever their strides."""
    hashed = hashlib.sha256(f"{values.dtype.str}\0{values.shape}\0".encode())
    step = max(1, BLOCK_BYTES // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        hashed.update(np.ascontiguousarray(values[start : start + step]).data)
    return {"sha256": hashed.hexdigest(), "bytes": values.nbytes}


def _digest_of(ids: pl.Series | None, columns: Iterable[tuple[str, AnyArray]]) -> dict[str, Any]:
    """Hash what was read of a data frame."""
    hashed, size = hashlib.sha256(), 0
    for name, values in columns:
        part = hash_array(values)
        hashed.update(f"{name}\0{part['sha256']}\0".encode())
        size += part["bytes"]
    texts = "" if ids is None else "\0".join(ids.fill_null("").to_list())
    hashed.update(texts.encode())
    return {"sha256": hashed.hexdigest(), "bytes": size + len(texts.encode())}


def _ids_in_file(path: Path, encoding: str, delimiter: str) -> tuple[pl.Series, Mapping[str, Any]]:
    """Return ids that have a file of their own, and its digest.

    Raises
    ------
    DataError
        When the file cannot be read, or has no column `id`.
    """
    name, extension = str(path), path.suffix.lower()
    if extension == ".npy":
        arrays = ArrayFile.open(path)
        return _id_texts(arrays.read(""), name), arrays.digest
    if extension == ".txt":
        text, digest = read_text(path, ID_FORMATS, "an id a line", encoding=encoding)
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
        return pl.Series("", lines), digest
    if extension not in ID_FORMATS.replace(" or", ",").split(", "):
        raise unknown_extension(path, ID_FORMATS)
    table = read_table(path, texts=("id",), encoding=encoding, delimiter=delimiter)
    return table.texts["id"], table.digest


def _id_texts(values: AnyArray, place: str) -> pl.Series:
    kind = values.dtype.kind
    try:
        if values.ndim == 1 and kind in "iuf":
            native = values.astype(values.dtype.newbyteorder("="))
            return as_text(pa.chunked_array([pa.array(native)]), place, "")
        if values.ndim == 1 and kind in "USO":
            cells = (np.char.decode(values, "utf-8") if kind == "S" else values).tolist()
            texts = [cell_text(cell, place, None, row) for row, cell in enumerate(cells, 1)]
            return pl.Series("", texts, dtype=pl.String)
    except UnicodeDecodeError:
        pass
    raise DataError(
        f"the ids have shape {values.shape} and type {values.dtype}",
        file=place,
        expected="one text in utf-8 or whole number per row",
        fix="save the ids as a one-dimensional array of text: np.asarray(ids, dtype=str)",
    )


def number_columns(
    opened: Opened, items: Items
) -> tuple[tuple[str, ...], Callable[[str], AnyArray], tuple[str, ...]]:
    """Choose columns of a table: those that the source names, or all of numbers beside the ids.

    Returns
    -------
    names : tuple of str
    read : callable
        Takes a name; returns the column in its stored float type, shape (rows,).
    left_out : tuple of str
        Columns of text or lists that nobody named.

    Raises
    ------
    DataError
        When a column is missing, or a cell of a named one is not a number.
    """
    source, table = opened.given, opened.table
    assert table is not None  # noqa: S101 - arrays have no columns
    chosen, left = source.chosen, set()
    if chosen is None:
        chosen = {n: n for n in table.names if n != (source.id or items.id)}
        left = {*table.lists} & {*chosen}
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
        raise DataError(
            "there is no column of numbers",
            file=table.name,
            expected="a column of numbers beside the ids",
            fix="name the columns as `columns:`; or one of lists as `column:`, with `names:`",
        )
    # Of a table that is parsed whole the numbers are kept; others are read on demand.
    held = {
        name: numbers_of(cells[column], table.name, column, source.missing)
        for name, column in kept.items()
        if column in cells
    }

    def read(name: str) -> AnyArray:
        if name in held:
            return held[name]
        column = kept[name]
        return numbers_of(table.read((column,))[column], table.name, column, source.missing)

    return tuple(kept), read, tuple(sorted(left))
