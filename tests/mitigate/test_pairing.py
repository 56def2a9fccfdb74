"""Paired differences: against scipy, exact for few units, and invariant."""

import math

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_rel

from equipoise.mitigate.pairing import FEWEST, Share, paired, share_of_way


def mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.mean(values, axis=axis)


@pytest.mark.parametrize("n", [5, 12, 16])
def test_few_units_are_tested_exactly(n: int) -> None:
    rng = np.random.default_rng(n)
    before, after = rng.normal(size=n), rng.normal(size=n) - 0.7
    found = paired(before, after, seed=0)
    peer = permutation_test((after - before,), mean, permutation_type="samples", n_resamples=10**6)
    assert found.p_value == pytest.approx(peer.pvalue)
    assert found.test == "all signs of the differences"
    assert found.difference == pytest.approx((after - before).mean())
    if n < FEWEST:
        # No test of so few can show anything, so that an interval without 0 would contradict it.
        assert found.p_value > 0.05
        assert math.isnan(found.low)
        assert math.isnan(found.high)
        return
    student = ttest_rel(after, before).confidence_interval()
    assert (found.low, found.high) == pytest.approx((student.low, student.high), rel=1e-12)


def test_an_interval_of_six_does_not_contradict_its_test() -> None:
    """Five fell and one rose: draws of six lie below 0, their test and Student's interval do not.

    The percentile interval of 100,000 bootstrap means is [-0.370, -0.043].
    """
    fell = np.array([-0.02, -0.02, -0.3, -0.4, -0.5, 0.05])
    found = paired(np.zeros(6), fell, seed=0)
    assert found.p_value > 0.05
    assert found.low < 0 < found.high


def test_more_are_drawn_and_never_give_zero() -> None:
    found = paired(np.ones(24), np.zeros(24), seed=0)
    assert found.p_value == pytest.approx(2 / 100_001)
    assert found.test == "100000 draws of the signs of the differences"
    rng = np.random.default_rng(0)
    before = rng.normal(size=24)
    same = paired(before, before[::-1], seed=0)
    assert 0.5 < same.p_value <= 1.0


def test_units_without_both_numbers_are_left_out() -> None:
    found = paired([1.0, math.nan, 3.0], [0.0, 1.0, 1.0], seed=0)
    assert (found.n, found.before, found.after) == (2, 2.0, 0.5)
    assert paired([math.nan], [1.0], seed=0).n == 0


def test_p_values_of_no_effect_are_uniform_enough() -> None:
    rng = np.random.default_rng(1)
    found = [paired(rng.normal(size=10), rng.normal(size=10), seed=0).p_value for _ in range(200)]
    assert np.mean(np.array(found) <= 0.05) <= 0.1


def share(before: np.ndarray, after: np.ndarray, floor: np.ndarray) -> Share:
    return share_of_way(before, after, floor, seed=0, name="subjects")


def test_share_of_the_way() -> None:
    found = share(np.full(9, 0.8), np.full(9, 0.5), np.full(9, 0.2))
    assert (found.value, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert found.reason == ""


def test_the_floor_is_resampled_with_its_subjects() -> None:
    rng = np.random.default_rng(3)
    floor = rng.uniform(0, 0.6, size=20)
    found = share(floor + 0.4, floor + 0.1, floor)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.75, 0.75))


@pytest.mark.parametrize("before", [0.190, 0.186, 0.1])
def test_no_share_of_a_way_that_is_not_clear_of_nothing(before: float) -> None:
    floor = np.random.default_rng(3).normal(0.186, 0.1, size=24)
    found = share(np.full(24, before), np.full(24, 0.1), floor)
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason == "the number before is not clear of the floor"


@pytest.mark.parametrize(("n", "known"), [(5, False), (6, True)])
def test_a_share_of_few_subjects_has_no_interval(n: int, known: bool) -> None:
    found = share(np.full(n, 0.8), np.full(n, 0.5), np.full(n, 0.2))
    assert found.value == pytest.approx(0.5)
    assert [math.isfinite(end) for end in (found.low, found.high)] == [known, known]
