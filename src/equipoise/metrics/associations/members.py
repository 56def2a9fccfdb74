"""The members of one set as unit vectors, which are made from rows as given, some at a time.

A million embeddings stay as small as they are stored: float64 unit vectors of all of them exist
for small sets only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.associations.kernels import add_whole
from equipoise.metrics.chosen_rows import Table
from equipoise.metrics.unit_rows import in_range, inverse_lengths, project, widened

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

_SUM_BITS = 62
# Numbers of unit vectors that are made together, and of those the most that are kept.
_AT_ONCE, _KEPT = 1 << 18, 1 << 22


@dataclass(frozen=True, eq=False)
class Members:
    """One set as vectors.

    Attributes
    ----------
    name : str
    stored : ndarray or ChosenRows, shape (given, d)
        As given: float16, float32 or float64.
    rows : ndarray of int, shape (n,)
        Which of the given rows can be used.
    scale : ndarray, shape (n,), or None
        What makes unit vectors of them; None: they are vectors as they are.
    largest : ndarray, shape (n,), or None
        Largest numbers of the rows, where squares leave the range of float64.
    units : tuple of str or None
        The unit of each member used, where members repeat within units.
    dropped : mapping of str to int
        Members that could not be used, by reason.
    """

    name: str
    stored: Table = field(repr=False)
    rows: Indices = field(repr=False)
    scale: Floats | None = field(default=None, repr=False)
    largest: Floats | None = field(default=None, repr=False)
    units: tuple[str, ...] | None = field(default=None, repr=False)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def given(self) -> int:
        """Members as given."""
        return len(self.stored)

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.stored.shape[1])

    @property
    def vectors(self) -> Floats:
        """All vectors, shape (n, d): for sets that are small, or declared lists."""
        return _joined([rows for _, rows in self.blocks()])

    def blocks(self) -> Iterable[tuple[slice, Floats]]:
        """Return places of members and their vectors, float64 and shape (m, d)."""
        if (kept := self._kept) is not None:
            return ((slice(0, len(kept)), kept),)
        return ((here, self._made(here)) for here in _slices(len(self), self.dimension))

    def take(self, places: Indices) -> Floats:
        """Return the vectors of some members, shape (m, d)."""
        if (kept := self._kept) is not None:
            return kept[places]
        found = [np.empty((0, self.dimension))]
        found += [self._made(places[here]) for here in _slices(len(places), self.dimension)]
        return np.concatenate(found)

    @cached_property
    def size(self) -> float:
        """Largest absolute number of all vectors."""
        return max((_largest(rows) for _, rows in self.blocks()), default=0.0)

    @cached_property
    def mean(self) -> Floats:
        """Mean vector, shape (d,)."""
        whole, bits = np.zeros(self.dimension, dtype=np.int64), _bits(self.size, len(self))
        for _, rows in self.blocks() if self.size else ():
            _add(rows, bits, whole)
        return _of_whole(whole, bits, len(self))

    def dots(self, direction: Floats) -> Floats:
        """Inner products with one direction (d,), shape (n,)."""
        return _joined([dots(rows, direction) for _, rows in self.blocks()])

    def similarities(self, others: Floats) -> Floats:
        """Inner products of all members with all rows (m, d) of others, shape (n, m)."""
        found = np.empty((len(self), len(others)))
        for here, rows in self.blocks():
            found[here] = similarities(rows, others)
        return found

    @cached_property
    def _kept(self) -> Floats | None:
        """All vectors of a small set, else None."""
        few = len(self) * self.dimension <= _KEPT
        return self._made(slice(0, len(self))) if few else None

    def _made(self, places: slice | Indices) -> Floats:
        every = len(self.rows) == len(self.stored)
        rows = float_rows(self.stored[places if every else self.rows[places]])
        if self.largest is not None:
            rows = in_range(rows, self.largest[places])
        return rows if self.scale is None else rows * self.scale[places, None]


def unit_members(name: str, array: Table) -> Members:
    """Return the rows of an array that have a direction as unit vectors.

    Raises
    ------
    InputError
        When there is none.
    """
    many = len(array)
    scale = np.empty(many)
    if _has_lengths(array, scale):
        return Members(name, array, np.arange(many), scale)
    finite, largest = np.empty(many, dtype=bool), np.empty(many)
    for here in _slices(*array.shape):
        block = float_rows(array[here])
        finite[here] = np.all(np.isfinite(block), axis=1)
        largest[here] = np.abs(np.where(finite[here, None], block, 0.0)).max(axis=1)
    rows = np.flatnonzero(largest > 0)
    dropped = {
        "not a number or infinite": int((~finite).sum()),
        "zero vector": int((finite & (largest == 0)).sum()),
    }
    if not len(rows):
        why = ", ".join(f"{why}: {count}" for why, count in dropped.items() if count)
        raise InputError(f"{name}: none of its {many} vectors can be used; {why}")
    scale, largest = np.empty(len(rows)), largest[rows]
    for here in _slices(len(rows), array.shape[1]):
        block = in_range(float_rows(array[rows[here]]), largest[here])
        inverse_lengths(block, scale[here])
    return Members(name, array, rows, scale, largest, None, dropped)


def _has_lengths(array: Table, scale: Floats) -> bool:
    """Write what makes unit vectors of all rows; False where one has no length in range."""
    blocks = ((float_rows(array[here]), scale[here]) for here in _slices(*array.shape))
    return all(inverse_lengths(*one) for one in blocks) and np.count_nonzero(scale) == len(scale)


def _joined(pieces: Sequence[Floats]) -> Floats:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _slices(rows: int, dimension: int) -> Iterator[slice]:
    step = max(1, _AT_ONCE // dimension)
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def float_rows(rows: Any) -> Floats:
    """Return rows as float64, as they lie in memory where they are."""
    given = rows
    if isinstance(rows, np.ndarray):
        if rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned:
            return rows  # Which `np.require` takes longer to see than small sets take.
        if rows.dtype == np.float16 and rows.ndim == 2:
            given = widened(rows)
    return np.require(given, dtype=np.float64, requirements=["C", "A"])


def exact_mean(vectors: Floats) -> Floats:
    """Mean over rows, the same for rows in any order: sums of 62-bit integers."""
    largest = _largest(vectors)
    whole, bits = np.zeros(vectors.shape[1], dtype=np.int64), _bits(largest, len(vectors))
    if largest:
        _add(np.ascontiguousarray(vectors), bits, whole)
    return _of_whole(whole, bits, len(vectors))


def _largest(vectors: Floats) -> float:
    return max(float(vectors.max(initial=0.0)), -float(vectors.min(initial=0.0)))


def _bits(largest: float, rows: int) -> int:
    """Bits after the point of numbers up to the largest, so that the sum of rows fits."""
    return math.floor(_SUM_BITS - math.log2(rows) - math.log2(largest)) if largest else 0


def _add(vectors: Floats, bits: int, whole: npt.NDArray[np.int64]) -> None:
    # In two steps, for 2^bits may be no float.
    add_whole(vectors, math.ldexp(1.0, bits // 2), math.ldexp(1.0, bits - bits // 2), whole)


def _of_whole(whole: npt.NDArray[np.int64], bits: int, rows: int) -> Floats:
    return np.asarray(np.ldexp(whole.astype(np.float64), -bits) / rows)


def dots(vectors: Floats, direction: Floats) -> Floats:
    """Inner products of rows (n, d) with one direction (d,), each in one fixed order."""
    return np.asarray(np.einsum("nd,d->n", vectors, direction))


def similarities(first: Floats, second: Floats) -> Floats:
    """Inner products of all rows (n, d) with all rows (m, d), each in one fixed order: (n, m)."""
    found = np.empty((len(first), len(second)))
    project(first, np.ones(len(first)), second, found)
    return found
