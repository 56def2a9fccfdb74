"""Tables beside the findings: rows with the types of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

Row = dict[str, Any]


def table_of(
    rows: Iterable[Mapping[str, Any]], columns: str, *, number: str = "", whole: str = ""
) -> pa.Table:
    """Return rows as a table; a row may lack a column.

    Parameters
    ----------
    rows : iterable of mapping
    columns : str
        Names of the columns in their order, separated by spaces.
    number, whole : str
        Which of them hold floats and whole numbers; the others hold text.
    """
    types = dict.fromkeys(number.split(), pa.float64()) | dict.fromkeys(whole.split(), pa.int64())
    schema = pa.schema([(name, types.get(name, pa.string())) for name in columns.split()])
    return pa.Table.from_pylist([*rows], schema)


def schema_of(columns: str) -> pa.Schema:
    """Return a schema from names that are separated by spaces.

    The first character is the type: "#" numbers, "+" whole numbers, "?" yes or no, "[" lists of
    numbers, "*" bytes. Other columns hold text.
    """
    types = {
        "#": pa.float64(), "+": pa.int64(), "?": pa.bool_(), "[": pa.list_(pa.float64()),
        "*": pa.binary(),
    }  # fmt: skip
    marked = ((name.lstrip("#+?[*"), types.get(name[0], pa.string())) for name in columns.split())
    return pa.schema([*marked])
