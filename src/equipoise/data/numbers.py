"""Columns of numbers in the type that they are stored in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from equipoise.data.cells import as_numbers, numbers_from_text, wrong_type
from equipoise.data.vector_cells import stored_type

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
