"""The outlines of the glyphs, from which ``planted/scenes/glyphs.csv`` was made."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def outline(shape: str) -> Floats:
    """Return the corners of a shape of area 1 with its centroid at the origin, anticlockwise.

    Parameters
    ----------
    shape : str
        One of `OUTLINES`.

    Returns
    -------
    ndarray of float64, shape (corners, 2)
        To the right and up.
    """
    corners = np.asarray(OUTLINES[shape], dtype=np.float64)
    after = np.roll(corners, -1, axis=0)
    cross = corners[:, 0] * after[:, 1] - after[:, 0] * corners[:, 1]
    area = cross.sum() / 2.0
    centroid = ((corners + after) * cross[:, None]).sum(axis=0) / (6.0 * area)
    placed: Floats = (corners - centroid) / np.sqrt(abs(area))
    return placed if area > 0.0 else placed[::-1]


def _arc(radius: float, start: float, end: float, corners: int) -> Floats:
    angle = np.deg2rad(np.linspace(start, end, corners))
    corner: Floats = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return corner


def _star() -> Floats:
    corners = _arc(1.0, 90.0, 450.0, 11)[:-1]
    corners[1::2] *= 0.45
    return corners


def _heart() -> Floats:
    turn = np.linspace(0.0, 2.0 * np.pi, 49)[:-1]
    up = 13.0 * np.cos(turn) - 5.0 * np.cos(2.0 * turn) - 2.0 * np.cos(3.0 * turn)
    return np.column_stack([-16.0 * np.sin(turn) ** 3, up - np.cos(4.0 * turn)])


def _moon() -> Floats:
    """Return a disc less another of the same size to its right."""
    outer, apart = _arc(1.0, 50.0, 310.0, 33), 2.0 * np.cos(np.deg2rad(50.0))
    inner = _arc(1.0, 230.0, 130.0, 17)[1:-1] + np.array([apart, 0.0])
    return np.vstack([outer, inner])


OUTLINES: Mapping[str, ArrayLike] = {
    "circle": _arc(1.0, 0.0, 360.0, 49)[:-1],
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "triangle": [(-1, 0), (1, 0), (0, 1.8)],
    "diamond": [(0, -1.2), (0.8, 0), (0, 1.2), (-0.8, 0)],
    "star": _star(),
    "heart": _heart(),
    "cross": [
        *((-1, -3), (1, -3), (1, -1), (3, -1), (3, 1), (1, 1)),
        *((1, 3), (-1, 3), (-1, 1), (-3, 1), (-3, -1), (-1, -1)),
    ],
    "arrow": [(-3, -1), (0, -1), (0, -2.6), (3, 0), (0, 2.6), (0, 1), (-3, 1)],
    "moon": _moon(),
    "house": [(-2, -2.5), (2, -2.5), (2, 0), (2.8, 0), (0, 2.8), (-2.8, 0), (-2, 0)],
    "hourglass": [(-2, -2.6), (2, -2.6), (0.5, 0), (2, 2.6), (-2, 2.6), (-0.5, 0)],
    "bolt": [(-0.9, -2.4), (2.2, 0.8), (0.5, 0.8), (0.9, 2.4), (-2.2, -0.8), (-0.5, -0.8)],
}
"""Corners of each shape, of any size and place."""
