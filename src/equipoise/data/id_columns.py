"""Find the ids of the rows of a matrix where the config doesn't name them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from equipoise.core import DataError
from equipoise.core.labels import is_text
from equipoise.data.arrays import ArrayFile, opened_arrays
from equipoise.data.labels import Items
from equipoise.data.problems import counted, listed, show
from equipoise.data.tables import OpenTable, as_text, spells_numbers

_NAMES_OF_IDS = re.compile(
    r"(.*[ _.-])?(ids?|files?|file[ _]?names?|paths?|images?|texts?|prompts?|quer(y|ies)|words?)"
)


class _Candidate(NamedTuple):
    """A column of texts or whole numbers that may hold ids.

    Attributes
    ----------
    name : str
    texts : polars.Series
    is_text : bool
        Whether the cells aren't numbers.
    """

    name: str
    texts: pl.Series
    is_text: bool

    @property
    def is_named(self) -> bool:
        """Whether the name is that of a column of ids."""
        return _is_name_of_ids(self.name)


def ids_in_table(table: OpenTable, used: Collection[str], items: Items) -> str | None:
    """Return the column whose cells are the items' ids; None where rows follow the items.

    Parameters
    ----------
    table : OpenTable
    used : collection of str
        Columns of vectors or numbers that the config names.
    items : Items

    Raises
    ------
    DataError
        When a column that is named like one of ids has other texts, or two columns disagree.
    """
    return _chosen(_of_table(table, used), items, table.name, "id")


def ids_in_arrays(arrays: ArrayFile, rows: int, items: Items) -> str | None:
    """Return the array whose values are the items' ids; None where rows follow the items.

    Raises
    ------
    DataError
        When an array that is named like one of ids has other texts, or two arrays disagree.
    """
    return _chosen(_of_arrays(arrays, rows), items, str(arrays.path), "ids")


def _chosen(candidates: Iterable[_Candidate], items: Items, place: str, option: str) -> str | None:
    """Return the name of the candidate that has the ids of all items, each once."""
    ids = {*items.ids.tolist()}
    if len(ids) < len(items):
        return None
    fitting, odd = _by_fit(candidates, ids, {*items.left_out})
    noun = "column" if option == "id" else "array"
    if any(not other.texts.equals(fitting[0].texts, check_names=False) for other in fitting[1:]):
        raise DataError(
            f"{len(fitting)} {noun}s have the ids of {items.name}, in different orders: "
            f"{listed(candidate.name for candidate in fitting)}",
            file=place,
            expected=f"`{option}:` with the name of one {noun}",
            fix=f"add `{option}: {fitting[0].name}` if that {noun} has the ids of the rows",
        )
    if odd and not fitting:
        name, texts, _ = odd[0]
        n_known = len(ids & {*texts.to_list()})
        raise DataError(
            f"the {noun} {show(name)} has {n_known} of the {len(ids)} ids of {items.name}, in "
            f"{counted(len(texts), 'row')}",
            file=place,
            expected=f"each of its ids once, such as {show(items.ids[0])}, or `{option}:`",
            fix=f"name the {noun} of ids under `{option}:`; if the rows are in the order of "
            f"{items.name}, remove {show(name)} from the file",
        )
    return fitting[0].name if fitting else None


def _by_fit(
    candidates: Iterable[_Candidate], ids: set[str], left_out: set[str]
) -> tuple[list[_Candidate], list[_Candidate]]:
    """Return the candidates that are the ids, and those that are named so and aren't.

    Repeated texts without any id describe images, such as the ids of persons.
    """
    possible = ids | left_out
    fitting, odd = list[_Candidate](), list[_Candidate]()
    for candidate in candidates:
        starts_with_id = candidate.is_text and candidate.texts.head(1).is_in([*possible]).all()
        if not (candidate.is_named or starts_with_id):
            continue
        texts = {*candidate.texts.drop_nulls().to_list()}
        unique = len(texts) == len(candidate.texts)
        if unique and ids <= texts <= possible:
            fitting.append(candidate)
        elif candidate.is_named and candidate.is_text and (unique or texts & possible):
            odd.append(candidate)
    return fitting, odd


def _is_name_of_ids(name: str) -> bool:
    return _NAMES_OF_IDS.fullmatch(name.casefold()) is not None


def _of_table(table: OpenTable, used: Collection[str]) -> Iterator[_Candidate]:
    names = tuple(
        name
        for name in table.names
        if name not in used
        and name not in table.lists
        and (not table.kinds or _may_hold_ids(table.kinds[name], name))
    )
    cells = {} if table.kinds or not names else table.read(names)
    for name in names:
        column = cells[name] if name in cells else table.read((name,))[name]
        if _may_hold_ids(column.type, name):
            is_words = _is_text(column.type) and not spells_numbers(column)
            yield _Candidate(name, as_text(column, table.name, name), is_words)


def _may_hold_ids(kind: pa.DataType, name: str) -> bool:
    return _is_text(kind) or (pa.types.is_integer(kind) and _is_name_of_ids(name))


def _is_text(kind: pa.DataType) -> bool:
    return is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)


def _of_arrays(arrays: ArrayFile, rows: int) -> Iterator[_Candidate]:
    with opened_arrays(arrays.path) as opened:
        names = [name for name in arrays.names if opened.shape(name) == (rows,)]
    for name in names:
        values = arrays.array(name)[1]
        if values.dtype.kind in "US":
            texts = np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
            yield _Candidate(name, pl.Series(texts.tolist(), dtype=pl.String), True)
        elif values.dtype.kind in "iu" and _is_name_of_ids(name):
            yield _Candidate(name, pl.Series(values).cast(pl.String), False)
