"""The world of the two readers: what agrees, where the glyph is."""

import numpy as np

from equipoise.planted.scenes.render import render
from tools.planted.readers import draw_agreeing, glyph_boxes


def test_a_box_holds_its_glyph_and_no_bar():
    factors = draw_agreeing(60, seed=1)
    boxes, images = glyph_boxes(factors), render(factors).astype(float)
    for row, (left, top, right, bottom) in enumerate(boxes):
        colour = images[row].max(axis=2) - images[row].min(axis=2)
        ys, xs = np.nonzero(colour > 60)  # the background is grey
        assert len(ys) > 5
        assert left - 1 <= xs.min()
        assert xs.max() <= right + 1
        assert top - 1 <= ys.min()
        assert ys.max() <= bottom + 1
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / 32**2
    assert 0.15 < areas.mean() < 0.45
