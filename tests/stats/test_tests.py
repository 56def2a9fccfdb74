"""Tests and corrections: chance levels, p-values, tails, sign flips, multiplicity, verdicts."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import permutation_test

from equipoise.core import InputError, Verdict
from equipoise.stats.chance import (
    band,
    benjamini_hochberg,
    holm,
    mirrored_band,
    mirrored_p_value,
    p_value,
    sign_flips,
    tail,
)
from equipoise.stats.hypergeometric import tails
from equipoise.stats.intervals import studentized_range
from equipoise.stats.verdict import harmful_excess, harmful_reach, judge

draws = st.lists(st.integers(-5, 5), min_size=1, max_size=40)


def test_band_of_many_draws():
    chance = band(np.r_[np.arange(1.0, 1001.0), np.nan], method="1000 permutations")
    assert (chance.mean, chance.low, chance.high) == (500.5, 25.0, 976.0)
    assert chance.method == "1000 permutations"
    assert np.isnan([band([np.nan]).mean, band([]).low, band([]).high]).all()


def test_band_of_enumerated_draws():
    chance = band([3.0, 1.0, 2.0], weights=[0.02, 0.9, 0.08])
    assert (chance.mean, chance.low, chance.high) == (pytest.approx(1.12), 1.0, 2.0)
    assert band([3.0, 1.0], weights=[0.03, 0.97]).high == 3.0
    assert band([-np.inf, 1.0, 1.0, 1.0]).mean == -np.inf


@given(st.lists(st.integers(-20, 20), min_size=1, max_size=300))
def test_a_band_that_is_its_own_mirror_image_needs_half_of_the_draws(half):
    # All draws are there.
    whole_band = band([*half, *(-number for number in half)], method="all", weights=1.0)
    mirrored = mirrored_band(half, method="all")
    assert (mirrored.low, mirrored.high, mirrored.method) == (
        whole_band.low,
        whole_band.high,
        "all",
    )
    assert mirrored.mean == 0.0
    assert whole_band.mean == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@pytest.mark.parametrize("weighted", ["sampled", "equal", "weights"])
@given(st.lists(st.integers(-20, 20), min_size=39, max_size=300), st.integers(-21, 21))
def test_a_number_is_beyond_chance_exactly_if_its_p_is_small(harm, weighted, null, observed):
    masses = np.arange(1.0, len(null) + 1)
    weights = {"sampled": None, "equal": 1.0, "weights": masses / masses.sum()}[weighted]
    chance = band(null, harm, weights=weights)
    p = p_value(null, observed, harm, weights=weights).value
    beyond = {
        "higher": observed > chance.high,
        "lower": observed < chance.low,
        "either": not chance.low <= observed <= chance.high,
    }[harm]
    assert beyond == (p <= 0.05)
    # The other side has no harm, and all draws are within.
    assert chance.low == min(null) or harm != "higher"
    assert chance.high == max(null) or harm != "lower"


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=60), st.integers(-21, 21))
def test_a_p_value_among_mirror_images_needs_half_of_the_draws(harm, half, observed):
    draws = np.array([*half, *(-number for number in half)]) * 0.1
    # A tie is one whatever its rounding, on either side.
    near = observed * (0.1 + 1e-16)
    expected = p_value(draws, near, harm, weights=1.0, scale=2.0)
    assert mirrored_p_value(np.array(half) * 0.1, near, harm, scale=2.0) == expected


def test_p_counts_the_observed_value_once():
    assert p_value([1.0, 2.0, 3.0], 3.0).value == 0.5
    assert p_value([1.0, 2.0, 3.0], 9.0).value == 0.25
    assert p_value([1.0, 2.0, 3.0, np.nan], 0.0).value == 1.0
    assert p_value([1.0, 2.0, 3.0], 1.0, "lower").value == 0.5
    assert p_value([1.0, 2.0, 3.0], 3.0, "either").value == 1.0
    assert p_value(np.arange(99.0), 98.5, "either").value == pytest.approx(0.02)
    assert p_value([1.0], 1.0).method == "permutation"


@pytest.mark.parametrize(("harm", "least"), [("higher", 0.0005), ("either", 0.001)])
def test_p_is_an_upper_end_exactly_where_no_sampled_draw_is_as_extreme(harm, least):
    null = np.arange(1999.0)
    beyond = p_value(null, 1998.5, harm)
    assert (beyond.value, beyond.at_most) == (pytest.approx(least), True)
    assert not p_value(null, 1998.0, harm).at_most
    # All rearrangements, or a fitted tail, show how small p is.
    assert not p_value(null, 1998.0, harm, weights=1.0).at_most
    assert not p_value(null, 5000.0, harm, resolution=1e-6).at_most


def test_rounding_is_a_tie():
    observed = 0.1 + 0.2
    assert p_value([0.3, 0.3, 0.0], observed).value == 0.75
    assert p_value([0.3, 0.3, 0.0], 0.3 + 1e-9).value == 0.25
    # Sums of many terms round in proportion to the terms, not to the sum.
    assert p_value([1e-9], 1e-9 + 1e-13).value == 0.5
    assert p_value([1e-9], 1e-9 + 1e-13, scale=1.0).value == 1.0


@given(draws, st.integers(-5, 5))
def test_both_directions_hold_every_draw(values, observed):
    numbers = np.array(values, dtype=float)
    up, down = p_value(numbers, observed).value, p_value(numbers, observed, "lower").value
    ties = (numbers == observed).sum()
    assert up + down == pytest.approx((2 + len(values) + ties) / (1 + len(values)))
    assert p_value(-numbers, -observed, "lower").value == up
    assert p_value(numbers, observed, "either").value == min(1.0, 2 * min(up, down))


def test_the_tail_is_used_only_where_draws_are_too_few():
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
    two_sided = p_value(null, -6.0, "either", resolution=1e-5)
    assert two_sided.value == 2 * lower.value


def test_the_tail_of_a_gamma_is_found():
    null = np.random.default_rng(8).chisquare(13, 20_000)
    for p in (1e-3, 1e-4, 1e-5):
        tail_p = tail(null, float(stats.chi2.isf(p, 13))).value
        assert 0.5 < tail_p / p < 2.5


@pytest.mark.parametrize("total", [2, 13, 3_000, 200_000])
def test_hypergeometric_tails_are_those_of_scipy(total):
    rng = np.random.default_rng(total)
    n_drawn, marked = rng.integers(0, total + 1, (2, 400)).astype(float)
    least, largest = np.maximum(0.0, n_drawn + marked - total), np.minimum(n_drawn, marked)
    # Near the mode, in both tails, and at both ends.
    near = np.round(n_drawn * marked / total + rng.normal(0.0, 0.1, 400) * (largest - least))
    near[:20], near[20:40] = least[:20], largest[20:40]
    successes = np.clip(near, least, largest)
    lower, upper = tails(successes, n_drawn, marked, np.full(400, float(total)))
    exact = stats.hypergeom(total, marked, n_drawn)
    np.testing.assert_allclose(lower, exact.cdf(successes), rtol=1e-9, atol=1e-290)
    np.testing.assert_allclose(upper, exact.sf(successes - 1.0), rtol=1e-9, atol=1e-290)


@pytest.mark.parametrize("level", [0.5, 0.95, 0.9999])
@pytest.mark.parametrize("groups", [2, 3, 14, 1_000])
def test_the_studentized_range_is_that_of_scipy(groups, level):
    expected = stats.studentized_range.ppf(level, groups, np.inf) / math.sqrt(2.0)
    assert studentized_range(level, groups) == pytest.approx(expected, rel=1e-10)


def test_it_equals_scipy_where_all_signs_are_enumerated():
    array = np.random.default_rng(3).normal(0.4, 1.0, 10)
    reference = permutation_test(
        (array,), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    )  # fmt: skip
    assert sign_flips(array).value == pytest.approx(reference.pvalue, abs=1e-12)
    assert sign_flips(array).method == "exact"


def test_drawn_flips_agree_with_all_of_them_and_repeat():
    array = np.random.default_rng(4).normal(0.3, 1.0, 17)
    p = sign_flips(array, permutations=200_000, seed=1)
    signs = 1.0 - 2.0 * ((np.arange(1 << 17)[:, None] >> np.arange(17)) & 1)
    exact = min(
        1.0, 2 * min((signs @ array >= array.sum()).mean(), (signs @ array <= array.sum()).mean())
    )
    assert p.value == pytest.approx(exact, abs=0.004)
    assert p == sign_flips(array, permutations=200_000, seed=1)


def test_what_cannot_be_tested():
    assert np.isnan(sign_flips([]).value)
    with pytest.raises(InputError, match="^differences must be finite numbers in one dimension"):
        sign_flips([1.0, np.nan])


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)

# Benjamini & Hochberg 1995, section 3.1: at 0.05 the first four are discoveries, Bonferroni's
# and Holm's only the first three.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240,
             0.4262, 0.5719, 0.6528, 0.7590, 1.0]  # fmt: skip


def test_the_published_example():
    assert (benjamini_hochberg(PUBLISHED) <= 0.05).sum() == 4
    assert (holm(PUBLISHED) <= 0.05).sum() == 3


@given(p_values)
def test_holm_is_its_definition(p):
    order = np.argsort(p, kind="stable")
    expected, highest = np.empty(len(p)), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, (len(p) - rank) * p[index])
        expected[index] = min(highest, 1.0)
    np.testing.assert_allclose(holm(p), expected, atol=1e-15)


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_what_was_not_tested_is_not_counted(correct):
    q = correct([0.01, np.nan, 0.02, np.nan])
    assert np.isnan(q).tolist() == [False, True, False, True]
    np.testing.assert_array_equal(q[[0, 2]], correct([0.01, 0.02]))
    assert np.isnan(correct([np.nan])).all()
    assert correct([]).shape == (0,)


@pytest.mark.parametrize("correct", [benjamini_hochberg, holm])
def test_bad_p_values(correct):
    for p in ([0.1, 1.1], [[0.1]]):
        with pytest.raises(InputError, match="^p: "):
            correct(p)


NAN = math.nan


def verdict_of(value=0.3, ends=(0.2, 0.4), chance=0.05, q=0.001, threshold=0.1, harm="higher",
               neutral=0.0, excess=None, **fields):  # fmt: skip
    excess = harmful_excess(value, chance, harm) if excess is None else excess
    reach = harmful_reach(*ends, harm, neutral)
    return judge(
        value=value, excess=excess, reach=reach, q=q, threshold=threshold, alpha=0.05, **fields
    )[0]  # fmt: skip


LOWER = {"harm": "lower", "value": 0.5, "ends": (0.4, 0.6), "chance": 0.7, "neutral": 0.75}
EITHER = {"harm": "either", "chance": 0.0}


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, Verdict.DISPARITY),
        ({"value": NAN}, Verdict.NOT_ESTIMABLE),
        ({"chance": NAN}, Verdict.NONE),
        ({"threshold": NAN}, Verdict.NONE),
        # The interval lies above the threshold, but it never replaces q.
        ({"q": 0.2}, Verdict.INCONCLUSIVE),
        ({"q": NAN}, Verdict.INCONCLUSIVE),
        ({"q": 0.05}, Verdict.DISPARITY),
        # Shown to be small, whatever q.
        ({"value": 0.07, "ends": (0.05, 0.09)}, Verdict.BELOW_THRESHOLD),
        ({"value": 0.07, "ends": (0.05, 0.09), "q": NAN}, Verdict.BELOW_THRESHOLD),
        # Real, and the interval cannot tell whether it matters.
        ({"value": 0.14, "ends": (0.01, 0.2)}, Verdict.DETECTED),
        ({"value": 0.1499, "ends": (0.1, 0.2)}, Verdict.DETECTED),
        # The interval estimates the population value: chance is not taken off its end.
        ({"value": 0.12, "ends": (0.05, 0.12), "q": 0.2}, Verdict.INCONCLUSIVE),
        ({"ends": (NAN, NAN)}, Verdict.DISPARITY),
        ({"ends": (NAN, NAN), "value": 0.1}, Verdict.DETECTED),
        ({"ends": (NAN, NAN), "q": 0.0501}, Verdict.INCONCLUSIVE),
        # Few units leave open what they show, however far the interval seems to be.
        ({"too_few": "3 units"}, Verdict.INCONCLUSIVE),
        ({"too_few": "3 units", "ends": (0.01, 0.02), "q": NAN}, Verdict.INCONCLUSIVE),
        ({"too_few": "3 units", "value": NAN}, Verdict.NOT_ESTIMABLE),
        ({"too_few": "3 units", "threshold": NAN}, Verdict.NONE),
        # A threshold of 0 leaves the decision to q.
        ({"threshold": 0.0, "value": 0.06, "ends": (0.0, 0.4)}, Verdict.DISPARITY),
        # A corrected value takes the place of the excess.
        ({"excess": 0.09}, Verdict.DETECTED),
        # Lower is worse: the low end's distance from the value without disparity counts.
        (LOWER, Verdict.DISPARITY),
        (LOWER | {"value": 0.68, "ends": (0.66, 0.72)}, Verdict.BELOW_THRESHOLD),
        (LOWER | {"value": 0.68, "ends": (0.64, 0.72), "q": 0.2}, Verdict.INCONCLUSIVE),
        # Signed numbers: either end counts.
        (EITHER | {"value": -0.3, "ends": (-0.4, -0.2)}, Verdict.DISPARITY),
        (EITHER | {"value": -0.02, "ends": (-0.09, 0.05)}, Verdict.BELOW_THRESHOLD),
        (EITHER | {"value": -0.02, "ends": (-0.11, 0.05)}, Verdict.DETECTED),
    ],
)
def test_verdicts(changes, verdict):
    assert verdict_of(**changes) is verdict


@pytest.mark.parametrize("name", ["threshold", "alpha"])
def test_bad_input(name):
    arguments = {
        "value": 0.3,
        "excess": 0.2,
        "reach": 0.4,
        "q": 0.01,
        "threshold": 0.1,
        "alpha": 0.05,
    }
    with pytest.raises(InputError, match=f"{name}=-0.1"):
        judge(**arguments | {name: -0.1})
