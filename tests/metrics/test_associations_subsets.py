"""Sums of subsets and exchanges of two sets: brute force, distributions, units, ties."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.metrics.associations import partitions
from equipoise.metrics.associations.partitions import (
    MOST_COUNTED,
    all_sums,
    count_at_least,
    count_partitions,
    exchange,
    random_sums,
)
from equipoise.stats.resampling import Bootstrap, Exact, Permutation

wholes = st.lists(st.integers(-50, 50), min_size=1, max_size=11)


def brute(values: list[int], size: int) -> list[int]:
    return sorted(sum(some) for some in combinations(values, size))


@given(wholes, st.data())
def test_all_sums_are_those_of_all_subsets(values: list[int], data: st.DataObject) -> None:
    size = data.draw(st.integers(0, len(values)))
    found = all_sums(np.array(values)[:, None], size)
    assert sorted(found[:, 0].tolist()) == brute(values, size)


@given(wholes, st.data())
def test_counts_in_two_halves_are_those_of_all_subsets(
    values: list[int], data: st.DataObject
) -> None:
    size = data.draw(st.integers(0, len(values)))
    threshold = data.draw(st.integers(-300, 300))
    expected = sum(one >= threshold for one in brute(values, size))
    assert count_at_least(np.array(values), size, threshold) == expected


def test_large_pools_are_counted_exactly() -> None:
    # Of 44 members with powers of two, the subset of the 22 largest has the largest sum.
    values = np.left_shift(1, np.arange(44, dtype=np.int64))
    assert count_at_least(values, 22, int(values[22:].sum())) == 1
    assert count_at_least(values, 22, 0) == math.comb(44, 22)


@pytest.mark.parametrize(("n", "size"), [(6, 3), (7, 2), (9, 1), (5, 0), (33, 1)])
def test_random_subsets_are_uniform(n: int, size: int) -> None:
    # Sums of powers of two name the subset.
    values = np.left_shift(1, np.arange(n, dtype=np.int64))
    drawn = random_sums(values[:, None], size, 60_000, 3)[:, 0]
    expected = {sum(some) for some in combinations(values.tolist(), size)}
    names, counts = np.unique(drawn, return_counts=True)
    assert {*names.tolist()} == expected
    assert len(names) == 1 or chisquare(counts).pvalue > 1e-4


def test_random_sums_are_exact_and_the_same_whatever_the_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(5).integers(-(2**40), 2**40, size=(100, 1))
    told = np.concatenate([values, np.ones_like(values), -values], axis=1)
    monkeypatch.setattr(partitions, "_BLOCK", 100)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("EQUIPOISE_THREADS", threads)
        found.append(random_sums(told, 40, 550, 1))
    assert (found[0] == found[1]).all()
    assert (found[0][:, 1] == 40).all()
    assert (found[0][:, 2] == -found[0][:, 0]).all()
    assert (random_sums(told, 40, 250, 1) == found[0][:250]).all()
    assert not (random_sums(told, 40, 250, 2) == found[0][:250]).all()


def test_random_sums_have_the_moments_of_sampling_without_replacement() -> None:
    values = np.random.default_rng(2).integers(-1000, 1000, size=(1000, 1))
    drawn = random_sums(values, 137, 40_000, 7)[:, 0]
    mean, spread = 137 * values.mean(), math.sqrt(137 * (1 - 0.137) * values.var(ddof=1))
    assert drawn.mean() == pytest.approx(mean, abs=5 * spread / 200)
    assert drawn.std() == pytest.approx(spread, rel=0.02)


def columns(n: int, m: int, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 1)), rng.normal(size=(m, 1))


def brute_p(first: Any, second: Any, harm: Harm) -> float:
    pooled, n = np.concatenate([first, second])[:, 0], len(first)
    observed = pooled[:n].mean() - pooled[n:].mean()
    differences = []
    for some in combinations(range(len(pooled)), n):
        chosen = np.isin(np.arange(len(pooled)), some)
        differences.append(pooled[chosen].mean() - pooled[~chosen].mean())
    above = np.mean(np.array(differences) >= observed - 1e-12)
    below = np.mean(np.array(differences) <= observed + 1e-12)
    return {"higher": above, "lower": below, "either": min(1.0, 2 * min(above, below))}[harm]


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@pytest.mark.parametrize(("n", "m"), [(4, 4), (3, 5), (6, 2), (1, 1), (1, 5)])
def test_p_values_are_those_of_all_partitions(n: int, m: int, harm: Harm) -> None:
    first, second = columns(n, m, 10 * n + m)
    found = exchange(first, second, Permutation(10), 0, "t")
    assert found.p_value(harm).value == pytest.approx(brute_p(first, second, harm), abs=1e-15)
    assert found.p_value(harm).method == "exact"
    assert found.null.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("harm", ["higher", "lower", "either"])
@pytest.mark.parametrize(("n", "m"), [(8, 8), (5, 9)])
def test_halves_and_enumeration_agree(n: int, m: int, harm: Harm) -> None:
    first, second = columns(n, m, n)
    whole = exchange(first, second, Exact(), 0, "t").p_value(harm)
    halved = exchange(first, second, Exact(limit=10), 0, "t").p_value(harm)
    assert halved.value == whole.value
    assert halved.method == "exact, partitions counted in two halves"


def test_equal_numbers_are_ties_whatever_their_rounding() -> None:
    # 0.1 + 0.2 against 0.3: sums differ in the last bit of a float.
    first, second = np.array([[0.1], [0.2]]), np.array([[0.3], [0.0]])
    assert exchange(first, second, Exact(), 0, "t").p_value("higher").value == 4 / 6


def test_drawn_p_values_are_near_the_exact_one() -> None:
    first, second = columns(20, 20, 4)
    exact = exchange(first, second, Permutation(10), 0, "t")
    drawn = exchange(first, second, Permutation(20_000), 0, "t")
    share = np.mean(drawn.null[:, 0] >= drawn.observed[0])
    assert share == pytest.approx(exact.p_value("higher").value, abs=0.015)
    assert exact.text == "200 random partitions for the chance level"


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (4, 4), (3, 4), (4, 2)])
def test_enumerated_partitions_stand_in_lexicographic_order(n: int, m: int) -> None:
    values = np.sort(np.random.default_rng(n).normal(size=n + m))
    found = exchange(values[:n, None], values[n:, None], Exact(), 0, "x")
    expected = [
        values[list(some)].mean() - np.delete(values, some).mean()
        for some in combinations(range(n + m), n)
    ]
    np.testing.assert_allclose(found.null[:, 0], expected, atol=1e-12)
    assert found.mirrored == (n == m)
    assert not found.mirrored or (found.null == -found.null[::-1]).all()
    chance = found.chance(2.0, "twice")
    assert (chance.low, chance.high) == pytest.approx(
        tuple(np.quantile(2.0 * np.array(expected), (0.025, 0.975), method="inverted_cdf"))
    )


@given(st.integers(0, 300), st.integers(0, 300))
def test_partitions_are_counted_up_to_an_end(first: int, second: int) -> None:
    assert count_partitions(first, second) == min(math.comb(first + second, first), MOST_COUNTED)


def test_partitions_of_large_sets_are_not_written_out() -> None:
    many = np.zeros((10_000, 1))
    with pytest.raises(InputError, match="^resampling=Exact: 1000000000000000 or more partitions"):
        exchange(many, many, Exact(), 0, "targets")
    with pytest.raises(InputError, match="or more partitions of 10000 and 10000 members, more"):
        exchange(many, many, Exact(limit=10**18), 0, "targets")


def test_exact_refuses_too_many_partitions() -> None:
    first, second = columns(30, 30, 1)
    with pytest.raises(InputError, match="30 and 30 members, more than 200000; use Permutation()"):
        exchange(first, second, Exact(), 0, "t")


def test_units_of_one_set_move_whole() -> None:
    first, second = columns(6, 6, 3)
    units = (list("aabbcc"), list("ddeeff"))
    found = exchange(first, second, Permutation(400), 0, "t", units=units)
    means = np.concatenate([first, second])[:, 0].reshape(6, 2).mean(axis=1)
    possible = {
        round(means[list(some)].mean() - np.delete(means, some).mean(), 9)
        for some in combinations(range(6), 3)
    }
    assert {*np.round(found.null[:, 0], 9).tolist()} == possible
    assert found.text == "400 random exchanges of units"


def test_units_of_both_sets_exchange_within() -> None:
    first, second = columns(4, 4, 3)
    units = (list("abcd"), list("abcd"))
    found = exchange(first, second, Bootstrap(permutations=400), 0, "t", units=units)
    apart = (first - second)[:, 0]
    signs = np.array([[1 if i >> j & 1 else -1 for j in range(4)] for i in range(16)])
    assert {*np.round(found.null[:, 0], 9)} == {*np.round((signs * apart).mean(axis=1), 9)}


def test_exact_is_not_for_units() -> None:
    with pytest.raises(InputError, match="members that do not repeat within units"):
        exchange(*columns(2, 2, 0), Exact(), 0, "t", units=(["a", "b"], ["c", "d"]))
