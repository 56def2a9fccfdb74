"""Rejections by group on simulated sets: tests keep their level, intervals cover."""

import numpy as np
import pytest

from equipoise.metrics import rejection_gap
from equipoise.stats import Bootstrap, Permutation

pytestmark = pytest.mark.slow

SAMPLES = 300
CAPTIONS, CANDIDATES = 20, 5


def drawn(seed, rates, *, spread):
    """Sets of one image a group; some captions are harder than others, for all groups alike."""
    rng = np.random.default_rng(seed)
    groups = np.tile([*"abcd"[: len(rates)]], CAPTIONS * CANDIDATES)
    caption = np.repeat(np.arange(CAPTIONS), CANDIDATES * len(rates))
    candidate = np.repeat(np.arange(CAPTIONS * CANDIDATES), len(rates))
    harder = spread * rng.uniform(-1, 1, CAPTIONS)[caption]
    rejected = rng.random(len(groups)) < np.tile(rates, CAPTIONS * CANDIDATES) + harder
    return rejected, {"groups": groups, "sets": candidate, "clusters": caption}


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("spread", [0.0, 0.1])
def test_tests_keep_their_level(groups, spread):
    p = []
    for seed in range(2 * SAMPLES):
        rejected, options = drawn(seed, (0.15,) * groups, spread=spread)
        estimate = rejection_gap(rejected, **options, resampling=Permutation(199), rng=seed)
        p.append(estimate.p_value)
    assert np.mean(np.array(p, dtype=float) <= 0.05) <= 0.07


@pytest.mark.parametrize("rates", [(0.15, 0.15), (0.25, 0.1), (0.3, 0.2, 0.2, 0.1), (0.02, 0.02)])
def test_intervals_cover(rates):
    truth, covered, spread = max(rates) - min(rates), 0, min(0.1, *rates)
    for seed in range(SAMPLES):
        rejected, options = drawn(seed, rates, spread=spread)
        interval = rejection_gap(
            rejected, **options, resampling=Bootstrap(400, 1, 0.95, 1.0), rng=seed
        ).interval()
        covered += interval.low <= truth + 1e-12 and truth <= interval.high
    assert covered / SAMPLES >= 0.93
