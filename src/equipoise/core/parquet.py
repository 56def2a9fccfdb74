"""Parquet files that tell when they are damaged: every page and the footer have a checksum.

Pages have the checksums of the format itself. The footer has none there, so its SHA-256 lies right
before it, where readers of Parquet don't look.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

_MARK = b"EQSHA256"
_SEAL = len(_MARK) + sha256().digest_size
# What ends a file: the length of the footer in four bytes, and four letters.
_END = 8


def write_table(table: pa.Table, path: Path, **options: Any) -> None:
    """Write a table as a Parquet file with checksums.

    Parameters
    ----------
    table : pyarrow.Table
    path : Path
    **options
        For `pyarrow.parquet.write_table`.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    with path.open("wb+") as file:
        _write(table, file, options)


def table_bytes(table: pa.Table, **options: Any) -> bytes:
    """Return the bytes that `write_table` writes."""
    file = io.BytesIO()
    _write(table, file, options)
    return file.getvalue()


def _write(table: pa.Table, file: BinaryIO, options: dict[str, Any]) -> None:
    pq.write_table(table, file, write_page_checksum=True, **options)
    start = _footer(file)
    file.seek(start)
    footer = file.read()
    file.seek(start)
    file.write(_MARK + sha256(footer).digest() + footer)


def read_table(
    path: Path, columns: Sequence[str] | None = None, schema: pa.Schema | None = None
) -> pa.Table:
    """Read a Parquet file and verify its checksums; a file without checksums is read as it is.

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
    check_footer(path)
    names = None if columns is None else [*columns]
    return pq.read_table(
        path, columns=names, schema=schema, partitioning=None, page_checksum_verification=True
    )


def check_footer(path: Path) -> None:
    """Verify the checksum of a footer; a file without one passes.

    Raises
    ------
    OSError
        When the file is missing, or its footer is damaged.
    """
    with path.open("rb") as file:
        file.seek(max(_footer(file) - _SEAL, 0))
        seal, footer = file.read(_SEAL), file.read()
    if seal.startswith(_MARK) and seal[len(_MARK) :] != sha256(footer).digest():
        raise OSError(f"{path}: the footer does not match its checksum")


def _footer(file: BinaryIO) -> int:
    """Return where the footer starts, as the file itself says."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - _END, 0))
    return max(size - _END - int.from_bytes(file.read(4), "little"), 0)
