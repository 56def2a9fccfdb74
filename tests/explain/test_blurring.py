"""What is blurred has a few colours left, what is not stays as it is."""

import numpy as np
import pytest

from equipoise.explain.overlays import BLOCKS, WHOLE, blurred

NOISE = np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8)


def colours(pixels):
    return len(np.unique(pixels.reshape(-1, 3), axis=0))


def test_a_box_becomes_blocks_of_its_mean_colours_and_the_rest_stays():
    before = NOISE.copy()
    found = blurred(NOISE, [(0.25, 0.0, 0.5, 0.5)])  # 30 by 30 pixels: blocks of 5
    assert (before == NOISE).all()
    inside, rest = found[:30, 30:60], np.ones((60, 120), dtype=bool)
    rest[:30, 30:60] = False
    assert (found[rest] == NOISE[rest]).all()
    assert colours(inside) == BLOCKS**2
    blocks = NOISE[:30, 30:60].reshape(6, 5, 6, 5, 3).mean(axis=(1, 3))
    assert (inside == np.rint(blocks).repeat(5, axis=0).repeat(5, axis=1)).all()


def test_a_whole_picture_has_six_blocks_along_its_longer_side():
    found = blurred(NOISE, [WHOLE])
    assert colours(found) == 6 * 3
    assert (found[:20, :20] == found[0, 0]).all()


@pytest.mark.parametrize("missing", [(np.nan,) * 4, (0.1, np.nan, 0.2, 0.3)])
def test_a_box_that_is_not_known_is_the_whole_picture(missing):
    assert (blurred(NOISE, [missing]) == blurred(NOISE, [WHOLE])).all()
