"""Exchanges of two sets: brute force, distributions, units, ties."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, ks_2samp

from equipoise.metrics.vectors import resampling
from equipoise.metrics.vectors.resampling import (
    count_at_least,
    exchange,
    random_sums,
)
from equipoise.stats import Bootstrap, Permutation


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=11), st.data())
def test_counts_in_two_halves_are_those_of_all_subsets(values, data):
    size = data.draw(st.integers(0, len(values)))
    threshold = data.draw(st.integers(-300, 300))
    expected = sum(sum(subset) >= threshold for subset in combinations(values, size))
    assert count_at_least(np.array(values), size, threshold) == expected


def test_large_pools_are_counted_exactly():
    # Of 44 members with powers of two, the subset of the 22 largest has the largest sum.
    values = np.left_shift(1, np.arange(44, dtype=np.int64))
    assert count_at_least(values, 22, int(values[22:].sum())) == 1
    assert count_at_least(values, 22, 0) == math.comb(44, 22)


@pytest.mark.parametrize(("n", "size"), [(6, 3), (9, 1), (5, 0), (33, 1)])
def test_random_subsets_are_uniform(n, size):
    # Sums of powers of two name the subset.
    values = np.left_shift(1, np.arange(n, dtype=np.int64))
    sums = random_sums(values[:, None], size, 60_000, 3)[:, 0]
    names, counts = np.unique(sums, return_counts=True)
    assert {*names.tolist()} == {sum(subset) for subset in combinations(values.tolist(), size)}
    assert len(names) == 1 or chisquare(counts).pvalue > 1e-4


def test_random_sums_are_exact_and_the_same_whatever_the_threads(
    monkeypatch,
):
    values = np.random.default_rng(5).integers(-(2**40), 2**40, size=(100, 1))
    columns = np.concatenate([values, np.ones_like(values), -values], axis=1)
    monkeypatch.setattr(resampling, "_BLOCK", 100)
    sums = []
    for threads in ("1", "3"):
        monkeypatch.setenv("EQUIPOISE_THREADS", threads)
        sums.append(random_sums(columns, 40, 550, 1))
    assert (sums[0] == sums[1]).all()
    assert (sums[0][:, 1] == 40).all()
    assert (sums[0][:, 2] == -sums[0][:, 0]).all()
    assert (random_sums(columns, 40, 250, 1) == sums[0][:250]).all()
    assert not (random_sums(columns, 40, 250, 2) == sums[0][:250]).all()


def columns(n, m, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)), rng.normal(size=(m, 1))


def differences(pooled, n):
    return np.array(
        [
            pooled[list(subset)].mean() - np.delete(pooled, subset).mean()
            for subset in combinations(range(len(pooled)), n)
        ]
    )


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 5), (6, 2), (1, 1), (1, 5)])
def test_p_values_are_those_of_all_partitions(n, m, harm, monkeypatch):
    first, second = columns(n, m, 10 * n + m)
    all_differences = differences(np.concatenate([first, second])[:, 0], n)
    observed = first.mean() - second.mean()
    above, below = (
        np.mean(all_differences >= observed - 1e-12),
        np.mean(all_differences <= observed + 1e-12),
    )
    expected = {"higher": above, "lower": below, "either": min(1.0, 2 * min(above, below))}
    for limit, method in ((200_000, "exact"), (1, "exact, partitions counted in two halves")):
        monkeypatch.setattr(resampling, "MOST_PARTITIONS", limit)
        p = exchange(first, second, Permutation(), 0, "t").p_value(harm)
        assert p.value == pytest.approx(expected[harm], abs=1e-15)
        assert p.method == method


def test_equal_numbers_are_ties_whatever_their_rounding():
    # 0.1 + 0.2 against 0.3: sums differ in the last bit of a float.
    first, second = np.array([[0.1], [0.2]]), np.array([[0.3], [0.0]])
    assert exchange(first, second, Permutation(), 0, "t").p_value("higher").value == 4 / 6


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 4), (3, 4), (4, 2)])
def test_enumerated_partitions_stand_in_lexicographic_order(n, m):
    values = np.sort(np.random.default_rng(n).normal(size=n + m))
    exchanged = exchange(values[:n, None], values[n:, None], Permutation(), 0, "x")
    expected = differences(values, n)
    np.testing.assert_allclose(exchanged.null[:, 0], expected, atol=1e-12)
    chance, twice = exchanged.chance("twice", "either", 2.0), 2.0 * np.sort(expected)
    # As many partitions are beyond an end as a p-value of 0.05 allows.
    beyond = math.floor(0.025 * len(twice) + 1e-9)
    assert (chance.low, chance.high) == pytest.approx((twice[beyond], twice[-1 - beyond]))


@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_numbers_of_any_size(size):
    first, second = columns(3, 4, 0)
    exchanged = exchange(first * size, second * size, Permutation(), 0, "t")
    plain = exchange(first, second, Permutation(), 0, "t")
    np.testing.assert_allclose(exchanged.null / size, plain.null, atol=1e-12)


def test_units_of_one_set_move_whole_and_those_of_both_exchange_within():
    first, second = columns(6, 6, 3)
    units = (list("aabbcc"), list("ddeeff"))
    exchanged = exchange(first, second, Permutation(400), 0, "t", units=units)
    means = np.concatenate([first, second])[:, 0].reshape(6, 2).mean(axis=1)
    assert {*exchanged.null[:, 0].round(9)} == {*differences(means, 3).round(9)}
    pairs = (list("abcdef"), list("abcdef"))
    exchanged = exchange(first, second, Bootstrap(permutations=1000), 0, "t", units=pairs)
    signs = np.array([[1 if i >> j & 1 else -1 for j in range(6)] for i in range(64)])
    expected = (signs * (first - second)[:, 0]).mean(axis=1)
    assert {*exchanged.null[:, 0].round(9)} == {*expected.round(9)}


@pytest.mark.parametrize(("n", "m"), [(4_500, 9_000), (7_000, 5_000)])
def test_partitions_of_large_sets_are_drawn_from_moments(n, m, monkeypatch):
    rng = np.random.default_rng(n)
    first, second = rng.normal(size=(n, 2)), 3.0 * rng.normal(size=(m, 2)) + 0.02
    options = {"resampling": Permutation(2_000, resolution=1.0), "seed": 4, "name": "test"}
    reference = exchange(first, second, **options)
    assert reference.text == "2000 partitions drawn from the moments of the members"
    assert reference.observed == pytest.approx(first.mean(axis=0) - second.mean(axis=0), abs=1e-12)
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    again = exchange(first[::-1], second[::-1], **options)
    assert again.draws.tobytes() == reference.draws.tobytes()
    # Sums of squares are drawn jointly with those of numbers.
    ratios = []
    for least in (4096, 1 << 40):
        monkeypatch.setattr(resampling, "_LARGE", least)
        tested = exchange(first, second, **options, studentized=True)
        ratios.append(tested.draws / tested.errors)
    assert "random partitions" in tested.text
    for ratio, exchanged in zip(*(array.T for array in ratios), strict=True):
        assert ks_2samp(ratio, exchanged).pvalue > 0.01


def test_draws_from_moments_resolve_fine_p_values():
    first, second = columns(5_000, 5_000, 1)
    exchanged = exchange(first, second, Permutation(100, resolution=1e-4), 0, "test")
    assert len(exchanged.draws) == 10_000
    assert exchanged.p_value("either").method == "permutation"
    assert (
        len(exchange(first, second, Permutation(100, resolution=1e-9), 0, "test").draws) < 200_000
    )


def test_members_that_decide_a_sum_are_exchanged_themselves():
    first, second = columns(5_000, 9_000, 2)
    first[0] = 1e4
    assert "random partitions" in exchange(first, second, Permutation(10), 0, "test").text
