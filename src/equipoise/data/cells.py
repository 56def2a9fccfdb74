"""Columns of any type as text, as numbers or as vectors, with one meaning of "missing"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from equipoise.core import AnyArray, Booleans, DataError
from equipoise.core.labels import is_text
from equipoise.data.problems import show

EXACT_INTEGERS = 2.0**53
# Answers in words: a column of them is one of labels, which the user has to write as 1 and 0.
WORDS = ("yes", "no", "y", "n", "t", "f", "positive", "negative", "present", "absent")


def is_numbers(kind: pa.DataType) -> bool:
    """Whether every cell of a column of this type is a number or a boolean."""
    types = pa.types
    real = types.is_floating(kind) or types.is_decimal(kind)
    return bool(real or types.is_integer(kind) or types.is_boolean(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type are lists."""
    kind = getattr(kind, "storage_type", kind)
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_plain(kind: pa.DataType) -> bool:
    """Whether cells of a column of this type have a plain text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        return False
    types = pa.types
    times = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind)
    return bool(is_text(kind) or is_numbers(kind) or times or types.is_null(kind))


def as_text(column: pa.ChunkedArray, file: str, name: str) -> pl.Series:
    """Return a column as text; null, NaN and NaT are missing.

    Whole numbers lose their decimal point (1.0 is "1"), so that an id compares equal whether a
    table stores it as text, integer or float. Booleans are "true" and "false".

    Raises
    ------
    DataError
        When cells are lists, structs, bytes or another type that has no plain text.
    """
    if not is_plain(column.type):
        raise no_plain_value(f"the column holds {column.type}", file, name)
    plain = _readable(column, name)
    return float_texts(plain) if plain.dtype.is_float() else plain.cast(pl.String)


def as_numbers(
    column: pa.ChunkedArray, file: str, name: str, missing: Sequence[str] = ()
) -> pl.Series:
    """Return a column as floats; null and empty cells are missing, NaN stays NaN.

    Texts "true" and "false" in any case are 1 and 0. Columns of booleans hold no numbers.

    Raises
    ------
    DataError
        When a cell is not a number; the first such row is named.
    """
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    numbers = is_numbers(kind) and not pa.types.is_boolean(kind)
    if not (is_text(kind) or numbers or pa.types.is_null(kind)):
        raise no_plain_value(f"the column holds {kind}", file, name, expected="numbers")
    plain = _readable(column, name)
    if plain.dtype != pl.String:
        return plain.cast(pl.Float64)
    texts = plain.str.strip_chars()
    texts = texts.set(texts.is_in(["", *missing]), None)
    spelled = texts.cast(pl.Float64, strict=False)
    if spelled.null_count() > texts.null_count():
        folded = texts.str.to_lowercase()
        known = texts.set(folded == "true", "1").set(folded == "false", "0")
        spelled = known.cast(pl.Float64, strict=False)
    wrong = (texts.is_not_null() & spelled.is_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"{show(texts[row])} is not a number",
            file=file,
            column=name,
            row=row + 1,
            expected="a number with a decimal point; 1 and 0 for yes and no",
            fix="correct the cell, leave it empty, list its text under `missing:`, or name other "
            "columns",
        )
    return spelled


def numbers_of(
    column: pa.ChunkedArray, file: str, name: str, missing: Sequence[str] = ()
) -> AnyArray:
    """Return the floats of `as_numbers` as an array, NaN where missing.

    Float types are kept. Booleans are 1 and 0.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if pa.types.is_floating(column.type):
        values: AnyArray = column.to_numpy()
        return values
    return as_numbers(column, file, name, missing).fill_null(np.nan).to_numpy()


def spells_numbers(column: pa.ChunkedArray, missing: Sequence[str] = ()) -> bool:
    """Whether a column that nobody named is one of numbers, and not of text.

    Answers in words count as numbers, so that reading them says what to do.
    """
    if not is_text(column.type):
        return is_numbers(column.type)
    cells = pl.Series("", column).str.strip_chars().unique().drop_nulls()
    known = cells.filter(~cells.is_in(["", *missing])).str.to_lowercase()
    numbers = known.cast(pl.Float64, strict=False).is_not_null()
    return bool(numbers.any() or known.is_in([*WORDS, "true", "false"]).all())


def _readable(column: pa.ChunkedArray, name: str) -> pl.Series:
    """Return a plain column as polars reads it without loss.

    Decimals, dates and times become text here: polars cuts fractions of seconds and panics on
    years that it does not know.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _readable(column.cast(kind.value_type), name)
    if pa.types.is_null(kind):
        return pl.Series(name, [None] * len(column), dtype=pl.String)
    if pa.types.is_timestamp(kind):
        # To naive first: the instant in UTC, for which no table of time zones is needed.
        column = column.cast(pa.timestamp(kind.unit))
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    elif pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        column = column.cast(pa.large_string())
    return pl.Series(name, column)


def no_plain_value(
    problem: str,
    file: str,
    name: str | None,
    row: int | None = None,
    *,
    expected: str = "text, numbers, booleans or dates",
) -> DataError:
    """Return the error of a column, or a cell, of a type that can't be read."""
    return DataError(
        problem,
        file=file,
        column=name,
        row=row,
        expected=expected,
        fix="name another column, or store one plain value per cell",
    )


def float_texts(values: pl.Series) -> pl.Series:
    """Return floats as text, by the one rule of all formats; NaN is missing."""
    number = pl.col("value")
    whole = (number == number.floor()) & (number.abs() < EXACT_INTEGERS)
    text = pl.when(whole).then(number.cast(pl.Int64, strict=False).cast(pl.String))
    known = values.fill_nan(None).to_frame("value")
    return known.select(text.otherwise(number.cast(pl.String)).alias(values.name)).to_series()


def number_texts(values: Iterable[float | None]) -> list[str | None]:
    """Return numbers as text, by the same rule."""
    return float_texts(pl.Series([*values], dtype=pl.Float64)).to_list()


def stack(chunks: Iterable[pa.Array], rows: int, file: str, name: str) -> tuple[AnyArray, Booleans]:
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

    def wrong(problem: str, row: int | None = None) -> DataError:
        return DataError(
            problem,
            file=file,
            column=name,
            row=None if row is None else row + 1,
            expected="lists of as many floats in every row, or an empty cell (null)",
            fix="embed all items with one model and save float32, or name another column",
        )

    values: AnyArray = np.zeros((rows, 0))
    absent, start = np.ones(rows, dtype=bool), 0
    for part in chunks:
        lists = getattr(part, "storage", part)
        if not is_list(lists.type) or not pa.types.is_floating(lists.type.value_type):
            raise wrong(f"the column holds {lists.type}")
        present = start + np.flatnonzero(lists.is_valid().to_numpy(zero_copy_only=False))
        start += len(lists)
        if not len(present):
            continue
        lists = lists.drop_null()
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        width = values.shape[1] or int(lengths[0])
        if len(odd := np.flatnonzero((lengths != width) | (lengths == 0))):
            raise wrong(f"the vector has the length {lengths[odd[0]]}", int(present[odd[0]]))
        flat = lists.flatten()
        if flat.null_count:
            hole = int(flat.is_null().to_numpy(zero_copy_only=False).argmax())
            raise wrong("the vector holds null", int(present[hole // width]))
        numbers = flat.to_numpy(zero_copy_only=False)
        if not values.shape[1]:
            values = np.zeros((rows, width), numbers.dtype)
        values[present] = numbers.reshape(-1, width)
        absent[present] = False
    if not values.shape[1]:
        raise wrong("every cell is empty")
    return values, absent
