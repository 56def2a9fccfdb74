"""Worlds of docs/calibration: tests keep their level, intervals cover, planted truths are found."""

import math

import numpy as np
import pytest

from stats.null_worlds import AMPLIFICATION, PREDICTED_GROUPS, PREDICTED_SHARES, REFERENCES, measure

pytestmark = pytest.mark.slow

SAMPLES, FEW, LEAST_POWER = 200, 40, 0.7


def check(world, samples):
    """Check level and coverage, with three Monte Carlo errors, and the sign of what is planted."""
    row = measure(world, samples)
    error = math.sqrt(0.05 * 0.95 / samples)
    assert row.covered >= 0.93 - 2 * error
    if world.truth == 0:
        assert row.rejected <= 0.05 + 3 * error
    else:
        assert row.rejected >= LEAST_POWER
        estimated = row.value if np.isnan(row.corrected) else row.corrected
        assert np.sign(estimated) == np.sign(world.truth)


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("world", AMPLIFICATION, ids=lambda world: world.name)
def test_amplification(world):
    check(world, SAMPLES)


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize(
    "world", [world for world in AMPLIFICATION if world.truth], ids=lambda world: world.name
)
def test_planted_amplification_is_covered(world):
    """200 samples of two of these worlds had covered 91.5 and 92.5 %."""
    samples = 5 * SAMPLES
    assert measure(world, samples).covered >= 0.93 - math.sqrt(0.05 * 0.95 / samples)


def test_chance_is_no_amplification():
    check(AMPLIFICATION[0], FEW)


@pytest.mark.parametrize("world", REFERENCES, ids=lambda world: world.name)
def test_references_that_are_samples(world):
    check(world, SAMPLES)


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("world", PREDICTED_GROUPS, ids=lambda world: world.name)
def test_groups_that_a_model_predicted(world):
    check(world, SAMPLES)


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("world", PREDICTED_SHARES, ids=lambda world: world.name)
def test_shares_of_groups_that_a_model_predicted(world):
    check(world, SAMPLES)


def test_the_share_of_a_predicted_group_is_without_bias():
    rare = PREDICTED_SHARES[3]
    row = measure(rare, FEW)
    assert abs(row.value - rare.truth) <= 0.01
    assert row.covered >= 0.93 - 2 * math.sqrt(0.05 * 0.95 / FEW)
