"""The promises of docs/calibration/p-values.csv, measured again."""

import math

import pytest

from slow.calibration_grid import (
    ALPHA,
    WORLDS,
    discoveries,
    measured_again,
    rates_of,
)

pytestmark = pytest.mark.slow


def limit(samples):
    return ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / samples)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_p_values_are_valid(world):
    rates = list(rates_of(world, 500))
    assert len(rates) >= 8
    # Of some 250 shares one may be above three standard errors by luck: fresh samples decide.
    high = [rate for rate in rates if rate.excess > 3]
    for rate in measured_again(world, high, 500):
        assert rate.excess <= 3, rate


def test_benjamini_hochberg_holds_its_rate():
    for result in discoveries(200):
        assert result.false_share <= limit(result.samples), result
        assert result.found >= 0.3, result
