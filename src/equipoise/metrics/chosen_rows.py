"""Some rows of a large table of vectors, taken where they are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.files import Mapped


@dataclass(frozen=True, eq=False)
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

    table: npt.NDArray[Any] = field(repr=False)
    rows: npt.NDArray[np.int64] = field(repr=False)

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
    def size(self) -> int:
        """Numbers in all rows."""
        return len(self.rows) * int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return self.table.dtype

    def __getitem__(self, places: slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return some of the rows, by their places among those chosen."""
        rows = self.rows[places]
        # Rows that follow each other are read where they lie.
        run = len(rows) > 0 and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all()
        taken: npt.NDArray[Any] = self.table[rows[0] : rows[-1] + 1] if run else self.table[rows]
        self._mapped.rows(rows)
        return taken

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return all rows as an array of their own."""
        taken = self.table[self.rows]
        self._mapped.rows(self.rows)
        return taken if dtype is None else taken.astype(dtype, copy=False)


Table = npt.NDArray[Any] | ChosenRows
"""An array of vectors, or some rows of one."""
