"""What a model sees of an image, and where boxes lie in that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from equipoise.core.arrays import Floats

if TYPE_CHECKING:
    from equipoise.models.preprocessing import Recipe


def frame_of(recipe: Recipe | None, height: int, width: int) -> tuple[float, float, float, float]:
    """Return what a model sees of an image: left, top, right, bottom, in the image's pixels."""
    if recipe is None:
        return 0.0, 0.0, float(width), float(height)
    high, wide = recipe.resized(height, width)
    top, left = recipe.corner(high, wide)
    rows, columns = recipe.crop or (high, wide)
    down, across = height / high, width / wide
    return left * across, top * down, (left + columns) * across, (top + rows) * down


def framed(boxes: Floats, frames: Floats) -> Floats:
    """Return boxes in pixels of images as shares of what was seen of them, (n, 4)."""
    corner, size = frames[:, [0, 1, 0, 1]], frames[:, 2:] - frames[:, :2]
    return np.asarray((boxes - corner) / np.tile(size, 2))
