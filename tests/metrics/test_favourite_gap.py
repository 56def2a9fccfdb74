"""The gap in favour of declared groups: by hand, exact, valid, and its edges."""

import math
from itertools import permutations

import numpy as np
import pytest

from equipoise.core.errors import InputError
from equipoise.metrics import favourite_gap
from equipoise.metrics.similarity.favourites import preferences
from equipoise.stats.resampling import Bootstrap, Exact, Permutation

EFFECTS = {
    "doctor": {"man": 0.5, "woman": -0.5},
    "nurse": {"man": -0.25, "woman": 0.25},
    "baker": {"man": 0.0, "woman": 0.0},
}
STEREOTYPES = {"doctor": "man", "nurse": "woman", "baker": "man"}


def test_by_hand() -> None:
    found = favourite_gap(EFFECTS, STEREOTYPES)
    assert found.value == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    values = []
    for order in permutations(STEREOTYPES.values()):
        signs = [1 if group == "man" else -1 for group in order]
        values.append((1.0 * signs[0] - 0.5 * signs[1] + 0.0 * signs[2]) / 3)
    assert found.p_value == pytest.approx(np.mean(np.array(values) >= found.value - 1e-12))
    assert found.chance is not None
    assert found.chance.mean == pytest.approx(np.mean(values))
    assert "all 6 orders" in found.null


def test_of_several_groups_it_is_above_the_mean_of_the_others() -> None:
    effects = {"star": {"red": 0.6, "blue": 0.0, "green": -0.6}}
    assert preferences(effects, {"star": "red"})["star"] == pytest.approx(0.9)
    assert math.isnan(preferences(effects, {"star": "pink"})["star"])


def test_a_group_that_is_preferred_everywhere_follows_no_favourites() -> None:
    rng = np.random.default_rng(0)
    effects = {
        f"c{i}": dict(zip("abc", (1.0 + 0.1 * rng.standard_normal(), -0.5, -0.5), strict=True))
        for i in range(30)
    }
    favourites = {name: "abc"[i % 3] for i, name in enumerate(effects)}
    found = favourite_gap(effects, favourites)
    assert found.p_value is not None
    assert found.p_value > 0.2


def test_p_is_valid_and_finds_what_is_there() -> None:
    def p(seed: int, strength: float) -> float:
        rng = np.random.default_rng(seed)
        names = [f"c{i}" for i in range(24)]
        own = dict(zip(names, rng.choice([*"abcd"], 24), strict=True))
        effects = {
            name: {g: strength * (g == own[name]) + rng.standard_normal() for g in "abcd"}
            for name in names
        }
        found = favourite_gap(effects, own, resampling=Permutation(99, resolution=0.01), rng=seed)
        assert found.p_value is not None
        return found.p_value

    alarms = np.mean([p(seed, 0.0) <= 0.1 for seed in range(300)])
    assert alarms <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 300)
    assert np.mean([p(seed, 1.0) <= 0.05 for seed in range(20)]) > 0.9


def test_the_order_of_concepts_does_not_matter() -> None:
    turned = dict(reversed(EFFECTS.items()))
    one, two = (favourite_gap(e, STEREOTYPES, rng=3) for e in (EFFECTS, turned))
    assert (one.value, one.p_value, one.interval()) == (two.value, two.p_value, two.interval())


def test_what_is_left_out_is_counted() -> None:
    effects = {**EFFECTS, "pilot": {"man": 1.0, "woman": math.nan}, "chef": {"man": 0.0}}
    found = favourite_gap(effects, {**STEREOTYPES, "pilot": "man", "clerk": "man"})
    assert found.n == {"concepts": 3}
    assert found.excluded == {
        "in one of effects and favourites only": 2,
        "favourite or all others not compared": 1,
    }


def test_edges() -> None:
    same = favourite_gap(EFFECTS, dict.fromkeys(EFFECTS, "man"))
    assert same.p_value == 1.0
    assert same.reason == (
        "the favourite is the same for all concepts: permuting it changes nothing"
    )
    bare = favourite_gap(EFFECTS, STEREOTYPES, resampling=None)
    assert (bare.p_value, bare.no_chance) == (None, "no resampling was asked for")
    one = favourite_gap({"nurse": EFFECTS["nurse"]}, STEREOTYPES, resampling=Bootstrap(50, 50))
    assert one.method == "none: use Bootstrap() and two concepts or more"
    with pytest.raises(InputError, match=r"^favourites: no concept has effects of its favourite"):
        favourite_gap(EFFECTS, {"nurse": "robot"})
    many = {f"c{i}": EFFECTS["nurse"] for i in range(9)}
    with pytest.raises(InputError, match=r"^resampling=Exact: 9 concepts have 362880 orders, more"):
        favourite_gap(many, dict.fromkeys(many, "man"), resampling=Exact(1000))
