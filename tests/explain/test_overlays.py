"""A map over its image: strong where the map is, cut to what the model saw, small."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from equipoise.explain.overlays import SIDE, overlay

GREY = np.full((60, 120, 3), 128, dtype=np.uint8)


def pixels(data: bytes) -> Any:
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "JPEG"
    return np.asarray(picture, dtype=np.int64)


def test_colour_lies_where_the_map_does() -> None:
    map_ = np.zeros((4, 8), dtype=np.float32)
    map_[:, 6:] = 0.2  # whatever its scale
    found = pixels(overlay(GREY, map_, (0, 0, 120, 60)))
    assert found.shape == (SIDE // 2, SIDE, 3)
    left, right = found[:, :100].mean(axis=(0, 1)), found[:, -30:].mean(axis=(0, 1))
    assert np.abs(left - 128).max() < 3
    assert right[0] > 180
    assert right[2] < 100


def test_it_shows_what_the_model_saw_with_the_outline_of_a_region() -> None:
    image = GREY.copy()
    image[:, :30] = 0
    found = pixels(
        overlay(
            image, np.zeros((2, 2), dtype=np.float32), (30, 0, 90, 60), [(0.25, 0.25, 0.75, 0.75)]
        )
    )
    assert found.shape == (SIDE, SIDE, 3)
    assert found[5:20, 5:20].min() > 120  # the black part is not there
    assert found[SIDE // 2, SIDE // 4].min() > 180


@pytest.mark.parametrize("box", [(np.nan,) * 4, (-1.0, -1.0, 2.0, 2.0)])
def test_boxes_that_are_none_or_too_large_do_no_harm(box: tuple[float, ...]) -> None:
    assert len(overlay(GREY, np.ones((2, 2), dtype=np.float32), (0, 0, 120, 60), [box])) < 20_000
