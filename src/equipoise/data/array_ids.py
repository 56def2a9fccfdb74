"""Rows of a matrix and items: matched by id, or by order where there are no ids."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.core import DataError, InputError
from equipoise.data.array_files import ArrayFile
from equipoise.data.cells import as_text
from equipoise.data.files import read_whole, unknown_extension
from equipoise.data.frames import cell_text
from equipoise.data.items import Items
from equipoise.data.join import (
    EXAMPLES,
    Positions,
    check_ids,
    check_matches,
    check_share,
    match,
)
from equipoise.data.tables import read_table
from equipoise.data.text_file import to_utf8

FORMATS = ".txt, .csv, .tsv, .parquet, .pq, .jsonl, .ndjson or .npy"
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
    if extension not in FORMATS.replace(" or", ",").split(", "):
        raise unknown_extension(path, FORMATS)
    table = read_table(path, texts=("id",), encoding=encoding, delimiter=delimiter)
    return RowIds(table.texts["id"], name, {name: table.digest})


def _lines(path: Path, encoding: str) -> RowIds:
    content = read_whole(path, FORMATS, "an id a line")
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
