"""Sums drawn from moments have the law of sums drawn row by row."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm

from equipoise.stats.moments import Moments, lower_root

N, SIZES = 40_000, np.array([6_000, 10_000, 24_000])


def values(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.standard_normal(n), rng.gamma(9.0, size=n), rng.random(n) < 0.3])


def moments(numbers):
    return Moments.of(lambda part: numbers[part], *numbers.shape)


def exchanged(numbers, sizes, draws, seed=0):
    return np.concatenate(moments(numbers).exchanged_sums(lambda s: s, sizes, draws, seed, "test"))


def test_moments_are_those_of_numpy():
    numbers = values()
    row_moments = moments(numbers)
    deviations = numbers - numbers.mean(axis=0)
    scaled = deviations / numbers.std(axis=0)
    np.testing.assert_allclose(row_moments.mean, numbers.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(row_moments.scatter, deviations.T @ deviations, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(row_moments.skewness, (scaled**3).mean(axis=0), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(
        row_moments.kurtosis, (scaled**4).mean(axis=0) - 3, rtol=1e-8, atol=1e-8
    )


def test_exchanged_sums_have_the_covariance_of_a_permutation_and_keep_the_total():
    numbers, draws = values(), 40_000
    sums = exchanged(numbers, SIZES, draws)
    np.testing.assert_allclose(sums.sum(axis=1), np.tile(numbers.sum(axis=0), (draws, 1)))
    covariance = np.cov(numbers.T)
    shares = np.diag(SIZES) - np.outer(SIZES, SIZES) / N
    expected = np.einsum("gh,jk->gjhk", shares, covariance).reshape(9, 9)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    observed = np.cov(sums.reshape(draws, 9).T)
    assert np.abs((observed - expected) / scale).max() < 5 / np.sqrt(draws)


@pytest.mark.parametrize("column", range(3))
def test_tails_of_permuted_sums_are_those_of_the_moments(column):
    """A sum of 6,000 permuted rows passes normal quantiles as often as they say."""
    numbers, size, draws = values()[:, [column]], int(SIZES[0]), 20_000
    row_moments = moments(numbers)
    assert row_moments.normal(size, N)
    rng, sums = np.random.default_rng(1), np.empty(draws)
    for draw in range(draws):
        sums[draw] = numbers[rng.choice(N, size, replace=False, shuffle=False), 0].sum()
    variance = row_moments.scatter[0, 0] / (N - 1) * size * (1 - size / N)
    scores = (sums - size * row_moments.mean[0]) / np.sqrt(variance)
    for tail in (0.05, 0.01, 0.001, 0.0001):
        for extreme in (scores > norm.isf(tail), scores < -norm.isf(tail)):
            error = np.sqrt(tail / draws)
            assert abs(extreme.mean() - tail) < 4 * error + 1 / draws


def test_rows_that_decide_a_sum_are_not_normal():
    numbers = values()[:, :1]
    assert moments(numbers).normal(6_000, N)
    assert not moments(numbers).normal(50, N)
    numbers[0] = 1_000.0
    assert not moments(numbers).normal(6_000, N)


def test_poisson_sums_have_the_covariance_of_weighted_rows():
    numbers, draws = values(n=5_000), 40_000
    rows, sums = moments(numbers).poisson_sums(draws, 0, "test")
    joint = np.column_stack([rows, sums])
    with_ones = np.column_stack([np.ones(5_000), numbers])
    expected = with_ones.T @ with_ones
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    assert np.abs((np.cov(joint.T) - expected) / scale).max() < 5 / np.sqrt(draws)
    errors = np.sqrt(np.diag(expected) / draws)
    assert (np.abs(joint.mean(axis=0) - with_ones.sum(axis=0)) < 5 * errors).all()


def test_threads_and_names_of_groups_do_not_matter(monkeypatch):
    numbers = values()
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    group_sums = exchanged(numbers, SIZES, 256)
    monkeypatch.setenv("EQUIPOISE_THREADS", "3")
    assert exchanged(numbers, SIZES, 300)[:256].tobytes() == group_sums.tobytes()
    assert exchanged(numbers, SIZES[::-1], 256)[:, ::-1].tobytes() == group_sums.tobytes()
    assert exchanged(numbers, SIZES, 256, seed=1).tobytes() != group_sums.tobytes()


@pytest.mark.parametrize("sizes", [[3, 4], [4, 3], [2, 0, 5]])
def test_every_subset_of_few_rows_is_drawn_as_often(sizes):
    numbers = 2.0 ** np.arange(7)[:, None]
    row_moments = moments(numbers)
    assert row_moments.n_small(np.sort(sizes)) == len(sizes) - 1
    group_sizes = np.array(sizes)
    sums_by_group = row_moments.exchanged_sums(
        lambda s: s, group_sizes, 35_000, 0, "test", numbers.__getitem__
    )
    sums = np.concatenate(sums_by_group)
    # Each sum of powers of 2 tells its subset.
    values, counts = np.unique(np.round(sums[:, 0, 0], 6), return_counts=True)
    expected = sorted(sum(subset) for subset in combinations(numbers[:, 0].tolist(), sizes[0]))
    assert values.tolist() == expected
    mean = 35_000 / len(values)
    freedom = len(values) - 1
    assert ((counts - mean) ** 2 / mean).sum() < freedom + 4 * np.sqrt(2 * freedom)
    np.testing.assert_allclose(sums.sum(axis=1), np.full((35_000, 1), numbers.sum()))
    assert (sums[:, group_sizes == 0] == 0).all()


def test_groups_that_are_too_small_draw_rows_and_leave_the_others_theirs():
    numbers, sizes, draws = values(), np.array([30_000, 7, 9_993]), 20_000
    numbers[0, 0] = 40.0
    row_moments = moments(numbers)
    assert row_moments.n_small(np.sort(sizes), 1) == 1
    sums_by_group = row_moments.exchanged_sums(
        lambda s: s, sizes, draws, 0, "test", numbers.__getitem__, 1
    )
    sums = np.concatenate(sums_by_group)
    np.testing.assert_allclose(sums.sum(axis=1), np.tile(numbers.sum(axis=0), (draws, 1)))
    rng = np.random.default_rng(2)
    rows = [rng.choice(N, 7, replace=False) for _ in range(draws)]
    small = np.stack([numbers[subset].sum(axis=0) for subset in rows])
    for column in range(3):
        assert ks_2samp(sums[:, 1, column], small[:, column]).pvalue > 1e-3
    shares = np.diag(sizes) - np.outer(sizes, sizes) / N
    expected = np.einsum("gh,jk->gjhk", shares, np.cov(numbers.T)).reshape(9, 9)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    observed = np.cov(sums.reshape(draws, 9).T)
    assert np.abs((observed - expected) / scale).max() < 6 / np.sqrt(draws)


def test_numbers_in_standard_errors_alone_need_not_be_normal():
    numbers = values()[:, :1]
    with_powers = moments(np.hstack([numbers, numbers**40]))
    assert with_powers.normal(6_000, N, first=1)
    assert not with_powers.normal(6_000, N)


def test_roots_of_many_numbers_are_those_of_their_covariance():
    rng = np.random.default_rng(3)
    mixed = rng.standard_normal((150, 100)) @ rng.standard_normal((100, 150))
    covariance = mixed.T @ mixed
    root = lower_root(covariance)
    np.testing.assert_allclose(root @ root.T, covariance, atol=1e-6 * covariance.max())
    assert np.abs(np.triu(root, 1)).max() < 1e-9 * root.max()
    assert (root[:, 100:] == 0).all()


def test_single_numbers_around_a_known_mean_have_five_digits():
    numbers = values()
    parts = [slice(0, 15_000), slice(15_000, N)]
    single = Moments.around(
        numbers.mean(axis=0), N, lambda part: [numbers[part].astype(np.float32)], parts
    )
    double = moments(numbers)
    scale = np.sqrt(np.outer(np.diag(double.scatter), np.diag(double.scatter)))
    assert (np.abs(single.scatter - double.scatter) < 1e-5 * scale).all()
    np.testing.assert_allclose(single.skewness, double.skewness, atol=1e-3)
    np.testing.assert_allclose(single.kurtosis, double.kurtosis, atol=1e-3)
