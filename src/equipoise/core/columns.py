"""Tables from rows, by the names and types of their columns."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

TEXT, TEXTS = pa.string(), pa.list_(pa.string())
NUMBER, NUMBERS = pa.float64(), pa.list_(pa.float64())
INTEGER, FLAG, BYTES = pa.int64(), pa.bool_(), pa.binary()

Columns = Mapping[str, pa.DataType]
"""The type of each column by its name, in their order."""


def table_of(rows: Iterable[Mapping[str, Any]], columns: Columns) -> pa.Table:
    """Return rows as a table; a row may lack a column."""
    return pa.Table.from_pylist([*rows], pa.schema(columns))
