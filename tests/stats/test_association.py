import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from equipoise.core.errors import InputError
from equipoise.stats import Association, association_interval, chi2_mean, effect_size_interval
from equipoise.stats.exact import exact_tables

tables = st.tuples(st.integers(2, 5), st.integers(2, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 60))
)


def _moments(p: np.ndarray, n: int, samples: int = 40_000) -> tuple[float, float]:
    drawn = np.random.default_rng(1).multinomial(n, p.ravel(), size=samples)
    chi2 = Association.of(drawn.reshape(-1, *p.shape)).chi2
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
def test_mean_and_variance_are_those_of_samples(p: np.ndarray) -> None:
    n = 2000
    summary = Association.of(n * p)
    bias, spread = summary.bias.sum(), summary.spread.sum()
    mean, variance = _moments(p, n)
    assert mean == pytest.approx(float(summary.chi2 + bias), rel=0.01)
    assert variance == pytest.approx(float(4 * spread * summary.chi2), rel=0.06)


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.8])
def test_the_noncentrality_is_estimated_without_bias_in_sparse_tables(strength: float) -> None:
    rows, columns = 1.0 / np.arange(1, 5), np.array([0.4, 0.3, 0.1, 0.1, 0.1])
    p = np.outer(rows / rows.sum(), (1 - strength) * columns)
    p[np.arange(4), np.arange(4)] += strength * rows / rows.sum()
    n, samples = 100, 20_000
    drawn = np.random.default_rng(5).multinomial(n, p.ravel(), size=samples)
    summary = Association.of(drawn.reshape(-1, 4, 5))
    truth = max(n * (p**2 / np.outer(p.sum(axis=1), p.sum(axis=0))).sum() - n, 0.0)
    error = summary.unbiased.std() / np.sqrt(samples)
    # A hundredth for what is left beyond terms of order 1/n.
    assert summary.unbiased.mean() == pytest.approx(truth, abs=4 * error + 0.01 * truth)
    model = float(summary.unbiased_variance(np.full(samples, truth)).mean())
    assert 0.9 < model / summary.unbiased.var() < 1.7


def test_null_moments_are_those_of_all_tables_with_the_same_margins() -> None:
    observed = np.array([[5.0, 3.0, 1.0], [2.0, 6.0, 4.0]])
    all_tables, weights = exact_tables(observed, np.zeros(2, dtype=np.int64), limit=10_000)
    chi2 = Association.of(all_tables).chi2
    mean = (weights * chi2).sum()
    assert chi2_mean(21, 2, 3) == pytest.approx(mean, rel=1e-12)
    variance = (weights * (chi2 - mean) ** 2).sum()
    assert Association.of(observed).null_variance == pytest.approx(variance, rel=1e-9)


def test_even_2x2_tables_shrink_as_phi_grows() -> None:
    # The variance of phi with even margins is (1 - phi²)/n: c(s) = 1 - s² phi².
    summary = Association.of([[40, 10], [10, 40]])
    np.testing.assert_allclose(summary.spread, [1.0, 0.0, -0.36, 0.0], atol=1e-12)


@given(tables, st.sampled_from([0.8, 0.95]))
def test_order_orientation_and_empty_lines_do_not_matter(table: np.ndarray, level: float) -> None:
    low, high = association_interval(table, level=level)
    padded = np.pad(table, ((0, 1), (1, 0)))[::-1].T
    np.testing.assert_allclose(association_interval(padded, level=level), (low, high), atol=1e-6)
    if min((table.sum(axis=0) > 0).sum(), (table.sum(axis=1) > 0).sum()) < 2:
        assert np.isnan([low, high]).all()
    else:
        assert 0 <= low <= high <= 1


@given(tables)
def test_a_wider_level_holds_the_narrower(table: np.ndarray) -> None:
    low, high = association_interval(table, level=0.8)
    wide_low, wide_high = association_interval(table, level=0.99)
    if not np.isnan(low):
        assert wide_low <= low + 1e-9
        assert wide_high >= high - 1e-9


def test_a_weak_association_in_even_margins_has_the_plain_interval() -> None:
    table = np.array([[520, 480], [470, 530]])
    chi2 = stats.chi2_contingency(table, correction=False).statistic
    plain = effect_size_interval(chi2, table.sum(), 1, 1)
    np.testing.assert_allclose(association_interval(table), plain, atol=2e-3)


@pytest.mark.parametrize(
    ("table", "v"),
    [
        ([[2, 6], [0, 4]], 0.31622776601683794),
        ([[129, 28], [15, 28]], 0.43261698782450453),
        ([[2, 26, 6, 2, 2], [0, 1, 10, 7, 24]], 0.7702269182067109),
        ([[0, 20, 5], [11, 68, 22], [90, 34, 50]], 0.38435285825085264),
    ],
)
def test_known_tables_lie_in_their_intervals(table: list[list[int]], v: float) -> None:
    summary = Association.of(table)
    assert np.sqrt(summary.chi2 / summary.n / summary.smaller) == pytest.approx(v, rel=1e-12)
    low, high = summary.interval()
    assert low < v < high


def test_the_other_statistics_rescale() -> None:
    table = [[30, 5, 10], [8, 30, 2], [4, 6, 25]]
    v = np.array(association_interval(table))
    np.testing.assert_allclose(association_interval(table, "phi"), v * np.sqrt(2))
    np.testing.assert_allclose(association_interval(table, "tschuprows_t"), v, rtol=1e-12)
    wide = [[30, 5, 10, 8], [8, 30, 2, 30]]
    v = np.array(association_interval(wide))
    np.testing.assert_allclose(association_interval(wide, "tschuprows_t"), v / 3**0.25)


def test_limits() -> None:
    low, high = association_interval([[50, 50], [50, 50]])
    # An even table is what chance gives at best: it does not prove that V is 0.
    assert low == 0
    assert 0.15 < high < 0.3
    low, high = association_interval([[50, 0], [0, 50]])
    assert 0.85 < low < 0.95
    assert high == pytest.approx(1.0)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 5), (8, 6)])
def test_no_table_is_even_enough_to_prove_that_there_is_nothing(rows: int, columns: int) -> None:
    table = np.full((rows, columns), 20.0)
    ends = []
    for apart in (0.0, 1e-6, 1e-3, 0.1, 0.5, 1.0):
        moved = table.copy()
        moved[:2, :2] += [[apart, -apart], [-apart, apart]]
        ends.append(association_interval(moved))
    low, high = np.array(ends).T
    # What a table as uneven as chance makes it on average gives.
    df = (rows - 1) * (columns - 1)
    chance = effect_size_interval(df, table.sum(), df, min(rows, columns) - 1)
    assert (low == 0).all()
    np.testing.assert_allclose(high, chance[1], rtol=0.05)


def test_clusters_count_as_fewer_rows() -> None:
    table = np.array([[40, 10], [15, 35]])
    np.testing.assert_array_equal(
        association_interval(table, design_effect=2.0), association_interval(table / 2)
    )


def test_stacked_summaries_give_the_same_intervals() -> None:
    many = [np.array([[9, 4], [3, 8]]), np.array([[5, 0, 7], [2, 9, 1]])]
    stacked = Association.stack([Association.of(table) for table in many])
    low, high = stacked.interval(level=0.9)
    alone = np.array([association_interval(table, level=0.9) for table in many])
    np.testing.assert_array_equal(np.stack([low, high], axis=1), alone)


def test_summaries_are_joined_and_taken_in_order() -> None:
    first, second = ([[9, 4], [3, 8]], [[20, 1], [3, 30]]), ([[5, 0, 7], [2, 9, 1]],)
    joined = Association.concatenate([Association.of(first), Association.of(second)])
    low, high = joined.take(np.array([2, 0])).interval()
    for place, table in enumerate([second[0], first[0]]):
        assert (low[place], high[place]) == association_interval(table)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: association_interval([1, 2]),
            r"tables: expected finite counts of at least 0, shape \(..., r, c\)",
        ),
        (
            lambda: association_interval([[1, -2], [1, 1]]),
            r"tables: expected finite counts of at least 0, shape \(..., r, c\)",
        ),
        (
            lambda: association_interval([[1, 2], [1, 1]], design_effect=-1.0),
            "design_effect=-1.0: expected a positive number",
        ),
        (
            lambda: association_interval([[1, 2], [1, 1]], level=0.0),
            "level=0.0: expected a confidence level between 0 and 1",
        ),
    ],
)
def test_bad_input(call, message: str) -> None:  # noqa: ANN001
    with pytest.raises(InputError, match=f"^{message}$"):
        call()
