import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.stats import band, chi2_mean, p_value, tail
from equipoise.stats.chance import mirrored_band, mirrored_p_value

draws = st.lists(st.integers(-5, 5), min_size=1, max_size=40)


def test_band_of_many_draws() -> None:
    found = band(np.r_[np.arange(1.0, 1001.0), np.nan], method="1000 permutations")
    assert (found.mean, found.low, found.high) == (500.5, 25.0, 975.0)
    assert found.method == "1000 permutations"
    assert np.isnan([band([np.nan]).mean, band([]).low, band([]).high]).all()


def test_band_of_enumerated_draws() -> None:
    found = band([3.0, 1.0, 2.0], weights=[0.02, 0.9, 0.08])
    assert (found.mean, found.low, found.high) == (pytest.approx(1.12), 1.0, 2.0)
    assert band([3.0, 1.0], weights=[0.03, 0.97]).high == 3.0
    assert band([-np.inf, 1.0, 1.0, 1.0]).mean == -np.inf


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=300))
def test_a_band_that_is_its_own_mirror_image_needs_half_of_the_draws(half: list[int]) -> None:
    every = band([*half, *(-one for one in half)], method="all")
    found = mirrored_band(half, method="all")
    assert (found.low, found.high, found.method) == (every.low, every.high, "all")
    assert found.mean == 0.0
    assert every.mean == pytest.approx(0.0, abs=1e-12)


def test_a_band_without_draws_is_no_band() -> None:
    found = mirrored_band([], method="none")
    assert np.isnan([found.mean, found.low, found.high]).all()


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60), st.integers(-21, 21))
def test_a_p_value_among_mirror_images_needs_half_of_the_draws(
    harm: Harm, half: list[int], observed: int
) -> None:
    every = np.array([*half, *(-one for one in half)]) * 0.1
    # A tie is one whatever its rounding, on either side.
    near = observed * (0.1 + 1e-16)
    expected = p_value(every, near, harm, weights=1.0, scale=2.0)
    assert mirrored_p_value(np.array(half) * 0.1, near, harm, scale=2.0) == expected


def test_one_weight_for_all_is_many_equal_ones() -> None:
    draws, weights = [3.0, 1.0, 2.0, np.nan], [1.0, 1.0, 1.0, 1.0]
    assert p_value(draws, 2.0, weights=1.0) == p_value(draws, 2.0, weights=weights)
    assert p_value(draws, 2.0, weights=1.0).method == "exact"
    assert band(draws, weights=1.0) == band(draws, weights=weights)


def test_p_counts_the_observed_value_once() -> None:
    assert p_value([1.0, 2.0, 3.0], 3.0).value == 0.5
    assert p_value([1.0, 2.0, 3.0], 9.0).value == 0.25
    assert p_value([1.0, 2.0, 3.0, np.nan], 0.0).value == 1.0
    assert p_value([1.0, 2.0, 3.0], 1.0, "lower").value == 0.5
    assert p_value([1.0, 2.0, 3.0], 3.0, "either").value == 1.0
    assert p_value(np.arange(99.0), 98.5, "either").value == pytest.approx(0.02)
    assert p_value([1.0], 1.0).method == "permutation"


def test_exact_p_is_a_probability() -> None:
    found = p_value([1.0, 2.0, 3.0, 3.0], 3.0, weights=[0.25] * 4)
    assert (found.value, found.method) == (0.5, "exact")
    assert p_value([1.0, 2.0], 2.0, "lower", weights=[0.3, 0.7]).value == 1.0
    assert p_value([1.0, 2.0], 2.0, "either", weights=[0.6, 0.4]).value == pytest.approx(0.8)


def test_rounding_is_a_tie() -> None:
    observed = 0.1 + 0.2
    assert p_value([0.3, 0.3, 0.0], observed).value == 0.75
    assert p_value([0.3, 0.3, 0.0], 0.3 + 1e-9).value == 0.25
    # Sums of many terms round in proportion to the terms, not to the sum.
    assert p_value([1e-9], 1e-9 + 1e-13).value == 0.5
    assert p_value([1e-9], 1e-9 + 1e-13, scale=1.0).value == 1.0


def test_no_p_without_a_value_or_draws() -> None:
    assert np.isnan(p_value([1.0], np.nan).value)
    assert np.isnan(p_value([np.nan], 1.0).value)


@given(draws, st.integers(-5, 5))
def test_both_directions_hold_every_draw(values: list[int], observed: int) -> None:
    numbers = np.array(values, dtype=float)
    up, down = p_value(numbers, observed).value, p_value(numbers, observed, "lower").value
    ties = (numbers == observed).sum()
    assert up + down == pytest.approx((2 + len(values) + ties) / (1 + len(values)))
    assert p_value(-numbers, -observed, "lower").value == up
    assert p_value(numbers, observed, "either").value == min(1.0, 2 * min(up, down))


def test_a_permutation_p_is_valid() -> None:
    # Among m + 1 exchangeable numbers each rank is as likely: p is uniform on 1/(m+1), ..., 1.
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(4000, 20))
    found = np.array([p_value(row[1:], row[0]).value for row in numbers])
    for t in (0.05, 0.1, 0.5):
        assert (found <= t + 1e-12).mean() <= t + 3 * np.sqrt(t * (1 - t) / 4000)


def test_the_tail_is_used_only_where_draws_are_too_few() -> None:
    null = np.random.default_rng(6).normal(size=999)
    plain = p_value(null, 6.0)
    assert (plain.value, plain.method) == (0.001, "permutation")
    fine = p_value(null, 6.0, resolution=1e-5)
    assert fine.method == "approximate tail (Pearson III, generalised Pareto)"
    assert fine.value < 1e-6
    assert p_value(null, 6.0, resolution=0.01) == plain
    assert p_value(null, 1.0, resolution=1e-5) == p_value(null, 1.0)
    assert p_value(null, 6.0, resolution=1e-5, weights=np.ones(999)).method == "exact"
    lower = p_value(null, -6.0, "lower", resolution=1e-5)
    assert lower == p_value(-null, 6.0, resolution=1e-5)
    both = p_value(null, -6.0, "either", resolution=1e-5)
    assert both.value == 2 * lower.value


def test_a_tail_never_raises_p() -> None:
    heavy = np.random.default_rng(7).standard_cauchy(999)
    assert p_value(heavy, float(heavy.max()) + 1.0, resolution=1e-6).value <= 0.002


def test_the_tail_of_a_gamma_is_found() -> None:
    null = np.random.default_rng(8).chisquare(13, 20_000)
    for p in (1e-3, 1e-4, 1e-5):
        found = tail(null, float(stats.chi2.isf(p, 13))).value
        assert 0.5 < found / p < 2.5


def test_no_tail_without_spread_or_numbers() -> None:
    assert np.isnan(tail(np.ones(500), 2.0).value)
    assert np.isnan(tail(np.arange(50.0), 90.0).value)
    assert np.isnan(tail(np.r_[np.arange(500.0), np.inf], 900.0).value)
    assert p_value(np.ones(999), 2.0, resolution=1e-6).method == "permutation"
    assert tail(np.arange(500.0), 1e9).value > 0


def test_chi2_mean() -> None:
    found = chi2_mean([100, 1, 0], 3, [4, 4, 4])
    assert found[0] == pytest.approx(100 / 99 * 6)
    assert np.isnan(found[1:]).all()


def test_bad_input() -> None:
    message = r"null_draws: shape \(1, 2\); expected one number per draw, \(m,\)"
    with pytest.raises(InputError, match=f"^{message}$"):
        p_value([[1.0, 2.0]], 1.0)
    message = r"weights: shape \(1,\); expected \(2,\), as null_draws"
    with pytest.raises(InputError, match=f"^{message}$"):
        band([1.0, 2.0], weights=[1.0])
