"""The table `group_sizes`, which every audit has: each group with its size, compared or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from equipoise.core.groups import Groups

Row = dict[str, Any]

# Groups that an error lists.
_LISTED = 10

SCHEMA = pa.schema(
    [
        ("groups", pa.string()),
        ("group", pa.string()),
        ("levels", pa.list_(pa.string())),
        ("n", pa.int64()),
        ("usable", pa.bool_()),
        ("note", pa.string()),
    ]
)


def sizes_of(groups: Groups, *, missing: str = "an attribute is missing") -> Iterator[Row]:
    """Yield a row per group, and one without a name for rows that are in none.

    Parameters
    ----------
    groups : Groups
    missing : str
        Why rows are in no group.
    """
    for name, levels, n, usable in zip(
        groups.names, groups.levels, groups.counts.tolist(), groups.usable, strict=True
    ):
        note = "empty" if n == 0 else "" if usable else f"fewer than {groups.min_size} rows"
        yield size(groups.name, name, n, levels=levels, usable=bool(usable), note=note)
    if groups.n_missing:
        yield size(groups.name, "", groups.n_missing, usable=False, note=missing)


def size(
    groups: str, group: str, n: int, *, levels: Iterable[str] = (), usable: bool, note: str = ""
) -> Row:
    """Return the row of one group."""
    return {
        "groups": groups,
        "group": group,
        "levels": [*levels],
        "n": n,
        "usable": usable,
        "note": note,
    }


def listed(groups: Groups) -> str:
    """Return the first groups with their sizes, for an error."""
    sized = [*zip(groups.names, groups.counts.tolist(), strict=True)]
    shown = ", ".join(f"{name}: {n}" for name, n in sized[:_LISTED])
    return shown + (", …" if len(sized) > _LISTED else "") if sized else "none has any"


def table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as the table."""
    return pa.Table.from_pylist([*rows], SCHEMA)
