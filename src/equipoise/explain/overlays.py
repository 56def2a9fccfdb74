"""Pictures to show: a map laid over its image, and faces blurred beyond recognition."""

import io
import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from equipoise.core import AnyArray, Bytes, Floats32
from equipoise.models.images import as_rgb

SIDE = 176
"""Longer side of an overlay in pixels."""

BLOCKS = 6
"""Blocks of one colour along the longer side of what is blurred."""

WHOLE = (0.0, 0.0, 1.0, 1.0)
"""The box of a whole picture."""


# From nothing to all: dark blue, purple, orange, yellow, in equal steps of lightness.
_RAMP = np.array([(13, 8, 135), (126, 3, 168), (204, 71, 120), (248, 149, 64), (240, 249, 33)])
_STRENGTH, _QUALITY = 0.6, 82


def overlay(
    image: Bytes,
    map_: Floats32,
    frame: Sequence[float],
    boxes: Sequence[Sequence[float]] = (),
    hidden: Sequence[Sequence[float]] = (),
) -> bytes:
    """Lay a map over the model's view of its image.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    map_ : ndarray, shape (rows, columns)
        0 or above; the largest cell has the strongest colour.
    frame : four float
        Left, top, right and bottom of what the model saw, in pixels of the image.
    boxes : sequence of four float each
        Regions, as shares of what the model saw, whose outlines are drawn.
    hidden : sequence of four float each
        Regions of the image that are blurred below the map, see `blurred`.

    Returns
    -------
    bytes
        A JPEG whose longer side has at most `SIDE` pixels.
    """
    from PIL import Image as pillow  # noqa: N813
    from PIL import ImageDraw

    (pixels,) = as_rgb([image])
    crop = pillow.fromarray(pixels).crop(tuple(round(edge) for edge in frame))  # type: ignore[arg-type]
    scale = SIDE / max(crop.size)
    size = (max(1, round(crop.width * scale)), max(1, round(crop.height * scale)))
    heat = np.asarray(map_, dtype=np.float32) / max(float(np.max(map_)), 1e-12)
    heat = np.asarray(pillow.fromarray(heat).resize(size, pillow.Resampling.BILINEAR))
    small = np.asarray(crop.resize(size, pillow.Resampling.BILINEAR))
    below = blurred(small, hidden).astype(np.float64)
    steps = np.linspace(0.0, 1.0, len(_RAMP))
    colour = np.stack([np.interp(heat, steps, _RAMP[:, channel]) for channel in range(3)], axis=2)
    share = _STRENGTH * np.clip(heat, 0.0, 1.0)[..., None]
    overlay = pillow.fromarray(np.rint(below * (1 - share) + colour * share).astype(np.uint8))
    pen = ImageDraw.Draw(overlay)
    for box in boxes:
        if not np.isnan(box).any():
            x_min, top, right, bottom = np.clip(box, 0.0, 1.0)
            corners = (x_min * size[0], top * size[1], right * size[0] - 1, bottom * size[1] - 1)
            pen.rectangle(corners, outline=(255, 255, 255))
    data = io.BytesIO()
    overlay.save(data, "JPEG", quality=_QUALITY)
    return data.getvalue()


def blurred(pixels: AnyArray, boxes: Sequence[Sequence[float]]) -> Bytes:
    """Return a picture in which boxes are blocks of their mean colour.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (height, width, 3)
        Not changed.
    boxes : sequence of four float each
        Left, top, right and bottom as shares of the picture, rounded outwards to whole pixels.
        One that is not known (NaN) is the whole picture: what is to be hidden may be anywhere.

    Returns
    -------
    ndarray of uint8
        Of the same shape. A box has at most `BLOCKS` by `BLOCKS` colours.
    """
    blurred = np.array(pixels, dtype=np.uint8)
    height, width = blurred.shape[:2]
    for box in boxes:
        x_min, top, right, bottom = np.clip(WHOLE if np.isnan(box).any() else box, 0.0, 1.0)
        rows = slice(math.floor(top * height), math.ceil(bottom * height))
        part = blurred[rows, math.floor(x_min * width) : math.ceil(right * width)]
        side = max(1, math.ceil(max(part.shape[:2]) / BLOCKS))
        for down, across in product(*(range(0, length, side) for length in part.shape[:2])):
            block = part[down : down + side, across : across + side]
            block[:] = np.rint(block.mean(axis=(0, 1)))
    return blurred
