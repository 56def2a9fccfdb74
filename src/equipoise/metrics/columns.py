"""Columns of labels as whole numbers, taken as they are where they are such already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.labels import coded, encode, label_array
from equipoise.stats.threads import each, stretches

Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Rows that stay in the cache while the smallest and the largest of them are found.
_CHUNK = 1 << 15
# Rows at either end whose smallest and largest are taken for those of all.
_FIRST = 1 << 13
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12
# Rows from which on guessing a range is quicker than reading all of them.
_MANY = 1 << 19


@dataclass(frozen=True, eq=False)
class Column:
    """Labels as whole numbers from `low` on; the distance from it is a label's place.

    Attributes
    ----------
    values : ndarray of integers or booleans, shape (n,)
    low : int
    size : int
        Places there are, used or not.
    names : tuple of str or None
        What places 1, 2, ... stand for, sorted, place 0 being missing; None: the numbers
        themselves.
    guessed : bool
        Whether `low` and `size` are those of some rows, which saves reading all: a row that lies
        outside is found when rows are counted, see `exact`.
    """

    values: Whole
    low: int
    size: int
    names: tuple[str, ...] | None = None
    guessed: bool = False

    @classmethod
    def of(cls, labels: Any, *, what: str, guess: bool = False) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Arrow encodes text in its own memory, which is that of polars and pandas, too.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        known = None if isinstance(labels, np.ndarray) else coded(labels)
        array = label_array(labels, what=what) if known is None else None
        numbers = None if array is None else cls._numbers(array, guess=guess)
        if numbers is not None:
            return numbers
        return cls.coded(*encode(array if known is None else known, what=what))

    @classmethod
    def _numbers(cls, array: Whole, *, guess: bool) -> Column | None:
        """Take numbers of a small range as they are; None for others."""
        if array.ndim != 1 or array.dtype.kind not in "iub" or not len(array):
            return None
        guessed = guess and len(array) >= _MANY
        low, high = _range_of_some(array) if guessed else _range(array)
        size = high - low + 1
        if size > max(_RANGE, len(array)) or not -_EXACT < low <= high < _EXACT:
            return None
        return cls(array, low, size, guessed=guessed)

    @classmethod
    def coded(cls, codes: Whole, names: tuple[str, ...]) -> Column:
        """Take codes into names, -1 being missing."""
        return cls(codes, -1, len(names) + 1, names)

    def exact(self) -> Column:
        """Return the column with the range of all rows."""
        return Column.of(self.values, what="labels") if self.guessed else self

    @property
    def numeric(self) -> bool:
        """Whether labels are the numbers themselves."""
        return self.names is None and self.values.dtype.kind != "b"

    def __len__(self) -> int:
        return len(self.values)

    def places(self) -> Indices:
        """Return the place of each row."""
        return np.asarray(self.values, dtype=np.int64) - self.low

    def lacks(self) -> npt.NDArray[np.bool_]:
        """Whether each row has no label."""
        return self.missing(self.places())

    def missing(self, places: Indices) -> npt.NDArray[np.bool_]:
        """Whether places stand for a missing label."""
        return np.asarray((places == 0) & (self.names is not None))

    def texts(self, places: Indices) -> list[str]:
        """Return the labels of places, none of them missing."""
        if self.names is not None:
            return [self.names[place - 1] for place in places.tolist()]
        return [str(value) for value in (places + self.low).astype(self.values.dtype).tolist()]


def columns(*named: tuple[Any, str]) -> list[Column]:
    """Take several labels, each with its name for errors, in threads; ranges are guessed.

    Raises
    ------
    InputError
        As `Column.of`.
    """
    return each(lambda one: Column.of(one[0], what=one[1], guess=True), named)


def _range(array: Whole) -> tuple[int, int]:
    """Return the smallest and the largest, reading each stretch of rows from memory once."""
    ends = each(lambda rows: _range_of(array[rows.start : rows.stop]), stretches(len(array)))
    return min(low for low, _ in ends), max(high for _, high in ends)


def _range_of_some(array: Whole) -> tuple[int, int]:
    """Return the smallest and the largest of the first and the last rows: rows may be sorted."""
    return _range_of(np.concatenate([array[:_FIRST], array[-_FIRST:]]))


def _range_of(array: Whole) -> tuple[int, int]:
    parts = [array[start : start + _CHUNK] for start in range(0, len(array), _CHUNK)]
    return min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
