"""Images as every adapter takes them: RGB arrays of 8 bits."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core import Bytes, InputError

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

Image = Bytes
"""One image: (height, width, 3), sRGB."""

Images = Sequence[Any] | Bytes
"""Images: uint8 arrays (height, width, 3), sRGB, each of its own size, or one (n, h, w, 3)."""


def as_rgb(images: Images) -> list[Image]:
    """Return images as arrays of shape (height, width, 3).

    Parameters
    ----------
    images : sequence
        Arrays of uint8, (height, width, 3) or grey (height, width), or Pillow images of mode
        ``RGB`` or ``L``. Each may have its own size. Grey is repeated in the three channels.

    Returns
    -------
    list of ndarray of uint8, shape (height, width, 3)

    Raises
    ------
    InputError
        If one is of another form. What becomes of transparency, of CMYK and of 16 bits is decided
        where images are decoded, not here.
    """
    arrays = []
    for position, image in enumerate(images):
        mode = getattr(image, "mode", None)
        if mode not in {None, "RGB", "L"}:
            raise InputError(
                f"Image {position} has mode {mode}; a model takes RGB or grey (L). "
                "To do: image.convert('RGB'), with a background for transparent pixels."
            )
        array = np.asarray(image)
        if array.ndim == 2:
            array = np.repeat(array[:, :, None], 3, axis=2)
        if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3 or 0 in array.shape:
            raise InputError(
                f"Image {position} is {array.dtype} of shape {np.shape(image)}, expected uint8 of "
                "shape (height, width, 3) or (height, width)."
            )
        arrays.append(np.ascontiguousarray(array))
    return arrays


def pillow_images(images: Images) -> "list[PillowImage]":
    """Return images as Pillow images of mode ``RGB``.

    Libraries guess where the channels of an array are, and guess wrong for one of 3 rows; a Pillow
    image leaves nothing to guess.
    """
    from PIL import Image as pillow  # noqa: N813

    return [pillow.fromarray(image) for image in as_rgb(images)]
