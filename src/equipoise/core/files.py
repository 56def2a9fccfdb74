"""Files: read only if regular, verified by checksums, freed when mapped."""

import errno
import io
import json
import mmap
import os
import stat
from collections.abc import Sequence
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core.arrays import AnyArray, Integers
from equipoise.core.errors import RunError
from equipoise.core.writing import writer


def unreadable(path: str | Path, error: Exception, fix: str = "run the audit again") -> RunError:
    """Return the error about a file of a run that can't be read, without a library's words."""
    code = error.errno if isinstance(error, OSError) else None
    if isinstance(error, IrregularFileError):
        problem = error.strerror
    elif code:
        problem = os.strerror(code).lower()
    else:
        problem = "it is damaged, or equipoise didn't write it"
    if isinstance(error, PermissionError):
        fix = "give your user the right to read it"
    return RunError(f"{path}: cannot be read: {problem}. To do: {fix}.")


class IrregularFileError(OSError):
    """A path names a pipe, a socket or a device."""


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file to read its bytes; links to files are followed.

    Raises
    ------
    IrregularFileError
        When it is a named pipe, a socket or a device. Nothing is waited for.
    OSError
        As `open`.
    """
    mode = os.stat(path).st_mode  # noqa: PTH116 - a path may be text
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        problem = "it isn't a regular file: a pipe, a socket or a device"
        raise IrregularFileError(errno.EINVAL, problem, str(path))
    return open(path, "rb")  # noqa: PTH123 - the caller closes it


def read_regular(path: str | Path) -> bytes:
    """Return the bytes of a file, with the errors of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


def read_json_file(path: str | Path) -> Any:
    """Return a JSON file's value, with errors of `open_regular` and `decode_json`."""
    return decode_json(read_regular(path))


def decode_json(content: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises
    ------
    ValueError
        When the text is not JSON, or is nested too deep.
    """
    try:
        return json.loads(content)
    except RecursionError:
        raise ValueError("the nesting is too deep") from None


_MARK = b"EQSHA256"
_SEAL = len(_MARK) + sha256().digest_size
# What ends a file: the length of the footer in four bytes, and four letters.
_END = 8


def write_table(table: pa.Table, path: Path, **options: str | int) -> None:
    """Write a table as a Parquet file with checksums.

    Parameters
    ----------
    table : pyarrow.Table
    path : Path
    **options
        For `pyarrow.parquet.write_table`.

    Raises
    ------
    RunError
        When the file cannot be written.
    """
    with writer(path) as file:
        _write(table, file, options)


def table_bytes(table: pa.Table, **options: str | int) -> bytes:
    """Return the bytes that `write_table` writes."""
    file = io.BytesIO()
    _write(table, file, options)
    return file.getvalue()


def _write(table: pa.Table, file: BinaryIO, options: dict[str, str | int]) -> None:
    pq.write_table(table, file, write_page_checksum=True, **options)
    start = footer_start(file)
    file.seek(start)
    footer = file.read()
    file.seek(start)
    file.write(_MARK + sha256(footer).digest() + footer)


def read_table(
    path: Path, columns: Sequence[str] | None = None, schema: pa.Schema | None = None
) -> pa.Table:
    """Read a Parquet file and verify its checksums, if it has them.

    Parameters
    ----------
    path : Path
    columns : sequence of str, optional
        Columns to read; only their pages are verified.
    schema : pyarrow.Schema, optional
        Types of the columns.

    Raises
    ------
    OSError, pyarrow.ArrowException
        When the file is missing, damaged or no Parquet.
    """
    # One open file: another may take the name while this one is read.
    with pa.OSFile(os.fsencode(path)) as file:
        file.seek(max(footer_start(file) - _SEAL, 0))
        seal, footer = file.read(_SEAL), file.read()
        if seal.startswith(_MARK) and seal[len(_MARK) :] != sha256(footer).digest():
            raise OSError(f"{path}: the footer does not match its checksum")
        names = None if columns is None else [*columns]
        return pq.read_table(
            file, columns=names, schema=schema, partitioning=None, page_checksum_verification=True
        )


def footer_start(file: BinaryIO) -> int:
    """Return the start of the footer, as the file declares it."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - _END, 0))
    return max(size - _END - int.from_bytes(file.read(4), "little"), 0)


# Bytes to read before memory is freed, and bytes that the system reads around a row.
_MOST_READ, _AROUND = 1 << 26, 1 << 16


class Mapped:
    """Counter of the bytes read from a memory-mapped array, which frees them.

    The system keeps what was read for as long as the array lives, and counts it as memory of the
    process; given back, it is read anew where it is needed. Arrays in memory are left alone.

    Parameters
    ----------
    array : ndarray
    """

    def __init__(self, array: AnyArray) -> None:
        self._map, self._read = _find_map(array), 0
        self._row = array[:1].nbytes

    def rows(self, rows: Integers) -> None:
        """Count rows that were read, and free memory beyond 64 MiB."""
        if self._map is not None and len(rows):
            span = (int(rows.max()) - int(rows.min()) + 1) * self._row
            self._count(min(span, len(rows) * max(self._row, _AROUND)))

    def run(self, count: int) -> None:
        """Count consecutive rows that were read, and free memory beyond 64 MiB."""
        if self._map is not None:
            self._count(count * self._row)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > _MOST_READ:
            self.give_back()

    def give_back(self) -> None:
        """Free the memory of the rows read so far."""
        self._read = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _find_map(array: Any) -> mmap.mmap | None:
    """Return the read-only memory map of an array, or None."""
    reads = False
    while isinstance(array, np.ndarray):
        reads |= isinstance(array, np.memmap) and array.mode == "r"
        array = array.base
    return array if reads and isinstance(array, mmap.mmap) else None
