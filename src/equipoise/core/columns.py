"""Tables whose columns are named, with their types, in one line."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa


def table_of(rows: Iterable[Mapping[str, Any]], columns: str) -> pa.Table:
    """Return rows as a table, whose columns are as of `schema_of`; a row may lack a column."""
    return pa.Table.from_pylist([*rows], schema_of(columns))


def schema_of(columns: str) -> pa.Schema:
    """Return a schema from names that are separated by spaces.

    The first character is the type: "#" numbers, "+" whole numbers, "?" yes or no, "[" lists of
    numbers, "&" lists of texts, "*" bytes. Other columns hold text.
    """
    types = {
        "#": pa.float64(), "+": pa.int64(), "?": pa.bool_(), "[": pa.list_(pa.float64()),
        "&": pa.list_(pa.string()), "*": pa.binary(),
    }  # fmt: skip
    marked = ((name.lstrip("#+?[&*"), types.get(name[0], pa.string())) for name in columns.split())
    return pa.schema([*marked])
