"""Published protocols have the chance levels that simulations give."""

import numpy as np
import pytest

from equipoise.studies import STUDIES
from equipoise.studies.chance import ChanceConfig
from equipoise.studies.page import chance_words
from equipoise.studies.study import read_study

GENDER = [5792, 5162]
RACE = [2085, 1623, 1516, 1550, 1556, 1415, 1209]
AGE = [199, 1356, 1181, 3300, 2330, 1353, 796, 321, 118]


def chance(**settings):
    return ChanceConfig.model_validate({"number": "a number", **settings})


def top(groups, desired):
    return {"groups": groups, "k": 1000, "metric": "max_skew", "desired": desired}


def of_queries(metric, k):
    return {"groups": [5, 5], "k": k, "queries": 23, "metric": metric}


# Mean, low and high end of 95 % as they were simulated before, with 2,000 to 3,000 draws.
KNOWN = {
    "four groups of 20": ({"answers": {"groups": 4, "items": 20}}, 0.23, None, 0.40),
    "four groups of 18": ({"answers": {"groups": 4, "items": 18}}, 0.24, None, 0.444),
    "four groups of 9": ({"answers": {"groups": 4, "items": 9}}, 0.335, None, 0.556),
    "a gap of 115 each": ({"answers": {"groups": 2, "items": 115}}, 0.053, None, 0.130),
    "a gap of 230 each": ({"answers": {"groups": 2, "items": 230}}, 0.037, None, 0.087),
    "at .85": ({"answers": {"groups": 2, "items": 115, "share": 0.85}}, 0.038, None, 0.096),
    "MaxSkew@5": ({"rankings": of_queries("max_skew", 5), "sides": 2}, 0.244, 0.195, 0.295),
    "NDKL": ({"rankings": of_queries("ndkl", 10), "sides": 2}, 0.234, 0.204, 0.267),
    "Bias@5": (
        {"rankings": of_queries("bias_at_k", 5), "sides": 2, "draws": 20_000}, 0.0, -0.13, 0.13,
    ),
    "gender, uniform": ({"rankings": top(GENDER, "uniform")}, 0.056, None, None),
    "race, uniform": ({"rankings": top(RACE, "uniform")}, 0.285, None, None),
    "age, uniform": ({"rankings": top(AGE, "uniform")}, 0.997, None, None),
    "gender, pool": ({"rankings": top(GENDER, "pool")}, 0.024, None, None),
    "race, pool": ({"rankings": top(RACE, "pool")}, 0.104, None, None),
    "age, pool": ({"rankings": top(AGE, "pool")}, 0.207, None, None),
    "9 pictures, gender": ({"images": {"classes": 2, "images": 9}}, 0.137, None, 0.278),
    "9 pictures, tone": ({"images": {"classes": 10, "images": 9}}, 0.077, None, 0.100),
    "48 pictures, gender": ({"images": {"classes": 2, "images": 48}}, 0.057, None, 0.146),
    "48 pictures, tone": ({"images": {"classes": 10, "images": 48}}, 0.035, None, 0.050),
    "100 pictures, gender": ({"images": {"classes": 2, "images": 100}}, 0.039, None, 0.100),
    "100 pictures, tone": ({"images": {"classes": 10, "images": 100}}, 0.024, None, 0.034),
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_fair_models_give_the_known_numbers(name):
    settings, mean, low, high = KNOWN[name]
    result = chance(**settings).result
    assert result.mean == pytest.approx(mean, abs=0.01)
    for end, known_end in ((result.low, low), (result.high, high)):
        assert known_end is None or end == pytest.approx(known_end, abs=0.01)


def test_answers_that_follow_the_scene_differ_less():
    result = chance(answers={"groups": 4, "items": 20, "flips": 0.2}).result
    assert result.mean == pytest.approx(0.18, abs=0.01)
    # At most .30 has probability .9516, so few draws may give the next value, .35.
    assert result.high in (pytest.approx(0.30), pytest.approx(0.35))


def test_a_plain_simulation_of_pools_gives_the_same():
    rng, logs = np.random.default_rng(0), []
    for _ in range(400):
        tops = [rng.permutation([0] * 5 + [1] * 5)[:5].mean() for _ in range(23)]
        logs.append(np.mean([np.log(max(share, 1 - share) / 0.5) for share in tops]))
    plain = chance(rankings=of_queries("max_skew", 5), sides=2).result
    assert plain.mean == pytest.approx(np.mean(logs), abs=0.01)
    assert plain.low == pytest.approx(np.quantile(logs, 0.025), abs=0.02)


def test_guesses_are_right_as_often_as_options_are_few():
    result = chance(guesses={"options": 3, "items": 400}, sides=2).result
    assert result.mean == pytest.approx(1 / 3, abs=0.005)
    assert result.low < 1 / 3 < result.high
    assert not chance(guesses={"options": 3, "items": 400}).too_small
    assert chance(guesses={"options": 3, "items": 20}).too_small


def test_the_same_seed_gives_the_same_numbers():
    entry = {"answers": {"groups": 4, "items": 7}, "draws": 50}
    assert chance(**entry).result == chance(**entry).result
    assert chance(**entry).result != chance(**entry, seed=1).result


def test_a_printed_number_of_a_fair_model_is_no_evidence_where_images_are_few():
    assert chance_words(chance(answers={"groups": 4, "items": 20})) == (
        "A fair model gives up to 0.400 under the published protocol; a smaller printed number is "
        "no evidence of bias, nor of fairness."
    )
    assert chance_words(chance(answers={"groups": 2, "items": 2000})) == ""
    signed = chance_words(chance(rankings=of_queries("bias_at_k", 5), sides=2))
    assert "; a printed number between is no evidence of bias" in signed


def test_guesses_are_no_evidence_about_bias():
    words = chance_words(chance(guesses={"options": 2, "items": 20}, sides=2))
    assert words.startswith("A model that guesses gives 0.")
    assert "bias" not in words


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"answers": {"groups": 1, "items": 20}},
        {"answers": {"groups": 2, "items": 20}, "guesses": {"options": 2, "items": 3}},
        {"rankings": {"groups": [5, 5], "k": 5, "metric": "no_metric"}},
        {"rankings": {"groups": [2, 2], "k": 4, "metric": "max_skew"}},
        {"images": {"classes": 2, "images": 0}},
    ],
)
def test_what_simulates_nothing_is_refused(settings):
    with pytest.raises(ValueError, match="number|answers|metric|images"):
        chance(**settings)


@pytest.mark.parametrize("name", [name for name in STUDIES if read_study(name).chance])
def test_every_protocol_states_its_simulations(name):
    study = read_study(name)
    assert study.licence
    for entry in study.chance:
        assert entry.draws >= 2000
        assert entry.result.mean <= entry.result.high
