"""Marks in written numbers: commas and points for decimals and for thousands."""

import polars as pl

from equipoise.core import DataError
from equipoise.data.problems import looks_missing

DECIMAL_COMMA = r"^\s*[-+]?\d*(?:,\d+)?\s*$"
"""A whole number, or one with a decimal comma."""
_COMMA_THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?\s*$"
_POINT_THOUSANDS = r"^\s*[-+]?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d*|(?:\.\d{3}){2,})\s*$"
_PLAIN = r"^\s*[-+]?\d*(?:[.,]\d*)?\s*$"


def has_thousands_mark(cells: pl.Series) -> pl.Series:
    """Return which cells may have marks of thousands: "2,345", "6.669,50"."""
    return cells.str.contains(_COMMA_THOUSANDS) | cells.str.contains(_POINT_THOUSANDS)


def hold_decimal_commas(cells: pl.Series) -> bool:
    """Whether cells are numbers of which some have a comma."""
    return bool(cells.str.contains(",", literal=True).any() and _all_fit(cells, DECIMAL_COMMA))


def check_marks(cells: pl.Series, file: str, *, decimal_comma: bool = False) -> None:
    """Refuse a column of numbers with marks of thousands, or with commas of unknown meaning.

    Parameters
    ----------
    cells : polars.Series
        Texts; null and empty ones are missing.
    file : str
    decimal_comma : bool
        Whether a comma is known to be the decimal mark.

    Raises
    ------
    DataError
        With the first cell that has such a mark.
    """
    marked = cells.str.contains(_POINT_THOUSANDS)
    if not decimal_comma:
        marked |= cells.str.contains(",", literal=True)
    marked = marked.fill_null(value=False)
    present = cells.filter(~marked).drop_nulls().unique()
    present = present.filter(~present.is_in([*filter(looks_missing, present)]))
    numbers = cells.filter(marked)
    thousands = has_thousands_mark(numbers) | numbers.str.contains(DECIMAL_COMMA)
    if not marked.any() or not thousands.all() or not _all_fit(present, _PLAIN):
        return
    row = int(marked.arg_max() or 0)
    text = cells[row].strip()
    raise DataError(
        _problem_of(text), file=file, column=cells.name, row=row + 1,
        expected="numbers such as 1234.5", fix=fix_of_number(text),
    )  # fmt: skip


def fix_of_number(text: str) -> str:
    """Return what to do with a text that is no number."""
    values = _readings(text)
    if not values:
        return "correct the cell, or leave it empty"
    key = "`decimal: ','` next to the table's `file:` in a config"
    if len(values) > 1:
        return f"remove the mark ({values[0]}); or write {key} if it is {values[1]}"
    if _has_one_mark(text):
        return f"write numbers with a decimal point: {values[0]}; or {key}"
    return f"write numbers without the thousands mark, with a decimal point: {values[0]}"


def _problem_of(text: str) -> str:
    values = _readings(text)
    if len(values) > 1:
        return f"{text!r} could be {values[0]} or {values[1]}"
    if _has_one_mark(text):
        return f"{text!r} has a decimal comma"
    first = min(text.find(mark) for mark in ",." if mark in text)
    return f"{text!r} has a thousands mark, {text[first]!r}"


def _has_one_mark(text: str) -> bool:
    return text.count(",") + text.count(".") == 1


def _readings(text: str) -> list[str]:
    """Return the numbers that a text with marks may stand for; none where it is no number."""
    cell = pl.Series([text])
    if cell.str.contains(_COMMA_THOUSANDS)[0]:
        whole = text.replace(",", "")
        is_ambiguous = text.count(",") == 1 and "." not in text
        return [whole, text.replace(",", ".")] if is_ambiguous else [whole]
    if cell.str.contains(_POINT_THOUSANDS)[0]:
        return [text.replace(".", "").replace(",", ".")]
    has_comma = "," in text and cell.str.contains(DECIMAL_COMMA)[0]
    return [text.replace(",", ".")] if has_comma else []


def _all_fit(cells: pl.Series, form: str) -> bool:
    return bool(cells.str.contains(form).all())
