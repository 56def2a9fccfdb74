"""The null of many images, drawn from moments, has the tails of permutation."""

from functools import cache

import numpy as np
import pytest

from equipoise.metrics import normalized_similarity_mad, similarity_gap
from equipoise.metrics.building import gaps
from equipoise.metrics.rankings import similarity
from equipoise.metrics.rankings.pools import pools_of
from equipoise.stats import Permutation
from equipoise.stats.moments import Moments

pytestmark = pytest.mark.slow

IMAGES = 1_500
# All worlds take minutes: samples of the slow tests have some of them.
WORLDS = (range(8), pytest.param(range(200), marks=pytest.mark.slow(whole=True)))
# Draws of each world by permutation, and from moments, which cost little.
PERMUTED, DRAWN = 5_000, 200_000
TAILS = (0.05, 0.01, 0.001, 0.0001)
STATISTICS = {
    "gap": gaps,
    "effect": lambda effects: effects[..., 0],
    "spread": lambda effects: np.abs(effects).sum(axis=-1),
}


@cache
def world(seed):
    """Return skewed scores of groups of several sizes, near the limit of what counts as normal."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet([4.0] * rng.integers(2, 5))
    shares = np.maximum(shares, 0.15)
    groups = rng.choice(len(shares), IMAGES, p=shares / shares.sum()).astype(str)
    shape = rng.choice([60.0, 200.0, 1000.0])
    scores = rng.gamma(shape, size=IMAGES) / np.sqrt(shape)
    return scores + 0.15 * rng.random() * (groups == "0"), groups


def _large(monkeypatch, images):
    monkeypatch.setattr(similarity, "_LARGE", images)


def drawn(seed, draws):
    """Return statistics of world `seed` with groups exchanged, and what was observed."""
    scores, groups = world(seed)
    effects = similarity.Effects.of(pools_of(scores, groups), {}, 1.0)

    def all_statistics(sample):
        return np.stack([statistic(sample) for statistic in STATISTICS.values()], axis=-1)

    null = effects.exchanged(draws, seed, "test", all_statistics)
    return null[:, 0], all_statistics(effects.effects[None])[0, 0]


@pytest.mark.parametrize("worlds", WORLDS)
def test_worlds_are_drawn_from_moments(worlds):
    """Most groups are large enough, and some of the worlds are as skewed as is allowed."""
    alone = []
    for seed in worlds:
        scores, groups = world(seed)
        moments = Moments.of(lambda part, scores=scores: scores[part, None], IMAGES, 1)
        sizes = np.sort(np.unique(groups, return_counts=True)[1])
        alone.append(moments.n_small(sizes) == 0)
    assert np.mean(alone) > 0.5


@pytest.mark.parametrize("worlds", WORLDS)
def test_tails_equal_permutation(worlds, monkeypatch):
    """What moments exceed once in 10,000 draws, exchanged labels do as often, in all worlds."""
    beyond = np.zeros((len(TAILS), len(STATISTICS)))
    z_scores = []
    for seed in worlds:
        _large(monkeypatch, IMAGES)
        moments, observed = drawn(seed, DRAWN)
        _large(monkeypatch, IMAGES + 1)
        permuted, _ = drawn(seed, PERMUTED)
        limits = np.quantile(moments, [1.0 - tail for tail in TAILS], axis=0)
        beyond += (permuted[None] > limits[:, None]).sum(axis=1)
        p, exact = ((null >= observed).mean(axis=0) for null in (moments, permuted))
        error = np.sqrt(np.maximum(p * (1 - p), 5 / PERMUTED) * (1 / PERMUTED + 1 / DRAWN))
        z_scores.append((exact - p) / error)
    tails, draws = np.array(TAILS)[:, None], len(worlds) * PERMUTED
    # The limits themselves are drawn: their error counts too.
    error = np.sqrt(tails * (1 / draws + 1 / (len(worlds) * DRAWN)))
    assert (np.abs(beyond / draws - tails) < 4 * error).all(), beyond / draws / tails
    # Differences of p are the noise of draws alone: of mean square 1.
    assert np.abs(z_scores).max() < 5
    assert (np.mean(np.square(z_scores), axis=0) < 1 + 4 * np.sqrt(2 / len(worlds))).all()


@pytest.mark.parametrize("worlds", WORLDS)
@pytest.mark.parametrize("metric", [normalized_similarity_mad, similarity_gap])
def test_p_values_of_metrics_equal_permutation(metric, worlds, monkeypatch):
    z_scores = []
    for seed in worlds:
        ps = []
        for images in (IMAGES, IMAGES + 1):
            _large(monkeypatch, images)
            estimate = metric(
                *world(seed), resampling=Permutation(2_000, resolution=0.01), rng=seed
            )
            ps.append(estimate.p_value)
        p = np.clip(np.mean(ps), 1e-3, 1 - 1e-3)
        z_scores.append((ps[0] - ps[1]) / np.sqrt(2 * p * (1 - p) / 2_000))
    assert np.abs(z_scores).max() < 5
    assert np.mean(np.square(z_scores)) < 1 + 4 * np.sqrt(2 / len(worlds))
