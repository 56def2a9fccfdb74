"""Data frames of any library that narwhals knows."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from equipoise.core import DataError
from equipoise.data.problems import check_columns, is_whole, show

FRAME = " (data frame)"
"""What follows the role of a table that is no file, where errors name it."""

# How floats, decimals and times of any library print what is missing.
NOT_A_VALUE = ("nan", "NaN", "sNaN", "NaT")
SCALARS = (
    str,
    bool,
    int,
    float,
    decimal.Decimal,
    dt.date,
    dt.time,
    np.generic,
)


def read_frame(source: Any, wanted: tuple[str, ...], file: str) -> dict[str, pa.ChunkedArray]:
    """Return some columns of a data frame as Arrow; errors call it `file`.

    Raises
    ------
    DataError
        When the source is no data frame, a column is missing or doubled, or a cell is no plain
        value.
    """
    frame = _eager(source, file.removesuffix(FRAME))
    names = [str(name) for name in frame.columns]
    check_columns(names, wanted, file)
    # By position, since pandas allows names that are no text.
    return {column: _column(frame[:, names.index(column)], file, column) for column in wanted}


def is_frame(source: Any) -> bool:
    """Whether something is a data frame of a library that narwhals knows."""
    return isinstance(nw.from_native(source, pass_through=True), nw.DataFrame | nw.LazyFrame)


def frame_names(source: Any, role: str) -> tuple[str, ...]:
    """Return the names of all columns of a data frame as text."""
    return tuple(str(name) for name in _eager(source, role).columns)


def list_columns(source: Any, role: str) -> tuple[str, ...]:
    """Return the names of the columns whose cells are lists or arrays."""
    frame = _eager(source, role)
    nested = [_holds_lists(frame[:, place]) for place in range(len(frame.columns))]
    return tuple(str(name) for name, lists in zip(frame.columns, nested, strict=True) if lists)


def _holds_lists(series: nw.Series[Any]) -> bool:
    if series.dtype != nw.Object:
        return isinstance(series.dtype, nw.List | nw.Array)
    first = next((value for value in series.to_list() if value is not None), None)
    return isinstance(first, list | tuple | np.ndarray)


def read_lists(source: Any, name: str, role: str) -> pa.ChunkedArray:
    """Return a column whose cells are lists, as Arrow.

    Raises
    ------
    DataError
        When the column is missing, or its cells cannot be held in one type.
    """
    file = f"{role}{FRAME}"
    frame = _eager(source, role)
    names = [str(name) for name in frame.columns]
    check_columns(names, (name,), file)
    series = frame[:, names.index(name)]
    if series.dtype != nw.Object:
        column = series.to_arrow()
        return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    try:
        return pa.chunked_array([pa.array(series.to_list(), from_pandas=True)])
    except pa.ArrowException:
        raise DataError(
            "the cells are not lists of numbers of one type",
            file=file,
            column=name,
            expected="one list of floats per cell",
            fix="build the vectors with np.asarray(cell, dtype=np.float32)",
        ) from None


def _eager(source: Any, role: str) -> nw.DataFrame[Any]:
    try:
        frame = nw.from_native(source)
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except TypeError:
        raise DataError(
            f"the table is of type {type(source).__name__}",
            file=role,
            expected="a path or a data frame (pandas, polars, pyarrow, ...)",
            fix="give the path of a file, or build a data frame",
        ) from None
    except nw.exceptions.DuplicateError:
        raise DataError(
            "several columns have the same name",
            file=f"{role}{FRAME}",
            expected="different column names",
            fix="rename all but one of them",
        ) from None


def _column(series: nw.Series[Any], file: str, name: str) -> pa.ChunkedArray:
    if series.dtype == nw.Object:
        texts = [cell_text(value, file, name, row) for row, value in enumerate(series.to_list(), 1)]
        return pa.chunked_array([pa.array(texts, pa.large_string())])
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind == "f":
        # pandas has one mark for "no number" and "missing": keep it, a probability must see it.
        return pa.chunked_array([pa.array(series.to_numpy())])
    try:
        column = series.to_arrow()
    except (pa.ArrowException, nw.exceptions.NarwhalsError):
        raise _no_plain_value(f"the column is of type {native.dtype}", file, name, None) from None
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def cell_text(value: object, file: str, name: str | None, row: int) -> str | None:
    """Text of one cell of a column of mixed Python objects."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if not isinstance(value, SCALARS):
        raise _no_plain_value(f"the cell is of type {type(value).__name__}", file, name, row)
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    if not isinstance(value, str) and text in NOT_A_VALUE:
        return None
    if not is_whole(text):
        raise _no_plain_value(f"the cell is {show(text)}", file, name, row)
    return text


def _no_plain_value(problem: str, file: str, name: str | None, row: int | None) -> DataError:
    return DataError(
        problem,
        file=file,
        column=name,
        row=row,
        expected="text, numbers, booleans or dates",
        fix="name another column, or store one plain value per cell",
    )
