"""Sums of unit vectors: all that a mean cosine needs, mergeable over shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]

# Rows that are normalised at a time: they stay in the cache, and float64 copies stay small.
_ROWS = 256


@dataclass(frozen=True, eq=False)
class UnitSums:
    """The sum of a set's unit vectors.

    Attributes
    ----------
    total : ndarray of float64, shape (d,)
        Sum of x / |x| over rows that are not zero.
    count : int
        Rows that are not zero.
    zeros : int
        Rows of length 0: they have no direction and take no part.
    """

    total: Floats = field(repr=False)
    count: int
    zeros: int

    @classmethod
    def of(cls, embeddings: Any, *, what: str = "embeddings") -> UnitSums:
        """Sum a set in one pass.

        Parameters
        ----------
        embeddings : array-like, shape (n, d)
            Any real type; memory-mapped arrays are read in blocks. Sums are float64.
        what : str
            Name of the argument, for errors.

        Raises
        ------
        InputError
            When the array is not numeric of shape (n, d) or holds NaN or infinite numbers.
        """
        array = embedding_array(embeddings, what=what)
        total = np.zeros(array.shape[1])
        count = 0
        for rows, scale in _blocks(array, what):
            # einsum adds in row order whatever the threads; a BLAS product need not.
            total += np.einsum("i,ij->j", scale, rows)
            count += int((scale > 0).sum())
        return cls(total, count, len(array) - count)

    def merge(self, other: UnitSums) -> UnitSums:
        """Return the sums of both sets together.

        Raises
        ------
        InputError
            When their dimensions differ.
        """
        check_dimensions((self, other))
        return UnitSums(
            self.total + other.total, self.count + other.count, self.zeros + other.zeros
        )

    @property
    def mean(self) -> Floats:
        """Mean unit vector, shape (d,); NaN for an empty set."""
        return self.total / self.count if self.count else np.full(len(self.total), np.nan)

    @property
    def distance(self) -> float:
        """Mean distance 1 - cos over pairs of different rows; NaN below two rows."""
        n = self.count
        if n < 2:
            return float("nan")
        return 1.0 - (float(self.total @ self.total) - n) / (n * (n - 1.0))


def embedding_array(embeddings: Any, *, what: str = "embeddings") -> npt.NDArray[Any]:
    """Return embeddings as a real array of shape (n, d) with n and d of at least 1.

    Raises
    ------
    InputError
        When rows differ in length, or the array is empty, not numeric or of another shape.
    """
    try:
        array = np.asarray(embeddings)
    except ValueError:
        raise InputError(f"{what}: rows of different lengths; expected shape (n, d)") from None
    if array.ndim != 2 or 0 in array.shape:
        raise InputError(f"{what}: shape {array.shape}; expected (n, d), neither of them 0")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what}: type {array.dtype}; expected real numbers")
    return array


def check_dimensions(sets: tuple[UnitSums, ...] | list[UnitSums]) -> None:
    """Raise an InputError when sets differ in their dimension."""
    found = sorted({len(one.total) for one in sets})
    if len(found) > 1:
        raise InputError(f"sets of different dimensions {found}; expected one embedding space")


def unit_rows(embeddings: npt.NDArray[Any], *, what: str = "embeddings") -> Floats:
    """Return the rows that are not zero as unit vectors, shape (m, d), float64."""
    blocks = [(rows * scale[:, None])[scale > 0] for rows, scale in _blocks(embeddings, what)]
    return np.concatenate(blocks)


def projections(embeddings: npt.NDArray[Any], direction: Floats) -> Floats:
    """Return each non-zero row's unit vector times a direction, shape (m,)."""
    blocks = [
        (np.einsum("ij,j->i", rows, direction) * scale)[scale > 0]
        for rows, scale in _blocks(embeddings, "embeddings")
    ]
    return np.concatenate(blocks)


def _blocks(array: npt.NDArray[Any], what: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield float64 rows with 1 / |row|, 0 for rows of zeros."""
    for start in range(0, len(array), _ROWS):
        rows = np.asarray(array[start : start + _ROWS], dtype=np.float64)
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
        if not np.isfinite(largest).all():
            row = start + int(np.flatnonzero(~np.isfinite(largest))[0])
            raise InputError(f"{what}: NaN or infinite in row {row}; expected finite numbers")
        squares = np.einsum("ij,ij->i", rows, rows)
        # Squares of very small or large numbers leave the range of floats.
        if ((largest > 0) & ((squares < 1e-250) | (squares > 1e250))).any():
            rows = rows / np.where(largest > 0, largest, 1.0)[:, None]
            squares = np.einsum("ij,ij->i", rows, rows)
        yield rows, np.where(squares > 0, 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
