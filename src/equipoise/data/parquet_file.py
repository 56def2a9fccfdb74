"""Parquet: typed columns, read whole or not at all."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from equipoise.core import DataError
from equipoise.data.problems import check_columns


def read_parquet(content: bytes, wanted: tuple[str, ...], file: str) -> dict[str, pa.ChunkedArray]:
    """Read some columns of a Parquet file.

    Raises
    ------
    DataError
        When the file is truncated or damaged, or a column is missing or doubled.
    """
    try:
        parquet = pq.ParquetFile(pa.BufferReader(content))
        check_columns(parquet.schema_arrow.names, wanted, file)
        table = parquet.read(columns=[*wanted]).select([*wanted])
        # Damaged pages can hold bytes that are no text; later steps rely on valid text.
        table.validate(full=True)
    except (pa.ArrowException, OSError):
        raise DataError(
            "the file is truncated, damaged or no Parquet",
            file=file,
            expected="a whole Parquet file",
            fix="write or copy it again",
        ) from None
    return {column: table[column] for column in wanted}
