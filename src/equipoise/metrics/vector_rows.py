"""Rows of large tables of vectors: some of them read where they lie, lengths, inner products.

Lengths and products are summed in one fixed order, whatever the size of the numbers.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core import AnyArray, Floats, Floats32, Integers, record
from equipoise.core.files import Mapped
from equipoise.stats.compiled import compiled


def float_rows(signature: str) -> tuple[str, str]:
    """Return signatures of a kernel for "rows" of float32 and of float64, read only."""
    types = (f"Array(float{bits}, 2, 'C', readonly=True)" for bits in (32, 64))
    single, double = (signature.replace("rows", array_type) for array_type in types)
    return single, double


@compiled(*float_rows("void(rows, float64[::1])"))
def inverse_lengths(rows: AnyArray, scale: Floats) -> None:
    """Write 1 / |row| of each row; 0 for a length of 0 or below 1e-125, NaN for no finite square.

    Squares are float64 and summed in 64 lanes, as vector units do, and these in halves.
    """
    n, d = rows.shape
    n_blocked = d - d % 64
    lanes = np.empty(64)
    for i in range(n):
        lanes[:] = 0.0
        for start in range(0, n_blocked, 64):
            for j in range(64):
                x = np.float64(rows[i, start + j])
                lanes[j] += x * x
        for j in range(d - n_blocked):
            x = np.float64(rows[i, n_blocked + j])
            lanes[j] += x * x
        half = 32
        while half:
            for j in range(half):
                lanes[j] += lanes[j + half]
            half //= 2
        square = lanes[0]
        if square < 1e-250:
            scale[i] = 0.0
        else:
            scale[i] = 1.0 / np.sqrt(square) if square < np.inf else np.nan


@compiled(*float_rows("void(rows, float64[::1], float64[:, ::1], float64[:, ::1])"))
def project(rows: AnyArray, scale: Floats, directions: Floats, products: Floats) -> None:
    """Write the inner products of rows, each times its scale, with directions (k, d): (n, k)."""
    n, d = rows.shape
    n_blocked = d - d % 64
    lanes = np.empty(64)
    row = np.empty(d)
    for i in range(n):
        for j in range(d):
            row[j] = rows[i, j] * scale[i]
        for k in range(directions.shape[0]):
            lanes[:] = 0.0
            for start in range(0, n_blocked, 64):
                for j in range(64):
                    lanes[j] += row[start + j] * directions[k, start + j]
            for j in range(d - n_blocked):
                lanes[j] += row[n_blocked + j] * directions[k, n_blocked + j]
            half = 32
            while half:
                for j in range(half):
                    lanes[j] += lanes[j + half]
                half //= 2
            products[i, k] = lanes[0]


def widened(rows: AnyArray) -> Floats32:
    """Return rows of float16 as float32: the same numbers, at a fifth of numpy's time."""
    halves = np.ascontiguousarray(rows, dtype=np.float16)
    singles = np.empty(halves.shape, np.float32)
    widen(halves.view(np.uint16), singles.view(np.uint32), singles)
    return singles


@compiled("void(Array(uint16, 2, 'C', readonly=True), uint32[:, ::1], float32[:, ::1])")
def widen(halves: NDArray[np.uint16], bits: NDArray[np.uint32], singles: Floats32) -> None:
    """Write the numbers that 16 bits each spell; `bits` and `found` are one piece of memory.

    The digits are moved to their place, and the power of two is mended by a product, which is
    exact below the smallest normal number, too. Infinity and NaN, which it would miss, are set.
    """
    n, d = halves.shape
    for i in range(n):
        for j in range(d):
            bits[i, j] = (np.uint32(halves[i, j]) & np.uint32(0x7FFF)) << np.uint32(13)
        for j in range(d):
            singles[i, j] *= np.float32(2.0**112)
        for j in range(d):
            half = np.uint32(halves[i, j])
            if half & np.uint32(0x7C00) == np.uint32(0x7C00):
                bits[i, j] |= np.uint32(0x7F800000)
            bits[i, j] |= (half & np.uint32(0x8000)) << np.uint32(16)


@record
class ChosenRows:
    """Rows of a table that stand for an array: a set costs its indices, not a copy.

    Metrics of diversity and of associations take it where they take an array, and read it in
    blocks.

    Attributes
    ----------
    table : ndarray, shape (rows, d)
        May be mapped into memory.
    rows : ndarray of int, shape (n,)
        Which of them, in any order.
    """

    table: AnyArray
    rows: Integers

    @cached_property
    def _mapped(self) -> Mapped:
        return Mapped(self.table)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of their numbers."""
        return len(self.rows), int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Type of the numbers."""
        return self.table.dtype

    def __getitem__(self, places: slice | AnyArray) -> AnyArray:
        """Return some of the chosen rows, by position."""
        rows = self.rows[places]
        chosen = take_rows(self.table, rows)
        self._mapped.rows(rows)
        return chosen

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        """Return all rows as an array of their own."""
        array = self.table[self.rows]
        self._mapped.rows(self.rows)
        return array if dtype is None else array.astype(dtype, copy=False)


Table = AnyArray | ChosenRows
"""An array of vectors, or some rows of one."""


def take_rows(table: Table, rows: Integers) -> AnyArray:
    """Return rows of a table; consecutive rows as a slice."""
    run = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all()
    return table[slice(rows[0], rows[-1] + 1) if run else rows]
