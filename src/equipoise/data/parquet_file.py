"""Parquet: typed columns, read whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import DataError
from equipoise.data.problems import check_columns

_BYTES_AT_ONCE = 1 << 20
# The name under which a footer keeps the types that the writer had, and one that nothing reads.
_TYPES, _NO_TYPES = b"ARROW:schema", b"ARROW_schema"
# What ends a file: the length of the footer in four bytes, and four letters.
_END = 8


def read_parquet(path: Path, wanted: tuple[str, ...], file: str) -> dict[str, pa.ChunkedArray]:
    """Read some columns of a Parquet file.

    Raises
    ------
    DataError
        When the file is truncated or damaged, or a column is missing or doubled.
    """
    with open_parquet(path, file) as parquet:
        check_columns(parquet.schema_arrow.names, wanted, file)
        table = parquet.read(columns=[*wanted]).select([*wanted])
        # Damaged pages can hold bytes that are no text; later steps rely on valid text.
        table.validate(full=True)
    return {column: table[column] for column in wanted}


@contextmanager
def open_parquet(path: Path, file: str, *, stored_types: bool = False) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; what it is read with inside the block fails with one error.

    Parameters
    ----------
    path : Path
    file : str
        The path as given, for messages.
    stored_types : bool
        Read what Parquet itself holds, whatever types the writer had: lists of a fixed size are
        lists. Before version 26 pyarrow reads none of a fixed size of which one is null.

    Raises
    ------
    DataError
        When the file is truncated or damaged.
    """
    try:
        with pa.OSFile(str(path)) as source:
            # Pieces of a column are read as they are asked for; a map would count as memory held.
            metadata = _without_types(source) if stored_types else None
            yield pq.ParquetFile(
                source,
                metadata=metadata,
                buffer_size=_BYTES_AT_ONCE,
                pre_buffer=False,
                page_checksum_verification=True,
            )
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise DataError(
            "the file is truncated, damaged or no Parquet",
            file=file,
            expected="a whole Parquet file",
            fix="write or copy it again",
        ) from None


def _without_types(source: pa.NativeFile) -> pq.FileMetaData:
    """Return the footer of a file without the types that the writer had."""
    size = source.size()
    source.seek(max(0, size - _END))
    length = int.from_bytes(source.read(4), "little")
    source.seek(max(0, size - _END - length))
    footer = source.read()
    before, found, after = footer.rpartition(_TYPES)
    renamed = before + (_NO_TYPES if found else b"") + after
    return pq.read_metadata(pa.BufferReader(b"PAR1" + renamed))
