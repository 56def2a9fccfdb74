"""Groups exchanged part by part: every order is equally likely, and nothing else decides."""

from itertools import combinations

import numpy as np
import pytest

from equipoise.metrics import normalized_similarity_mad, similarity_gap
from equipoise.metrics.rankings import exchange
from equipoise.metrics.rankings.exchange import of_shuffled
from equipoise.stats import Permutation

SCORES = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])[:, None]


def drawn(scores, sizes, draws, **kw):
    kept = of_shuffled(lambda sums: sums, scores, np.array(sizes), draws, kw.pop("seed", 0), "test")
    return np.concatenate(kept)


@pytest.mark.parametrize("part", [1, 2, 3, 7])
def test_every_subset_is_drawn_as_often(part, monkeypatch):
    monkeypatch.setattr(exchange, "_part", lambda _: part)
    sums = drawn(SCORES, [3, 4], 35_000)
    # Each sum of powers of 2 tells its subset.
    values, counts = np.unique(sums[:, 0, 0], return_counts=True)
    expected = sorted(sum(some) for some in combinations(SCORES[:, 0].tolist(), 3))
    assert values.tolist() == expected
    chi_square = ((counts - 1_000) ** 2 / 1_000).sum()
    assert chi_square < 65  # 34 degrees of freedom: beyond it once in a thousand
    np.testing.assert_array_equal(sums.sum(axis=1), np.full((35_000, 1), SCORES.sum()))


def test_fewer_draws_are_the_first_ones_and_threads_do_not_matter(
    monkeypatch,
):
    scores = np.random.default_rng(3).standard_normal((900, 2))
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    one = drawn(scores, [300, 600], 256)
    monkeypatch.setenv("EQUIPOISE_THREADS", "3")
    assert drawn(scores, [300, 600], 300)[:256].tobytes() == one.tobytes()
    assert drawn(scores, [300, 600], 256, seed=1).tobytes() != one.tobytes()


@pytest.mark.parametrize("metric", [normalized_similarity_mad, similarity_gap])
@pytest.mark.parametrize("pools", ["one", "two", "one of them small"])
def test_measures_of_many_images_have_the_chance_of_few(metric, pools, monkeypatch):
    rng = np.random.default_rng(4)
    n = 600
    groups = np.array(["a", "b", "c"])[rng.integers(0, 3, n)]
    scores = rng.standard_normal((4, n)) + 0.3 * (groups == "a")
    owner = {"one": None, "two": np.arange(n) % 2, "one of them small": np.arange(n) % 8 > 0}[pools]
    queries = None if owner is None else owner.astype(int)
    if queries is not None:  # Every image has the scores of its own query.
        scores = scores[0]
    few = metric(scores, groups, queries=queries, resampling=Permutation(4_000))
    monkeypatch.setattr(exchange, "_MANY", 100)
    many = metric(scores, groups, queries=queries, resampling=Permutation(4_000))
    assert many.value == few.value
    assert many.chance.mean != few.chance.mean
    assert abs(many.chance.mean - few.chance.mean) < 0.03 * few.chance.mean
    assert abs(many.chance.high - few.chance.high) < 0.06 * few.chance.high
    assert many.p_value == pytest.approx(few.p_value, abs=0.02)
