"""Sizes of groups: the table `group_sizes` of every audit, those of a plan, and too small ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import DataError
from equipoise.core.groups import Groups
from equipoise.data.problems import looks_missing

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


class Read(Protocol):
    """A section about a table, or about images that a table was made of."""

    @property
    def has_missing(self) -> bool:
        """Whether the key `missing` goes with it: with tables, not folders or other formats."""


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


def planned(groups: Groups, of: str, left: Mapping[str, int], given: Read | None) -> list[Row]:
    """Return each group's row in a plan, then those of what is in no group.

    Parameters
    ----------
    groups : Groups
    of : str
        What is counted: "images" or "rows".
    left : mapping of str to int
        Rows that are in no group, by reason; see `lacking`.
    given : Read or None
        The section that says where the groups are from.
    """
    rows = [
        {
            "groups": groups.name, "group": name, of: n, "compared": bool(usable),
            "note": _planned_note(groups, place, given),
        }
        for place, (name, n, usable) in enumerate(
            zip(groups.names, groups.counts.tolist(), groups.usable, strict=True)
        )
    ]  # fmt: skip
    return rows + [
        {"groups": groups.name, "group": "", of: n, "compared": False, "note": reason}
        for reason, n in left.items()
        if n
    ]


def _planned_note(groups: Groups, place: int, given: Read | None) -> str:
    if not groups.usable[place]:
        return f"fewer than {groups.min_size}" if groups.counts[place] else "empty"
    if given is None:
        return ""
    odd = [level for level in groups.levels[place] if looks_missing(level)]
    key = "`missing:`" if given.has_missing else "the rule `value_groups`"
    return f"is {odd[0]!r} a missing value? See {key}" if odd else ""


def odd_labels(groups: Groups, of: str, given: Read | None) -> Iterator[str]:
    """Yield notes on labels that programs write for a missing value, and that are groups here.

    Parameters
    ----------
    groups : Groups
    of : str
        What is counted: "images" or "rows".
    given : Read or None
        The section that says where the groups are from; None where every label is meant.
    """
    if given is None:
        return
    for place, name in enumerate(groups.attributes):
        many: dict[str, int] = {}
        for levels, n in zip(groups.levels, groups.counts.tolist(), strict=True):
            if n and looks_missing(levels[place]):
                many[levels[place]] = many.get(levels[place], 0) + n
        for label, n in many.items():
            fix = "name the values that make groups in a rule `value_groups`"
            if given.has_missing:
                fix = f"give `missing: {json.dumps(['', label])}`"
            yield (
                f"{groups.name}: {label!r} is taken for a value of {name} ({of}: {n}). Where it "
                f"means that there is none, {fix}."
            )


def small(groups: Groups, of: str) -> Iterator[str]:
    """Yield notes on groups that are too small to be compared, and on empty intersections.

    Parameters
    ----------
    groups : Groups
    of : str
        What is counted: "images" or "rows".
    """
    sizes = [*zip(groups.names, groups.counts.tolist(), groups.usable.tolist(), strict=True)]
    few = [f"{name} ({n})" for name, n, usable in sizes if n and not usable]
    empty = [name for name, n, _ in sizes if n == 0]
    noun = "group has" if len(few) == 1 else "groups have"
    if few:
        yield (
            f"{groups.name}: {len(few)} {noun} fewer than {groups.min_size} {of}, not compared: "
            f"{_first(few)}."
        )
    noun = "intersection has" if len(empty) == 1 else "intersections have"
    if empty:
        yield f"{groups.name}: {len(empty)} {noun} no {of}: {_first(empty)}."


def _first(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")


def without_group(groups: Groups) -> Iterator[str]:
    """Yield the note on rows that are in no group, where there are any."""
    n = groups.n_missing
    if n:
        rows = (
            "1 row lacks an attribute and is" if n == 1 else f"{n} rows lack an attribute and are"
        )
        yield f"{groups.name}: {rows} in no group."


def lacking(codes: Mapping[str, npt.NDArray[Any]]) -> dict[str, int]:
    """Count rows that are in no group, by the attributes that they lack.

    Parameters
    ----------
    codes : mapping of str to ndarray of int, shape (n,)
        Codes of each attribute; -1 where it is missing.

    Returns
    -------
    dict of str to int
        "gender missing", "race and gender missing": each row once.
    """
    names = [*codes]
    which = np.sum([(codes[name] < 0) << place for place, name in enumerate(names)], axis=0)
    found = zip(*(one.tolist() for one in np.unique(which, return_counts=True)), strict=True)
    told = {
        tuple(name for place, name in enumerate(names) if lacks >> place & 1): n
        for lacks, n in found
        if lacks
    }
    return {f"{' and '.join(some)} missing": told[some] for some in sorted(told, key=len)}


def check_two(groups: Groups, which: str, what: str, *, file: str, others: str = "groups") -> None:
    """Refuse groups of which fewer than two can be compared.

    Parameters
    ----------
    groups : Groups
    which, what : str
        Words of the error: "groups race: fewer than two", "images that can be ranked".
    file : str
        Where the groups are from.
    others : str
        What else could be chosen.

    Raises
    ------
    DataError
        When fewer than two are large enough.
    """
    if groups.usable.sum() < 2:
        raise DataError(
            f"{which} have {groups.min_size} or more {what} ({listed(groups)})",
            file=file,
            expected="at least two groups of that size",
            fix=f"choose other {others}, or lower data.min_group_size",
        )


def table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as the table."""
    return pa.Table.from_pylist([*rows], SCHEMA)
