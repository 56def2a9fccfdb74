"""The encoder with one planted unit: what it reads, and what runs through it."""

import numpy as np

from tools.planted.units import MARKED, SQUARE, SQUARES, draw_marked


def test_groups_differ_in_one_square_and_have_every_pattern_as_often():
    seen = draw_marked(240, seed=3)
    squares = seen.images[:, ::SQUARE, ::SQUARE, 0].reshape(240, -1).astype(float)
    men = seen.group == "men"
    apart = squares[men].mean(axis=0) - squares[~men].mean(axis=0)
    assert int(np.abs(apart).argmax()) == MARKED
    assert apart[MARKED] > 60
    assert np.delete(np.abs(apart), MARKED).max() < 10
    for name in set(seen.caption):
        members = [
            group for group, one in zip(seen.group, seen.caption, strict=True) if one == name
        ]
        assert members.count("men") == members.count("women") == 10
    assert squares.shape[1] == SQUARES**2
