"""Archives of files of unknown origin, read within a bound of memory."""

import io
import zipfile
from collections.abc import Callable, Mapping
from functools import partial

import pyarrow as pa

from equipoise.core import DataError
from equipoise.data.files import most_unpacked, too_large

_ZSTANDARD = 93
"""How archives name this compression, which Python's own reader doesn't know."""
_LOCAL_HEADER, _NAME_LENGTH, _EXTRA_LENGTH = 30, slice(26, 28), slice(28, 30)


def archive_entries(content: bytes, file: str, expected: str) -> Mapping[str, Callable[[], bytes]]:
    """Return the readers of the files in a ZIP archive, by name.

    Parameters
    ----------
    content : bytes
        The archive.
    file, expected : str
        The file and what it should be, for errors.

    Raises
    ------
    DataError
        When the archive is damaged, or unpacks to too much; readers raise it, too.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
    except zipfile.BadZipFile:
        raise _damaged("it isn't a whole archive", file, expected) from None
    total = sum(entry.file_size for entry in entries)
    if total > most_unpacked(len(content)):
        raise too_large(total, len(content), file, None, "split the file")
    return {entry.filename: partial(_unpacked, content, entry, file, expected) for entry in entries}


def _unpacked(content: bytes, entry: zipfile.ZipInfo, file: str, expected: str) -> bytes:
    try:
        if entry.compress_type != _ZSTANDARD:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                return archive.read(entry)
        head = content[entry.header_offset :][:_LOCAL_HEADER]
        lengths = (int.from_bytes(head[place], "little") for place in (_NAME_LENGTH, _EXTRA_LENGTH))
        start = entry.header_offset + _LOCAL_HEADER + sum(lengths)
        packed = content[start : start + entry.compress_size]
        return bytes(pa.decompress(packed, entry.file_size, codec="zstd", asbytes=True))
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, pa.ArrowException):
        raise _damaged(f"{entry.filename} in it is damaged", file, expected) from None


def _damaged(problem: str, file: str, expected: str) -> DataError:
    return DataError(problem, file=file, expected=expected, fix="write or copy it again")
