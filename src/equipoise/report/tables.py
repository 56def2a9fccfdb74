"""Reading a result's tables for the sections."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from equipoise.core import AuditResult
from equipoise.report.blocks import value_of

Row = Mapping[str, Any]
Key = tuple[str, ...]


def rows(result: AuditResult, name: str) -> list[dict[str, Any]]:
    """Return a table's rows, none when the result lacks it; unknown numbers are NaN."""
    table = result.tables.get(name)
    if table is None:
        return []
    floats = {f.name for f in table.schema if str(f.type) in ("double", "float")}
    found: list[dict[str, Any]] = table.to_pylist()
    for row in found:
        row.update({key: math.nan for key in floats if row[key] is None})
    return found


def panels(found: Iterable[Row], *keys: str) -> dict[Key, list[Row]]:
    """Split rows by the values of columns, in order of first appearance."""
    split: dict[Key, list[Row]] = {}
    for row in found:
        split.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    return split


def distinct(found: Iterable[Row], key: str) -> tuple[str, ...]:
    """Return a column's values in order of first appearance."""
    return tuple(dict.fromkeys(str(row[key]) for row in found))


def scope(groups: str, version: str) -> str:
    """Return the name of a panel: its groups, and the version unless it is the only one."""
    name = groups or "all images"
    return name if version == "default" else f"{name} ({version})"


def scope_of(row: Any) -> str:
    """Return the name of the panel of a row or finding."""
    return scope(value_of(row, "groups"), value_of(row, "version"))


def has(value: float | None) -> bool:
    """Whether there is a number."""
    return value is not None and not math.isnan(value)


def parameters_text(parameters: str) -> str:
    """Return a finding's parameters, JSON, as "name: value" pairs."""
    try:
        found = json.loads(parameters)
    except ValueError:
        return parameters
    if not isinstance(found, dict):
        return parameters
    return ", ".join(f"{name}: {value}" for name, value in found.items())


def points(
    found: Iterable[Row], tip: Callable[[Any], str], *names: str, **columns: str
) -> list[dict[str, Any]]:
    """Return rows as points of a chart, with a tooltip.

    Fields are columns of the same name (`names`), or of another (`columns`: field to column).
    """
    fields = dict(zip(names, names, strict=True)) | columns
    return [{name: row[key] for name, key in fields.items()} | {"tip": tip(row)} for row in found]
