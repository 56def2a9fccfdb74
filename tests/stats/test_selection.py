"""The size of a group that leads, and ratios, against definitions and published numbers."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

from equipoise.core import InputError
from equipoise.stats import (
    Selection,
    leading_gap,
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


def tails(size, estimates, errors, runner_up):
    """Probabilities beyond the value and beyond the runner-up, at the corrected size."""
    at = np.array([estimates[size.index], runner_up])
    return stats.norm.sf((at - size.corrected) / errors[size.index])


def test_the_corrected_size_makes_the_value_a_median():
    estimates, errors = [0.0, 2.0, 4.0], [1.0, 1.0, 1.5]
    size = leading_gap(estimates, errors, side="highest").group
    beyond, runner_up = tails(size, estimates, errors, 2.0)
    assert (size.index, size.value) == (2, 4.0)
    assert beyond / runner_up == pytest.approx(0.5)
    mirrored = leading_gap([0.0, -2.0, -4.0], errors, side="lowest").group
    assert (mirrored.corrected, mirrored.low) == pytest.approx((-size.corrected, -size.high))


def test_a_cutoff_is_a_condition_as_well():
    estimates, errors = [0.0, 2.0, 6.0], [1.0, 1.0, 1.5]
    size = leading_gap(estimates, errors, side="highest", selection=Selection(cutoff=4.5)).group
    # The others have a mean of 1, so the group leads with a gap of 4.5 from 5.5 on.
    beyond, cutoff = tails(size, estimates, errors, 5.5)
    assert beyond / cutoff == pytest.approx(0.5)


def test_margins_say_what_was_ordered():
    estimates, errors, margins = [0.0, 0.5, 9.0], [2.0, 0.5, 0.5], [4.0, 3.0, 3.0]
    gap = leading_gap(estimates, errors, selection=Selection(margins=margins))
    assert gap.index == 1
    # It leads as long as it plus 3 is below the first plus 4.
    beyond, bound = stats.norm.cdf((np.array([0.5, 1.0]) - gap.group.corrected) / 0.5)
    assert beyond / bound == pytest.approx(0.5)


@pytest.mark.parametrize(("runner_up", "expected"), [(5.0, "low"), (-1e6, "value")])
def test_the_correction_ends_at_the_interval_and_at_the_value(runner_up, expected):
    size = leading_gap([5.0, runner_up, -1e9], [1.0, 1.0, 1.0], side="highest").group
    assert size.corrected == pytest.approx(getattr(size, expected))


@pytest.mark.parametrize("reference", ["others", "opposite"])
def test_two_groups_keep_their_sizes(reference):
    gap = leading_gap([0.5, math.nan, 0.6], [0.1, math.nan, 0.2], reference=reference)
    assert (gap.index, gap.corrected, gap.group.corrected) == pytest.approx((0, -0.1, 0.5))


def test_two_groups_beyond_a_cutoff_are_closer_and_keep_their_order():
    sizes = [leading_gap([0.5, 0.8], [0.1, 0.1], selection=Selection(cutoff=cutoff)).corrected
             for cutoff in (0.0, 0.2, 0.28, 0.3)]  # fmt: skip
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == pytest.approx((-0.3, 0.0), abs=1e-6)
    observed, cutoff = 0.3 / math.hypot(0.1, 0.1), 0.2 / math.hypot(0.1, 0.1)
    shift = sizes[1] / math.hypot(0.1, 0.1)
    below = stats.norm.cdf(-observed - shift)
    both = stats.norm.cdf(-cutoff - shift) + stats.norm.sf(cutoff - shift)
    assert below / both == pytest.approx(0.5)


@pytest.mark.parametrize("reference", ["others", "opposite"])
def test_corrected_gaps_are_median_unbiased(reference):
    rng = np.random.default_rng(3)
    truth, errors = np.array([0.0, 0.5, 1.0, 3.0]), np.array([1.0, 0.5, 1.0, 0.8])
    below = []
    for _ in range(1000):
        x = truth + errors * rng.standard_normal(4)
        gap = leading_gap(x, errors, reference=reference, ends=(x - 50, x + 50))
        others = np.delete(truth, gap.index).mean()
        base = truth[np.argmax(x)] if reference == "opposite" else others
        below.append(gap.corrected < truth[gap.index] - base)
    assert np.mean(below) == pytest.approx(0.5, abs=0.05)


def test_shares_of_none_and_all_have_an_error():
    assert share_errors([0, 10], [10, 10]) == pytest.approx(math.sqrt(2 * 12 / 14**3))


@pytest.mark.parametrize("reference", ["others", "opposite"])
def test_gaps_are_between_the_leading_group_and_the_reference(reference):
    gap = leading_gap([0.5, 0.8, 0.9], [0.05] * 3, weights=[1000, 30, 10], reference=reference)
    others = {"others": 0.825, "opposite": 0.9}[reference]
    assert gap.index == 0
    assert gap.value == pytest.approx(0.5 - others)
    assert gap.low < gap.value <= gap.corrected <= gap.high
    assert gap.group.low <= 0.5 <= gap.group.corrected <= gap.group.high


@pytest.mark.parametrize(
    "call",
    [
        lambda: leading_gap([math.nan], [1.0]),
        lambda: leading_gap([1.0, 2.0], [1.0]),
        lambda: leading_gap([1.0, 2.0], [1.0, 0.0]),
        lambda: leading_gap([1.0, 2.0], [1.0, 1.0], side="middle"),
        lambda: leading_gap([1.0, 2.0], [1.0, 1.0], level=1.0),
        lambda: leading_gap([1.0, math.nan, 2.0], [1.0, 1.0, 1.0], selection=Selection(1)),
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
