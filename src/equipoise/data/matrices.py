"""Numbers by item: embeddings, and scores and labels by concept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import AnyArray, Booleans, DataError, Floats, InputError, Integers, Objects
from equipoise.core.files import Mapped
from equipoise.data.arrays import ArraySource, Opened, number_columns, open_source
from equipoise.data.labels import Items
from equipoise.data.outputs import Outputs
from equipoise.data.problems import EXAMPLES, check_columns, listed

NORM_TOLERANCE = 1e-3
NUMBERS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class ByItem:
    """Rows of a source, joined to items.

    Attributes
    ----------
    name : str
        The path as given, or what the array is for.
    ids : ndarray of str objects, shape (n,)
        Of the items.
    rows : ndarray of int64, shape (n,)
        Row of each item in the source; -1 where it has none.
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Everything read, matched and left over; see docs/data.md.
    made : bool
        Whether equipoise ran the model that gave them, over every item.
    """

    name: str
    ids: Objects
    rows: Integers
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    made: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, eq=False)
class Vectors(ByItem):
    """Embeddings, one row per item that has one; see also `ByItem`.

    Attributes
    ----------
    stored : ndarray, shape (rows, dimension)
        As stored: float16, float32 or float64, mapped into memory where possible.
    normalised : bool
        Whether the norm of every usable vector is 1 within 0.001.
    not_finite, zero : ndarray of bool, shape (n,)
        Items whose vector holds NaN or an infinity, or is zero throughout.
    """

    stored: AnyArray
    normalised: bool
    not_finite: Booleans
    zero: Booleans

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return int(self.stored.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type that the vectors are stored and taken in."""
        return self.stored.dtype.newbyteorder("=")

    @property
    def usable(self) -> Booleans:
        """Items with a vector that is finite and not zero, shape (n,)."""
        return (self.rows >= 0) & ~self.not_finite & ~self.zero

    @property
    def unmatched(self) -> int:
        """Items that a user's file has no vector for; failures of a live model are none of them."""
        return 0 if self.made else int((self.rows < 0).sum())

    @property
    def rescaled(self) -> bool:
        """Whether vectors that a user brought are not all of length 1, which a note tells."""
        return not (self.normalised or self.made)

    def take(self, items: npt.ArrayLike) -> AnyArray:
        """Return the vectors of some items, shape (m, dimension), in the stored type.

        Parameters
        ----------
        items : array-like of int, shape (m,)
            Indices of items, in any order and as often as wanted.

        Raises
        ------
        InputError
            When an item has no vector.
        """
        indices = np.asarray(items, dtype=np.int64)
        rows = self.rows[indices]
        if (rows < 0).any():
            without = self.ids[indices[rows < 0]]
            raise InputError(
                f"{len(without)} of the items have no vector in {self.name}, for example "
                f"{listed(without[:EXAMPLES])}; take those that are `usable`"
            )
        return np.asarray(self.stored[rows], self.dtype)


def load_vectors(
    source: ArraySource | Outputs,
    items: Items,
    *,
    what: str = "embeddings",
    max_unmatched: float = 0.01,
    zeros: bool = False,
) -> Vectors:
    """Read embeddings and join them to items.

    Parameters
    ----------
    source : ArraySource or Outputs
    items : Items
    what : str
        What the vectors are, for messages; stands for the file name of an array in memory.
    max_unmatched : float in [0, 1]
        Largest share of items without a vector, and of vectors without an item. Up to there
        they are counted.
    zeros : bool
        Vectors may all be zero, such as maps without any activation.

    Raises
    ------
    DataError
        When the source cannot be used as given; the message says where and what to do.
    """
    opened = open_source(source, what, vectors=True)
    stored, absent, left_out = _stored(opened, items)
    rows, counts, inputs = opened.join(items, absent, [("", stored)], max_unmatched)
    not_finite, zero, normalised = _look_over(stored, rows)
    if not ((rows >= 0) & ~not_finite & (zeros | ~zero)).any():
        raise DataError(
            f"no vector can be used: {int(not_finite.sum())} hold NaN or an infinity, "
            f"{int(zero.sum())} are zero",
            file=opened.place,
            expected="finite vectors that are not zero",
            fix="embed the items again",
        )
    counts |= left_out | {"not_finite": int(not_finite.sum()), "zero": int(zero.sum())}
    return Vectors(
        opened.name, items.ids, rows, inputs, counts, stored, normalised, not_finite, zero,
        made=opened.outputs is not None,
    )  # fmt: skip


def _stored(opened: Opened, items: Items) -> tuple[AnyArray, Booleans, dict[str, Any]]:
    """Return the vectors in the order of the source, and which rows are empty."""
    given, values = opened.given, opened.values
    if values is not None:
        if values.dtype.newbyteorder("=") not in (np.float16, np.float32, np.float64):
            raise DataError(
                f"the values are {values.dtype}",
                file=opened.place,
                expected="float16, float32 or float64",
                fix="save the vectors as float32; quantised ones need their scale",
            )
        return values, np.zeros(len(values), dtype=bool), {}
    table = opened.table
    lists = () if table is None or given.columns is not None else table.lists
    if given.column is None and len(lists) > 1:
        raise DataError(
            f"{len(lists)} columns hold vectors: {listed(lists)}",
            file=opened.name,
            expected="`column:` with the name of one",
            fix="name the one that is meant",
        )
    if table is not None and (given.column or lists):
        return *table.vectors(given.column or lists[0]), {}
    names, read, left_out = number_columns(opened, items)
    values = np.column_stack([read(name) for name in names])
    absent: Booleans = np.logical_and.reduce(np.isnan(values), axis=1)
    return values, absent, {"columns_left_out": [*left_out]}


def _look_over(stored: AnyArray, rows: Integers) -> tuple[Booleans, Booleans, bool]:
    """Return which items' vectors are not finite, which are zero, and if all norms are 1."""
    not_finite, zero = (np.zeros(len(stored), dtype=bool) for _ in range(2))
    off = np.zeros(len(stored), dtype=bool)
    step, mapped = max(1, NUMBERS_AT_ONCE // stored.shape[1]), Mapped(stored)
    for start in range(0, len(stored), step):
        here = slice(start, start + step)
        mapped.run(step)
        values = np.asarray(stored[here], np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.einsum("ij,ij->i", values, values)
        # Squares overflow and underflow before the numbers themselves do.
        odd = ~np.isfinite(squares)
        not_finite[here][odd] = ~np.isfinite(values[odd]).all(axis=1)
        small = squares == 0
        zero[here][small] = (values[small] == 0).all(axis=1)
        off[here] = ~(np.abs(np.sqrt(squares) - 1) <= NORM_TOLERANCE)
    mapped.give_back()
    found = rows >= 0
    at = np.where(found, rows, 0)
    bad, none = not_finite[at] & found, zero[at] & found
    usable = found & ~bad & ~none
    return bad, none, bool(usable.any() and not off[rows[usable]].any())


BLOCK_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class Matrix(ByItem):
    """Numbers by item and concept; see also `ByItem`.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    dtype : numpy.dtype
        Float type that holds every stored value: float32 or float64.
    read : callable
        Takes a name; returns the column in the rows of the source.
    """

    names: tuple[str, ...]
    dtype: np.dtype[Any]
    read: Callable[[str], AnyArray]

    def column(self, name: str) -> Floats:
        """Return one column as float64, shape (n,); NaN where an item has no number.

        Raises
        ------
        DataError
            When there is no such column.
        """
        self._check((name,))
        return self._by_item(name, np.float64)

    def labels(self, name: str) -> Floats:
        """Return one column of labels: 1 present, 0 absent, NaN unknown.

        Raises
        ------
        DataError
            When there is no such column, or a number is neither 0 nor 1.
        """
        values = self.column(name)
        wrong = np.flatnonzero(~np.isnan(values) & (values != 0) & (values != 1))
        if len(wrong) == 0:
            return values
        first = wrong[np.argmin(self.rows[wrong])]
        raise DataError(
            f"{values[first]:g} is no label",
            file=self.name,
            column=name,
            row=int(self.rows[first]) + 1,
            expected="1 where the item shows the concept, 0 where it does not",
            fix="write 0 for -1"
            if values[first] == -1
            else "threshold scores first, or name a column of labels",
        )

    def take(self, names: Sequence[str]) -> AnyArray:
        """Return some columns in `dtype`, shape (n, len(names)); each is contiguous.

        Raises
        ------
        DataError
            When there is no such column.
        """
        self._check(names)
        values = np.empty((len(self.rows), len(names)), self.dtype, order="F")
        for place, name in enumerate(names):
            values[:, place] = self._by_item(name, self.dtype)
        return values

    def _check(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self.counts["columns_left_out"]:
                raise DataError(
                    "the column holds no numbers and was left out",
                    file=self.name,
                    column=name,
                    expected="numbers",
                    fix="write numbers, 1 and 0 for labels",
                )
        check_columns(self.names, names, self.name)

    def _by_item(self, name: str, dtype: npt.DTypeLike) -> AnyArray:
        """Return a column of rows as one of items, NaN where an item has no row."""
        out: AnyArray = self.read(name)[np.maximum(self.rows, 0)].astype(dtype)
        out[self.rows < 0] = np.nan
        return out


def columns_of(values: AnyArray, places: Mapping[str, int]) -> Callable[[str], AnyArray]:
    """Return what reads one column of an array by its name, shape (rows,).

    Where rows are contiguous, reading one column touches every page of the file. So a block of
    neighbouring columns is turned at a time, in the stored type, and kept until another is asked
    for.
    """
    column = max(1, values[:, :1].nbytes)
    width = max(1, min(values.shape[1], BLOCK_BYTES // column))
    lock = threading.Lock()

    @lru_cache(maxsize=1)
    def turned(start: int) -> AnyArray:
        some = values[:, start : start + width]
        block = np.empty(some.shape[::-1], some.dtype.newbyteorder("="))
        mapped = Mapped(some)
        for row in range(0, len(some), 1024):
            block[:, row : row + 1024] = some[row : row + 1024].T
            mapped.run(1024)
        mapped.give_back()
        return block

    def read(name: str) -> AnyArray:
        place = places[name]
        if values.flags.f_contiguous:
            return np.asarray(values[:, place])
        with lock:
            block = turned(place - place % width)
        return np.asarray(block[place % width])

    return read


def load_matrix(
    source: ArraySource | Outputs,
    items: Items,
    *,
    what: str = "scores",
    max_unmatched: float = 0.01,
) -> Matrix:
    """Read named columns of numbers and join them to items.

    Parameters
    ----------
    source : ArraySource or Outputs
    items : Items
    what : str
        What the numbers are, for messages; stands for the file name of an array in memory.
    max_unmatched : float in [0, 1]
        Largest share of items without a row, and of rows without an item. Up to there they are
        counted.

    Raises
    ------
    DataError
        When the source cannot be used as given; the message says where and what to do.
    """
    opened = open_source(source, what)
    names, read, absent, left_out = _columns(opened, items)
    rows, counts, inputs = opened.join(
        items, absent, ((name, read(name)) for name in names), max_unmatched
    )
    dtype, held = _type_and_gaps(names, read, rows)
    counts |= held | {"columns": len(names), "columns_left_out": [*left_out]}
    made = opened.outputs is not None
    return Matrix(opened.name, items.ids, rows, inputs, counts, names, dtype, read, made=made)


Columns = tuple[tuple[str, ...], Callable[[str], AnyArray], Booleans, tuple[str, ...]]
"""Names of columns, what reads one, which rows are empty, and columns that are left out."""


def _columns(opened: Opened, items: Items) -> Columns:
    values, absent = opened.values, None
    if opened.table is not None and opened.given.column is not None:
        values, absent = opened.table.vectors(opened.given.column)
    if values is None:
        columns, read, left_out = number_columns(opened, items)
        none = np.zeros(len(read(columns[0])), dtype=bool)
        return columns, read, none, left_out
    places = _places(values, opened)
    absent = np.zeros(len(values), dtype=bool) if absent is None else absent
    return tuple(places), columns_of(values, places), absent, ()


def _places(values: AnyArray, opened: Opened) -> dict[str, int]:
    """Return the name of each column that is used, with its place."""
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"the values are {values.dtype}",
            file=opened.place,
            expected="floats, integers or booleans",
            fix="save the numbers as float32",
        )
    names, chosen, width = opened.given.names, opened.given.chosen, values.shape[1]
    if len(names) not in (0, width) or not (names or chosen is not None):
        raise DataError(
            f"the array has {width} columns, and `names:` has {len(names)}",
            file=opened.place,
            expected="`names:` with a name per column, or `columns:` with name: number",
            fix="list the names of all columns in their order",
        )
    known = {name: place for place, name in enumerate(names)}
    if chosen is None:
        return known
    known = {str(place): place for place in range(width)} | known
    check_columns([*known], chosen.values(), opened.place)
    return {name: known[column] for name, column in chosen.items()}


def _type_and_gaps(
    names: tuple[str, ...], read: Callable[[str], AnyArray], rows: Integers
) -> tuple[np.dtype[Any], dict[str, Any]]:
    """Return the type that holds all columns, and how many numbers are missing or infinite."""
    kinds: list[Any] = [np.float32]
    held: dict[str, dict[str, int]] = {"missing": {}, "infinite": {}}
    found = rows[rows >= 0]
    for name in names:
        values = read(name)
        kinds.append(values.dtype)
        if values.dtype.kind == "f":
            for what, check in (("missing", np.isnan), ("infinite", np.isinf)):
                if count := int(check(values[found]).sum()):
                    held[what][name] = count
    return np.result_type(*kinds), held
