"""Texts of data sets, which are UTF-8 by their formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from equipoise.core import DataError
from equipoise.data.text_file import to_utf8

_FIXES = {
    "`encoding": "convert the file to UTF-8",
    "`delimiter": "write cells apart by commas, or by tabs in a .tsv",
}


def utf8_text(content: bytes, file: str) -> str:
    """Return the text of a file, without a byte order mark.

    Raises
    ------
    DataError
        When it is not UTF-8.
    """
    with as_formats_are():
        to_utf8(content, file, "utf-8", header=False)
    return content.decode("utf-8-sig")


@contextmanager
def as_formats_are() -> Iterator[None]:
    """Tell errors of tables without the options that a format leaves no room for."""
    try:
        yield
    except DataError as error:
        fix = next((new for old, new in _FIXES.items() if old in (error.fix or "")), None)
        if fix is None:
            raise
        raise DataError(
            error.problem,
            file=error.file,
            column=error.column,
            row=error.row,
            expected=error.expected,
            fix=fix,
        ) from None
