"""Tables as rows of scalars with a key, and the differences between two of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
PATH = ("path",)
KEY = ("audit", "model", "metric", "subject", "groups", "version")
# Sentences and outcomes make no key while there are other columns.
SENTENCES = {"reason", "note", "direction", "null", "method", "citation", "unit", "family"}
SENTENCES |= {"sentence", "rule", "text", "value"}
NUMBERS = {"NaN", "Infinity", "-Infinity"}
OUTCOMES = {"verdict", "change", "conclusion", "band"}
# How long it took, and where it was written.
VOLATILE = {"seconds", "time", "run", "report", "page", "figures", "started"}


@dataclass(frozen=True)
class Table:
    """Rows of scalars and the columns that name a row."""

    key: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def columns(self) -> list[str]:
        """Columns that some row has, sorted."""
        return sorted({column for row in self.rows for column in row})

    def by_key(self) -> dict[tuple[str, ...], Row]:
        """Rows by key; rows with the same key are numbered in the order of their values."""
        found: dict[tuple[str, ...], Row] = {}
        seen: Counter[tuple[str, ...]] = Counter()
        for row in sorted(self.rows, key=encoded):
            key = tuple(f"{column}={row[column]}" for column in self.key if present(row, column))
            seen[key] += 1
            found[key if seen[key] == 1 else (*key, f"#{seen[key]}")] = row
        return found


def document(values: Any) -> Table:
    """Return the values of a JSON document by path."""
    rows = [{"path": path, "value": value} for path, value in scalars("", values)]
    return Table(PATH, tuple(row for row in rows if not VOLATILE & {*row["path"].split(".")}))


def table_of(rows: Sequence[Row]) -> Table:
    """Return rows as scalars with the first columns that tell them apart."""
    flat = tuple(
        {
            path: value
            for column in row
            if column != "seconds"
            for path, value in scalars(column, row[column])
        }
        for row in rows
    )
    columns = list(dict.fromkeys(column for row in flat for column in row))
    key = [column for column in KEY if column in columns]
    more: list[str] = []
    for column in sorted(set(columns) - {*key}, key=lambda one: key_order(one, columns, flat)):
        if is_unique([*key, *more], flat):
            break
        more.append(column)
    for column in more[:-1]:
        rest = [one for one in more if one != column]
        more = rest if is_unique([*key, *rest], flat) else more
    return Table((*key, *more), flat)


def is_unique(columns: Sequence[str], rows: Sequence[Row]) -> bool:
    """Return whether no two rows have the same values in these columns."""
    return len({tuple(str(row.get(one)) for one in columns) for row in rows}) == len(rows)


def key_order(column: str, columns: Sequence[str], rows: Sequence[Row]) -> tuple[int, int]:
    """Return how late a column is taken into the key, and its place in the table."""
    kinds = {type(row.get(column)) for row in rows if row.get(column) != "NaN"}
    late = 2 * int(column.startswith("by_group")) + int(not kinds <= {str})
    if column in SENTENCES | OUTCOMES:
        late = 4
    elif kinds & {float, list}:
        late = 5
    return late, columns.index(column)


def scalars(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is nested as paths and values; NaN and infinities as strings."""
    if path.rpartition(".")[2] == "parameters" and isinstance(value, str):
        value = json.loads(value or "{}")
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield from scalars(f"{path}.{name}" if path else str(name), one)
    elif isinstance(value, list) and any(isinstance(one, Mapping) for one in value):
        for name, one in zip(names_of(value), value, strict=True):
            yield from scalars(f"{path}.{name}", one)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    elif isinstance(value, list):
        yield path, [next(scalars("", one))[1] for one in value]
    else:
        yield path, value


def names_of(values: Sequence[Any]) -> Sequence[Any]:
    """Return the first field of each object in a list, or places where that is no name."""
    firsts = [
        next(iter(one.values()), None) if isinstance(one, Mapping) else None for one in values
    ]
    named = all(isinstance(first, str) for first in firsts) and len({*firsts}) == len(firsts)
    return firsts if named else range(len(values))


def present(row: Row, column: str) -> bool:
    """Return whether a row has a value that is not empty."""
    return row.get(column) not in (None, "")


def encoded(row: Row) -> str:
    """Return a row as JSON, whatever the order of its columns."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False, allow_nan=False)


def differences(
    before: Table, after: Table, rtol: float = 0.0, numbers: bool = False
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield key, column, old and new value of each difference; lost and new rows as a whole."""
    old, new = before.by_key(), after.by_key()
    # A new path of a document is as a new column: no difference.
    for key in sorted(old.keys() if before.key == PATH else old.keys() | new.keys()):
        name = ", ".join(key)
        if key not in new or key not in old:
            yield name, "row", "there" if key in old else "none", "lost" if key in old else "new"
            continue
        for column, value in old[key].items():
            other = new[key].get(column)
            if not (numbers and is_text(column, value)) and not same(value, other, rtol):
                yield name, column, value, other


def is_text(column: str, value: Any) -> bool:
    """Return whether a value is a sentence."""
    name = column.rpartition(".")[2]
    return isinstance(value, str) and value not in NUMBERS and name in SENTENCES


def same(one: Any, other: Any, rtol: float) -> bool:
    """Return whether two values agree."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other, [rtol] * len(one)))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= rtol * max(abs(one), abs(other))
    return bool(one == other)
