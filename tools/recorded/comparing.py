"""Compare two records of findings and tables, by the names of today."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from tools.recorded.typed import typed_findings, without_new

NAMES = Path(__file__).with_name("names.yaml")


def differences(before: Path, after: Path) -> list[str]:
    """Return every difference between two records, a line each."""
    names = yaml.safe_load(NAMES.read_text()) or {}
    older = {path.relative_to(before) for path in before.rglob("*.parquet")}
    newer = {path.relative_to(after) for path in after.rglob("*.parquet")}
    tables = names.get("tables", {})
    pairs = {path: path.with_stem(tables.get(path.stem, path.stem)) for path in older}
    changes = [f"{pairs[path]}: missing" for path in sorted(older) if pairs[path] not in newer]
    changes += [f"{path}: new" for path in sorted(newer - {*pairs.values()})]
    for path, renamed in sorted(pairs.items()):
        if renamed in newer:
            table = renamed_table(pl.read_parquet(before / path), path.stem, names)
            today = pl.read_parquet(after / renamed)
            if path.stem == "findings":
                table = typed_findings(table, names["findings"])
                today = without_new(today, names["findings"])
                table = without_new(table, names["findings"])
            new_columns = names.get("new_columns", {}).get(path.stem, [])
            lines = _table_changes(table, today.drop(new_columns, strict=False))
            changes += [f"{renamed}: {line}" for line in lines]
    return changes


def renamed_table(table: pl.DataFrame, stem: str, names: dict[str, Any]) -> pl.DataFrame:
    """Return a table with its columns and metrics under today's names."""
    columns = names.get("columns", {}).get(stem, {})
    table = table.rename({old: new for old, new in columns.items() if old in table.columns})
    metrics = names.get("metrics", {})
    if metrics and "metric" in table.columns:
        table = table.with_columns(pl.col("metric").replace(metrics))
    return table.drop(names.get("dropped", {}).get(stem, []), strict=False)


def _table_changes(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[str]:
    added, removed = (
        set(after.columns) - set(before.columns),
        set(before.columns) - set(after.columns),
    )
    if added:
        yield f"new columns {sorted(added)}"
    if removed:
        yield f"missing columns {sorted(removed)}"
    if before.height != after.height:
        yield f"{before.height} rows before, {after.height} after"
        return
    for name in before.columns:
        if name in after.columns:
            yield from _column_changes(before[name], after[name])


def _column_changes(before: pl.Series, after: pl.Series) -> Iterator[str]:
    # By their texts: two values that are not a number are the same.
    rows = [row for row in range(len(before)) if repr(before[row]) != repr(after[row])]
    if rows:
        first = f"{before[rows[0]]!r} -> {after[rows[0]]!r}"
        yield f"{before.name}: {len(rows)} rows differ, first {rows[0]}: {first}"
