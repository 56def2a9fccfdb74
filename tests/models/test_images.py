"""Images as adapters take them."""

import numpy as np
import pytest
from PIL import Image

from equipoise.core import InputError
from equipoise.models.images import as_rgb, pillow_images


def test_an_image_of_three_rows_keeps_its_sides():
    (image,) = pillow_images([np.zeros((3, 40, 3), dtype=np.uint8)])
    assert (image.size, image.mode) == ((40, 3), "RGB")


@pytest.mark.parametrize(
    ("image", "message"),
    [
        (np.zeros((4, 4, 3)), "is float64"),
        (np.zeros((4, 4, 4), np.uint8), "is uint8"),
        (np.zeros((0, 4, 3), np.uint8), "is uint8"),
        (np.zeros((4, 4), np.uint16), "is uint16"),
        *((Image.new(mode, (4, 4)), f"has mode {mode}") for mode in ("RGBA", "CMYK", "I;16")),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_other_images_are_refused(image, message):
    good = np.zeros((4, 4, 3), dtype=np.uint8)
    with pytest.raises(InputError, match=f"^Image 1 {message}"):
        as_rgb([good, image])
