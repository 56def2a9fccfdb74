"""The named sets of a configuration as items of tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import DataError
from equipoise.data import Items
from equipoise.data.problems import listed, nearest, show

Indices = npt.NDArray[np.int64]
Members = Mapping[str, Indices]


def sets_of(
    chosen: Mapping[str, Mapping[str, Any]], items: Mapping[str, Items]
) -> dict[str, Members]:
    """Return the items of every set, by table, in the order of ids given or of the table.

    Parameters
    ----------
    chosen : mapping of str to mapping of str to selection
        As configured: by set and table, ids or the values wanted by column.
    items : mapping of str to Items
        By table.

    Raises
    ------
    DataError
        When an id or value is in no row, or no row has all values.
    """
    named = {t for one in chosen.values() for t, wanted in one.items() if not _by_value(wanted)}
    places = {name: dict(zip(items[name].ids, count())) for name in sorted(named)}
    return {
        name: {
            table: _with_values(name, wanted, items[table])
            if _by_value(wanted)
            else _with_ids(name, wanted, items[table], places[table])
            for table, wanted in by_table.items()
        }
        for name, by_table in chosen.items()
    }


def _by_value(wanted: Any) -> bool:
    """Whether a selection asks for values of columns, not for ids."""
    return isinstance(wanted, Mapping)


def columns_of(chosen: Mapping[str, Mapping[str, Any]], table: str) -> list[str]:
    """Return the columns of a table that sets ask for."""
    asked = [one[table] for one in chosen.values() if table in one]
    return [column for wanted in asked if _by_value(wanted) for column in wanted]


def _with_ids(name: str, ids: tuple[str, ...], items: Items, places: Mapping[str, int]) -> Indices:
    for one in ids:
        if one not in places:
            close = nearest(one, places)
            raise DataError(
                f"the set {name!r} names {show(one)}, which no row has",
                file=items.name,
                column=items.id,
                expected="ids of the table",
                fix=f"write {show(close)} if that was meant" if close else "name one of its ids",
            )
    return np.array([places[one] for one in ids], dtype=np.int64)


def _with_values(name: str, wanted: Mapping[str, tuple[str, ...]], items: Items) -> Indices:
    kept = np.ones(len(items), dtype=bool)
    for column, values in wanted.items():
        coded = items.coded[column]
        for value in values:
            if value not in coded.vocabulary:
                close = nearest(value, coded.vocabulary)
                raise DataError(
                    f"the set {name!r} wants {show(value)}, which no row has",
                    file=items.name,
                    column=column,
                    expected=f"some of {listed(coded.vocabulary)}",
                    fix=f"write {show(close)} if that was meant" if close else "name one of these",
                )
        codes = [coded.vocabulary.index(value) for value in values]
        kept &= np.isin(coded.codes, codes)
    if not kept.any():
        asked = " and ".join(f"{column} {' or '.join(v)}" for column, v in wanted.items())
        raise DataError(
            f"the set {name!r} is empty: no row has {asked}",
            file=items.name,
            expected="at least one row",
            fix="ask for fewer values at once, or leave the set out",
        )
    return np.flatnonzero(kept)
