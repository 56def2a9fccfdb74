"""Many independent images: sums drawn from moments give the numbers of exchanged labels."""

import numpy as np
import pytest

from equipoise.metrics import normalized_similarity_mad, similarity_gap
from equipoise.metrics.rankings import similarity
from equipoise.stats import Bootstrap, Permutation

METRICS = [normalized_similarity_mad, similarity_gap]
NAMES = np.array(["a", "b", "c"])


def world(seed, n=600, shares=(0.3, 0.3, 0.4)):
    rng = np.random.default_rng(seed)
    groups = NAMES[rng.choice(3, n, p=shares)]
    return rng.standard_normal((4, n)) + 0.3 * (groups == "a"), groups


@pytest.fixture
def count_as_large(monkeypatch):
    """Return a function that has pools count as large from so many images on."""
    return lambda images: monkeypatch.setattr(similarity, "_LARGE", images)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("pools", ["one", "two", "one of them small"])
def test_measures_of_many_images_have_the_chance_of_few(metric, pools, count_as_large):
    n = 2_400
    scores, groups = world(4, n)
    owner = {"one": None, "two": np.arange(n) % 2, "one of them small": np.arange(n) % 8 > 0}[pools]
    queries = None if owner is None else owner.astype(int)
    if queries is not None:  # Every image has the scores of its own query.
        scores = scores[0]
    few = metric(scores, groups, queries=queries, resampling=Permutation(4_000))
    count_as_large(200)
    large = metric(scores, groups, queries=queries, resampling=Permutation(4_000))
    assert large.value == few.value
    assert large.chance.mean != few.chance.mean
    assert abs(large.chance.mean - few.chance.mean) < 0.03 * few.chance.mean
    assert abs(large.chance.high - few.chance.high) < 0.06 * few.chance.high
    assert large.p_value == pytest.approx(few.p_value, abs=0.02)
    assert "drawn from their permutation moments" in large.null_drawn
    assert "moments" not in few.null_drawn


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shares", [(0.3, 0.3, 0.4), (0.02, 0.4, 0.58)])
def test_intervals_of_many_images_are_those_of_few(metric, shares, count_as_large):
    scores, groups = world(5, 3_000, shares)
    few = metric(scores, groups, resampling=Bootstrap(2_000))
    count_as_large(2_000)
    large = metric(scores, groups, resampling=Bootstrap(2_000))
    # Lower ends of a spread vary by a fifth of the width with the seed.
    tolerance = 0.2 if metric is normalized_similarity_mad else 0.05
    for first, second in zip(few.parts, large.parts, strict=True):
        assert second.value == pytest.approx(first.value, abs=1e-12)
        width = first.high - first.low
        assert second.low == pytest.approx(first.low, abs=tolerance * width)
        assert second.high == pytest.approx(first.high, abs=tolerance * width)


@pytest.mark.parametrize("metric", METRICS)
def test_order_of_rows_names_of_groups_and_threads_do_not_matter(
    metric, count_as_large, monkeypatch
):
    count_as_large(200)
    scores, groups = world(6, 9_000, (0.005, 0.395, 0.6))
    monkeypatch.setenv("EQUIPOISE_THREADS", "1")
    estimate = metric(scores, groups, resampling=Bootstrap(200))
    monkeypatch.setenv("EQUIPOISE_THREADS", "3")
    order = np.random.default_rng(7).permutation(9_000)
    again = metric(scores[:, order], groups[order], resampling=Bootstrap(200))
    numbers = [
        (
            estimate.value,
            estimate.chance.mean,
            estimate.chance.high,
            estimate.p_value,
            estimate.interval(),
        )
        for estimate in (estimate, again)
    ]
    assert numbers[0] == numbers[1]
    renamed = metric(
        scores, np.array(["z", "y", "x"])[np.searchsorted(NAMES, groups)], resampling=Bootstrap(200)
    )
    assert renamed.p_value == pytest.approx(estimate.p_value, rel=1e-9)
    assert renamed.chance.high == pytest.approx(estimate.chance.high, rel=1e-9)
    assert renamed.interval().high == pytest.approx(estimate.interval().high, rel=1e-9)


def test_a_row_that_decides_a_sum_is_drawn_row_by_row(count_as_large):
    """One score far off makes the gap bimodal: no normal sum is."""
    rng = np.random.default_rng(8)
    scores, groups = rng.standard_normal(2_000), NAMES[(np.arange(2_000) < 500).astype(int)]
    scores[0] = 1e4
    few = similarity_gap(scores, groups, resampling=Permutation(2_000))
    count_as_large(200)
    large = similarity_gap(scores, groups, resampling=Permutation(2_000))
    assert large.p_value == pytest.approx(few.p_value, abs=0.03)
    assert large.chance.high == pytest.approx(few.chance.high, rel=0.05)
    assert large.chance.mean == pytest.approx(few.chance.mean, rel=0.05)
    assert "moments" not in large.null_drawn
