"""Columns of any type as text, as numbers or as vectors, with one meaning of "missing"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import DataError
from equipoise.data.problems import show

EXACT_INTEGERS = 2.0**53


def as_text(column: pa.ChunkedArray, file: str, name: str) -> pl.Series:
    """Return a column as text; null, NaN and NaT are missing.

    Whole numbers lose their decimal point (1.0 is "1"), so that an id compares equal whether a
    table stores it as text, integer or float. Booleans are "true" and "false".

    Raises
    ------
    DataError
        When cells are lists, structs, bytes or another type that has no plain text.
    """
    plain = _plain(column, file, name, "text, numbers, booleans or dates")
    if plain.dtype.is_float():
        return float_texts(plain)
    return plain.cast(pl.String)


def as_numbers(column: pa.ChunkedArray, file: str, name: str) -> pl.Series:
    """Return a column as floats; null and empty cells are missing, NaN stays NaN.

    Raises
    ------
    DataError
        When a cell is not a number; the first such row is named.
    """
    plain = _plain(column, file, name, "numbers")
    if plain.dtype == pl.String:
        return numbers_from_text(plain, file, name)
    if not (plain.dtype.is_numeric() or plain.dtype == pl.Null):
        raise wrong_type(column.type, file, name, "numbers")
    return plain.cast(pl.Float64)


def _plain(column: pa.ChunkedArray, file: str, name: str, expected: str) -> pl.Series:
    kind = column.type
    if pa.types.is_dictionary(kind) and _has_plain_text(kind.value_type):
        return _plain(column.cast(kind.value_type), file, name, expected)
    if not _has_plain_text(kind):
        raise wrong_type(kind, file, name, expected)
    if pa.types.is_null(kind):
        return pl.Series(name, [None] * len(column), dtype=pl.String)
    if pa.types.is_timestamp(kind):
        # To naive first: the instant in UTC, for which no table of time zones is needed.
        column = column.cast(pa.timestamp(kind.unit))
    return pl.Series(name, column.cast(_readable(kind)))


def _readable(kind: pa.DataType) -> pa.DataType:
    """Return the type as which polars reads a column without loss.

    Decimals, dates and times become text here: polars cuts fractions of seconds and panics on
    years that it does not know.
    """
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return pa.large_string()
    return kind


def _has_plain_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return False
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_string_view,
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_time,
        pa.types.is_timestamp,
        pa.types.is_null,
    )
    return any(check(kind) for check in checks)


def wrong_type(kind: pa.DataType, file: str, name: str, expected: str) -> DataError:
    """Return the error of a column whose cells are of a type that has no use here."""
    return DataError(
        f"the column holds {kind}",
        file=file,
        column=name,
        expected=expected,
        fix="name another column, or store one plain value per cell",
    )


def float_texts(values: pl.Series) -> pl.Series:
    """Return floats as text, by the one rule of all formats; NaN is missing."""
    known = values.fill_nan(None).to_frame("value")
    number = pl.col("value")
    whole = (number == number.floor()) & (number.abs() < EXACT_INTEGERS)
    text = (
        pl.when(whole)
        .then(number.cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(number.cast(pl.String))
    )
    return known.select(text.alias(values.name)).to_series()


def float_text(value: float) -> str:
    """Return a finite float as text, by the same rule."""
    if value.is_integer() and abs(value) < EXACT_INTEGERS:
        return str(int(value))
    return str(float_texts(pl.Series([value]))[0])


def numbers_from_text(
    texts: pl.Series,
    file: str,
    name: str,
    fix: str = "correct the cell, or leave it empty if the model gave no answer",
) -> pl.Series:
    """Return the numbers that texts spell; empty cells are missing.

    Raises
    ------
    DataError
        When a cell is not a number; the first such row is named.
    """
    stripped = texts.str.strip_chars()
    filled = stripped.set(stripped == "", None)
    numbers = filled.cast(pl.Float64, strict=False)
    wrong = (filled.is_not_null() & numbers.is_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{show(texts[row])} is not a number",
            file=file,
            column=name,
            row=row + 1,
            expected="a number with a decimal point",
            fix=fix,
        )
    return numbers


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


Numbers = npt.NDArray[Any]
HEAD = 100
# Answers in words: which of them is 1 is for the user to say.
WORDS = ("yes", "no", "y", "n", "t", "f", "positive", "negative", "present", "absent")


def is_numbers(kind: pa.DataType) -> bool:
    """Whether every cell of a column of this type is a number or a boolean."""
    checks = (
        pa.types.is_floating,
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_decimal,
    )
    return any(check(kind) for check in checks)


def is_text(kind: pa.DataType) -> bool:
    """Whether cells are text, which may spell numbers."""
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def numbers_of(
    column: pa.ChunkedArray, file: str, name: str, missing: tuple[str, ...] = ()
) -> Numbers:
    """Return a column as floats, shape (rows,); NaN where a cell is null, empty or missing.

    float16, float32 and float64 stay what they are, integers and numbers in text become float64.
    Booleans, and "true" and "false" in any case, are 1 and 0.

    Raises
    ------
    DataError
        When a cell is not a number; the first such row is named.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return numbers_of(column.cast(kind.value_type), file, name, missing)
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    if is_text(kind):
        return _spelled(pl.Series(name, column), file, missing)
    if not (is_numbers(kind) or pa.types.is_null(kind)):
        raise wrong_type(kind, file, name, "numbers or booleans")
    return as_numbers(column, file, name).fill_null(np.nan).to_numpy()


def _floats(column: pa.ChunkedArray) -> Numbers:
    values: Numbers = np.empty(len(column), stored_type(column.type))
    start = 0
    for chunk in column.chunks:
        values[start : start + len(chunk)] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)
    return values


def _spelled(texts: pl.Series, file: str, missing: tuple[str, ...]) -> Numbers:
    known = texts.str.strip_chars()
    marks = [mark for mark in missing if mark.strip()]
    known = known.set(known.is_in(["", *marks]) if marks else known == "", None)
    numbers = known.cast(pl.Float64, strict=False)
    if numbers.null_count() > known.null_count():
        folded = known.str.to_lowercase()
        known = known.set(folded == "true", "1").set(folded == "false", "0")
        wrong = known.filter(known.cast(pl.Float64, strict=False).is_null() & known.is_not_null())
        numbers = numbers_from_text(known, file, texts.name, _fix(str([*wrong, ""][0])))
    return numbers.fill_null(np.nan).to_numpy()


def _fix(text: str) -> str:
    if text.lower() in WORDS:
        return "write 1 and 0"
    return "correct the cell, list its text under `missing:`, or name other columns"


def spells_numbers(column: pa.ChunkedArray, missing: tuple[str, ...] = ()) -> bool:
    """Whether a column that nobody named is one of numbers, and not of text.

    Answers in words count as numbers, so that reading them says what to do.
    """
    if not is_text(column.type):
        return is_numbers(column.type)
    texts = pl.Series("", column)
    return _some_numbers(texts.head(HEAD), missing) or _some_numbers(texts, missing, empty=True)


def _some_numbers(texts: pl.Series, missing: tuple[str, ...], *, empty: bool = False) -> bool:
    cells = texts.str.strip_chars().unique()
    known = cells.filter(~cells.is_in(["", *missing])).drop_nulls().str.to_lowercase()
    numbers = known.cast(pl.Float64, strict=False).is_not_null()
    words = known.is_in([*WORDS, "true", "false"])
    if known.is_empty():
        return empty
    return bool(numbers.any() or words.all())
