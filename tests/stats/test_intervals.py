import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from equipoise.core.errors import InputError
from equipoise.stats import (
    ClosedForm,
    effect_size_interval,
    fisher_z,
    mean_t,
    newcombe,
    noncentral_chi2,
    percentile,
    proportions,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)

counts = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
several = st.lists(counts, min_size=2, max_size=6)


# Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3.
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_is_the_published_one(successes: int, n: int, low: float, high: float) -> None:
    assert np.round(wilson(successes, n), 4).tolist() == [low, high]


# Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10.
@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_newcombe_is_the_published_one(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    assert np.round(newcombe(*first, *second), 4).tolist() == [low, high]


@given(counts, st.floats(0.5, 0.999))
def test_wilson_solves_the_score_equation(case: tuple[int, int], level: float) -> None:
    s, n = case
    z = stats.norm.isf((1 - level) / 2)
    low, high = wilson(s, n, level)
    assert 0 <= low <= s / n <= high <= 1
    for end in (low, high):
        if 0 < end < 1:
            assert abs(s - n * end) == pytest.approx(z * math.sqrt(n * end * (1 - end)), rel=1e-6)
    mirrored = wilson(n - s, n, level)
    np.testing.assert_allclose((1 - mirrored[1], 1 - mirrored[0]), (low, high), atol=1e-12)


@given(counts, counts)
def test_newcombe_changes_sign_with_the_order(a: tuple[int, int], b: tuple[int, int]) -> None:
    low, high = newcombe(*a, *b)
    other_low, other_high = newcombe(*b, *a)
    assert -1 <= low <= a[0] / a[1] - b[0] / b[1] <= high <= 1
    assert (low, high) == (-other_high, -other_low)


def _pairwise_gap(s: list[int], n: list[int]) -> tuple[float, float]:
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


@given(several)
def test_gap_is_made_of_pairs(cases: list[tuple[int, int]]) -> None:
    s, n = map(list, zip(*cases, strict=True))
    np.testing.assert_allclose(simultaneous_gap(s, n), _pairwise_gap(s, n), atol=1e-9)


def test_pairs_of_groups_are_compared_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    n = rng.integers(0, 40, (3, 5, 7))
    s = rng.binomial(n, 0.4)
    at_once = simultaneous_gap(s, n)
    monkeypatch.setattr(proportions, "_PAIRS", 2 * n.size)
    for some, every in zip(simultaneous_gap(s, n), at_once, strict=True):
        np.testing.assert_array_equal(some, every)


@given(several)
def test_extremes_hold_what_was_observed(cases: list[tuple[int, int]]) -> None:
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


def test_two_groups_have_the_interval_of_their_difference() -> None:
    low, high = newcombe(56, 70, 48, 80)
    assert simultaneous_gap([56, 48], [70, 80]) == pytest.approx((low, high))
    share = 70 / 150
    assert simultaneous_shortfall([56, 48], [70, 80])[1] == pytest.approx(share * high)


def test_one_group_alone() -> None:
    assert np.isnan(simultaneous_gap([3, 0], [10, 0])).all()
    assert np.isnan(simultaneous_shortfall([3, 0], [10, 0])).all()
    np.testing.assert_array_equal(simultaneous_minimum([3, 0], [10, 0]), wilson(3, 10))
    assert np.isnan(simultaneous_minimum([0, 0], [0, 0])).all()


def test_minimum_of_many_ends_where_the_exact_limits_do() -> None:
    s, n = [45, 48, 49], [50, 50, 50]
    above = 1 - 0.95 ** (1 / 3)
    exact = min(stats.beta.isf(above, a + 1, b - a) for a, b in zip(s, n, strict=True))
    assert simultaneous_minimum(s, n)[1] == pytest.approx(exact)
    assert simultaneous_minimum(s, n)[0] == wilson(45, 50)[0]


def test_nothing_counted_is_nan_and_shapes_broadcast() -> None:
    low, high = wilson([[1, 2], [3, 0]], [[10, 10], [10, 0]])
    assert low.shape == (2, 2)
    assert np.isnan([low[1, 1], high[1, 1]]).all()
    assert not np.isnan(low[0]).any()
    assert np.isnan(newcombe([1, 0], [2, 0], 1, 2)[0]).tolist() == [False, True]
    many = simultaneous_gap(np.ones((4, 3, 5)), np.full((4, 3, 5), 9))
    assert many[0].shape == (4, 3)


# statpsych 1.6, ci.cramer(.05, 19.21, 2, 3, 200); real-statistics.com, χ² = 30 of a 3 × 3 table;
# Deducer, chi.noncentral.conf(6, 1, .95), to its precision.
@pytest.mark.parametrize(
    ("chi2", "df", "low", "high", "within"),
    [
        (19.21, 2, 200 * 0.1601**2, 200 * 0.4417**2, 0.02),
        (30, 4, 9.98, 51.81, 0.005),
        (6, 1, 0.2089385, 19.4443359, 2e-3),
    ],
)
def test_noncentrality_is_the_published_one(
    chi2: float, df: int, low: float, high: float, within: float
) -> None:
    assert noncentral_chi2(chi2, df) == pytest.approx((low, high), abs=within)


@given(st.floats(0, 1e4), st.integers(1, 500), st.sampled_from([0.8, 0.95, 0.99]))
def test_noncentrality_solves_its_equations(chi2: float, df: int, level: float) -> None:
    low, high = noncentral_chi2(chi2, df, level)
    for end, tail in ((low, (1 + level) / 2), (high, (1 - level) / 2)):
        below = stats.ncx2.cdf(chi2, df, end)
        assert below == pytest.approx(tail, rel=1e-6) if end > 1e-9 else below <= tail + 1e-9
    assert 0 <= low <= high


@pytest.mark.parametrize("df", [1, 7, 500])
def test_noncentrality_of_huge_statistics_is_nearly_normal(df: int) -> None:
    low, high = noncentral_chi2(1e7, df)
    half = 1.959964 * math.sqrt(4 * 1e7)
    np.testing.assert_allclose((low, high), (1e7 - df - half, 1e7 - df + half), rtol=2e-6)


def test_noncentrality_agrees_with_another_solver() -> None:
    root = optimize.brentq(lambda nc: stats.ncx2.sf(41.3, 9, nc) - 0.05, 0, 200, xtol=1e-12)
    assert noncentral_chi2(41.3, 9, 0.9)[0] == pytest.approx(root, rel=1e-10)


def test_noncentrality_where_nothing_is_known() -> None:
    low, high = noncentral_chi2([np.nan, 3.0, 0.0], [2, 0, 2])
    assert np.isnan([low[:2], high[:2]]).all()
    assert (low[2], high[2]) == (0, 0)


def test_plain_effect_size() -> None:
    low, high = effect_size_interval(19.21, 200, 2, 1)
    assert (round(float(low), 4), round(float(high), 4)) == (0.1601, 0.4417)
    halved = effect_size_interval(19.21, 200, 2, 1, design_effect=2.0)
    assert halved == effect_size_interval(19.21 / 2, 100, 2, 1)
    assert halved[0] < low < high < halved[1]
    assert effect_size_interval(390.0, 200, 2, 1)[1] == 1.0
    assert np.isnan(effect_size_interval(0.0, 0, 0, 0)).all()


def test_percentile_is_numpys_without_nan() -> None:
    values = np.random.default_rng(3).normal(size=(201, 4))
    low, high, ignored = percentile(values, 0.9)
    np.testing.assert_allclose(low, np.quantile(values, 0.05, axis=0))
    np.testing.assert_allclose(high, np.quantile(values, 0.95, axis=0))
    assert ignored.tolist() == [0] * 4
    values[:50, 1] = np.nan
    values[:, 2] = np.nan
    low, high, ignored = percentile(values, 0.9)
    assert low[1] == pytest.approx(np.quantile(values[50:, 1], 0.05))
    assert np.isnan([low[2], high[2]]).all()
    assert ignored.tolist() == [0, 50, 201, 0]


def test_percentile_beside_infinity_takes_the_outer_value() -> None:
    low, high, _ = percentile([-np.inf, 1.0, 2.0, np.inf], 0.5)
    assert (low, high) == (-np.inf, np.inf)
    assert percentile([-np.inf, -np.inf, 1.0], 0.5)[0] == -np.inf


def test_mean_t_is_scipys() -> None:
    values = [2.0, 3.0, 5.0, 9.0]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_t([*values, np.nan], 0.9) == pytest.approx(tuple(expected))
    assert np.isnan(mean_t([1.0])).all()
    assert mean_t([4.0, 4.0]) == (4.0, 4.0)


def test_fisher_z() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    found = stats.pearsonr(x, y)
    expected = found.confidence_interval(0.95)
    assert fisher_z(found.statistic, 30) == pytest.approx(tuple(expected))
    # Bonett & Wright 2000: z ± 1.96 sqrt((1 + r²/2)/(n - 3)).
    half = 1.959964 * math.sqrt((1 + 0.25 / 2) / 17)
    ends = math.tanh(math.atanh(0.5) - half), math.tanh(math.atanh(0.5) + half)
    assert fisher_z(0.5, 20, kind="spearman") == pytest.approx(ends, rel=1e-6)
    assert np.isnan(fisher_z([1.0, 0.5, np.nan], [20, 3, 20])).all()


def test_ends_of_an_estimate_are_floats_and_can_be_pickled() -> None:
    ends = pickle.loads(pickle.dumps(ClosedForm(wilson, (12, 40))))
    assert ends(0.9) == tuple(map(float, wilson(12, 40, 0.9)))
    assert [type(end) for end in ends(0.9)] == [float, float]


LEVEL = "level=1.0: expected a confidence level between 0 and 1"


@pytest.mark.parametrize(
    "function",
    [
        lambda level: wilson(1, 2, level),
        lambda level: newcombe(1, 2, 1, 2, level),
        lambda level: simultaneous_gap([1, 1], [2, 2], level),
        lambda level: simultaneous_shortfall([1, 1], [2, 2], level),
        lambda level: simultaneous_minimum([1, 1], [2, 2], level),
        lambda level: noncentral_chi2(1, 2, level),
        lambda level: percentile([1.0], level),
        lambda level: mean_t([1.0], level),
        lambda level: fisher_z(0.1, 9, level),
    ],
)
def test_a_level_must_lie_between_0_and_1(function) -> None:  # noqa: ANN001
    with pytest.raises(InputError, match=f"^{LEVEL}$"):
        function(1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wilson(3, 2), "successes: expected counts between 0 and n"),
        (lambda: wilson(-1, 2), "successes: expected counts between 0 and n"),
        (lambda: simultaneous_gap([3, 1], [2, 2]), "successes: expected counts between 0 and n"),
        (lambda: noncentral_chi2(-1, 2), "chi2: expected finite statistics of at least 0"),
        (lambda: noncentral_chi2(np.inf, 2), "chi2: expected finite statistics of at least 0"),
        (
            lambda: effect_size_interval(1, 9, 1, 1, design_effect=0),
            "design_effect: expected positive numbers; 1 for independent rows",
        ),
        (lambda: percentile([]), r"replicates: none given; expected shape \(replicates, ...\)"),
        (lambda: fisher_z(1.5, 9), "r: expected correlations between -1 and 1"),
    ],
)
def test_bad_input(call, message: str) -> None:  # noqa: ANN001
    with pytest.raises(InputError, match=f"^{message}$"):
        call()
