"""Parts of a picture made so coarse that no face in them can be told."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from equipoise.core.arrays import AnyArray, Bytes

BLOCKS = 6
"""Blocks of one colour along the longer side of what is blurred."""

WHOLE = (0.0, 0.0, 1.0, 1.0)
"""The box of a whole picture."""


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
    found = np.array(pixels, dtype=np.uint8)
    height, width = found.shape[:2]
    for box in boxes:
        left, top, right, bottom = np.clip(WHOLE if np.isnan(box).any() else box, 0.0, 1.0)
        rows = slice(math.floor(top * height), math.ceil(bottom * height))
        _coarsen(found[rows, math.floor(left * width) : math.ceil(right * width)])
    return found


def _coarsen(part: Bytes) -> None:
    side = max(1, math.ceil(max(part.shape[:2]) / BLOCKS))
    for top in range(0, part.shape[0], side):
        for left in range(0, part.shape[1], side):
            block = part[top : top + side, left : left + side]
            block[:] = np.rint(block.mean(axis=(0, 1)))
