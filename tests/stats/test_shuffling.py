"""Compiled orders and subsets: uniform, without memory, and of a known generator."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from equipoise.stats.shuffling import draw_subsets, keys, shuffle


def orders(seed: int, lines: int, n: int) -> np.ndarray:
    labels = np.tile(np.arange(n, dtype=np.uint32), (lines, 1))
    shuffle(keys(seed, "test", many=lines), labels)
    return labels


def members(words: np.ndarray, n: int) -> np.ndarray:
    """Return which members are in each subset, shape (draws, n)."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, n:].any()
    return bits[:, :n]


def subsets(key: int, n: int, size: int, draws: int) -> np.ndarray:
    words = np.empty((draws, -(-n // 64)), dtype=np.uint64)
    draw_subsets(np.uint64(key), n, size, words)
    return members(words, n)


def test_all_orders_are_alike() -> None:
    found, counts = np.unique(orders(1, 48_000, 4), axis=0, return_counts=True)
    assert sorted(map(tuple, found.tolist())) == sorted(permutations(range(4)))
    assert chisquare(counts).pvalue > 1e-3


def test_every_label_comes_to_every_place() -> None:
    labels = orders(2, 4_000, 100)
    assert (np.sort(labels, axis=1) == np.arange(100)).all()
    places = np.array([np.bincount(column, minlength=100) for column in labels.T])
    assert chisquare(places.ravel()).pvalue > 1e-3


def test_keys_in_a_row_give_unrelated_orders() -> None:
    labels = np.tile(np.arange(100, dtype=np.uint32), (4_000, 1))
    shuffle(np.arange(4_000, dtype=np.uint64), labels)
    assert abs(np.corrcoef(labels[:-1, 0], labels[1:, 0])[0, 1]) < 4 / 4_000**0.5


@pytest.mark.parametrize(("n", "size"), [(6, 3), (7, 2), (9, 1), (9, 8)])
def test_all_subsets_are_alike(n: int, size: int) -> None:
    found, counts = np.unique(subsets(3, n, size, 60_000), axis=0, return_counts=True)
    expected = {tuple(int(i in some) for i in range(n)) for some in combinations(range(n), size)}
    assert {*map(tuple, found.tolist())} == expected
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("n", [64, 65, 130, 1000])
@pytest.mark.parametrize("share", [0.0005, 0.3, 0.5, 1.0])
def test_members_are_taken_alike_alone_and_in_pairs(n: int, share: float) -> None:
    size = round(n * share)
    found = subsets(n, n, size, 4_000).astype(np.float64)
    assert (found.sum(axis=1) == size).all()
    if 0 < size < n:
        # A subset is a sample without replacement: its counts vary less by 1 - size / n.
        spread = (found.sum(axis=0) - 4_000 * size / n) / (4_000 * size / n * (1 - size / n)) ** 0.5
        assert (spread**2).sum() * (n - 1) / n == pytest.approx(n - 1, rel=6 * (2 / n) ** 0.5)
        neighbours = (found[:, :-1] * found[:, 1:]).mean()
        assert neighbours == pytest.approx(size * (size - 1) / n / (n - 1), abs=0.01)


def test_sums_of_subsets_have_the_law_of_numpys_own() -> None:
    values = np.random.default_rng(0).exponential(size=200)
    ours = np.sort(subsets(5, 200, 60, 20_000) @ values)
    rng = np.random.default_rng(1)
    theirs = [rng.choice(values, 60, replace=False).sum() for _ in range(5_000)]
    assert kstest(ours, theirs).pvalue > 1e-3


def test_words_are_those_of_splitmix64() -> None:
    # Half of 64 members is one word of the generator, mended by one bit at a time; the published
    # first outputs from 1234567 are 6457827717110365317, 3203168211198807973, ...
    words = np.empty((1, 1), dtype=np.uint64)
    first = 6457827717110365317
    draw_subsets(np.uint64(1234567), 64, 32, words)
    apart = (int(words[0, 0]) ^ first).bit_count()
    assert apart == abs(first.bit_count() - 32)


def test_more_keys_begin_with_the_same() -> None:
    assert (keys(1, "a", many=20)[:5] == keys(1, "a", many=5)).all()
    assert keys(1, "b", many=1)[0] != keys(1, "a", many=1)[0]
