"""Change a face in an image: mix it with another's, fill it with noise, cover it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equipoise.core.errors import InputError
from equipoise.mitigate.augmentation.regions import Box

Image = NDArray[np.uint8]

GREY = 128


def mix_regions(
    image: Image, box: Box, other: Image, other_box: Box, exchanged: Sequence[bool]
) -> Image:
    """Return an image whose face has quarters of another face.

    Parameters
    ----------
    image, other : ndarray of uint8, shape (height, width, 3)
    box, other_box : (left, top, right, bottom)
        Where the faces are; the other one is scaled to the size of the first.
    exchanged : sequence of 4 bool
        Which quarters come from the other: upper left, upper right, lower left, lower right.

    Raises
    ------
    InputError
        When there are not four quarters, or a box is not within its image.

    References
    ----------
    Mandal 2024, chapter 10 (partial mixing).
    """
    if len(exchanged) != 4:
        raise InputError(f"{len(exchanged)} quarters; expected four, upper left first")
    left, top, right, bottom = _checked(image, box)
    face = _scaled(_cut(other, other_box), bottom - top, right - left)
    middle, centre = (bottom - top) // 2, (right - left) // 2
    made = image.copy()
    rows, columns = (slice(0, middle), slice(middle, None)), (slice(0, centre), slice(centre, None))
    region = made[top:bottom, left:right]
    for place, taken in enumerate(exchanged):
        if taken:
            quarter = (rows[place // 2], columns[place % 2])
            region[quarter] = face[quarter]
    return made


def noise_region(image: Image, box: Box, random: np.random.Generator) -> Image:
    """Return an image whose face is uniform noise: each channel of each pixel in 0 to 255."""
    left, top, right, bottom = _checked(image, box)
    made = image.copy()
    shape = (bottom - top, right - left, 3)
    made[top:bottom, left:right] = random.integers(0, 256, shape, dtype=np.uint8)
    return made


def cover_region(image: Image, box: Box, value: int = GREY) -> Image:
    """Return an image whose face is one grey."""
    left, top, right, bottom = _checked(image, box)
    made = image.copy()
    made[top:bottom, left:right] = value
    return made


def _checked(image: Image, box: Box) -> Box:
    left, top, right, bottom = box
    height, width = image.shape[:2]
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        raise InputError(f"the box {box} is not within its image of {width} × {height} pixels")
    return box


def _cut(image: Image, box: Box) -> Image:
    left, top, right, bottom = _checked(image, box)
    return image[top:bottom, left:right]


def _scaled(face: Image, height: int, width: int) -> Image:
    if face.shape[:2] == (height, width):
        return face
    from PIL import Image as Pillow

    made = Pillow.fromarray(face).resize((width, height), Pillow.Resampling.BILINEAR)
    return np.asarray(made)
