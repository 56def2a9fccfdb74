"""Closed-form intervals and power, against published numbers, definitions and simulation."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from equipoise.core import InputError
from equipoise.stats import (
    Association,
    minimum_difference,
    minimum_effect_size,
    power_of_association,
    power_of_difference,
    sample_size_for_difference,
)
from equipoise.stats.intervals import (
    fisher_z,
    jackknife_score,
    jackknife_t,
    mean_t,
    percentile,
    scored,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)


def newcombe(s1, n1, s2, n2):
    difference = scored(s1, n1).minus(scored(s2, n2))
    return difference.low, difference.high


def association_interval(table, statistic="cramers_v", level=0.95):
    return Association.of(table).interval(statistic, level)


counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
group_counts = st.lists(counts, min_size=2, max_size=6)


# Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3.
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_is_the_published_one(successes, n, low, high):
    assert np.round(wilson(successes, n), 4).tolist() == [low, high]


# Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10.
@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_is_the_published_one(first, second, low, high):
    assert np.round(newcombe(*first, *second), 4).tolist() == [low, high]


@given(counts, st.floats(0.5, 0.999))
def test_wilson_solves_the_score_equation(case, level):
    s, n = case
    z = stats.norm.isf((1 - level) / 2)
    low, high = wilson(s, n, level)
    assert 0 <= low <= s / n <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert abs(s - n * end) == pytest.approx(z * math.sqrt(n * end * (1 - end)), rel=1e-6)
    mirrored = wilson(n - s, n, level)
    np.testing.assert_allclose((1 - mirrored[1], 1 - mirrored[0]), (low, high), atol=1e-12)


def _pairwise_gap(s, n):
    """Write the definition out, pair by pair, from `wilson` alone."""
    k = len(s)
    tukey = stats.norm.sf(stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2))
    ends = []
    for level in (1 - 2 * tukey, 0.95):
        w = [wilson(a, b, level) for a, b in zip(s, n, strict=True)]
        p = [a / b for a, b in zip(s, n, strict=True)]
        pairs = [(i, j) for i in range(k) for j in range(k) if i != j]
        lows = [p[i] - p[j] - math.hypot(p[i] - w[i][0], w[j][1] - p[j]) for i, j in pairs]
        highs = [p[i] - p[j] + math.hypot(w[i][1] - p[i], p[j] - w[j][0]) for i, j in pairs]
        ends.append((max(0.0, *lows), min(1.0, max(highs))))
    return ends[0][0], ends[1][1]


@given(group_counts)
def test_gap_is_made_of_pairs(cases):
    s, n = map(list, zip(*cases, strict=True))
    np.testing.assert_allclose(simultaneous_gap(s, n), _pairwise_gap(s, n), atol=1e-9)


@given(group_counts)
def test_extremes_hold_what_was_observed(cases):
    s, n = np.array(cases, dtype=float).T
    p, overall = s / n, s.sum() / n.sum()
    for function, value in (
        (simultaneous_gap, p.max() - p.min()),
        (simultaneous_shortfall, overall - p.min()),
        (simultaneous_minimum, p.min()),
    ):
        low, high = function(s, n)
        assert 0 <= low <= value + 1e-12
        assert value - 1e-12 <= high <= 1
        wider = function(s, n, 0.99)
        assert wider[0] <= low + 1e-12
        assert wider[1] >= high - 1e-12
        order = np.argsort(p, kind="stable")
        np.testing.assert_allclose(function(s[order], n[order]), (low, high), atol=1e-12)
        np.testing.assert_array_equal(function([*s, 0.0], [*n, 0.0]), (low, high))


def test_one_group_alone():
    assert np.isnan(simultaneous_gap([3, 0], [10, 0])).all()
    assert np.isnan(simultaneous_shortfall([3, 0], [10, 0])).all()
    np.testing.assert_array_equal(simultaneous_minimum([3, 0], [10, 0]), wilson(3, 10))
    assert np.isnan(simultaneous_minimum([0, 0], [0, 0])).all()


def test_minimum_of_many_ends_where_the_exact_limits_do():
    # Of two groups the limit of one alone is the wider.
    for n_groups, above in ((3, 1 - 0.95 ** (1 / 3)), (2, 0.025)):
        s, n = [45, 48, 49][:n_groups], [50] * n_groups
        exact = min(stats.beta.isf(above, a + 1, b - a) for a, b in zip(s, n, strict=True))
        assert simultaneous_minimum(s, n)[1] == pytest.approx(exact)
        assert simultaneous_minimum(s, n)[0] == wilson(45, 50)[0]


def test_percentile_is_numpys_without_nan():
    values = np.random.default_rng(3).normal(size=(201, 4))
    low, high = percentile(values, 0.9)
    np.testing.assert_allclose(low, np.quantile(values, 0.05, axis=0))
    np.testing.assert_allclose(high, np.quantile(values, 0.95, axis=0))
    values[:50, 1] = np.nan
    values[:, 2] = np.nan
    low, high = percentile(values, 0.9)
    assert low[1] == pytest.approx(np.quantile(values[50:, 1], 0.05))
    assert np.isnan([low[2], high[2]]).all()


def test_percentile_beside_infinity_takes_the_outer_value():
    low, high = percentile([-np.inf, 1.0, 2.0, np.inf], 0.5)
    assert (low, high) == (-np.inf, np.inf)
    assert percentile([-np.inf, -np.inf, 1.0], 0.5)[0] == -np.inf


def test_mean_t_is_scipys():
    values = [2.0, 3.0, 5.0, 9.0]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_t([*values, np.nan], 0.9) == pytest.approx(tuple(expected))
    assert np.isnan(mean_t([1.0])).all()
    assert mean_t([4.0, 4.0]) == (4.0, 4.0)


def test_fisher_z():
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    correlation = stats.pearsonr(x, y)
    expected = correlation.confidence_interval(0.95)
    assert fisher_z(correlation.statistic, 30) == pytest.approx(tuple(expected))
    # Bonett & Wright 2000: z ± 1.96 sqrt((1 + r²/2)/(n - 3)).
    half = 1.959964 * math.sqrt((1 + 0.25 / 2) / 17)
    ends = math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half)
    assert fisher_z(0.5, 20, kind="spearman") == pytest.approx(ends, rel=1e-6)
    assert np.isnan(fisher_z([1.0, 0.5, np.nan], [20, 3, 20])).all()


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: wilson(1, 2, 1.0), r"level=1\.0"),
        (lambda: simultaneous_gap([1, 1], [2, 2], 1.0), r"level=1\.0"),
        (lambda: percentile([1.0], 1.0), r"level=1\.0"),
        (lambda: wilson(3, 2), "successes"),
        (lambda: percentile([]), "replicates"),
        (lambda: fisher_z(1.5, 9), "r:"),
        (lambda: Association.of([[1, -2], [1, 1]]), "tables"),
        (lambda: power_of_difference(0, 5, 0.5, 0.1), "n1=0"),
        (lambda: power_of_difference(5, 5, 0.5, 0.6), "the rate of the second group=1.1"),
        (lambda: minimum_difference(5, 5, 0.5, power=1.0), "power=1"),
        (lambda: sample_size_for_difference(0.5, 0.0), "difference=0.0"),
        (lambda: power_of_association(50, 0.3, 0, 1), "df=0"),
    ],
)
def test_bad_input(call, argument):
    with pytest.raises(InputError, match=f"^{argument}"):
        call()


tables = st.tuples(st.integers(2, 5), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 60))
)


def _moments(p, n, samples=40_000):
    tables = np.random.default_rng(1).multinomial(n, p.ravel(), size=samples)
    chi2 = Association.of(tables.reshape(-1, *p.shape)).chi2
    return float(chi2.mean()), float(chi2.var())


# One weak and skewed, one strong and even.
@pytest.mark.parametrize(
    "p",
    [
        np.array([[0.5, 0.08, 0.02], [0.3, 0.02, 0.08]]),
        np.array([[0.3, 0.02, 0.02], [0.01, 0.3, 0.02], [0.01, 0.02, 0.3]]),
    ],
    ids=["skewed", "strong"],
)
def test_mean_and_variance_are_those_of_samples(p):
    n = 2000
    summary = Association.of(n * p)
    bias, spread = summary.bias.sum(), summary.spread.sum()
    mean, variance = _moments(p, n)
    assert mean == pytest.approx(float(summary.chi2 + bias), rel=0.01)
    assert variance == pytest.approx(float(4 * spread * summary.chi2), rel=0.06)


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.8])
def test_the_noncentrality_is_estimated_without_bias_in_sparse_tables(strength):
    rows, columns = 1.0 / np.arange(1, 5), np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    p = np.outer(rows / rows.sum(), (1 - strength) * columns)
    p[np.arange(4), np.arange(4)] += strength * rows / rows.sum()
    n, samples = 100, 20_000
    tables = np.random.default_rng(5).multinomial(n, p.ravel(), size=samples)
    summary = Association.of(tables.reshape(-1, 4, 5))
    truth = max(n * (p**2 / np.outer(p.sum(axis=1), p.sum(axis=0))).sum() - n, 0.0)
    error = summary.unbiased.std() / np.sqrt(samples)
    # A hundredth for what is left beyond terms of order 1/n.
    assert summary.unbiased.mean() == pytest.approx(truth, abs=4 * error + 0.01 * truth)
    model = float(summary.unbiased_variance(np.full(samples, truth)).mean())
    assert 0.9 < model / summary.unbiased.var() < 1.7


def test_null_moments_are_those_of_all_tables_with_the_same_margins():
    observed = np.array([[5.0, 3.0, 1.0], [2.0, 6.0, 4.0]])
    rows, columns = observed.sum(axis=1), observed.sum(axis=0)
    first = np.array(
        [
            (a, b, rows[0] - a - b)
            for a, b in itertools.product(range(8), range(10))
            if 0 <= rows[0] - a - b <= columns[2]
        ]
    )
    all_tables = np.stack([first, columns - first], axis=1)
    weights = special.comb(columns, first).prod(axis=1) / special.comb(rows.sum(), rows[0])
    chi2 = Association.of(all_tables).chi2
    mean = (weights * chi2).sum()
    assert pytest.approx(mean, rel=1e-12) == 21 / 20 * 2
    variance = (weights * (chi2 - mean) ** 2).sum()
    assert Association.of(observed).null_variance == pytest.approx(variance, rel=1e-9)


@given(tables, st.sampled_from([0.8, 0.95]))
def test_order_orientation_and_empty_lines_do_not_matter(table, level):
    low, high = association_interval(table, level=level)
    padded = np.pad(table, ((0, 1), (1, 0)))[::-1].T
    np.testing.assert_allclose(association_interval(padded, level=level), (low, high), atol=1e-6)
    if min((table.sum(axis=0) > 0).sum(), (table.sum(axis=1) > 0).sum()) < 2:
        assert np.isnan([low, high]).all()
    else:
        assert 0 <= low <= high <= 1


def test_the_other_statistics_rescale():
    table = [[30, 5, 10], [8, 30, 2], [4, 6, 25]]
    v = np.array(association_interval(table))
    np.testing.assert_allclose(association_interval(table, "phi"), v * np.sqrt(2))
    wide = [*table, [3, 9, 3]]
    expected = np.array(association_interval(wide)) * (2 / 6**0.5) ** 0.5
    np.testing.assert_allclose(association_interval(wide, "tschuprows_t"), expected)


rates = st.floats(0.05, 0.95)
powers = st.sampled_from([0.5, 0.8, 0.95])
tests = st.sampled_from([1, 10, 91])


def test_published_sample_sizes():
    # Fleiss, Levin & Paik 2003, formula 4.14: the size without continuity correction.
    z_alpha, z_beta = stats.norm.isf([0.025, 0.2])
    for p1, p2 in ((0.5, 0.6), (0.8, 0.7), (0.9, 0.95)):
        mean = (p1 + p2) / 2
        null, actual = math.sqrt(2 * mean * (1 - mean)), math.sqrt(p1 * (1 - p1) + p2 * (1 - p2))
        n = math.ceil((z_alpha * null + z_beta * actual) ** 2 / (p2 - p1) ** 2)
        assert sample_size_for_difference(p1, p2 - p1) == n
    # Cohen 1988, table 7.4, as G*Power 3.1 rounds it: w = 0.3 with df 1, w = 0.5 with df 4.


@given(rates, st.floats(0.02, 0.4), powers, tests, st.sampled_from([0.25, 1.0, 3.0]))
@settings(max_examples=60)
def test_sample_size_and_minimum_difference_are_inverse(
    baseline, difference, power, n_tests, ratio
):
    if difference >= baseline:
        return
    options = {"power": power, "tests": n_tests}
    n = sample_size_for_difference(baseline, -difference, ratio=ratio, **options)
    assert minimum_difference(n, ratio * n, baseline, **options) <= difference + 1e-9
    if n > 1:
        fewer = minimum_difference(n - 1, ratio * (n - 1), baseline, **options)
        assert np.isnan(fewer) or fewer > difference or baseline - fewer < 0


@given(st.integers(20, 900), st.integers(1, 60), st.integers(1, 9), powers, tests)
@settings(max_examples=60)
def test_minimum_effect_size_has_the_power(n, df, divisor, power, n_tests):
    least = minimum_effect_size(n, df, divisor, power=power, tests=n_tests)
    if not np.isnan(least):
        assert power_of_association(n, least, df, divisor, tests=n_tests) == pytest.approx(power)


def test_sizes_that_cannot_show_anything():
    assert np.isnan(minimum_difference(2, 2, 0.5))
    assert np.isnan(minimum_effect_size(3, 10, 1))
    # Even a rate of 0 is not far enough below 0.01: the difference found is upwards.
    assert minimum_difference(30, 30, 0.01) == pytest.approx(0.2376, abs=1e-4)
    # Both rates fixed at 0 and 1: found for certain.
    assert power_of_difference(10, 10, 1.0, -1.0) == 1.0


def _left_out(values):
    return values.mean(), ((values.sum() - values) / (len(values) - 1),)


@settings(max_examples=50)
@given(arrays(np.float64, st.integers(2, 12), elements=st.floats(0.0, 1.0, width=16)))
def test_the_score_interval_of_a_mean_stays_within_its_limits(values):
    mean, left_out = _left_out(values)
    for limits in ((0.0, 1.0), (0.0, math.inf), (-math.inf, 1.0)):
        low, high = jackknife_score(mean, left_out, limits)
        assert limits[0] - 1e-9 <= low <= mean + 1e-9
        assert mean - 1e-9 <= high <= limits[1] + 1e-9


def test_the_score_interval_is_wilsons_for_as_many_rows_and_students_far_from_limits():
    values = np.array([0.1, 0.2, 0.4, 0.3, 0.15, 0.25])
    mean, left_out = _left_out(values)
    squares = stats.t.ppf(0.975, 5) ** 2 * values.var(ddof=1) / 6
    rows = stats.norm.ppf(0.975) ** 2 * mean * (1 - mean) / squares

    def ends(*limits):
        return np.array(jackknife_score(mean, left_out, limits))

    assert ends(0.0, 1.0) == pytest.approx(np.array(wilson(mean * rows, rows)))
    student = np.array(jackknife_t(mean, left_out))
    assert ends(-1e4, 1e4) == pytest.approx(student, rel=1e-3)
    # Nor has a number without limits, or beyond them, another interval.
    assert ends(-math.inf, math.inf) == pytest.approx(student)
    assert ends(0.5, 1.0) == pytest.approx(student)


@pytest.mark.parametrize(
    ("draw", "limits"),
    [
        (lambda rng, shape: 2 * rng.binomial(10, rng.beta(4, 1, shape)) / 10 - 1, (-1.0, 1.0)),
        (lambda rng, shape: rng.gamma(2, 0.15, shape), (0.0, math.inf)),
    ],
    ids=["shares near a limit", "skewed numbers above 0"],
)
def test_the_score_interval_covers_better_than_students(draw, limits):
    rng = np.random.default_rng(0)
    truth, samples = draw(rng, 1_000_000).mean(), draw(rng, (6, 4000))
    left_out = ((samples.sum(axis=0) - samples) / 5,)
    covered = {}
    for name, ends in (
        ("score", jackknife_score(samples.mean(axis=0), left_out, limits)),
        ("t", jackknife_t(samples.mean(axis=0), left_out)),
    ):
        covered[name] = np.mean((ends[0] <= truth) & (truth <= ends[1]))
    assert covered["t"] < covered["score"]
    assert covered["score"] >= 0.93
