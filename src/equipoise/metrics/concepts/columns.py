"""Matrices of concepts, read some columns at a time, and checked where they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


@runtime_checkable
class NamedColumns(Protocol):
    """Columns that are read one at a time, such as `equipoise.data.Matrix`."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        ...

    def column(self, name: str) -> Array:
        """Return one column, shape (n,); it may be asked for from several threads at once."""
        ...


@dataclass(frozen=True, eq=False)
class Source:
    """Scores or labels, one column per concept.

    Attributes
    ----------
    what : str
        "scores" or "labels".
    values : ndarray, shape (n, concepts), or NamedColumns
        An array may be memory-mapped: only what is asked for is read.
    shape : tuple of int
    names : tuple of str, or None where columns have none
    """

    what: str
    values: Array | NamedColumns = field(repr=False)
    shape: tuple[int, int]
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, values: Any, what: str) -> Source:
        """Check the shape and type of a matrix.

        Raises
        ------
        InputError
            When it is none, is empty, or does not hold numbers.
        """
        if isinstance(values, NamedColumns):
            names = tuple(values.names)
            length = len(values.column(names[0])) if names else 0
            return cls(what, values, _filled(what, (length, len(names))), names)
        try:
            array = np.asarray(values)
        except ValueError:
            raise InputError(f"{what}: rows of different lengths; expected (n, concepts)") from None
        array = array[:, None] if array.ndim == 1 else array
        _check_type(what, array)
        return cls(what, array, _filled(what, array.shape), None)

    def whole(self) -> Array:
        """Return all columns, shape (n, concepts)."""
        return (
            self.values if isinstance(self.values, np.ndarray) else self.block(0, self.shape[1]).T
        )

    def block(self, start: int, stop: int) -> Array:
        """Return some columns, one after the other, shape (stop - start, n)."""
        if isinstance(self.values, np.ndarray):
            return np.ascontiguousarray(self.values[:, start:stop].T)
        names = (self.names or ())[start:stop]
        return np.stack([self._column(name) for name in names])

    def _column(self, name: str) -> Array:
        column = np.asarray(self.values.column(name))  # type: ignore[union-attr]
        _check_type(f"{self.what}, column {name!r}", column)
        if column.shape != self.shape[:1]:
            raise InputError(
                f"{self.what}, column {name!r}: shape {column.shape}; expected {self.shape[:1]}, "
                f"as column {(self.names or ())[0]!r}"
            )
        return column


def check_scores(block: Array, names: Sequence[str], rows: npt.NDArray[np.int64]) -> None:
    """Raise an InputError where a score, shape (concepts, n), is not finite."""
    for values, name in zip(block, names, strict=True):
        wrong = ~np.isfinite(values)
        if wrong.any():
            raise InputError(
                f"scores: NaN or infinite for concept {name!r} in row {rows[np.argmax(wrong)]}; "
                "expected finite numbers"
            )


def flags(block: Array, names: Sequence[str], rows: npt.NDArray[np.int64]) -> Flags:
    """Return labels, shape (concepts, n), as booleans; raise an InputError where one is none."""
    if block.dtype.kind == "b":
        return block
    for values, name in zip(block, names, strict=True):
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"labels: {values[row]} for concept {name!r} in row {rows[row]}; expected 0 or 1"
            )
    return np.asarray(block == 1)


def _filled(what: str, shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2 or 0 in shape:
        raise InputError(f"{what}: shape {shape}; expected (n, concepts), neither of them 0")
    return shape[0], shape[1]


def _check_type(what: str, array: Array) -> None:
    # An empty or ragged matrix has no type worth telling.
    if array.size and array.ndim <= 2 and array.dtype.kind not in "fiub":
        raise InputError(f"{what}: type {array.dtype}; expected numbers")
