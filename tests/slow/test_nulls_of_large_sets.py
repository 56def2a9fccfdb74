"""Sums of large sets that are drawn from moments have the tails of sums of exchanged members."""

import numpy as np
import pytest

from equipoise.metrics.vectors import resampling as partitions
from equipoise.metrics.vectors.diversity import Sets, exchanged
from equipoise.metrics.vectors.resampling import exchange
from equipoise.stats import Permutation
from equipoise.stats.chance import p_value

pytestmark = pytest.mark.slow

ROWS, MOMENTS, D = 2_500, 99_999, 6
# All worlds take minutes: samples of the slow tests have some of them.
WORLDS = (range(20), pytest.param(range(200), marks=pytest.mark.slow(whole=True)))
TAILS = (0.05, 0.01, 0.001, 0.0001)


def images(seed, times=1):
    """Two sets of skewed and clustered vectors; in most worlds one lies a little apart."""
    rng = np.random.default_rng(seed)
    sizes = [4_100 + 250 * (seed % 3), 4_200 + 1_000 * (seed % 4)]
    sets = []
    for index, size in enumerate(times * size for size in sizes):
        middles = 1.0 + (rng.random((size, 1)) < 0.3) * np.eye(D)[0]
        rows = middles + rng.gamma(4.0, 0.25, (size, D)) - 1.0
        sets.append(rows + index * (seed % 5) * 0.002 * np.eye(D)[1])
    return sets


def of_distances(seed):
    """Distances between sets: observed, with rows exchanged, and drawn from moments."""
    sets = images(seed)
    prepared = Sets.of(sets, Permutation())
    rows = exchanged(prepared.arrays, [len(array) for array in sets], ROWS, seed)
    from_moments, text = prepared.exchanges(MOMENTS, seed)
    assert "moments" in text
    return 1.0 - prepared.cosines[0, 1], rows, from_moments


def of_ratios(seed):
    """Differences of two sets of numbers in standard errors."""
    # Squares are more skewed than numbers: it takes more of them for a normal sum.
    first, second = (vectors.mean(axis=1, keepdims=True) for vectors in images(seed, times=5))
    scores = []
    for least, draws in ((1 << 40, ROWS), (4096, MOMENTS)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partitions, "_LARGE", least)
            resampling = Permutation(draws, resolution=1.0 / draws)
            tested = exchange(first, second, resampling, seed, "test", studentized=True)
        assert ("moments" in tested.text) == (draws == MOMENTS)
        scores.append(tested.null[:, 0] / tested.null_errors[:, 0])
    return float(tested.observed[0] / tested.error[0]), *scores


@pytest.mark.parametrize("worlds", WORLDS)
@pytest.mark.parametrize("numbers", [of_distances, of_ratios])
def test_p_values_and_tails_equal_the_exchange_of_members(numbers, worlds):
    z_scores, beyond, n_draws = [], np.zeros(len(TAILS)), 0
    for seed in worlds:
        observed, rows, moment_draws = numbers(seed)
        p, q = (p_value(null_values, observed).value for null_values in (rows, moment_draws))
        z_scores.append(
            (p - q) / np.sqrt(q * (1.0 - q) * (1.0 / len(rows) + 1.0 / len(moment_draws)) + 1e-7)
        )
        moment_draws = np.sort(moment_draws)
        for place, tail in enumerate(TAILS):
            # The share of further draws beyond this one is the tail on average.
            beyond[place] += (rows > moment_draws[-round(tail * (len(moment_draws) + 1))]).sum()
        n_draws += len(rows)
    # Scores of standard normal numbers, were there no error but that of drawing.
    assert abs(np.mean(z_scores)) < 4.0 / np.sqrt(len(z_scores))
    assert np.abs(z_scores).max() < 4.5
    assert np.std(z_scores) < 1.0 + 3.0 / np.sqrt(2 * len(z_scores))
    expected = np.array(TAILS) * n_draws
    assert (np.abs(beyond - expected) < 4.0 * np.sqrt(expected) + 0.1 * expected).all()
