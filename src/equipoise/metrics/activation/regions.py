"""Boxes over maps: how much of a map lies inside, and how much of the image."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Regions:
    """Maps of n images and a box on each.

    Attributes
    ----------
    cumulated : ndarray of float64, shape (n, rows + 1, columns + 1)
        Sums of each map above and left of every corner of its cells; 1 in the last.
    boxes : ndarray of float64, shape (n, 4)
        Left, top, right, bottom, from 0 to 1.
    rows : ndarray of int64, shape (n,)
        Which of the images given these are: those with a box, and a map that is not 0 everywhere.
    dropped : mapping of str to int
        Images without, by reason.
    """

    cumulated: Floats = field(repr=False)
    boxes: Floats = field(repr=False)
    rows: Indices = field(repr=False)
    dropped: dict[str, int]

    @classmethod
    def of(cls, maps: npt.ArrayLike, boxes: npt.ArrayLike) -> Regions:
        """Check maps and boxes, and cut boxes at the edge of the map.

        Raises
        ------
        InputError
            When a map is negative or not finite, a box ends before it begins, or lengths differ.
        """
        cells, edges = _maps(maps), np.asarray(boxes, dtype=np.float64)
        if edges.shape != (len(cells), 4):
            raise InputError(
                f"boxes: shape {edges.shape} for {len(cells)} maps; expected (n, 4): left, top, "
                "right, bottom, as shares of the map's width and height"
            )
        none = np.asarray(np.isnan(edges).any(axis=1))
        wrong = ~none & ((edges[:, 2] <= edges[:, 0]) | (edges[:, 3] <= edges[:, 1]))
        if wrong.any():
            raise InputError(
                f"boxes: box {int(np.argmax(wrong))} ends before it begins; expected left < right "
                "and top < bottom"
            )
        inside = np.clip(np.where(none[:, None], 0.0, edges), 0.0, 1.0)
        unseen = ~none & ((inside[:, 2] <= inside[:, 0]) | (inside[:, 3] <= inside[:, 1]))
        empty = ~none & ~unseen & (cells.reshape(len(cells), -1).sum(axis=1) == 0.0)
        rows = np.flatnonzero(~none & ~unseen & ~empty).astype(np.int64)
        dropped = {
            "no region": int(none.sum()),
            "region outside the map": int(unseen.sum()),
            "no activation": int(empty.sum()),
        }
        return cls(_cumulated(cells[rows]), inside[rows], rows,
                   {why: n for why, n in dropped.items() if n})  # fmt: skip

    def __len__(self) -> int:
        """Return the number of images with a share."""
        return len(self.rows)

    @cached_property
    def shares(self) -> Floats:
        """Share of each map inside its box, from 0 to 1; shape (n,)."""
        return self.exchanged(np.arange(len(self)))

    @cached_property
    def areas(self) -> Floats:
        """Share of the image inside each box; shape (n,)."""
        sides = self.boxes[:, 2:] - self.boxes[:, :2]
        return np.asarray(sides[:, 0] * sides[:, 1])

    def exchanged(self, owners: Indices) -> Floats:
        """Return shares with the maps of other images, (n,).

        Parameters
        ----------
        owners : ndarray of int64, shape (n,)
            Whose map lies under each box.
        """
        left, top, right, bottom = range(4)
        corners = ((bottom, right, 1), (top, right, -1), (bottom, left, -1), (top, left, 1))
        found = np.zeros(len(self))
        for y, x, sign in corners:
            found += sign * self._at(owners, y, x)
        return np.asarray(np.clip(found, 0.0, 1.0))

    def _at(self, owners: Indices, y: int, x: int) -> Floats:
        """Return how much of each map lies above and left of a point: exact between corners."""
        (row, down), (column, across) = self._places[y], self._places[x]
        at = self.cumulated
        above = at[owners, row, column] * (1 - across) + at[owners, row, column + 1] * across
        below = (
            at[owners, row + 1, column] * (1 - across) + at[owners, row + 1, column + 1] * across
        )
        return np.asarray(above * (1 - down) + below * down)

    @cached_property
    def _places(self) -> list[tuple[Indices, Floats]]:
        """Cell of each edge of each box, and how far into it: left, top, right, bottom."""
        rows, columns = (size - 1 for size in self.cumulated.shape[1:])
        found = []
        for edge, size in enumerate((columns, rows, columns, rows)):
            at = self.boxes[:, edge] * size
            cell = np.minimum(at.astype(np.int64), size - 1)
            found.append((cell, at - cell))
        return found


def _maps(maps: npt.ArrayLike) -> Floats:
    cells = np.asarray(maps, dtype=np.float64)
    if cells.ndim != 3 or 0 in cells.shape[1:]:
        raise InputError(f"maps: shape {cells.shape}; expected (n, rows, columns)")
    bad = np.asarray(~np.isfinite(cells) | (cells < 0.0))
    if bad.any():
        first = int(np.argmax(bad.reshape(len(cells), -1).any(axis=1)))
        raise InputError(
            f"maps: map {first} has cells that are negative or not finite; expected 0 or above"
        )
    return cells


def _cumulated(cells: Floats) -> Floats:
    sums = np.zeros((len(cells), cells.shape[1] + 1, cells.shape[2] + 1))
    sums[:, 1:, 1:] = cells.cumsum(axis=1).cumsum(axis=2)
    total = sums[:, -1, -1].copy()
    return np.asarray(sums / total[:, None, None])
