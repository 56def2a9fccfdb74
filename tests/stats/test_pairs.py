"""Paired shares: Tango's interval and McNemar's test; and how far the largest number moves."""

import numpy as np
import pytest
from scipy import stats

from equipoise.stats.intervals import Scored
from equipoise.stats.pairs import (
    largest_change,
    paired_scored,
    paired_z,
    simultaneous_p,
    simultaneous_z,
)

Z = stats.norm.ppf(0.975)


@pytest.mark.parametrize(
    ("gains", "losses", "n"), [(12, 2, 50), (43, 0, 50), (0, 1, 30), (25, 25, 60), (1, 7, 8)]
)
def test_ends_solve_tangos_equation(gains, losses, n):
    """The score statistic, with the likeliest cells found by search, is z at both ends."""
    interval = paired_scored(*(np.array([float(rows)]) for rows in (gains, losses, n)), Z)
    for end in (interval.low[0], interval.high[0]):
        if abs(end) < 1 - 1e-6:
            assert abs(score(gains, losses, n, end)) == pytest.approx(Z, abs=2e-3)


def score(gains, losses, n, difference):
    p = np.linspace(max(0.0, -difference), (1.0 - difference) / 2.0, 400_001)[1:-1]
    likelihood = gains * np.log(p + difference) + losses * np.log(p)
    if n > gains + losses:
        likelihood += (n - gains - losses) * np.log(1.0 - 2.0 * p - difference)
    best = p[np.argmax(likelihood)]
    spread = np.sqrt(n * (2.0 * best + difference * (1.0 - difference)))
    return (gains - losses - n * difference) / spread


def test_the_example_of_the_method():
    # Newcombe 1998, Statistics in Medicine 17, 2635-2650, table II: 36, 12, 2, 0.
    interval = paired_scored(np.array([12.0]), np.array([2.0]), np.array([50.0]), Z)
    assert (interval.low[0], interval.high[0]) == pytest.approx((0.0611, 0.3447), abs=5e-5)


def test_the_interval_excludes_0_where_the_test_is_significant():
    rng = np.random.default_rng(0)
    gains, losses, same = (rng.integers(0, 30, 3000).astype(float) for _ in range(3))
    critical = simultaneous_z(0.95, 5)
    interval = paired_scored(gains, losses, gains + losses + same, critical)
    excluded = (interval.low > 0) | (interval.high < 0)
    assert (excluded == (np.abs(paired_z(gains, losses)) > critical)).all()
    p = simultaneous_p(paired_z(gains, losses), 5)
    assert (excluded == (p < 0.05)).all()


def test_no_rows_have_no_interval_and_no_changes_have_one():
    interval = paired_scored(np.zeros(2), np.zeros(2), np.array([0.0, 40.0]), Z)
    assert np.isnan([interval.low[0], interval.high[0]]).all()
    assert interval.low[1] == pytest.approx(-interval.high[1])
    assert 0 < interval.high[1] < 0.1
    assert paired_z(np.zeros(1), np.zeros(1)) == [0]


@pytest.mark.parametrize("tests", [1, 2, 14, 300])
def test_simultaneous_values_are_those_of_the_largest_of_independent_normals(tests):
    z = simultaneous_z(0.95, tests)
    assert (2 * stats.norm.cdf(z) - 1) ** tests == pytest.approx(0.95)
    assert simultaneous_p(np.array([z, -z]), tests) == pytest.approx([0.05, 0.05])
    assert simultaneous_p(np.array([30.0]), tests) == pytest.approx(
        tests * 2 * stats.norm.sf(30), rel=1e-6
    )


def numbers(value, width):
    value = np.asarray(value, float)
    return Scored(value, value - width, value + width)


def test_a_number_that_cannot_be_the_largest_does_not_widen_the_interval():
    change = numbers([0.05, 0.5, -0.5], 0.02)
    first, second = numbers([0.9, 0.1, 0.6], 0.1), numbers([0.95, 0.6, 0.1], 0.1)
    ends = largest_change(lambda: [(change, first, second)])
    assert ends == pytest.approx((0.03, 0.07))


def test_ends_come_from_the_largest_before_and_the_largest_after():
    change = numbers([-0.4, 0.4], 0.05)
    first, second = numbers([0.8, 0.4], 0.3), numbers([0.4, 0.8], 0.3)
    low, high = largest_change(lambda: [(change, first, second)])
    # The bands of both largest numbers limit what the changes alone leave open.
    assert (low, high) == pytest.approx((-np.hypot(0.3, 0.3), np.hypot(0.3, 0.3)))
    wide = numbers([0.8, 0.4], 0.9), numbers([0.4, 0.8], 0.9)
    assert largest_change(lambda: [(change, *wide)]) == pytest.approx((-0.45, 0.45))


def test_blocks_are_as_one():
    rng = np.random.default_rng(1)
    change, first, second = (numbers(rng.random(12), 0.05) for _ in range(3))
    whole = largest_change(lambda: [(change, first, second)])
    parts = [slice(0, 5), slice(5, 12)]
    split = largest_change(lambda: [(change[p], first[p], second[p]) for p in parts])
    assert split == whole
    assert np.isnan(largest_change(list)).all()
