"""Drawn faces of two groups, told apart by their hair, each with one of four tools beside it.

The tool decides the occupation, the right answer. It is small and faint, and the hair is plain to
see: a classifier trained where hair and occupation go together learns the hair.
"""

from collections.abc import Sequence

import numpy as np

from equipoise.core import Booleans, Bytes, Floats, Integers, Objects, record
from equipoise.stats.streams import stream

IMAGE_SIZE = 40
TOOLS = ("ring", "cross", "bar", "square")
GROUPS = ("short hair", "long hair")
BOX = (8, 2, 32, 30)
"""Where a face with its hair lies before it is moved: left, top, right, bottom."""

_TOOL = 4.0
_MOVE = 2
_NOISE = 10.0
_CONTRAST = 60.0
"""How much a tool differs from its background, in grey levels."""


@record
class Drawn:
    """Images with the truth about them.

    Attributes
    ----------
    images : ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
    labels, groups : ndarray of str, shape (n,)
        The tool, and the group of the face.
    boxes : ndarray of int64, shape (n, 4)
        Left, top, right, bottom of the face with its hair.
    """

    images: Bytes
    labels: Objects
    groups: Objects
    boxes: Integers


def draw_faces(n: int, *, long_hair: Sequence[float], seed: int) -> Drawn:
    """Draw n images, as many of each tool.

    Parameters
    ----------
    n : int
        A multiple of the number of tools.
    long_hair : sequence of float
        Share of faces with long hair, for each tool; exact up to rounding.
    seed : int
    """
    random = stream(seed, "faces")
    per_tool = n // len(TOOLS)
    tool = np.repeat(np.arange(len(TOOLS)), per_tool)
    rank = np.tile(np.arange(per_tool), len(TOOLS))
    group = (rank < np.round(np.asarray(long_hair)[tool] * per_tool)).astype(np.int64)
    order = random.permutation(n)
    tool, group = tool[order], group[order]
    move = random.integers(-_MOVE, _MOVE + 1, (n, 2))
    y, x = np.mgrid[:IMAGE_SIZE, :IMAGE_SIZE].astype(np.float64)[:, None]
    x, y = x - move[:, 0, None, None], y - move[:, 1, None, None]
    grey = random.uniform(90, 170, (n, 1, 1, 1)) * np.ones((1, IMAGE_SIZE, IMAGE_SIZE, 3))
    skin = _between((90, 55, 40), (240, 200, 175), random.random(n))
    hair = _between((25, 20, 15), (150, 105, 70), random.random(n))
    long = (group == 1)[:, None, None]
    features = (np.abs(x - 20) > 2) & (np.abs(x - 20) < 5) & (np.abs(y - 15) < 1.2)
    features |= (np.abs(x - 20) < 3.5) & (np.abs(y - 21) < 0.8)

    def ellipse(across: float, down: float, middle: float) -> Booleans:
        return np.asarray(((x - 20) / across) ** 2 + ((y - middle) / down) ** 2 <= 1)

    layers: tuple[tuple[Booleans, Floats | float], ...] = (
        (ellipse(12, 13.5, 16) & long, hair),
        (ellipse(8, 10, 16), skin),
        (ellipse(9.5, 10.5, 14) & (y < 11), hair),
        (features, 40.0),
    )
    image = grey
    for mask, colour in layers:
        image = np.where(mask[..., None], colour, image)
    image = image + _CONTRAST * _tools(x - 33 + 2, y - 34, tool)[..., None]
    image = image + random.normal(0, _NOISE, image.shape)
    images = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    boxes = np.asarray(BOX)[None] + np.tile(move, (1, 2))
    limited = np.clip(boxes, 0, IMAGE_SIZE)
    names = (np.asarray(TOOLS, dtype=object)[tool], np.asarray(GROUPS, dtype=object)[group])
    return Drawn(images, *names, limited)


def _between(dark: Sequence[float], light: Sequence[float], share: Floats) -> Floats:
    """Return a colour between two for each image, shape (n, 1, 1, 3)."""
    low, high = np.asarray(dark, dtype=np.float64), np.asarray(light, dtype=np.float64)
    return np.asarray((low + share[:, None] * (high - low))[:, None, None])


def _tools(x: Floats, y: Floats, tool: Integers) -> Booleans:
    """Return the mask of each image's tool, centred at 0."""
    distance, reach = np.hypot(x, y), np.maximum(np.abs(x), np.abs(y))
    inside = reach <= _TOOL
    shapes = (
        (distance <= _TOOL) & (distance >= _TOOL - 1.6),
        inside & ((np.abs(x) < 1) | (np.abs(y) < 1)),
        inside & (np.abs(y) < 1),
        inside & (reach >= _TOOL - 1.2),
    )
    return np.asarray(np.choose(tool[:, None, None], shapes))
