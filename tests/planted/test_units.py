"""The encoder with one planted unit: what it reads, and what runs through it."""

import numpy as np

from equipoise.models import DualEncoder
from tools.planted.units import CONCEPTS, MARKED, SQUARE, SQUARES, draw_marked, planted_unit


def test_groups_differ_in_one_square_and_have_every_pattern_as_often() -> None:
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


def test_only_the_planted_unit_writes_along_the_concepts() -> None:
    model = planted_unit()
    assert isinstance(model, DualEncoder)
    doctor, nurse = (model.embed_texts(CONCEPTS[name])[0] for name in ("doctor", "nurse"))
    np.testing.assert_allclose(doctor, -nurse)
    dark = draw_marked(48, seed=1).images.copy()
    row, column = divmod(MARKED, SQUARES)
    dark[:, row * SQUARE : (row + 1) * SQUARE, column * SQUARE : (column + 1) * SQUARE] = 0
    np.testing.assert_allclose(model.embed_images(dark) @ doctor, 0.0, atol=1e-5)
