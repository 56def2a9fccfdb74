import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.stats import (
    minimum_difference,
    minimum_effect_size,
    power_of_association,
    power_of_difference,
    sample_size_for_difference,
    sample_size_for_effect_size,
)

rates = st.floats(0.05, 0.95)
powers = st.sampled_from([0.5, 0.8, 0.95])
tests = st.sampled_from([1, 10, 91])


def test_published_sample_sizes() -> None:
    # Fleiss, Levin & Paik 2003, formula 4.14: the size without continuity correction.
    z_alpha, z_beta = stats.norm.isf([0.025, 0.2])
    for p1, p2 in ((0.5, 0.6), (0.8, 0.7), (0.9, 0.95)):
        mean = (p1 + p2) / 2
        null, actual = math.sqrt(2 * mean * (1 - mean)), math.sqrt(p1 * (1 - p1) + p2 * (1 - p2))
        n = math.ceil((z_alpha * null + z_beta * actual) ** 2 / (p2 - p1) ** 2)
        assert sample_size_for_difference(p1, p2 - p1) == n
    # Cohen 1988, table 7.4, as G*Power 3.1 rounds it: w = 0.3 with df 1, w = 0.5 with df 4.
    assert sample_size_for_effect_size(0.3, 1, 1) == 88
    assert sample_size_for_effect_size(0.5, 4, 1) == 48


@given(rates, st.integers(20, 5000), st.integers(20, 5000), powers, tests)
@settings(max_examples=60)
def test_the_minimum_difference_has_the_wanted_power(
    baseline: float, n1: int, n2: int, power: float, many: int
) -> None:
    found = minimum_difference(n1, n2, baseline, power=power, tests=many)
    reached = [
        power_of_difference(n1, n2, baseline, sign * found, tests=many)
        for sign in (-1, 1)
        if 0 <= baseline + sign * found <= 1
    ]
    assert np.isnan(found) or max(reached) >= power - 1e-9
    if found > 1e-6 and found < min(baseline, 1 - baseline):
        assert power_of_difference(n1, n2, baseline, -0.999 * found, tests=many) < power


@given(rates, st.floats(0.02, 0.4), powers, tests, st.sampled_from([0.25, 1.0, 3.0]))
@settings(max_examples=60)
def test_sample_size_and_minimum_difference_are_inverse(
    baseline: float, difference: float, power: float, many: int, ratio: float
) -> None:
    if difference >= baseline:
        return
    options = {"power": power, "tests": many}
    n = sample_size_for_difference(baseline, -difference, ratio=ratio, **options)
    assert minimum_difference(n, ratio * n, baseline, **options) <= difference + 1e-9
    if n > 1:
        fewer = minimum_difference(n - 1, ratio * (n - 1), baseline, **options)
        assert np.isnan(fewer) or fewer > difference or baseline - fewer < 0


@given(st.floats(0.03, 1.0), st.integers(1, 60), st.integers(1, 9), powers, tests)
@settings(max_examples=60)
def test_sample_size_and_minimum_effect_size_are_inverse(
    effect: float, df: int, divisor: int, power: float, many: int
) -> None:
    options = {"power": power, "tests": many}
    n = sample_size_for_effect_size(effect, df, divisor, **options)
    assert minimum_effect_size(n, df, divisor, **options) <= effect + 1e-9
    if n > 1:
        fewer = minimum_effect_size(n - 1, df, divisor, **options)
        assert np.isnan(fewer) or fewer > effect


def test_power_is_what_simulated_tests_find() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.binomial(300, 0.8, 20_000) / 300, rng.binomial(150, 0.68, 20_000) / 150
    pooled = (300 * a + 150 * b) / 450
    z = (a - b) / np.sqrt(pooled * (1 - pooled) * (1 / 300 + 1 / 150))
    expected = (np.abs(z) > stats.norm.isf(0.025)).mean()
    assert power_of_difference(300, 150, 0.8, -0.12) == pytest.approx(expected, abs=0.015)


def test_power_without_an_effect_is_the_rate_of_false_positives() -> None:
    assert power_of_difference(50, 80, 0.4, 0.0, 0.05) == pytest.approx(0.05)
    assert power_of_association(500, 0.0, 13, 1, 0.05, tests=10) == pytest.approx(0.005)


def test_more_tests_need_more_rows() -> None:
    assert sample_size_for_difference(0.9, -0.1, tests=91) > 2 * sample_size_for_difference(
        0.9, -0.1
    )


def test_sizes_that_cannot_show_anything() -> None:
    assert np.isnan(minimum_difference(2, 2, 0.5))
    assert np.isnan(minimum_effect_size(3, 10, 1))
    # Even a rate of 0 is not far enough below 0.01: the difference found is upwards.
    assert minimum_difference(30, 30, 0.01) == pytest.approx(0.2376, abs=1e-4)
    # Both rates fixed at 0 and 1: found for certain.
    assert power_of_difference(10, 10, 1.0, -1.0) == 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: power_of_difference(0, 5, 0.5, 0.1), "n1=0: expected a positive number"),
        (
            lambda: power_of_difference(5, 5, 0.5, 0.6),
            "the rate of the second group=1.1: expected a rate between 0 and 1",
        ),
        (
            lambda: minimum_difference(5, 5, 0.5, power=1.0),
            "power=1: expected a rate between 0 and 1",
        ),
        (
            lambda: minimum_effect_size(5, 1, 1, alpha=0.0),
            "alpha=0: expected a rate between 0 and 1",
        ),
        (
            lambda: sample_size_for_difference(0.5, 0.0),
            "difference=0.0: no number of rows finds it; expected it to differ from 0",
        ),
        (
            lambda: sample_size_for_effect_size(0.0, 1, 1),
            "effect_size=0.0: no number of rows finds it; expected it to differ from 0",
        ),
        (lambda: power_of_association(50, 0.3, 0, 1), "df=0: expected a positive number"),
        (
            lambda: power_of_association(50, 1.3, 1, 1),
            "effect_size=1.3: expected a rate between 0 and 1",
        ),
    ],
)
def test_bad_input(call, message: str) -> None:  # noqa: ANN001
    with pytest.raises(InputError, match=f"^{message}$"):
        call()
