"""Compiled orders and subsets: uniform, without memory, and of a known generator."""

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from equipoise.stats.shuffling import add_exchanged, draw_subsets, keys, shuffle


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


def exchanged(sizes: list[int], wanted: list[int], values: np.ndarray, lines: int) -> np.ndarray:
    starts = np.concatenate([[0], np.cumsum(sizes)])
    found = np.empty((lines, values.shape[1]), dtype=np.int64)
    order = np.random.default_rng(5).permutation(len(values)).astype(np.int64)
    place = np.argsort(np.repeat(np.arange(len(sizes)), sizes)[order], kind="stable")
    add_exchanged(keys(3, "e", many=lines), order[place], starts, np.array(wanted), values, found)
    return found


def test_exchanged_members_are_any_of_their_pool_alike() -> None:
    """Pools that give none, some, most and all of their members."""
    sizes, wanted = [3, 4, 4, 2], [0, 1, 3, 2]
    bits = (1 << np.arange(13))[:, None]
    found = exchanged(sizes, wanted, np.column_stack([np.ones_like(bits), bits]), 12_000)
    assert {*found[:, 0]} == {6}
    subsets = [
        sum(1 << member for member in (3 + one, *(7 + m for m in range(4) if m != left), 11, 12))
        for one in range(4)
        for left in range(4)
    ]
    counts = [int((found[:, 1] == subset).sum()) for subset in subsets]
    assert sum(counts) == 12_000
    assert chisquare(counts).pvalue > 0.01


def test_exchanged_sums_do_not_depend_on_other_lines() -> None:
    values = np.arange(30, dtype=np.int64).reshape(10, 3)
    few, many = (exchanged([4, 6], [2, 5], values, lines) for lines in (1, 40))
    np.testing.assert_array_equal(few[0], many[0])
