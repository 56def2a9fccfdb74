"""Corrected shares on simulated images: intervals cover, tests keep their level."""

import math
from itertools import product

import numpy as np
import pytest

from equipoise.metrics import Confusion, corrected_shares
from equipoise.stats import Bootstrap

pytestmark = pytest.mark.slow

SAMPLES = 400
SIZES = [(64, 300), (100, 50), (400, 100), (64, 30)]


def shares_of(kind, classes):
    if kind == "equal":
        return np.full(classes, 1 / classes)
    if kind == "skewed":
        return np.r_[0.7, np.full(classes - 1, 0.3 / (classes - 1))]
    if classes == 2:
        return np.array([1.0, 0.0])
    return np.r_[0.9, np.full(classes - 2, 0.1 / (classes - 2)), 0.0]


def draw_shares(true, right, n, labelled, seed):
    """Draw a classifier's labels and images anew, with an outcome "unknown"."""
    rng = np.random.default_rng(seed)
    classes = len(true)
    rates = np.full((classes, classes + 1), (1 - right) / classes)
    rates[np.arange(classes), np.arange(classes)] = right
    names = [*(f"c{place}" for place in range(classes)), "unknown"]
    counts = np.stack([rng.multinomial(labelled, row) for row in rates])
    confusion = Confusion(tuple(names[:-1]), tuple(names), counts)
    predicted = np.repeat(names, rng.multinomial(n, true @ rates))
    return corrected_shares(predicted, confusion, resampling=Bootstrap(400, 200), rng=seed)


@pytest.mark.parametrize(("classes", "right"), [(2, 0.95), (2, 0.75), (3, 0.9), (6, 0.95)])
@pytest.mark.parametrize("kind", ["equal", "skewed", "extreme"])
def test_intervals_cover_the_true_shares(classes, right, kind):
    true, hits = shares_of(kind, classes), []
    for (n, labelled), seed in product(SIZES, range(SAMPLES // len(SIZES))):
        estimate = draw_shares(true, right, n, labelled, seed)
        ends = [(p.low, p.high) for p in estimate.parts if p.metric == "corrected_share"]
        hits.append([low <= share <= high for (low, high), share in zip(ends, true, strict=True)])
    # Three standard errors of what 400 samples show of 94.5 %, and never below 0.93 less one.
    assert np.mean(hits) >= 0.93 - math.sqrt(0.95 * 0.05 / (SAMPLES * min(classes - 1, 2)))


def test_the_test_of_equal_shares_keeps_its_level():
    ps = [draw_shares(shares_of("equal", 3), 0.8, 100, 60, seed).p_value for seed in range(SAMPLES)]
    rejected = np.mean([p is not None and p <= 0.05 for p in ps])
    assert rejected <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / SAMPLES)
