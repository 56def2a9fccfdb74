"""Files: read whole or hashed in pieces, with one error for each way that fails."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.core import DataError
from equipoise.core.files import IrregularFileError, open_regular, read_regular
from equipoise.data.problems import nearest, show

ROWS_EXPECTED = "a header and at least one row of data"
BLANK = b"\xef\xbb\xbf \t\r\n"


def read_whole(path: Path, formats: str, expected: str = ROWS_EXPECTED) -> bytes:
    """Read the whole file once, so that the hash is of the very bytes that are parsed.

    Raises
    ------
    DataError
        When there is no such file, it is a directory, a pipe or a device, empty or may not be read.
    """
    with translated(path, formats):
        content = read_regular(path)
    if not content.strip(BLANK):
        raise _empty(path, expected)
    return content


def hash_file(path: Path, formats: str, expected: str = ROWS_EXPECTED) -> dict[str, Any]:
    """Return "sha256" and "bytes" of a file without holding it, after the checks of `read_whole`.

    Raises
    ------
    DataError
        As `read_whole`.
    """
    with translated(path, formats), open_regular(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    if size == 0:
        raise _empty(path, expected)
    return {"sha256": digest, "bytes": size}


@contextmanager
def translated(path: Path, formats: str) -> Iterator[None]:
    """Turn what the system says of a file into an error with a fix."""
    try:
        yield
    except FileNotFoundError:
        raise _no_file(path) from None
    except IsADirectoryError:
        raise DataError(
            "this is a directory",
            file=str(path),
            expected=f"a file ending in {formats}",
            fix="name the file inside it",
        ) from None
    except IrregularFileError as error:
        raise DataError(
            str(error.strerror),
            file=str(path),
            expected=f"a file ending in {formats}",
            fix="write what it gives to a file, and name that",
        ) from None
    except PermissionError:
        raise DataError(
            "the file may not be read",
            file=str(path),
            expected="a file with read permission",
            fix="give yourself read permission",
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"the file cannot be read ({reason})", file=str(path), fix="check the path and the disk"
        ) from None


def unknown_extension(path: Path, formats: str) -> DataError:
    """Return the error of a file whose extension names no format."""
    return DataError(
        f"the extension {show(path.suffix.lower())} names no known format",
        file=str(path),
        expected=formats,
        fix="convert the file, or rename it if it is one of these",
    )


def _empty(path: Path, expected: str) -> DataError:
    return DataError(
        "the file is empty",
        file=str(path),
        expected=expected,
        fix="check that the table was written completely",
    )


def _no_file(path: Path) -> DataError:
    try:
        names = [other.name for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        names = []
    # Any two names of tables have their extension in common: that alone makes none similar.
    stem = nearest(path.stem, (Path(name).stem for name in names))
    alike = [name for name in names if Path(name).stem == stem]
    similar = nearest(path.name, alike) or min(alike, default=None)
    return DataError(
        "the file does not exist",
        file=str(path),
        fix=f"write {show(similar)} if that was meant" if similar else "check the path",
    )
