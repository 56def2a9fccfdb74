"""What is blurred has a few colours left, what is not stays as it is."""

import numpy as np
import pytest

from equipoise.explain.blurring import BLOCKS, WHOLE, blurred

NOISE = np.random.default_rng(0).integers(0, 256, (60, 120, 3), dtype=np.uint8)


def colours(pixels: np.ndarray) -> int:
    return len(np.unique(pixels.reshape(-1, 3), axis=0))


def test_a_box_becomes_blocks_of_its_mean_colours_and_the_rest_stays() -> None:
    before = NOISE.copy()
    found = blurred(NOISE, [(0.25, 0.0, 0.5, 0.5)])  # 30 by 30 pixels: blocks of 5
    assert (before == NOISE).all()
    inside, rest = found[:30, 30:60], np.ones((60, 120), dtype=bool)
    rest[:30, 30:60] = False
    assert (found[rest] == NOISE[rest]).all()
    assert colours(inside) == BLOCKS**2
    blocks = NOISE[:30, 30:60].reshape(6, 5, 6, 5, 3).mean(axis=(1, 3))
    assert (inside == np.rint(blocks).repeat(5, axis=0).repeat(5, axis=1)).all()


def test_a_whole_picture_has_six_blocks_along_its_longer_side() -> None:
    found = blurred(NOISE, [WHOLE])
    assert colours(found) == 6 * 3
    assert (found[:20, :20] == found[0, 0]).all()


@pytest.mark.parametrize("missing", [(np.nan,) * 4, (0.1, np.nan, 0.2, 0.3)])
def test_a_box_that_is_not_known_is_the_whole_picture(missing: tuple[float, ...]) -> None:
    assert (blurred(NOISE, [missing]) == blurred(NOISE, [WHOLE])).all()


def test_edges_are_rounded_outwards_and_cut_to_the_picture() -> None:
    found = blurred(NOISE, [(0.501, 0.51, 0.5016, 0.52), (-3.0, 0.99, 0.01, 2.0)])
    # Both touch a row or column of pixels, of which each is its own block.
    assert (found == NOISE).all()
    wide = blurred(NOISE, [(-1.0, -1.0, 0.101, 0.201)])  # 13 by 13 pixels
    assert colours(wide[:13, :13]) == 25
    assert (wide[13:] == NOISE[13:]).all()
    assert (wide[:, 13:] == NOISE[:, 13:]).all()
    outside = blurred(NOISE, [(1.2, 0.2, 1.4, 0.4)])
    assert (outside == NOISE).all()


def test_nothing_is_blurred_without_a_box() -> None:
    assert (blurred(NOISE, []) == NOISE).all()
