"""Columns of any type as text or as numbers, with one meaning of "missing"."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

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
