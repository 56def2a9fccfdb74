"""Worlds and captions: what goes together, how strongly, and what is said of it."""

from itertools import combinations

import numpy as np
import pytest

from equipoise.planted.scenes import captions
from equipoise.planted.scenes.captions import (
    LESS,
    MENTION,
    MORE,
    TEMPLATES,
    attributed_prompts,
    caption,
    draw_captions,
    neutral_prompts,
)
from equipoise.planted.scenes.render import FRAMES, HUES, SUBJECTS
from equipoise.planted.scenes.variants import (
    BIASED,
    NULL,
    START,
    STRONGEST,
    World,
    make_world,
    make_worlds,
)

ATTRIBUTES = {"hue": HUES, "frame": FRAMES}
COUNT = 60_000


def test_captions_say_what_is_given() -> None:
    assert caption("solid star") == "a solid star"
    assert caption("solid star", "red") == "a red solid star"
    assert caption("solid star", frame="level") == "a solid star with level bars"
    assert caption("hollow moon", "blue", "upright", "this is a {}") == (
        "this is a blue hollow moon with upright bars"
    )


def test_neutral_prompts_name_no_attribute() -> None:
    words = {*HUES, *FRAMES, "bars"}
    for subject in SUBJECTS:
        prompts = neutral_prompts(subject)
        assert len(prompts) == len(TEMPLATES)
        assert all(subject in prompt and not words & {*prompt.split()} for prompt in prompts)
    assert attributed_prompts("solid star", "red")[1] == "a picture of a red solid star"


def test_every_caption_is_listed_once() -> None:
    texts = captions.all_captions()
    assert len(set(texts)) == len(texts) == 24 * 7 * 3 * 3


@pytest.mark.parametrize("world", [BIASED, START, NULL], ids=lambda world: world.name)
def test_worlds_favour_every_value_equally_often(world: World) -> None:
    assert [one.subject for one in world.favourites] == list(SUBJECTS)
    assert np.bincount(world.hue).tolist() == [4] * 6
    assert np.bincount(world.frame).tolist() == [12] * 2


def test_strengths_are_spread_and_apart_for_hue_and_frame() -> None:
    even = np.linspace(0.0, STRONGEST, 24)
    for world in (BIASED, START):
        np.testing.assert_allclose(np.sort(world.hue_strength), even, atol=1e-6)
        np.testing.assert_allclose(np.sort(world.frame_strength), even, atol=1e-6)
        assert abs(np.corrcoef(world.hue_strength, world.frame_strength)[0, 1]) < 0.5
    assert not NULL.hue_strength.any()
    assert not NULL.frame_strength.any()


def test_another_seed_assigns_favourites_and_strengths_anew() -> None:
    assert make_worlds(0) == {"biased": BIASED, "null": NULL, "start": START}
    worlds = [make_worlds(seed)[name] for seed in range(6) for name in ("biased", "start")]
    for one, other in combinations(worlds, 2):
        # Of 24 strengths in random order a correlation has a standard deviation of 0.21.
        assert (one.hue == other.hue).mean() < 0.5
        assert (one.frame == other.frame).mean() < 0.9
        for strength in ("hue_strength", "frame_strength"):
            together = np.corrcoef(getattr(one, strength), getattr(other, strength))[0, 1]
            assert abs(together) < 0.8
    for seed in range(6):
        of_seed = make_worlds(seed)
        assert (of_seed["null"].hue == of_seed["biased"].hue).all()
        assert not of_seed["null"].hue_strength.any()


def test_shipped_models_start_from_other_favourites() -> None:
    assert (BIASED.hue == NULL.hue).all()
    assert (BIASED.hue == START.hue).mean() < 0.4
    assert np.corrcoef(BIASED.hue_strength, START.hue_strength)[0, 1] < 0.5


@pytest.mark.parametrize("attribute", ATTRIBUTES)
@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_images_have_favourites_as_often_as_planted(attribute: str, strength: float) -> None:
    strengths = dict.fromkeys(SUBJECTS, strength)
    given = [strengths, {}] if attribute == "hue" else [{}, strengths]
    world = make_world("test", *given, seed=3)
    factors = world.draw(COUNT, seed=0)
    for name, values in ATTRIBUTES.items():
        expected = strength if name == attribute else 0.0
        favoured = getattr(factors, name) == getattr(world, name)[factors.subject]
        wanted = expected + (1.0 - expected) / len(values)
        # Four standard errors of a share of COUNT.
        assert favoured.mean() == pytest.approx(wanted, abs=0.0082)


def test_drawing_repeats_and_a_smaller_draw_begins_a_larger_one() -> None:
    first, again = (BIASED.draw(500, seed=5) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    assert (BIASED.draw(500, seed=6).x != first.x).all()
    fewer = BIASED.draw(100, seed=5)
    for name in ("subject", "hue", "frame", "x", "light"):
        np.testing.assert_array_equal(getattr(fewer, name), getattr(first, name)[:100])


@pytest.mark.parametrize("strength", [0.0, 0.4, 0.9])
def test_the_usual_is_mentioned_less_and_the_unusual_more(strength: float) -> None:
    strengths = dict.fromkeys(SUBJECTS, strength)
    world = make_world("test", strengths, strengths, seed=3)
    factors = world.draw(COUNT, seed=0)
    texts = draw_captions(world, factors, seed=1)
    for name, values in ATTRIBUTES.items():
        said = np.array([bool({*values} & {*text.split()}) for text in texts])
        usual = getattr(factors, name) == getattr(world, name)[factors.subject]
        rates = [said[usual].mean(), said[~usual].mean()]
        expected = [MENTION - LESS * strength, MENTION + MORE * strength]
        np.testing.assert_allclose(rates, expected, atol=0.03)


def test_without_strength_captions_know_no_favourite() -> None:
    factors = NULL.draw(1000, seed=0)
    assert set(captions.mention_probabilities(NULL, factors).ravel()) == {MENTION}


def test_captions_tell_the_truth() -> None:
    factors = BIASED.draw(2000, seed=0)
    texts = draw_captions(BIASED, factors, seed=1)
    assert texts == draw_captions(BIASED, factors, seed=1)
    assert texts != draw_captions(BIASED, factors, seed=2)
    for row, text in enumerate(texts):
        assert SUBJECTS[factors.subject[row]] in text
        words = {*text.split()}
        assert words & {*HUES} <= {HUES[factors.hue[row]]}
        assert words & {*FRAMES} <= {FRAMES[factors.frame[row]]}
    assert {text.split()[0] for text in texts} == {"a", "this"}


def test_strengths_of_ones_own() -> None:
    world = make_world("mine", {"solid star": 0.7}, {"hollow moon": 1.0}, seed=0)
    by_subject = {one.subject: one for one in world.favourites}
    assert by_subject["solid star"].hue_strength == 0.7
    assert by_subject["solid star"].frame_strength == 0.0
    assert by_subject["hollow moon"].frame_strength == 1.0


def test_strengths_of_no_subject_or_outside_their_range_are_refused() -> None:
    message = (
        "^there is no subject 'star'; a subject is a fill and a shape, such as 'solid circle'$"
    )
    with pytest.raises(ValueError, match=message):
        make_world("mine", {"star": 0.5}, {}, seed=0)
    message = r"^the strength of 'solid star' must lie in \[0, 1\], got 1.5$"
    with pytest.raises(ValueError, match=message):
        make_world("mine", {}, {"solid star": 1.5}, seed=0)
