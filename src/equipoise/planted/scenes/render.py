"""Glyphs on grey: a subject (shape and fill) in a hue, in a frame of two bars.

Hue and frame are the attributes; where, how large and how turned the glyph is, and the grey behind
it, are nuisance. Every draw comes from a stream of its own name, so a smaller set is the beginning
of a larger one.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

from equipoise.core import Bytes, Floats, Floats32, Integers, Positions
from equipoise.stats.streams import stream

REACH = 2.0
"""Half the side of the square that `distances` covers, in units of a glyph's size."""

CELLS = 256
"""Cells a side of the table of distances: one is an eighth of a pixel or less."""


@cache
def distances() -> Floats32:
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
    corners = [_CORNERS[_CORNERS[:, 0] == shape, 1:].astype(np.float64) for shape in SHAPES]
    distances = np.stack([_signed_distance(points, polygon) for polygon in corners])
    table: Floats32 = distances.reshape(len(SHAPES), CELLS, CELLS).astype(np.float32)
    table.flags.writeable = False
    return table


def _signed_distance(points: Floats, corners: Floats) -> Floats:
    """Distance to the nearest edge; inside where a ray to the right crosses an odd number."""
    nearest = np.full(len(points), np.inf)
    inside = np.zeros(len(points), dtype=bool)
    for start, end in zip(corners, np.roll(corners, -1, axis=0), strict=True):
        edge, offset = end - start, points - start
        along = np.clip(offset @ edge / (edge @ edge), 0.0, 1.0)
        away = offset - along[:, None] * edge
        nearest = np.minimum(nearest, (away**2).sum(axis=1))
        spans = (start[1] > points[:, 1]) != (end[1] > points[:, 1])
        cross = edge[0] * offset[:, 1] - edge[1] * offset[:, 0]
        inside ^= spans & ((cross < 0.0) == (edge[1] > 0.0))
    signed: Floats = np.where(inside, -1.0, 1.0) * np.sqrt(nearest)
    return signed


# A row for each corner of each shape, anticlockwise; its area is 1, its centroid the origin.
_CORNERS = np.loadtxt(
    Path(__file__).with_name("glyphs.csv"), delimiter=",", skiprows=1, dtype=np.str_
)
SHAPES: tuple[str, ...] = tuple(dict.fromkeys(_CORNERS[:, 0].tolist()))
FILLS = ("solid", "hollow")
SUBJECTS = tuple(f"{fill} {shape}" for shape, fill in product(SHAPES, FILLS))
HUES = ("red", "yellow", "green", "cyan", "blue", "purple")
FRAMES = ("level", "upright")

IMAGE_SIZE = 32
"""Height and width of an image in pixels."""

SIDE_RANGE = (10.0, 12.5)
"""Square root of the area of a glyph's outline, in pixels."""

SHIFT = 1.5
"""Most pixels, across and down, from the middle of the image to the centroid of the glyph."""

TURN = 0.3
"""Most a glyph is turned either way, in radians."""

GREY_RANGE = (0.3, 0.85)
STROKE = 1.5
"""Width of the line of a hollow glyph, in pixels; it lies inside the outline."""

BAR = (21.0, 2.0, 13.5)
"""Length and width of a bar, and how far it lies from the middle, in pixels."""

RGB = np.array(
    [
        (215, 45, 45),
        (225, 195, 30),
        (45, 165, 60),
        (40, 190, 205),
        (50, 75, 215),
        (170, 60, 200),
    ],
    dtype=np.float32,
)
"""Colour of each hue at full light."""

LIGHT_RANGE = (0.75, 1.0)

BLUR = 5
"""Side in pixels of the squares that `degrade` averages over."""

NOISE = 24.0
"""Standard deviation of the noise that `degrade` adds, in grey levels of 255."""

_INK = 20.0
_CHUNK = 1024


@dataclass(frozen=True)
class Factors:
    """The factors of each image.

    Attributes
    ----------
    subject, hue, frame : ndarray of int64, shape (n,)
        Positions in `SUBJECTS`, `HUES` and `FRAMES`.
    x, y : ndarray of float64, shape (n,)
        Pixels right of and below the middle, within `SHIFT`.
    side : ndarray of float64, shape (n,)
        In `SIDE_RANGE`.
    turn : ndarray of float64, shape (n,)
        Anticlockwise, in radians, within `TURN`.
    grey : ndarray of float64, shape (n,)
        Background at the middle, in `GREY_RANGE`; 1 is white.
    slope : ndarray of float64, shape (n,)
        How much lighter the background is on the right than on the left, in [-0.2, 0.2].
    light : ndarray of float64, shape (n,)
        What the hue's colour is multiplied by, in `LIGHT_RANGE`.
    """

    subject: Integers
    hue: Integers
    frame: Integers
    x: Floats
    y: Floats
    side: Floats
    turn: Floats
    grey: Floats
    slope: Floats
    light: Floats

    def __len__(self) -> int:
        return len(self.subject)

    def take(self, rows: Positions | slice) -> "Factors":
        """Return the factors of some rows."""
        return Factors(**{name: values[rows] for name, values in vars(self).items()})


def draw_poses(
    subject: Integers, hue: Integers, frame: Integers, generator: np.random.Generator
) -> Factors:
    """Draw the nuisance factors of images with a fixed subject, hue and frame."""
    shift = (-SHIFT, SHIFT)
    ranges = (shift, shift, SIDE_RANGE, (-TURN, TURN), GREY_RANGE, (-0.2, 0.2), LIGHT_RANGE)
    low, high = np.array(ranges).T
    unit = generator.random((len(subject), len(ranges)))
    return Factors(subject, hue, frame, *(low + (high - low) * unit).T)


def render(factors: Factors) -> Bytes:
    """Draw one image per row.

    Returns
    -------
    ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
    """
    images = np.empty((len(factors), IMAGE_SIZE, IMAGE_SIZE, 3), dtype=np.uint8)
    for start in range(0, len(factors), _CHUNK):
        rows = slice(start, start + _CHUNK)
        images[rows] = _render_chunk(factors.take(rows))
    return images


def degrade(images: Bytes, *, seed: int) -> Bytes:
    """Blur images and add noise, so that the shape is hard to see.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, height, width, 3)
    seed : int
        Of the noise.

    Returns
    -------
    ndarray of uint8, shape (n, height, width, 3)
        Averaged over squares of `BLUR` pixels a side, with normal noise of `NOISE` grey levels.
    """
    noise = stream(seed, "scenes", "degrade")
    degraded = np.empty_like(images)
    for start in range(0, len(images), _CHUNK):
        part = images[start : start + _CHUNK].astype(np.float32)
        part = _smoothed(_smoothed(part, axis=1), axis=2)
        part += noise.standard_normal(part.shape, dtype=np.float32) * NOISE
        degraded[start : start + _CHUNK] = np.clip(np.rint(part), 0.0, 255.0)
    return degraded


def _smoothed(images: Floats32, *, axis: int) -> Floats32:
    """Average each pixel with two on either side of it; edges are repeated outwards."""
    reach = BLUR // 2
    widths = [(reach, reach) if dimension == axis else (0, 0) for dimension in range(images.ndim)]
    padded = np.pad(images, widths, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, BLUR, axis=axis)
    means: Floats32 = windows.mean(axis=-1, dtype=np.float32)
    return means


def _render_chunk(factors: Factors) -> Bytes:
    column = np.arange(IMAGE_SIZE, dtype=np.float32) + (0.5 - IMAGE_SIZE / 2.0)
    grey = factors.grey[:, None] + factors.slope[:, None] * (column / IMAGE_SIZE)
    behind = 255.0 * grey.astype(np.float32)[:, None, :]
    length, width, away = BAR
    along = np.clip(length / 2.0 + 0.5 - np.abs(column), 0.0, 1.0)
    coverage = np.clip(width / 2.0 + 0.5 - np.abs(np.abs(column) - away), 0.0, 1.0)
    level = (coverage[:, None] * along[None, :]).astype(np.float32)
    bars = np.stack([level, level.T])[factors.frame]
    behind = behind + bars * (_INK - behind)
    ink = RGB[factors.hue] * factors.light.astype(np.float32)[:, None]
    covered = _coverage(factors, column)[..., None]
    blended = behind[..., None] + covered * (ink[:, None, None, :] - behind[..., None])
    pixels: Bytes = np.rint(np.clip(blended, 0.0, 255.0)).astype(np.uint8)
    return pixels


def _coverage(factors: Factors, column: Floats32) -> Floats32:
    """Return the share of each pixel that the glyph covers: a ramp a pixel wide at its edge."""
    x, y, side, turn = (
        getattr(factors, name).astype(np.float32)[:, None, None]
        for name in ("x", "y", "side", "turn")
    )
    right, down = column[None, None, :] - x, column[None, :, None] - y
    scale = CELLS / (2.0 * REACH) / side
    cos, sin = np.cos(turn) * scale, np.sin(turn) * scale
    # A turn of the glyph is a turn of the pixels the other way; rows count downwards.
    across = np.clip(cos * right - sin * down + CELLS / 2, 0, CELLS - 1)
    below = np.clip(sin * right + cos * down + CELLS / 2, 0, CELLS - 1)
    shape = (factors.subject // len(FILLS)).astype(np.int32)[:, None, None] * CELLS**2
    cell = below.astype(np.int32) * CELLS + across.astype(np.int32) + shape
    outside = distances().ravel()[cell] * side
    hollow = (factors.subject % len(FILLS) == FILLS.index("hollow"))[:, None, None]
    line = np.abs(outside + STROKE / 2.0) - STROKE / 2.0
    edge = np.where(hollow, line, outside)
    covered: Floats32 = np.clip(0.5 - edge, 0.0, 1.0)
    return covered
