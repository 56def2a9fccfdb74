"""A map over its image: strong where the map is, cut to the input of the model, small."""

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


def test_colour_follows_the_map():
    map_ = np.zeros((4, 8), dtype=np.float32)
    map_[:, 6:] = 0.2  # whatever its scale
    result = pixels(overlay(GREY, map_, (0, 0, 120, 60)))
    assert result.shape == (SIDE // 2, SIDE, 3)
    left, right = result[:, :100].mean(axis=(0, 1)), result[:, -30:].mean(axis=(0, 1))
    assert np.abs(left - 128).max() < 3
    assert right[0] > 180
    assert right[2] < 100


def test_it_shows_the_input_of_the_model_with_the_outline_of_a_region():
    image = GREY.copy()
    image[:, :30] = 0
    result = pixels(
        overlay(
            image, np.zeros((2, 2), dtype=np.float32), (30, 0, 90, 60), [(0.25, 0.25, 0.75, 0.75)]
        )
    )
    assert result.shape == (SIDE, SIDE, 3)
    assert result[5:20, 5:20].min() > 120  # the black part is not there
    assert result[SIDE // 2, SIDE // 4].min() > 180


NOISE = np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8)


def test_a_box_becomes_blocks_of_its_mean_colours_and_the_rest_stays():
    before = NOISE.copy()
    result = blurred(NOISE, [(0.25, 0.0, 0.5, 0.5)])  # 30 by 30 pixels: blocks of 5
    assert (before == NOISE).all()
    inside, outside = result[:30, 30:60], np.ones((60, 120), dtype=bool)
    outside[:30, 30:60] = False
    assert (result[outside] == NOISE[outside]).all()
    assert len(np.unique(inside.reshape(-1, 3), axis=0)) == BLOCKS**2
    blocks = NOISE[:30, 30:60].reshape(6, 5, 6, 5, 3).mean(axis=(1, 3))
    assert (inside == np.rint(blocks).repeat(5, axis=0).repeat(5, axis=1)).all()


@pytest.mark.parametrize("missing", [(np.nan,) * 4, (0.1, np.nan, 0.2, 0.3)])
def test_a_box_that_is_not_known_is_the_whole_picture(missing):
    assert (blurred(NOISE, [missing]) == blurred(NOISE, [WHOLE])).all()
