"""Worlds and captions: what goes together, how strongly, and what is said of it."""

import numpy as np
import pytest

from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.variants import BIASED
from tools.planted.worlds import (
    LESS,
    MENTION,
    MORE,
    NULL,
    START,
    draw_captions,
    draw_world,
    make_world,
    make_worlds,
)

ATTRIBUTES = {"hue": HUES, "frame": FRAMES}
COUNT = 60_000


@pytest.mark.parametrize("world", [BIASED, START, NULL], ids=lambda world: world.name)
def test_worlds_favour_every_value_equally_often(world):
    assert [favourite.subject for favourite in world.favourites] == list(SUBJECTS)
    assert np.bincount(world.hue).tolist() == [4] * 6
    assert np.bincount(world.frame).tolist() == [12] * 2


def test_the_shipped_world_is_the_one_that_its_seed_draws():
    assert make_worlds(0)["biased"].favourites == BIASED.favourites


@pytest.mark.parametrize("strength", [0.0, 0.4, 0.9])
def test_the_usual_is_mentioned_less_and_the_unusual_more(strength):
    world = make_world("test", *np.full((2, len(SUBJECTS)), strength), seed=3)
    factors = draw_world(world, COUNT, seed=0)
    texts = draw_captions(world, factors, seed=1)
    for name, values in ATTRIBUTES.items():
        mentioned = np.array([bool({*values} & {*text.split()}) for text in texts])
        usual = getattr(factors, name) == getattr(world, name)[factors.subject]
        rates = [mentioned[usual].mean(), mentioned[~usual].mean()]
        expected = [MENTION - LESS * strength, MENTION + MORE * strength]
        np.testing.assert_allclose(rates, expected, atol=0.03)
