"""The step from which a number differs from chance, and its interval over seeds."""

import numpy as np
import pytest

from equipoise import metrics as m
from equipoise.core import InputError
from equipoise.metrics.numbers.onset import jackknife_replicates, share_replicates
from equipoise.metrics.vectors.mcas import Components

STEPS = [1, 2, 3, 4, 5, 6]
BAND = [(0.5, 0.4, 0.6)] * len(STEPS)
NOTHING = np.empty((len(STEPS), 0))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.5, 0.5, 0.7, 0.8, 0.9, 0.9], 3),
        ([0.7, 0.7, 0.7, 0.8, 0.9, 0.9], 1),
        ([0.9, 0.5, 0.5, 0.5, 0.5, 0.7], 6),
        # Below chance first, above it in the end.
        ([0.1, 0.1, 0.1, 0.1, 0.9, 0.9], 5),
        ([0.5, 0.5, 0.3, 0.2, 0.1, 0.1], 3),
    ],
)
def test_the_onset_is_the_first_step_of_the_last_run(values, step):
    assert m.onset(STEPS, values, BAND, NOTHING).value == step
    order = np.random.default_rng(0).permutation(len(STEPS))
    shuffled = [np.array(rows)[order] for rows in (STEPS, values, BAND, NOTHING)]
    assert m.onset(*shuffled).value == step


def test_a_number_that_ends_in_its_band_has_no_onset():
    estimate = m.onset(STEPS, [0.5, 0.9, 0.9, 0.9, 0.9, 0.55], BAND, NOTHING)
    assert not estimate.estimable
    assert estimate.reason
    assert np.isnan(estimate.interval().low)


def test_bands_are_wider_for_several_numbers():
    values = [0.5, 0.5, 0.5, 0.5, 0.62, 0.7]
    assert m.onset(STEPS, values, BAND, NOTHING).value == 5
    assert m.onset(STEPS, values, BAND, NOTHING, tests=10).value == 6
    assert not m.onset(STEPS, [*values[:5], 0.62], BAND, NOTHING, tests=10).estimable


@pytest.mark.parametrize(
    "wrong",
    [
        {"steps": [1, 1, 2, 3, 4, 5]},
        {"values": [0.5]},
        {"chance": [(0.4, 0.6)] * 6},
        {"replicates": np.empty((5, 2))},
        {"tests": 0},
    ],
)
def test_shapes_that_do_not_fit(wrong):
    arguments = {"steps": STEPS, "values": [0.5] * 6, "chance": BAND, "replicates": NOTHING}
    with pytest.raises(InputError):
        m.onset(**arguments | wrong)


def curve(rng, start, n=120, strength=0.3):
    """Outcomes of images at all steps: a coin of each seed, biased from a step on."""
    coin, late = rng.random(n) < 0.5, rng.random(n) < strength
    outcomes = np.repeat(coin[:, None], len(STEPS), axis=1)
    if start is not None:
        outcomes[:, start - 1 :] |= late[:, None]
    return outcomes.astype(int)


def onset_of(outcomes, seed, replicates=200):
    n = len(outcomes)
    half = 1.96 * 0.5 / np.sqrt(n)
    band = [(0.5, 0.5 - half, 0.5 + half)] * len(STEPS)
    exact = m.Confusion(("b", "a"), ("b", "a"), np.eye(2, dtype=int))
    drawn = share_replicates(outcomes, exact, 1, 2, np.arange(n), replicates, seed)
    return m.onset(STEPS, outcomes.mean(axis=0), band, drawn)


@pytest.mark.parametrize("start", [1, 3, 6])
def test_intervals_hold_the_planted_step(start):
    rng, hits, exact = np.random.default_rng(start), 0, 0
    for seed in range(60):
        estimate = onset_of(curve(rng, start, strength=0.6), seed)
        ends = estimate.interval()
        hits += ends.low <= start <= ends.high
        exact += estimate.value == start
    assert hits >= 54  # 0.95 of 60 is 57
    assert exact >= 54


def test_without_a_bias_an_onset_is_as_rare_as_a_chance_finding():
    rng = np.random.default_rng(5)
    found = [onset_of(curve(rng, None), seed, 2).estimable for seed in range(400)]
    assert 0.02 <= np.mean(found) <= 0.09


def test_replicates_of_shares_are_corrected_and_by_unit():
    rng = np.random.default_rng(2)
    confusion = m.Confusion(("a", "b"), ("a", "b"), np.array([[80, 20], [10, 90]]))
    true = rng.random(4000) < 0.7
    said = np.where(rng.random(4000) < np.where(true, 0.8, 0.1), 0, 1)
    drawn = share_replicates(said[:, None], confusion, 0, 2, np.arange(4000), 300, 1)
    assert drawn.mean() == pytest.approx(0.7, abs=0.03)
    assert drawn.std() == pytest.approx(0.5 / np.sqrt(4000) / 0.7, rel=0.25)
    doubled = share_replicates(said[:, None], confusion, 0, 2, np.arange(4000) // 40, 300, 1)
    assert doubled.std() == pytest.approx(drawn.std(), rel=0.4)
    whole = np.repeat(said[:100], 40)[:, None]
    clustered = share_replicates(whole, confusion, 0, 2, np.repeat(np.arange(100), 40), 300, 1)
    assert clustered.std() > 4 * drawn.std()


def test_replicates_of_mcas_vary_as_its_interval_does_and_together():
    rng = np.random.default_rng(3)
    sets = [rng.normal(size=(30, 8)) + direction for direction in np.eye(6, 8)]
    jackknives = []
    for noise in (0.1, 0.1):
        moved = [rows + noise * rng.normal(size=rows.shape) for rows in sets]
        ends = m.mcas(*moved).ends
        assert isinstance(ends, Components)
        jackknives.append(ends.jackknife)
    drawn = jackknife_replicates(jackknives, 4, 4000, 0)
    low, high = jackknives[0].ends(0.95)
    assert drawn[0].std() == pytest.approx((high[4] - low[4]) / 2 / 2.0, rel=0.06)
    assert drawn[0].mean() == pytest.approx(jackknives[0].numbers[0][4], abs=0.02)
    assert np.corrcoef(drawn)[0, 1] > 0.9
