"""Files mapped into memory: what reading took is given back, so that only a part is resident."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

# Bytes that may be read before memory is given back, and what the system reads around a row.
_KEPT, _AROUND = 1 << 26, 1 << 16


class Mapped:
    """How much was read of an array, where that is a file mapped for reading only.

    The system keeps what was read for as long as the array lives, and counts it as memory of the
    process; given back, it is read anew where it is needed. Arrays in memory are left alone.

    Parameters
    ----------
    array : ndarray
    """

    def __init__(self, array: npt.NDArray[Any]) -> None:
        self._map, self._read = _map_of(array), 0
        self._row = array[:1].nbytes

    def rows(self, rows: npt.NDArray[np.int64]) -> None:
        """Count rows that were read, and give memory back beyond 64 MiB."""
        if self._map is not None and len(rows):
            span = (int(rows.max()) - int(rows.min()) + 1) * self._row
            self._count(min(span, len(rows) * max(self._row, _AROUND)))

    def run(self, many: int) -> None:
        """Count rows that follow each other, and give memory back beyond 64 MiB."""
        if self._map is not None:
            self._count(many * self._row)

    def _count(self, size: int) -> None:
        self._read += size
        if self._read > _KEPT:
            self.give_back()

    def give_back(self) -> None:
        """Give back all memory that reading took."""
        self._read = 0
        if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    """Return the map that an array lies in, None where that can be written or is none."""
    reads = False
    while isinstance(array, np.ndarray):
        reads |= isinstance(array, np.memmap) and array.mode == "r"
        array = array.base
    return array if reads and isinstance(array, mmap.mmap) else None
