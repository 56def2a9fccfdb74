"""Embeddings of items: joined by id, read where they are asked for, and looked over once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError, InputError
from equipoise.core.files import Mapped
from equipoise.data.array_sources import NumberColumns, Opened, open_source
from equipoise.data.arrays import ArraySource
from equipoise.data.cells import Mask
from equipoise.data.coded import LeftOut
from equipoise.data.join import EXAMPLES, Positions
from equipoise.data.labels import Items, Objects
from equipoise.data.outputs import Outputs
from equipoise.data.problems import listed

NORM_TOLERANCE = 1e-3
NUMBERS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Vectors:
    """Embeddings, one row per item that has one.

    Attributes
    ----------
    name : str
        The path as given, or what the array is for.
    ids : ndarray of str objects, shape (n,)
        Of the items.
    rows : ndarray of int64, shape (n,)
        Row of each item in `stored`; -1 where it has no vector.
    stored : ndarray, shape (rows, dimension)
        As stored: float16, float32 or float64, mapped into memory where possible.
    normalised : bool
        Whether the norm of every usable vector is 1 within 0.001.
    not_finite, zero : ndarray of bool, shape (n,)
        Items whose vector holds NaN or an infinity, or is zero throughout.
    inputs : mapping
        Per file as given: "sha256", "bytes", "rows".
    counts : mapping
        Everything read, matched and left over; see docs/data.md.
    made : bool
        Whether equipoise ran the model that gave them, over every item.
    """

    name: str
    ids: Objects
    rows: Positions
    stored: npt.NDArray[Any]
    normalised: bool
    not_finite: Mask
    zero: Mask
    inputs: Mapping[str, Mapping[str, Any]]
    counts: Mapping[str, Any]
    made: bool = False

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return int(self.stored.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type that the vectors are stored and taken in."""
        return self.stored.dtype.newbyteorder("=")

    @property
    def usable(self) -> Mask:
        """Items with a vector that is finite and not zero, shape (n,)."""
        return (self.rows >= 0) & ~self.not_finite & ~self.zero

    @property
    def without_vector(self) -> LeftOut:
        """Items without a vector."""
        return LeftOut.of(int((self.rows < 0).sum()), made=self.made)

    @property
    def rescaled(self) -> bool:
        """Whether vectors that a user brought are not all of length 1, which a note tells."""
        return not (self.normalised or self.made)

    def take(self, items: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the vectors of some items, shape (m, dimension), in the stored type.

        Parameters
        ----------
        items : array-like of int, shape (m,)
            Indices of items, in any order and as often as wanted.

        Raises
        ------
        InputError
            When an index is none of an item, or an item has no vector.
        """
        asked = np.asarray(items)
        if asked.ndim != 1:
            raise InputError(f"items has the shape {asked.shape}; expected a list of indices")
        if asked.size and asked.dtype.kind not in "iu":
            raise InputError(f"items has type {asked.dtype}; expected indices of items")
        if asked.size and not 0 <= asked.min() <= asked.max() < len(self.rows):
            raise InputError(f"items goes beyond 0 to {len(self.rows) - 1}")
        rows = self.rows[asked.astype(np.int64)]
        if (rows < 0).any():
            without = self.ids[asked[rows < 0]]
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

    Raises
    ------
    DataError
        When the source cannot be used as given; the message says where and what to do.
    """
    opened = open_source(source, what)
    stored, absent, left_out = _stored(opened, items)
    rows, counts, inputs = opened.join(items, absent, [("", stored)], max_unmatched)
    not_finite, zero, normalised = _look_over(stored, rows)
    _check_usable(rows, not_finite, zero, opened.place)
    counts |= left_out | _examples("not_finite", items.ids[not_finite])
    counts |= _examples("zero", items.ids[zero])
    return Vectors(
        opened.name, items.ids, rows, stored, normalised, not_finite, zero, inputs, counts,
        opened.live,
    )  # fmt: skip


def _examples(name: str, ids: Objects) -> dict[str, Any]:
    return {name: len(ids), f"{name}_examples": ids[:EXAMPLES].tolist()}


def _stored(opened: Opened, items: Items) -> tuple[npt.NDArray[Any], Mask, dict[str, Any]]:
    """Return the vectors in the order of the source, and which rows are empty."""
    given, values = opened.given, opened.values
    if values is not None:
        if given.chosen is not None or given.names:
            raise DataError(
                "`columns:` and `names:` do not apply to vectors in an array",
                file=opened.place,
                fix="take them out",
            )
        if values.dtype.newbyteorder("=") not in (np.float16, np.float32, np.float64):
            raise DataError(
                f"the values are {values.dtype}",
                file=opened.place,
                expected="float16, float32 or float64",
                fix="save the vectors as float32; quantised ones need their scale",
            )
        return values, np.zeros(len(values), dtype=bool), {}
    lists = () if given.columns is not None else opened.vectors
    if given.column is None and len(lists) > 1:
        raise DataError(
            f"{len(lists)} columns hold vectors: {listed(lists)}",
            file=opened.name,
            expected="`column:` with the name of one",
            fix="name the one that is meant",
        )
    if given.column or lists:
        return *opened.stack(given.column or lists[0]), {}
    columns = NumberColumns.of(opened, items)
    return *columns.stacked(), {"columns_left_out": [*columns.left_out]}


def _look_over(stored: npt.NDArray[Any], rows: Positions) -> tuple[Mask, Mask, bool]:
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


def _check_usable(rows: Positions, not_finite: Mask, zero: Mask, place: str) -> None:
    if ((rows >= 0) & ~not_finite & ~zero).any():
        return
    raise DataError(
        f"no vector can be used: {int(not_finite.sum())} hold NaN or an infinity, "
        f"{int(zero.sum())} are zero",
        file=place,
        expected="finite vectors that are not zero",
        fix="embed the items again",
    )
