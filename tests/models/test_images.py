"""Images as adapters take them."""

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.models.images import as_rgb, pillow_images

Image = pytest.importorskip("PIL.Image", reason="could not import pillow")


def test_grey_is_repeated_and_rgb_kept():
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    colour = np.arange(36, dtype=np.uint8).reshape(3, 4, 3)
    given = [grey, colour, Image.fromarray(grey), Image.fromarray(colour), colour[:, ::-1]]
    got = as_rgb(given)
    for array, expected in zip(got, [grey, colour, grey, colour, colour[:, ::-1]], strict=True):
        channels = expected if expected.ndim == 3 else np.dstack([expected] * 3)
        np.testing.assert_array_equal(array, channels)
        assert array.shape == (3, 4, 3)
        assert array.flags.c_contiguous


def test_an_image_of_three_rows_keeps_its_sides():
    (image,) = pillow_images([np.zeros((3, 40, 3), dtype=np.uint8)])
    assert (image.size, image.mode) == ((40, 3), "RGB")


@pytest.mark.parametrize(
    ("image", "said"),
    [
        (np.zeros((4, 4, 3)), "is float64"),
        (np.zeros((4, 4, 4), np.uint8), "is uint8"),
        (np.zeros((0, 4, 3), np.uint8), "is uint8"),
        (np.zeros((4, 4), np.uint16), "is uint16"),
        *((Image.new(mode, (4, 4)), f"has mode {mode}") for mode in ("RGBA", "CMYK", "I;16")),
    ],
    ids=lambda value: "" if isinstance(value, str) else None,
)
def test_other_images_are_refused(image, said):
    good = np.zeros((4, 4, 3), dtype=np.uint8)
    with pytest.raises(InputError, match=f"^Image 1 {said}"):
        as_rgb([good, image])
