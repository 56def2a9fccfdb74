"""Decoding of text files, with an error that says where the encoding breaks."""

from __future__ import annotations

import codecs
import csv
import io

from equipoise.core import DataError
from equipoise.data.problems import show

MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


def to_utf8(content: bytes, file: str, encoding: str, *, header: bool = True) -> bytes:
    """Return the content as UTF-8, unchanged when it is UTF-8 already.

    Errors count rows of data: without the first line, where that is a `header`.

    Raises
    ------
    DataError
        When the encoding is unknown, or the content is not of it (byte and row are named).
    """
    try:
        text = content.decode(encoding)
        return content if _is_utf8(encoding) else text.encode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_decodable(content, file, encoding, error.start, header) from None
    except (LookupError, ValueError, AttributeError):
        raise DataError(
            f"the encoding {show(encoding)} is unknown, or not one of text",
            file=file,
            expected="a name such as utf-8, utf-16, cp1252 or latin-1",
            fix="correct `encoding:`",
        ) from None


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")


def _not_decodable(
    content: bytes, file: str, encoding: str, position: int, header: bool
) -> DataError:
    marked = next((name for mark, name in MARKS if content.startswith(mark)), None)
    row = _row_at(content, position) + (not header)
    return DataError(
        f"byte {position} (0x{content[position]:02x}) is not {encoding}",
        file=file,
        row=row or None,
        expected=f"text encoded as {encoding}",
        fix=f"give `encoding: {marked or 'cp1252'}`"
        + ("" if marked else ", or the encoding that the file was written in"),
    )


def _row_at(content: bytes, position: int) -> int:
    """Row of data that holds a byte, 0 for the header; quoted newlines do not count."""
    before = content[:position].decode("latin-1")
    try:
        return sum(1 for record in csv.reader(io.StringIO(before + "x", newline="")) if record) - 1
    except csv.Error:
        return before.count("\n")
