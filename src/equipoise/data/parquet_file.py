"""Parquet: typed columns, read whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import DataError
from equipoise.data.problems import check_columns


def read_parquet(
    content: bytes | Path, wanted: tuple[str, ...], file: str
) -> dict[str, pa.ChunkedArray]:
    """Read some columns of a Parquet file, held or on disk.

    Raises
    ------
    DataError
        When the file is truncated or damaged, or a column is missing or doubled.
    """
    with open_parquet(content, file) as parquet:
        check_columns(parquet.schema_arrow.names, wanted, file)
        table = parquet.read(columns=[*wanted]).select([*wanted])
        # Damaged pages can hold bytes that are no text; later steps rely on valid text.
        table.validate(full=True)
    return {column: table[column] for column in wanted}


@contextmanager
def open_parquet(content: bytes | Path, file: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; what it is read with inside the block fails with one error.

    Raises
    ------
    DataError
        When the file is truncated or damaged.
    """
    source = pa.BufferReader(content) if isinstance(content, bytes) else pa.memory_map(str(content))
    try:
        with source:
            yield pq.ParquetFile(source)
    except (pa.ArrowException, OSError):
        raise DataError(
            "the file is truncated, damaged or no Parquet",
            file=file,
            expected="a whole Parquet file",
            fix="write or copy it again",
        ) from None
