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
def open_parquet(path: Path, file: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; what it is read with inside the block fails with one error.

    Raises
    ------
    DataError
        When the file is truncated or damaged.
    """
    try:
        with pa.OSFile(str(path)) as source:
            # Pieces of a column are read as they are asked for; a map would count as memory held.
            yield pq.ParquetFile(source, buffer_size=_BYTES_AT_ONCE, pre_buffer=False)
    except (pa.ArrowException, OSError):
        raise DataError(
            "the file is truncated, damaged or no Parquet",
            file=file,
            expected="a whole Parquet file",
            fix="write or copy it again",
        ) from None
