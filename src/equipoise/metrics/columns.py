"""Columns of labels as whole numbers, taken as they are where they are such already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.labels import Encoded, coded, encode, label_array, text_column
from equipoise.metrics.texts import coded_views
from equipoise.stats.threads import each, stretches

Indices = npt.NDArray[np.int64]
Whole = npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]
# Python's texts, or an array of Arrow's.
Texts = Sequence[str] | Any

# Below this, floats tell all whole numbers apart.
_EXACT = 1 << 53
# Rows that stay in the cache while the smallest and the largest of them are found.
_CHUNK = 1 << 15
# Rows at either end whose smallest and largest are taken for those of all.
_FIRST = 1 << 13
# A range of numbers that is no waste however few rows there are.
_RANGE = 1 << 12
# Rows from which on a compiled pass over views of text is quicker than loading it takes.
_MANY = 1 << 19


@dataclass(frozen=True, eq=False)
class UnwrittenCodes:
    """Codes of a column that was read before, made when they are asked for.

    Attributes
    ----------
    column : ChunkedArray
    names : tuple of str, or LargeStringArray of Arrow
        What codes stand for.
    """

    column: pa.ChunkedArray = field(repr=False)
    names: tuple[str, ...] | pa.LargeStringArray = field(repr=False)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the codes."""
        return np.dtype(np.int32)

    def __len__(self) -> int:
        return len(self.column)

    def __array__(
        self, dtype: npt.DTypeLike | None = None, *, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        from pyarrow.compute import index_in

        names = pa.array(self.names, pa.large_string())
        found = index_in(self.column.cast(pa.large_string()), names, skip_nulls=True)
        return np.asarray(found.fill_null(-1).to_numpy(), dtype=dtype)


@dataclass(frozen=True, eq=False)
class Column:
    """Labels as whole numbers from `low` on; the distance from it is a label's place.

    Attributes
    ----------
    values : ndarray of integers or booleans, or UnwrittenCodes, shape (n,)
    low : int
    size : int
        Places there are, used or not.
    names : tuple of str, LargeStringArray of Arrow, or None
        What places 1, 2, ... stand for, place 0 being missing; None: the numbers themselves.
    ordered : bool
        Whether places are in the order of their labels.
    guessed : bool
        Whether `low` and `size` are those of some rows, which saves reading all: a row that lies
        outside is found when rows are counted, see `exact`.
    """

    values: Whole | UnwrittenCodes
    low: int
    size: int
    names: tuple[str, ...] | pa.LargeStringArray | None = None
    ordered: bool = True
    guessed: bool = False

    @classmethod
    def of(cls, labels: Any, *, what: str, guess: bool = False) -> Column:
        """Take labels as they are where they are numbers of a small range; encode others.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        labels = in_arrow(labels)
        found = cls.spread(labels, guess=guess)
        return cls.alone(labels, what=what, guess=guess) if found is None else found

    @classmethod
    def spread(cls, labels: Any, *, guess: bool) -> Column | None:
        """Take what can be read with its rows spread over threads; None for others."""
        if isinstance(labels, np.ndarray):
            return cls._numbers(labels, guess=guess)
        column = views(labels)
        viewed = None if column is None else coded_views(column)
        if viewed is None:
            return None
        return cls(viewed.codes, -1, len(viewed.texts) + 1, viewed.texts, ordered=False)

    @classmethod
    def alone(cls, labels: Any, *, what: str, guess: bool) -> Column:
        """Take what `spread` does not.

        Raises
        ------
        InputError
            As `equipoise.core.labels.encode`.
        """
        known = None if isinstance(labels, np.ndarray) else coded(labels)
        if known is not None:
            names = known.vocabulary
            return cls(np.asarray(known.codes), -1, len(names) + 1, names, ordered=False)
        array = label_array(labels, what=what)
        found = None if array is labels else cls._numbers(array, guess=guess)
        return cls.coded(*encode(array, what=what)) if found is None else found

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

    def used(self, places: Indices) -> Indices:
        """Return places in the order of their labels, without that of missing ones."""
        places = places[~self.missing(places)]
        if self.ordered:
            return places
        texts = listed(self.texts(places))
        return places[sorted(range(len(texts)), key=texts.__getitem__)]

    def places(self) -> Indices:
        """Return the place of each row."""
        return np.asarray(self.values, dtype=np.int64) - self.low

    def lacks(self) -> npt.NDArray[np.bool_]:
        """Whether each row has no label."""
        return self.missing(self.places())

    def missing(self, places: Indices) -> npt.NDArray[np.bool_]:
        """Whether places stand for a missing label."""
        return np.asarray((places == 0) & (self.names is not None))

    def texts(self, places: Indices) -> Texts:
        """Return the labels of places, none of them missing; those in Arrow's memory stay there."""
        if isinstance(self.names, pa.Array):
            found: Texts = self.names.take(pa.array(places - 1))
            return found
        if self.names is not None:
            return [self.names[place - 1] for place in places.tolist()]
        return [str(value) for value in (places + self.low).astype(self.values.dtype).tolist()]


def listed(texts: Texts) -> Sequence[str]:
    """Return texts as Python's."""
    found: Sequence[str] = texts.to_pylist() if isinstance(texts, pa.Array) else texts
    return found


def columns(*named: tuple[Any, str]) -> list[Column]:
    """Take several labels, each with its name for errors, spread over threads; ranges are guessed.

    Raises
    ------
    InputError
        As `Column.of`.
    """
    given = [(in_arrow(labels), what) for labels, what in named]
    found = [Column.spread(labels, guess=True) for labels, _ in given]
    left = [one for one, column in zip(given, found, strict=True) if column is None]
    others = iter(each(lambda one: Column.alone(one[0], what=one[1], guess=True), left))
    return [next(others) if column is None else column for column in found]


def views(labels: Any) -> pa.ChunkedArray | None:
    """Return text that lies in Arrow's memory as views, of many rows; None for others."""
    column = in_arrow(labels)
    text = isinstance(column, pa.ChunkedArray) and pa.types.is_string_view(column.type)
    return column if text and len(column) >= _MANY else None


def in_arrow(labels: Any) -> Any:
    """Return text that is in Arrow's memory as a column there, and other labels as given."""
    # Asking an array for a protocol takes long.
    if isinstance(labels, np.ndarray | Encoded):
        return labels
    column = text_column(labels)
    return labels if column is None else column


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
