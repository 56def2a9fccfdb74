"""Columns whose cells are vectors, as one matrix in the stored type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import DataError

Mask = npt.NDArray[np.bool_]


def is_list(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type are lists."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks)


def stored_type(kind: pa.DataType) -> np.dtype[Any]:
    """Return numpy's type of numbers; Arrow's own answer needs pandas, which may not be there."""
    found: np.dtype[Any] = pa.nulls(0, kind).to_numpy(zero_copy_only=False).dtype
    return found


def stack(
    chunks: Iterable[pa.Array], rows: int, file: str, name: str
) -> tuple[npt.NDArray[Any], Mask]:
    """Return the vectors, shape (rows, d), and which rows have none (their values are 0).

    Parameters
    ----------
    chunks : iterable of pyarrow.Array
        Parts of the column in order, so that a file need not be held beside the result.
    rows : int
        Rows of all parts.

    Raises
    ------
    DataError
        When cells are no lists of floats, differ in length, or hold null.
    """
    values: npt.NDArray[Any] = np.zeros((rows, 0))
    absent, start = np.zeros(rows, dtype=bool), 0
    for chunk in (_lists(part, file, name) for part in chunks):
        here = slice(start, start + len(chunk))
        absent[here] = chunk.is_null().to_numpy(zero_copy_only=False)
        present = start + np.flatnonzero(~absent[here])
        start += len(chunk)
        if len(present) == 0:
            continue
        width = _width(chunk, values.shape[1], present, file, name)
        if values.shape[1] == 0:
            values = np.zeros((rows, width), stored_type(chunk.type.value_type))
        values[present] = _flat(chunk, present, width, file, name)
    if values.shape[1] == 0:
        raise _problem("every cell is empty", file, name, None, "a vector in at least some rows")
    return values, absent


def _lists(chunk: pa.Array, file: str, name: str) -> pa.Array:
    """Return a part as lists of floats, whatever kind of list it is."""
    if isinstance(chunk, pa.ExtensionArray):
        chunk = chunk.storage
    kind = chunk.type
    if not is_list(kind):
        raise _problem(f"the column holds {kind}", file, name, None, "lists of floats")
    if not pa.types.is_floating(kind.value_type):
        problem = f"the column holds lists of {kind.value_type}"
        fix = "save the vectors as float32; quantised ones need their scale"
        raise _problem(problem, file, name, None, "lists of float16, float32 or float64", fix)
    return chunk


def _width(chunk: pa.Array, known: int, present: Any, file: str, name: str) -> int:
    """Return the length that all vectors share; `known` is 0 at the first of them."""
    lengths = pc.list_value_length(chunk.drop_null()).to_numpy(zero_copy_only=False)
    width = known or int(lengths[0])
    if width == 0:
        row = int(present[0]) + 1
        fix = "leave the cell empty (null) where there is no vector"
        raise _problem("the vector has no numbers", file, name, row, "one number or more", fix)
    wrong = np.flatnonzero(lengths != width)
    if len(wrong):
        length, row = int(lengths[wrong[0]]), int(present[wrong[0]]) + 1
        problem = f"the vector has {length} number{'s' if length != 1 else ''}"
        expected = f"{width}, as in the rows before"
        fix = "embed all items with one model, or leave the cell empty (null)"
        raise _problem(problem, file, name, row, expected, fix)
    return width


def _flat(chunk: pa.Array, present: Any, width: int, file: str, name: str) -> npt.NDArray[Any]:
    flat = chunk.drop_null().flatten()
    if flat.null_count:
        holes = np.flatnonzero(flat.is_null().to_numpy(zero_copy_only=False))
        row = int(present[holes[0] // width]) + 1
        fix = "fill it, or leave the whole cell empty (null)"
        raise _problem("the vector holds null", file, name, row, f"{width} numbers", fix)
    values: npt.NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
    return values


def _problem(
    problem: str,
    file: str,
    name: str,
    row: int | None,
    expected: str,
    fix: str = "name another column",
) -> DataError:
    return DataError(problem, file=file, column=name, row=row, expected=expected, fix=fix)
