"""Outlines of the glyphs, and how far every point lies from them."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

SHAPES = (
    "circle",
    "square",
    "triangle",
    "diamond",
    "star",
    "heart",
    "cross",
    "arrow",
    "moon",
    "house",
    "hourglass",
    "bolt",
)

REACH = 2.0
"""Half the side of the square that `distances` covers, in units of a glyph's size."""

CELLS = 256
"""Cells a side of the table of distances: one is an eighth of a pixel or less."""

Points = NDArray[np.float64]


@cache
def distances() -> NDArray[np.float32]:
    """Return the signed distance of every cell to the outline of every shape.

    Returns
    -------
    ndarray of float32, shape (shapes, CELLS, CELLS)
        Rows from top to bottom, columns from left to right, of the square [-REACH, REACH]² around
        the centroid. Negative inside. All shapes have area 1. Read-only.
    """
    middles = (np.arange(CELLS) + 0.5) / CELLS * 2.0 * REACH - REACH
    across, up = np.meshgrid(middles, -middles)
    points = np.column_stack([across.ravel(), up.ravel()])
    found = np.stack([_signed_distance(points, outline(shape)) for shape in SHAPES])
    table: NDArray[np.float32] = found.reshape(len(SHAPES), CELLS, CELLS).astype(np.float32)
    table.flags.writeable = False
    return table


@cache
def outline(shape: str) -> Points:
    """Return the corners of a shape of area 1 with its centroid at the origin, anticlockwise.

    Parameters
    ----------
    shape : str
        One of `SHAPES`.

    Returns
    -------
    ndarray of float64, shape (corners, 2)
        To the right and up.
    """
    corners = np.asarray(_OUTLINES[shape](), dtype=np.float64)
    after = np.roll(corners, -1, axis=0)
    cross = corners[:, 0] * after[:, 1] - after[:, 0] * corners[:, 1]
    area = cross.sum() / 2.0
    centroid = ((corners + after) * cross[:, None]).sum(axis=0) / (6.0 * area)
    placed: Points = (corners - centroid) / np.sqrt(abs(area))
    return placed if area > 0.0 else placed[::-1]


def _signed_distance(points: Points, corners: Points) -> Points:
    """Distance to the nearest edge; inside where a ray to the right crosses an odd number."""
    nearest = np.full(len(points), np.inf)
    inside = np.zeros(len(points), dtype=bool)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        edge, offset = end - start, points - start
        along = np.clip(offset @ edge / (edge @ edge), 0.0, 1.0)
        away = offset - along[:, None] * edge
        nearest = np.minimum(nearest, (away**2).sum(axis=1))
        spans = (start[1] > points[:, 1]) != (end[1] > points[:, 1])
        left = edge[0] * offset[:, 1] - edge[1] * offset[:, 0]
        inside ^= spans & ((left < 0.0) == (edge[1] > 0.0))
    signed: Points = np.where(inside, -1.0, 1.0) * np.sqrt(nearest)
    return signed


def _arc(radius: float, start: float, end: float, corners: int) -> Points:
    angle = np.deg2rad(np.linspace(start, end, corners))
    corner: Points = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return corner


def _circle() -> Points:
    return _arc(1.0, 0.0, 360.0, 49)[:-1]


def _star() -> Points:
    corners = _arc(1.0, 90.0, 450.0, 11)[:-1]
    corners[1::2] *= 0.45
    return corners


def _heart() -> Points:
    turn = np.linspace(0.0, 2.0 * np.pi, 49)[:-1]
    up = 13.0 * np.cos(turn) - 5.0 * np.cos(2.0 * turn) - 2.0 * np.cos(3.0 * turn)
    return np.column_stack([-16.0 * np.sin(turn) ** 3, up - np.cos(4.0 * turn)])


def _moon() -> Points:
    """Return a disc less another of the same size to its right."""
    outer, apart = _arc(1.0, 50.0, 310.0, 33), 2.0 * np.cos(np.deg2rad(50.0))
    inner = _arc(1.0, 230.0, 130.0, 17)[1:-1] + np.array([apart, 0.0])
    return np.vstack([outer, inner])


_OUTLINES: Mapping[str, Callable[[], ArrayLike]] = {
    "circle": _circle,
    "square": lambda: [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "triangle": lambda: [(-1, 0), (1, 0), (0, 1.8)],
    "diamond": lambda: [(0, -1.2), (0.8, 0), (0, 1.2), (-0.8, 0)],
    "star": _star,
    "heart": _heart,
    "cross": lambda: [
        *((-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1)),
        *((1, 3), (-1, 3), (-1, 1), (-3, 1), (-3, -1), (-1, -1)),
    ],
    "arrow": lambda: [(-3, -1), (0, -1), (0, -2.6), (3, 0), (0, 2.6), (0, 1), (-3, 1)],
    "moon": _moon,
    "house": lambda: [(-2, -2.5), (2, -2.5), (2, 0), (2.8, 0), (0, 2.8), (-2.8, 0), (-2, 0)],
    "hourglass": lambda: [(-2, -2.6), (2, -2.6), (0.5, 0), (2, 2.6), (-2, 2.6), (-0.5, 0)],
    "bolt": lambda: [(-0.9, -2.4), (2.2, 0.8), (0.5, 0.8), (0.9, 2.4), (-2.2, -0.8), (-0.5, -0.8)],
}
