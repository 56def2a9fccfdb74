"""A map over its image: strong where the map is, cut to what the model saw, small."""

import io

import numpy as np
import pytest
from PIL import Image

from equipoise.explain.overlays import BLOCKS, SIDE, WHOLE, blurred, overlay

GREY = np.full((60, 120, 3), 128, dtype=np.uint8)


def pixels(data):
    picture = Image.open(io.BytesIO(data))
    assert picture.format == "JPEG"
    return np.asarray(picture, dtype=np.int64)


def test_colour_lies_where_the_map_does():
    map_ = np.zeros((4, 8), dtype=np.float32)
    map_[:, 6:] = 0.2  # whatever its scale
    found = pixels(overlay(GREY, map_, (0, 0, 120, 60)))
    assert found.shape == (SIDE // 2, SIDE, 3)
    left, right = found[:, :100].mean(axis=(0, 1)), found[:, -30:].mean(axis=(0, 1))
    assert np.abs(left - 128).max() < 3
    assert right[0] > 180
    assert right[2] < 100


def test_it_shows_what_the_model_saw_with_the_outline_of_a_region():
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


NOISE = np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8)


def test_a_box_becomes_blocks_of_its_mean_colours_and_the_rest_stays():
    before = NOISE.copy()
    found = blurred(NOISE, [(0.25, 0.0, 0.5, 0.5)])  # 30 by 30 pixels: blocks of 5
    assert (before == NOISE).all()
    inside, rest = found[:30, 30:60], np.ones((60, 120), dtype=bool)
    rest[:30, 30:60] = False
    assert (found[rest] == NOISE[rest]).all()
    assert len(np.unique(inside.reshape(-1, 3), axis=0)) == BLOCKS**2
    blocks = NOISE[:30, 30:60].reshape(6, 5, 6, 5, 3).mean(axis=(1, 3))
    assert (inside == np.rint(blocks).repeat(5, axis=0).repeat(5, axis=1)).all()


@pytest.mark.parametrize("missing", [(np.nan,) * 4, (0.1, np.nan, 0.2, 0.3)])
def test_a_box_that_is_not_known_is_the_whole_picture(missing):
    assert (blurred(NOISE, [missing]) == blurred(NOISE, [WHOLE])).all()
