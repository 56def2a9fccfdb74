"""Files: read whole or hashed in pieces; JSON that rejects repeated keys."""

import codecs
import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.core import DataError, Fields
from equipoise.core.files import IrregularFileError, open_regular, read_regular
from equipoise.core.types import FileFacts
from equipoise.data.problems import nearest, show

ROWS_EXPECTED = "a header and at least one row of data"
# Two other names of tables are less alike, though they have the extension in common.
_MISSPELT = 0.8
BLANK = b"\xef\xbb\xbf \t\r\n"


_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://.+", re.IGNORECASE)


def is_address(text: str) -> bool:
    """Whether a text is an address such as s3://bucket/rows.csv, and no path."""
    return _ADDRESS.fullmatch(text) is not None


def hash_parts(parts: Iterable[bytes]) -> FileFacts:
    """Return "sha256" and "bytes" of a content in parts."""
    hashed, size = hashlib.sha256(), 0
    for part in parts:
        hashed.update(part)
        size += len(part)
    return {"sha256": hashed.hexdigest(), "bytes": size}


def read_whole(path: Path, formats: str, expected: str = ROWS_EXPECTED) -> bytes:
    """Read the whole file once, so that its hash is of the parsed bytes.

    Raises
    ------
    DataError
        When there is no such file, it is a directory, a pipe or a device, empty or may not be read.
    """
    with translated(path, formats):
        content = read_regular(path)
    if not content.strip(BLANK):
        raise empty_file(path, expected)
    return content


def hash_file(path: Path, formats: str, expected: str = ROWS_EXPECTED) -> FileFacts:
    """Return "sha256" and "bytes" of a file without holding it in memory.

    Raises
    ------
    DataError
        As `read_whole`.
    """
    with translated(path, formats), open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    if size == 0:
        raise empty_file(path, expected)
    return {"sha256": digest, "bytes": size}


@contextmanager
def translated(path: Path, formats: str) -> Iterator[None]:
    """Turn an error of the operating system into an error with a fix."""
    expected = None
    try:
        yield
        return
    except FileNotFoundError:
        similar = _similar(path)
        hint = f"; did you mean {show(similar)}?" if similar else ""
        problem, fix = f"the file does not exist{hint}", "check the path"
    except (IsADirectoryError, IrregularFileError) as error:
        problem, expected = str(error.strerror), f"a file ending in {formats}"
        fix = "name a file: the one inside a directory, or one with the content of a pipe"
    except PermissionError:
        problem, fix = "the file may not be read", "give yourself read permission"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problem, fix = f"the file cannot be read ({reason})", "check the path and the disk"
    raise DataError(problem, file=str(path), expected=expected, fix=fix)


def read_text(
    path: Path | str, formats: str, expected: str, *, encoding: str = "utf-8"
) -> tuple[str, FileFacts]:
    """Return the text of a file, without a byte order mark, and its digest.

    Raises
    ------
    DataError
        As `read_whole`, and when the text is not of the encoding.
    """
    content = read_whole(Path(path), formats, expected)
    text = to_utf8(content, str(path), encoding, header=False).decode("utf-8-sig")
    return text, hash_parts([content])


MOST_UNPACKED, MOST_TIMES = 2 << 30, 16
"""What is compressed may unpack to this many bytes, or this many times its own size."""


def most_unpacked(packed: int) -> int:
    """Return how many bytes some compressed bytes may unpack to."""
    return max(MOST_UNPACKED, MOST_TIMES * packed)


def too_large(unpacked: int, packed: int, file: str, column: str | None, fix: str) -> DataError:
    """Return the error of a file that unpacks to more than `most_unpacked`."""
    return DataError(
        f"{packed:,} bytes unpack to {unpacked:,} or more",
        file=file,
        column=column,
        expected=f"at most {most_unpacked(packed):,} bytes: {MOST_UNPACKED / 2**30:g} GiB, or "
        f"{MOST_TIMES} times the compressed size",
        fix=fix,
    )


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, split at line feeds only."""
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def unknown_extension(path: Path, formats: str, fix: str | None = None) -> DataError:
    """Return the error of a file with an unknown extension."""
    return DataError(
        f"the extension {show(path.suffix.lower())} names no known format",
        file=str(path),
        expected=formats,
        fix=fix or "convert the file, or rename it if it is one of these",
    )


def empty_file(path: Path | str, expected: str) -> DataError:
    """Return the error of a file without content."""
    return DataError(
        "the file is empty",
        file=str(path),
        expected=expected,
        fix="check that the table was written completely",
    )


def _similar(path: Path) -> str | None:
    try:
        names = [other.name for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        return None
    return nearest(path.name, names, cutoff=_MISSPELT)


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
        is_utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
        return content if is_utf8 else text.encode("utf-8")
    except UnicodeDecodeError as error:
        at = error.start
    except (LookupError, ValueError, AttributeError):
        raise DataError(
            f"the encoding {show(encoding)} is unknown, or not one of text",
            file=file,
            expected="a name such as utf-8, utf-16, cp1252 or latin-1",
            fix="correct `encoding:`",
        ) from None
    other = next((name for mark, name in MARKS if content.startswith(mark)), "cp1252")
    raise DataError(
        f"byte {at} (0x{content[at]:02x}) is not {encoding}",
        file=file,
        row=_row_at(content, at) + (not header) or None,
        expected=f"text encoded as {encoding}",
        fix=f"save it as UTF-8, or give its encoding, such as `encoding: {other}`",
    )


def _row_at(content: bytes, position: int) -> int:
    """Row of data that holds a byte, 0 for the header; quoted newlines do not count."""
    before = content[:position].decode("latin-1")
    try:
        return sum(1 for record in csv.reader(io.StringIO(before + "x", newline="")) if record) - 1
    except csv.Error:
        return before.count("\n")


class RepeatedKeyError(ValueError):
    """An object has the same key twice.

    Attributes
    ----------
    key : str
    """

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__("the key is there twice")

    def located(self, file: str, row: int | None = None) -> DataError:
        """Return the error that a user sees, with the place of the object."""
        return DataError(
            str(self),
            file=file,
            column=self.key,
            row=row,
            expected="every key once",
            fix="remove or rename one of them",
        )


def _unique_keys(members: list[tuple[str, Any]]) -> Fields:
    fields = dict(members)
    if len(fields) < len(members):
        keys = [key for key, _ in members]
        raise RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys)


def parse_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    RepeatedKeyError
        When an object has the same key twice, at any depth.
    ValueError
        When the text is not JSON, or is nested too deep.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("the nesting is too deep") from None
