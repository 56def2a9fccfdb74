"""Antialiased squares, ellipses and hearts in pure colours on black.

The factors are those of dSprites (shape, scale, rotation, position) with a colour added. All shapes
have the same area at the same scale, so brightness does not give the shape away, and every draw
comes from a stream of its own cell, so a smaller set is the beginning of a larger one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np

from equipoise.core import Bytes, Floats, Integers, Positions

SHAPES = ("square", "ellipse", "heart")
COLOURS = ("red", "green", "blue")

IMAGE_SIZE = 32
"""Height and width of an image in pixels."""

MARGIN = 10.0
"""Least distance in pixels from a shape's centre to the frame: the largest shape stays inside."""

SIDE = 9.5
"""Square root of a shape's area in pixels at scale 1."""

SCALE_RANGE = (0.5, 1.0)

_STREAMS = {"train": 0, "test": 1}
_CHUNK = 2048


@dataclass(frozen=True)
class Factors:
    """The factors of each image.

    Attributes
    ----------
    shape, colour : ndarray of int64, shape (n,)
        Positions in `SHAPES` and `COLOURS`.
    scale : ndarray of float64, shape (n,)
        Side relative to the largest, in `SCALE_RANGE`; area grows with its square.
    rotation : ndarray of float64, shape (n,)
        Counter-clockwise angle in radians, in [0, 2π).
    x, y : ndarray of float64, shape (n,)
        Position of the centre in [0, 1), from left to right and from top to bottom of the part of
        the frame that keeps every shape inside.
    """

    shape: Integers
    colour: Integers
    scale: Floats
    rotation: Floats
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.shape)

    def take(self, rows: Positions | slice) -> "Factors":
        """Return the factors of some rows."""
        return Factors(**{name: values[rows] for name, values in vars(self).items()})


@dataclass(frozen=True)
class ColourImages:
    """Rendered images with the factors that made them.

    Attributes
    ----------
    image_id : tuple of str
        Unique within the set, such as ``heart-green-00012``.
    images : ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
    factors : Factors
        The same n rows.
    """

    image_id: tuple[str, ...]
    images: Bytes
    factors: Factors


def draw_factors(per_cell: int, *, seed: int, stream: str) -> Factors:
    """Draw the same number of images for every shape and colour, cell after cell.

    Parameters
    ----------
    per_cell : int
        Images of each shape in each colour, at least 1.
    seed : int
        Not negative.
    stream : {"train", "test"}
        The two never share a draw, whatever the seeds.

    Returns
    -------
    Factors
        ``9 * per_cell`` rows. The first rows of a cell do not depend on `per_cell`.
    """
    cells = list(product(range(len(SHAPES)), range(len(COLOURS))))
    unit = np.concatenate(
        [
            np.random.default_rng((_STREAMS[stream], seed, *cell)).random((per_cell, 4))
            for cell in cells
        ]
    )
    shape, colour = np.repeat(np.array(cells, dtype=np.int64), per_cell, axis=0).T
    low, high = SCALE_RANGE
    scale, turn, x, y = unit.T
    return Factors(shape, colour, low + (high - low) * scale, 2.0 * np.pi * turn, x, y)


def render(factors: Factors) -> Bytes:
    """Draw one image per row.

    Returns
    -------
    ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
        Only the channel of the image's colour is ever above 0.
    """
    images = np.zeros((len(factors), IMAGE_SIZE, IMAGE_SIZE, len(COLOURS)), dtype=np.uint8)
    for shape in range(len(SHAPES)):
        rows = np.flatnonzero(factors.shape == shape)
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK]
            part = factors.take(chunk)
            images[chunk, :, :, part.colour] = np.rint(255.0 * coverage(part, _DISTANCES[shape]))
    return images


def render_test_set(per_cell: int = 1000, *, seed: int = 0) -> ColourImages:
    """Render a balanced test set that no shipped model has seen.

    Parameters
    ----------
    per_cell : int
        Images of each shape in each colour.
    seed : int
        Another seed gives another set; none shares a draw with the training images.

    Returns
    -------
    ColourImages
        ``9 * per_cell`` images.
    """
    factors = draw_factors(per_cell, seed=seed, stream="test")
    names = [f"{shape}-{colour}" for shape, colour in product(SHAPES, COLOURS)]
    image_id = tuple(f"{name}-{number:05d}" for name in names for number in range(per_cell))
    return ColourImages(image_id=image_id, images=render(factors), factors=factors)


def coverage(factors: Factors, distance: Callable[[Floats, Floats], Floats]) -> Floats:
    """Return the share of each pixel that the shape covers, in [0, 1].

    Parameters
    ----------
    factors : Factors
        n rows; `shape` and `colour` are not used.
    distance : callable
        Signed distance to the outline of the shape of unit area centred on its centroid.

    Returns
    -------
    ndarray of float64, shape (n, IMAGE_SIZE, IMAGE_SIZE)
        A linear ramp one pixel wide across the outline.
    """
    side, turn = (SIDE * factors.scale)[:, None, None], factors.rotation[:, None, None]
    x, y = factors.x[:, None, None], factors.y[:, None, None]
    centres = np.arange(IMAGE_SIZE) + 0.5
    free = IMAGE_SIZE - 2.0 * MARGIN
    right = (centres[None, None, :] - (MARGIN + free * x)) / side
    up = ((MARGIN + free * y) - centres[None, :, None]) / side
    cos, sin = np.cos(turn), np.sin(turn)
    outside = distance(cos * right + sin * up, cos * up - sin * right) * side
    return np.clip(0.5 - outside, 0.0, 1.0)


def _square_distance(x: Floats, y: Floats) -> Floats:
    beyond_x, beyond_y = np.abs(x) - 0.5, np.abs(y) - 0.5
    outside: Floats = np.hypot(np.maximum(beyond_x, 0.0), np.maximum(beyond_y, 0.0))
    return outside + np.minimum(np.maximum(beyond_x, beyond_y), 0.0)


def _ellipse_distance(x: Floats, y: Floats) -> Floats:
    """Approximate, to first order at the outline, where alone it matters."""
    minor = 1.0 / np.sqrt(np.pi * _ASPECT)
    major = _ASPECT * minor
    level = np.hypot(x / major, y / minor)
    slope = np.hypot(x / major**2, y / minor**2)
    distance: Floats = level * (level - 1.0) / np.maximum(slope, 1e-9)
    return distance


def _heart_distance(x: Floats, y: Floats) -> Floats:
    """Join the cone from the tip around each lobe with the kite between tip, lobes and notch."""
    across, up = np.abs(x) * _HEART_UNIT, y * _HEART_UNIT + _HEART_CENTROID
    length, slope = np.hypot(_LOBE, _TIP), 1.0 / np.hypot(_LOBE, _TIP)
    along = (across * _LOBE + (up + _TIP) * _TIP) / length
    lobes = np.abs(across * _TIP - (up + _TIP) * _LOBE) / length
    cosine = np.sqrt(1.0 - slope**2)
    passed = lobes * slope + along * cosine
    flank = lobes * cosine - along * slope
    lobe = np.hypot(lobes, along - length) - 1.0
    cone = np.select(
        [passed < 0.0, passed > cosine * length], [np.hypot(lobes, along), lobe], flank
    )
    kite = np.maximum(
        (across - _LOBE) * _NOTCH + up * _LOBE, (across * _TIP - (up + _TIP) * _LOBE) / length
    )
    return np.asarray(np.minimum(cone, kite) / _HEART_UNIT)


def _heart_moments() -> tuple[float, float]:
    """Return area and centroid height of the heart with lobes of radius 1."""
    reach = np.hypot(_LOBE, _TIP)
    start = np.arctan2(-_TIP, -_LOBE) + np.arccos(1.0 / reach)
    end = np.arccos(-_LOBE)
    tangent = np.sqrt(reach**2 - 1.0)
    # Of one half: below the lobe's centre, above it, beside the flank; then the lobe's sector.
    areas = np.array([_LOBE * _TIP, _LOBE * _NOTCH, tangent]) / 2.0
    heights = np.array([-_TIP, _NOTCH, np.sin(start) - _TIP]) / 3.0
    half = areas.sum() + (end - start) / 2.0
    moment = areas @ heights + (np.cos(start) - np.cos(end)) / 3.0
    return float(2.0 * half), float(moment / half)


_ASPECT = 1.5
# Lobes of radius 1 centred at (±_LOBE, 0) over a tip at (0, -_TIP); they meet at (0, _NOTCH). The
# notch is deep on purpose: it makes square and ellipse as alike as either is to the heart, so a
# network that never saw one of them in some colour spreads it over both others.
_LOBE = 0.92
_TIP = 1.6
_NOTCH = float(np.sqrt(1.0 - _LOBE**2))
_HEART_AREA, _HEART_CENTROID = _heart_moments()
_HEART_UNIT = float(np.sqrt(_HEART_AREA))
_DISTANCES = (_square_distance, _ellipse_distance, _heart_distance)
