"""Numbers by item: embeddings, scores and labels from files and live models."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import ArrayLike, DTypeLike

from equipoise.core import (
    AnyArray,
    Booleans,
    DataError,
    Facts,
    Fields,
    Floats,
    InputError,
    Integers,
    Objects,
    Strings,
    floats,
    integers,
    record,
    tally,
)
from equipoise.core.files import Mapped
from equipoise.core.types import FileFacts
from equipoise.data.arrays import EXTENSIONS, ArrayFile
from equipoise.data.files import read_text, split_lines, unknown_extension
from equipoise.data.id_columns import ids_in_arrays, ids_in_table
from equipoise.data.labels import CsvOptions, Items, Outputs
from equipoise.data.problems import (
    EXAMPLES,
    check_columns,
    check_ids,
    check_matches,
    check_share,
    listed,
    match,
    repeated,
)
from equipoise.data.tables import (
    Columns,
    OpenTable,
    TableRecipe,
    as_float_array,
    as_text,
    cell_text,
    is_frame,
    is_numbers,
    no_rows,
    open_table,
    read_table,
    spells_numbers,
)
from equipoise.data.word_vectors import WORDS, read_word_vectors
from equipoise.metrics.vector_rows import widened
from equipoise.stats.threads import each

ID_FORMATS = ".txt, .csv, .tsv, .parquet, .pq, .jsonl, .ndjson or .npy"
HASHED_AT_ONCE = 1 << 24


@record
class ArraySource(CsvOptions):
    """A matrix with a row per item: embeddings, scores, or labels 0 and 1.

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
    columns: Mapping[str, str] | Strings | None = None
    names: Strings = ()

    def __post_init__(self) -> None:
        """Refuse options that contradict each other."""
        if self.id is not None and self.ids is not None:
            raise InputError("id and ids both say where the ids are; give one of them")
        if self.column is not None and self.columns is not None:
            raise InputError("column names one column of vectors, columns many; give one of them")
        for option in ("names", "columns"):
            if twice := repeated(getattr(self, option) or ()):
                raise InputError(f"{option} has {listed(twice)} more than once")

    @property
    def chosen(self) -> Mapping[str, str] | None:
        """Name to column, or None to use every column."""
        if self.columns is None or isinstance(self.columns, Mapping):
            return self.columns
        return dict(zip(self.columns, self.columns, strict=True))


class RowMatch(NamedTuple):
    """Rows of a source matched with items.

    Attributes
    ----------
    rows : ndarray of int64
        Row of each item, -1 for an item without a row.
    counts, inputs : mapping
    """

    rows: Integers
    counts: Fields
    inputs: Mapping[str, FileFacts]


@record
class Opened:
    """An opened source: a matrix, or a table that reads its columns on demand.

    Attributes
    ----------
    source : ArraySource
        What the user gave, with options; of live outputs only the names of the columns.
    name : str
        The path as given, or what the array or data frame is for.
    place : str
        How errors name it.
    digest : mapping
        "sha256" and "bytes"; empty for a data frame.
    stored : ndarray, shape (rows, columns), or OpenTable
        An array is mapped into memory where possible.
    arrays : ArrayFile or None
    outputs : Outputs or None
        Of a model that equipoise ran.
    matched_by : str
        Column or array of ids that the user didn't name; "" where there is none.
    """

    source: ArraySource
    name: str
    place: str
    digest: FileFacts
    stored: AnyArray | OpenTable
    arrays: ArrayFile | None = None
    outputs: Outputs | None = None
    matched_by: str = ""

    def with_ids(self, items: Items) -> Opened:
        """Return it with the column or array of the items' ids, where the user named none.

        Raises
        ------
        DataError
            When a column or array is named like one of ids, but has other texts.
        """
        source, stored = self.source, self.stored
        if self.outputs or source.id is not None or source.ids is not None:
            return self
        if isinstance(stored, OpenTable):
            if items.id in stored.names:
                return self
            used = {*(source.chosen or {}).values(), source.column or ""}
            name = ids_in_table(stored, used, items)
            chosen = replace(source, id=name)
        elif self.arrays and self.arrays.names:
            name = ids_in_arrays(self.arrays, len(stored), items)
            chosen = replace(source, ids=name)
        else:
            return self
        return replace(self, source=chosen, matched_by=name or "")

    def join(
        self,
        items: Items,
        absent: Booleans,
        columns: Iterable[tuple[str, AnyArray]],
        max_unmatched: float,
    ) -> RowMatch:
        """Match the rows with items.

        Parameters
        ----------
        items : Items
        absent : ndarray of bool, shape (rows,)
            Rows that are empty, so that their items have none.
        columns : iterable of (name, ndarray)
            What was read; hashed for a data frame.
        max_unmatched : float in [0, 1]
        """
        if len(absent) == 0:
            raise no_rows(self.place)
        ids, file, inputs = self._ids(items)
        item_ids, rows_without_item = pl.Series(items.id, items.ids, dtype=pl.String), 0
        if ids is not None and len(ids) == len(absent):
            check_ids(ids, file)
            present = np.flatnonzero(~absent & ~ids.is_in([*items.left_out]).to_numpy())
            texts = ids.gather(present)
            positions = match(texts, item_ids)
            # Images that a live model failed on aren't unmatched.
            failed = self.outputs.failed if self.outputs else ()
            check_matches((item_ids, items.name), (texts, file), positions, max_unmatched, failed)
            rows = np.full(len(items), -1, dtype=np.int64)
            rows[positions[positions >= 0]] = present[positions >= 0]
            rows_without_item = tally(positions < 0)
        elif ids is None and len(absent) == items.table_rows:
            absent = absent[items.places]
            check_share(item_ids, absent, items.name, self.place, max_unmatched)
            rows = np.where(absent, -1, items.places)
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
            "empty": tally(absent),
            "matched": tally(rows >= 0),
            "items_without_row": tally(rows < 0),
            "rows_without_item": rows_without_item,
        }
        if self.outputs:
            return RowMatch(rows, counts, inputs)
        digest = self.digest or _digest_of(ids, columns)
        facts: FileFacts = {**digest, "rows": len(absent)}
        if self.matched_by:
            facts["matched_by"] = self.matched_by
        inputs = {self.name: facts, **inputs}
        return RowMatch(rows, counts, inputs)

    def _ids(self, items: Items) -> tuple[pl.Series | None, str, Mapping[str, FileFacts]]:
        """Return the ids of the rows, their file, and its digest if it is separate.

        There are none where rows follow the items. A table that has a column named as the items'
        ids is matched by it.
        """
        if self.outputs:
            return self.outputs.ids, self.place, self.outputs.inputs
        source, arrays = self.source, self.arrays
        ids = source.ids
        if ids is None:
            table = self.stored if isinstance(self.stored, OpenTable) else None
            if table is None or not (source.id or items.id in table.names):
                return None, self.place, {}
            name = source.id or items.id
            return as_text(table.read((name,))[name], self.name, name), self.name, {}
        if not isinstance(ids, str | os.PathLike):
            place = f"ids of {self.name}"
            return _id_texts(np.asarray(ids), place), place, {}
        if arrays and arrays.names and (str(ids) in arrays.names or not Path(ids).suffix):
            place, values = arrays.array(str(ids))
            return _id_texts(values, place), place, {}
        texts, digest = _ids_in_file(Path(ids), source.encoding, source.delimiter)
        return texts, str(ids), {str(ids): {**digest, "rows": len(texts)}}


def open_source(
    source: ArraySource | Outputs, subject: str, items: Items, *, vectors: bool = False
) -> Opened:
    """Open a file, array, data frame or live model's outputs with a row per item.

    Raises
    ------
    DataError
        When it cannot be read, or holds no two-dimensional array of numbers.
    """
    if isinstance(source, Outputs):
        # Vectors have no names; those of a model's classes may repeat.
        options, place = ArraySource(None, names=() if vectors else source.names), source.source
        return Opened(options, place, place, {}, source.numbers, outputs=source)
    file, arrays = source.file, None
    is_path = isinstance(file, str | os.PathLike)
    if is_path and Path(file).suffix.lower() in EXTENSIONS:
        arrays = ArrayFile.open(Path(file))
        place, values = arrays.array(source.array)
        opened = Opened(source, str(file), place, arrays.digest, values, arrays)
    elif is_path and Path(file).suffix.lower() in WORDS:
        words, values, digest = read_word_vectors(Path(file), {*items.ids.tolist()})
        opened = Opened(replace(source, ids=words), str(file), str(file), digest, values)
    elif is_path or isinstance(file, TableRecipe) or is_frame(file):
        table = open_table(file, role=subject, encoding=source.encoding, delimiter=source.delimiter)
        opened = Opened(source, table.name, table.name, table.digest, table)
    else:
        place, values = f"{subject} (array)", _in_memory(file, subject)
        opened = Opened(source, place, place, hash_array(values), values)
    # An option that cannot apply would otherwise be passed over.
    unused = {"array": source.array is not None and not (arrays and arrays.names)}
    if not isinstance(opened.stored, OpenTable):
        shape = opened.stored.shape
        if len(shape) != 2 or 0 in shape:
            raise DataError(
                f"the array has the shape {shape}",
                file=opened.place,
                expected="two dimensions, with at least one row and one column",
                fix="save an array with a row per item; average or select over other dimensions",
            )
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
    return opened.with_ids(items)


def _in_memory(array: Any, subject: str) -> AnyArray:
    problem, values = f"{type(array).__name__} isn't an array of numbers", None
    if hasattr(array, "__array__") and not isinstance(array, np.ma.MaskedArray):
        try:
            values = np.asarray(array)
        except (TypeError, ValueError, RuntimeError) as error:
            problem += f" ({error})"
    if values is None or values.dtype.hasobject:
        raise DataError(
            problem,
            file=f"{subject} (array)",
            expected="a path, an array without a mask or a data frame",
            fix="pass np.asarray(..., np.float32)",
        )
    return values


def hash_array(values: AnyArray) -> FileFacts:
    """Hash an array in blocks of rows, independent of its strides."""
    hashed = hashlib.sha256(f"{values.dtype.str}\0{values.shape}\0".encode())
    step = max(1, HASHED_AT_ONCE // max(1, values[:1].nbytes))
    for start in range(0, len(values), step):
        hashed.update(np.ascontiguousarray(values[start : start + step]).data)
    return {"sha256": hashed.hexdigest(), "bytes": values.nbytes}


def _digest_of(ids: pl.Series | None, columns: Iterable[tuple[str, AnyArray]]) -> FileFacts:
    """Hash the ids and columns read from a data frame."""
    hashed, size = hashlib.sha256(), 0
    for name, values in columns:
        part = hash_array(values)
        hashed.update(f"{name}\0{part['sha256']}\0".encode())
        size += part["bytes"]
    texts = "" if ids is None else "\0".join(ids.fill_null("").to_list())
    hashed.update(texts.encode())
    return {"sha256": hashed.hexdigest(), "bytes": size + len(texts.encode())}


def _ids_in_file(path: Path, encoding: str, delimiter: str) -> tuple[pl.Series, FileFacts]:
    """Return ids that have a file of their own, and its digest.

    Raises
    ------
    DataError
        When the file cannot be read, or has no column `id`.
    """
    name, extension = str(path), path.suffix.lower()
    if extension == ".npy":
        arrays = ArrayFile.open(path)
        return _id_texts(arrays.array(None)[1], name), arrays.digest
    if extension == ".txt":
        text, digest = read_text(path, ID_FORMATS, "an id a line", encoding=encoding)
        return pl.Series("", split_lines(text)), digest
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
        if values.ndim == 1 and kind in "USO" and not _has_no_letter(values):
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


def _has_no_letter(values: AnyArray) -> bool:
    """Whether texts of a fixed length hold numbers that stand for no letter."""
    if values.dtype.kind != "U" or not values.size:
        return False
    codes = np.ascontiguousarray(values).view(values.dtype.str[0] + "u4")
    return bool((codes > sys.maxunicode).any())


class NumberColumns(NamedTuple):
    """Columns of numbers in a table.

    Attributes
    ----------
    names : tuple of str
    read : callable
        Takes a name; returns the column in its stored float type, shape (rows,).
    left_out : tuple of str
        Columns of text or lists that nobody named.
    """

    names: Strings
    read: Callable[[str], AnyArray]
    left_out: Strings


def number_columns(table: OpenTable, source: ArraySource, items: Items) -> NumberColumns:
    """Choose the named columns of a table, or all columns of numbers except ids.

    Raises
    ------
    DataError
        When a column is missing, or a cell of a named one is not a number.
    """
    chosen, left_out = source.chosen, set()
    if chosen is None:
        chosen = {n: n for n in table.names if n != (source.id or items.id)}
        left_out = {*table.lists} & {*chosen}
    check_columns(table.names, chosen.values(), table.name)
    columns = tuple(c for c in dict.fromkeys(chosen.values()) if c not in left_out)
    cells = {} if table.kinds else table.read(columns)
    if source.chosen is None:
        left_out |= {name for name in columns if not _holds_numbers(table, cells, name, source)}
    columns_by_name = {name: column for name, column in chosen.items() if column not in left_out}
    if not columns_by_name:
        raise DataError(
            "there is no column of numbers",
            file=table.name,
            expected="a column of numbers beside the ids",
            fix="name the columns as `columns:`; or one of lists as `column:`, with `names:`",
        )
    # Of a table that is parsed whole the numbers are kept; others are read on demand.
    cached_numbers = {
        name: as_float_array(cells[column], table.name, column, source.missing)
        for name, column in columns_by_name.items()
        if column in cells
    }

    def read(name: str) -> AnyArray:
        if name in cached_numbers:
            return cached_numbers[name]
        column = columns_by_name[name]
        return as_float_array(table.read((column,))[column], table.name, column, source.missing)

    return NumberColumns(tuple(columns_by_name), read, tuple(sorted(left_out)))


def _holds_numbers(table: OpenTable, cells: Columns, name: str, source: ArraySource) -> bool:
    if name in cells:
        return spells_numbers(cells[name], source.missing)
    return is_numbers(table.kinds[name])


NORM_TOLERANCE = 1e-3
NUMBERS_AT_ONCE = 1 << 18


@record
class ByItem:
    """Rows of a source, joined to items.

    Attributes
    ----------
    name : str
        The path as given, or what the array is for.
    ids : ndarray of str objects, shape (n,)
        Of the items.
    rows : ndarray of int64, shape (n,)
        Row of each item in the source; -1 where it has none.
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Everything read, matched and left over; see docs/data.md.
    live : bool
        Whether equipoise ran the model that gave them, over every item.
    """

    name: str
    ids: Objects
    rows: Integers
    inputs: Mapping[str, FileFacts]
    counts: Facts
    live: bool = field(default=False, kw_only=True)


@record
class Vectors(ByItem):
    """Embeddings, a row per item with a vector; see also `ByItem`.

    Attributes
    ----------
    stored : ndarray, shape (rows, dimension)
        As stored: float16, float32 or float64, mapped into memory where possible.
    normalised : bool
        Whether the norm of every usable vector is 1 within 0.001.
    not_finite, zero : ndarray of bool, shape (n,)
        Items whose vector holds NaN or an infinity, or is zero throughout.
    """

    stored: AnyArray
    normalised: bool
    not_finite: Booleans
    zero: Booleans

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return int(self.stored.shape[1])

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Type that the vectors are stored and taken in."""
        return self.stored.dtype.newbyteorder("=")

    @property
    def usable(self) -> Booleans:
        """Items with a vector that is finite and not zero, shape (n,)."""
        return (self.rows >= 0) & ~self.not_finite & ~self.zero

    @property
    def unmatched(self) -> int:
        """Items without a vector in a user's file; a live model's failures don't count."""
        return 0 if self.live else tally(self.rows < 0)

    @property
    def rescaled(self) -> bool:
        """Whether a user's vectors are not all of length 1."""
        return not (self.normalised or self.live)

    def take(self, items: ArrayLike) -> AnyArray:
        """Return the vectors of some items, shape (m, dimension), in the stored type.

        Parameters
        ----------
        items : array-like of int, shape (m,)
            Indices of items, in any order and as often as wanted.

        Raises
        ------
        InputError
            When an item has no vector.
        """
        indices = integers(items)
        rows = self.rows[indices]
        if (rows < 0).any():
            without = self.ids[indices[rows < 0]]
            raise InputError(
                f"{len(without)} of the items have no vector in {self.name}, for example "
                f"{listed(without[:EXAMPLES])}; take those that are `usable`"
            )
        return np.asarray(self.stored[rows], self.dtype)


def load_vectors(
    source: ArraySource | Outputs,
    items: Items,
    *,
    subject: str = "embeddings",
    max_unmatched: float = 0.01,
    zeros: bool = False,
) -> Vectors:
    """Read embeddings and join them to items.

    Parameters
    ----------
    source : ArraySource or Outputs
    items : Items
    what : str
        What the vectors are, for messages; stands for the file name of an array in memory.
    max_unmatched : float in [0, 1]
        Largest share of items without a vector, and of vectors without an item. Up to there
        they are counted.
    zeros : bool
        Vectors may all be zero, such as maps without any activation.

    Raises
    ------
    DataError
        When the source cannot be used as given; the message says where and what to do.
    """
    opened = open_source(source, subject, items, vectors=True)
    stored, absent, left_out = _stored(opened, items)
    rows, counts, inputs = opened.join(items, absent, [("", stored)], max_unmatched)
    not_finite, zero, normalised = _check_norms(stored, rows)
    if not ((rows >= 0) & ~not_finite & (zeros | ~zero)).any():
        raise DataError(
            f"no vector can be used: {tally(not_finite)} hold NaN or an infinity, "
            f"{tally(zero)} are zero",
            file=opened.place,
            expected="finite vectors that are not zero",
            fix="embed the items again",
        )
    counts |= left_out | {
        "not_finite": tally(not_finite),
        "zero": tally(zero),
    }
    return Vectors(
        opened.name, items.ids, rows, inputs, counts, stored, normalised, not_finite, zero,
        live=opened.outputs is not None,
    )  # fmt: skip


def _stored(opened: Opened, items: Items) -> tuple[AnyArray, Booleans, Fields]:
    """Return the vectors in the order of the source, and which rows are empty."""
    source, stored = opened.source, opened.stored
    if not isinstance(stored, OpenTable):
        if stored.dtype.newbyteorder("=") not in (np.float16, np.float32, np.float64):
            raise DataError(
                f"the values are {stored.dtype}",
                file=opened.place,
                expected="float16, float32 or float64",
                fix="save the vectors as float32; quantised vectors need their scale",
            )
        return stored, np.zeros(len(stored), dtype=bool), {}
    lists = (source.column,) if source.column else stored.lists if source.columns is None else ()
    if len(lists) > 1:
        raise DataError(
            f"{len(lists)} columns hold vectors: {listed(lists)}",
            file=opened.name,
            expected="`column:` with the name of one",
            fix="name the one that is meant",
        )
    if lists:
        return *stored.vectors(lists[0]), {}
    names, read, left_out = number_columns(stored, source, items)
    values = np.column_stack([read(name) for name in names])
    absent: Booleans = np.logical_and.reduce(np.isnan(values), axis=1)
    return values, absent, {"columns_left_out": [*left_out]}


class _NormCheck(NamedTuple):
    not_finite: Booleans
    zero: Booleans
    normalised: bool


def _check_norms(stored: AnyArray, rows: Integers) -> _NormCheck:
    """Find the items with non-finite or zero vectors, and check that all norms are 1."""
    not_finite, zero = (np.zeros(len(stored), dtype=bool) for _ in range(2))
    off_unit = np.zeros(len(stored), dtype=bool)
    step, mapped = max(1, NUMBERS_AT_ONCE // stored.shape[1]), Mapped(stored)

    def look(start: int) -> None:
        block = slice(start, start + step)
        mapped.run(step)
        # Squares of 16 bits neither overflow nor underflow in 32.
        half = stored.dtype == np.float16
        values = widened(stored[block]) if half else floats(stored[block])
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", values, values)
        # Squares overflow and underflow before the numbers themselves do.
        overflowed, small = ~np.isfinite(squares), squares == 0
        not_finite[block][overflowed] = ~np.isfinite(values[overflowed]).all(axis=1)
        zero[block][small] = (values[small] == 0).all(axis=1)
        off_unit[block] = ~(np.abs(np.sqrt(squares) - 1) <= NORM_TOLERANCE)

    each(look, range(0, len(stored), step))
    mapped.give_back()
    has_row = rows >= 0
    at = np.where(has_row, rows, 0)
    item_not_finite, item_zero = not_finite[at] & has_row, zero[at] & has_row
    usable = has_row & ~item_not_finite & ~item_zero
    normalised = bool(usable.any() and not off_unit[rows[usable]].any())
    return _NormCheck(item_not_finite, item_zero, normalised)


BLOCK_BYTES = 1 << 28


@record
class Matrix(ByItem):
    """Numbers by item and concept; see also `ByItem`.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    dtype : numpy.dtype
        Float type that holds every stored value: float32 or float64.
    read : callable
        Takes a name; returns the column in the rows of the source.
    """

    names: Strings
    dtype: np.dtype[Any]
    read: Callable[[str], AnyArray]

    def column(self, name: str) -> Floats:
        """Return a column as float64, shape (n,); NaN if an item has no number.

        Raises
        ------
        DataError
            When there is no such column.
        """
        self._check((name,))
        return self._by_item(name, np.float64)

    def labels(self, name: str) -> Floats:
        """Return a column of labels: 1 present, 0 absent, NaN unknown.

        Raises
        ------
        DataError
            When there is no such column, or a number is neither 0 nor 1.
        """
        values = self.column(name)
        wrong = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        if len(wrong) == 0:
            return values
        first = wrong[np.argmin(self.rows[wrong])]
        raise DataError(
            f"{values[first]:g} isn't a label",
            file=self.name,
            column=name,
            row=int(self.rows[first]) + 1,
            expected="1 if the item shows the concept, 0 if it doesn't",
            fix="write 0 for -1"
            if values[first] == -1
            else "threshold scores first, or name a column of labels",
        )

    def take(self, names: Sequence[str]) -> AnyArray:
        """Return some columns in `dtype`, shape (n, len(names)); each is contiguous.

        Raises
        ------
        DataError
            When there is no such column.
        """
        self._check(names)
        values = np.empty((len(self.rows), len(names)), self.dtype, order="F")
        for place, name in enumerate(names):
            values[:, place] = self._by_item(name, self.dtype)
        return values

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.counts["columns_left_out"]:
                raise DataError(
                    "the column holds no numbers and was left out",
                    file=self.name,
                    column=name,
                    expected="numbers",
                    fix="write numbers, 1 and 0 for labels",
                )
        check_columns(self.names, names, self.name)

    def _by_item(self, name: str, dtype: DTypeLike) -> AnyArray:
        """Return a column in the order of the items; NaN if an item has no row."""
        out: AnyArray = self.read(name)[np.maximum(self.rows, 0)].astype(dtype)
        out[self.rows < 0] = np.nan
        return out


def columns_of(values: AnyArray, places: Mapping[str, int]) -> Callable[[str], AnyArray]:
    """Return a function that reads a column of an array by name, shape (rows,).

    Where rows are contiguous, reading one column touches every page of the file. So a block of
    neighbouring columns is turned at a time, in the stored type, and kept until another is asked
    for.
    """
    column = max(1, values[:, :1].nbytes)
    width = max(1, min(values.shape[1], BLOCK_BYTES // column))
    lock = threading.Lock()

    @lru_cache(maxsize=1)
    def turned(start: int) -> AnyArray:
        chunk = values[:, start : start + width]
        block = np.empty(chunk.shape[::-1], chunk.dtype.newbyteorder("="))
        mapped = Mapped(chunk)
        for row in range(0, len(chunk), 1024):
            block[:, row : row + 1024] = chunk[row : row + 1024].T
            mapped.run(1024)
        mapped.give_back()
        return block

    def read(name: str) -> AnyArray:
        place = places[name]
        if values.flags.f_contiguous:
            return np.asarray(values[:, place])
        with lock:
            block = turned(place - place % width)
        return np.asarray(block[place % width])

    return read


def load_matrix(
    source: ArraySource | Outputs,
    items: Items,
    *,
    subject: str = "scores",
    max_unmatched: float = 0.01,
) -> Matrix:
    """Read named columns of numbers and join them to items.

    Parameters
    ----------
    source : ArraySource or Outputs
    items : Items
    what : str
        What the numbers are, for messages; stands for the file name of an array in memory.
    max_unmatched : float in [0, 1]
        Largest share of items without a row, and of rows without an item. Up to there they are
        counted.

    Raises
    ------
    DataError
        When the source cannot be used as given; the message says where and what to do.
    """
    opened = open_source(source, subject, items)
    names, read, absent, left_out = _columns(opened, items)
    rows, counts, inputs = opened.join(
        items, absent, ((name, read(name)) for name in names), max_unmatched
    )
    dtype, number_counts = _type_and_gaps(names, read, rows)
    counts |= number_counts | {"columns": len(names), "columns_left_out": [*left_out]}
    live = opened.outputs is not None
    return Matrix(opened.name, items.ids, rows, inputs, counts, names, dtype, read, live=live)


class _ReadableColumns(NamedTuple):
    names: Strings
    read: Callable[[str], AnyArray]
    empty_rows: Booleans
    left_out: Strings


def _columns(opened: Opened, items: Items) -> _ReadableColumns:
    """Return the columns of a source by name, with a function that reads them."""
    source, values = opened.source, opened.stored
    if isinstance(values, OpenTable) and source.column is None:
        names, read, left_out = number_columns(values, source, items)
        full = np.zeros(len(read(names[0])), dtype=bool)
        return _ReadableColumns(names, read, full, left_out)
    if isinstance(values, OpenTable):
        values, absent = values.vectors(str(source.column))
    else:
        absent = np.zeros(len(values), dtype=bool)
    places = _places(values, opened)
    return _ReadableColumns(tuple(places), columns_of(values, places), absent, ())


def _places(values: AnyArray, opened: Opened) -> dict[str, int]:
    """Return the name of each column that is used, with its place."""
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"the values are {values.dtype}",
            file=opened.place,
            expected="floats, integers or booleans",
            fix="save the numbers as float32",
        )
    names, chosen, width = opened.source.names, opened.source.chosen, values.shape[1]
    if len(names) not in (0, width) or not (names or chosen is not None):
        raise DataError(
            f"the array has {width} columns, and `names:` has {len(names)}",
            file=opened.place,
            expected="`names:` with a name per column, or `columns:` with name: number",
            fix="list the names of all columns in their order",
        )
    position_by_name = {name: place for place, name in enumerate(names)}
    if chosen is None:
        return position_by_name
    position_by_name = {str(place): place for place in range(width)} | position_by_name
    check_columns([*position_by_name], chosen.values(), opened.place)
    return {name: position_by_name[column] for name, column in chosen.items()}


def _type_and_gaps(
    names: Strings, read: Callable[[str], AnyArray], rows: Integers
) -> tuple[np.dtype[Any], Fields]:
    """Return a common type of all columns, and counts of missing and infinite."""
    item_rows = rows[rows >= 0]
    in_order = bool((item_rows == np.arange(len(item_rows))).all())

    def counted(name: str) -> tuple[np.dtype[Any], int, int]:
        values = read(name)
        item_values = values if in_order and len(item_rows) == len(values) else values[item_rows]
        with np.errstate(invalid="ignore", over="ignore"):
            if item_values.dtype.kind != "f" or np.isfinite(item_values.sum(dtype=np.float64)):
                return values.dtype, 0, 0
        return values.dtype, int(np.isnan(item_values).sum()), int(np.isinf(item_values).sum())

    kinds, missing, infinite = zip(*each(counted, names), strict=True)
    counts_by_problem = {
        problem: {name: count for name, count in zip(names, counts, strict=True) if count}
        for problem, counts in (("missing", missing), ("infinite", infinite))
    }
    return np.result_type(np.float32, *kinds), counts_by_problem
