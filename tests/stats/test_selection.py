"""The size of a group that leads, and ratios, against definitions and published numbers."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from equipoise.core import InputError
from equipoise.stats import (
    leading_gap,
    leading_size,
    score_ratio,
    share_errors,
    simultaneous_normal,
    simultaneous_shares,
)
from equipoise.stats.intervals import wilson


def test_intervals_of_groups_are_bonferronis():
    np.testing.assert_allclose(
        simultaneous_shares([3, 8, 0], [10, 10, 0]), wilson([3, 8, 0], [10, 10, 0], 0.975)
    )
    low, high = simultaneous_normal([0.0, 1.0, math.nan], [1.0, 2.0, 1.0])
    z = stats.norm.isf(0.0125)
    np.testing.assert_allclose(low, [-z, 1 - 2 * z, math.nan])
    np.testing.assert_allclose(high, [z, 1 + 2 * z, math.nan])


def test_the_corrected_size_makes_the_value_a_median():
    size = leading_size([0.0, 2.0, 4.0], [1.0, 1.0, 1.5], side="highest")
    tails = stats.norm.sf((np.array([4.0, 2.0]) - size.corrected) / 1.5)
    assert (size.index, size.value) == (2, 4.0)
    assert tails[0] / tails[1] == pytest.approx(0.5)
    mirrored = leading_size([0.0, -2.0, -4.0], [1.0, 1.0, 1.5], side="lowest")
    assert (mirrored.corrected, mirrored.low) == pytest.approx((-size.corrected, -size.high))


@pytest.mark.parametrize(("runner_up", "expected"), [(5.0, "low"), (-1e6, "value")])
def test_the_correction_ends_at_the_interval_and_at_the_value(runner_up, expected):
    size = leading_size([5.0, runner_up, -1e9], [1.0, 1.0, 1.0], side="highest")
    assert size.corrected == pytest.approx(getattr(size, expected))


def test_two_groups_keep_their_size():
    size = leading_size([0.5, math.nan, 0.6], [0.1, math.nan, 0.1])
    assert (size.index, size.corrected) == (0, 0.5)


def test_shares_of_none_and_all_have_an_error():
    assert share_errors([0, 10], [10, 10]) == pytest.approx(math.sqrt(2 * 12 / 14**3))


@pytest.mark.parametrize("reference", ["others", "opposite"])
def test_gaps_are_between_the_leading_group_and_the_reference(reference):
    gap = leading_gap([0.5, 0.8, 0.9], [0.05] * 3, weights=[1000, 30, 10], reference=reference)
    others = {"others": 0.825, "opposite": 0.9}[reference]
    assert gap.index == 0
    assert gap.value == pytest.approx(0.5 - others)
    assert gap.low < gap.value <= gap.corrected <= gap.high


@pytest.mark.parametrize(
    "call",
    [
        lambda: leading_size([math.nan], [1.0]),
        lambda: leading_size([1.0, 2.0], [1.0]),
        lambda: leading_size([1.0, 2.0], [1.0, 0.0]),
        lambda: leading_size([1.0], [1.0], side="middle"),
        lambda: leading_size([1.0], [1.0], level=1.0),
        lambda: leading_gap([1.0], [1.0]),
        lambda: leading_gap([1.0, 2.0], [1.0, 1.0], reference="mean"),
        lambda: leading_gap([1.0, 2.0], [1.0, 1.0], weights=[1, 0]),
        lambda: share_errors(3, 2),
        lambda: simultaneous_shares([[1, 1], [1, 0]], [[2, 2], [2, 0]]),
        lambda: score_ratio(3, 2, 1, 2),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(InputError):
        call()


# Koopman 1984, Biometrics 40, 513-517: 36 of 40 against 16 of 80.
def test_the_ratio_is_the_published_one():
    ratio = score_ratio(36, 40, 16, 80)
    assert np.round(ratio.arrays, 2).tolist() == [4.5, 2.94, 7.15]


def test_rare_errors_have_a_ratio():
    ratio = score_ratio(100, 10_000, 10, 10_000)
    assert ratio.value == pytest.approx(10.0)
    assert (ratio.low, ratio.high) == pytest.approx((5.28, 18.94), abs=0.01)


@pytest.mark.parametrize("counts", [(5, 40, 9, 30), (1, 200, 7, 90), (60, 80, 20, 100)])
def test_ratio_ends_solve_the_score_equation(counts):
    s, n, other_s, other_n = counts
    ratio = score_ratio(*counts)
    for end in (ratio.low, ratio.high):
        fitted = optimize.minimize_scalar(
            lambda p, end=end: (
                -stats.binom.logpmf(s, n, end * p) - stats.binom.logpmf(other_s, other_n, p)
            ),
            bounds=(1e-9, min(1.0, 1.0 / end) - 1e-9),
            method="bounded",
            options={"xatol": 1e-12},
        ).x
        variance = end * fitted * (1 - end * fitted) / n + end**2 * fitted * (1 - fitted) / other_n
        score = (s / n - end * other_s / other_n) / math.sqrt(variance)
        assert abs(score) == pytest.approx(1.959964, rel=1e-4)


def test_ratios_without_a_success_have_open_ends():
    ratio = score_ratio([0, 5, 0, 0], [10, 10, 10, 0], [5, 0, 0, 1], [10, 10, 10, 2])
    np.testing.assert_array_equal(ratio.value, [0.0, math.nan, math.nan, math.nan])
    np.testing.assert_array_equal(ratio.low == 0, [True, False, True, False])
    np.testing.assert_array_equal(ratio.high == math.inf, [False, True, True, False])
