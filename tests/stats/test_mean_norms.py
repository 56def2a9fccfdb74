"""Means of numbers that can't be negative: intervals hold the truth where groups are alike."""

import numpy as np
import pytest

from equipoise.metrics import (
    ImageSimilarities,
    gender_difference,
    normalized_similarity_mad,
    similarity_gap,
    total_absolute_association,
)
from equipoise.stats import Bootstrap

SAMPLES = 12
FEW = Bootstrap(150, 1, resolution=1.0)


def of_concepts(metric):
    def estimate(rng, gap):
        group = np.repeat([*"ab"], 40)
        scores = rng.standard_normal((8, 80)) + gap * (group == "a")
        return metric(scores, group, resampling=FEW, rng=1)

    return estimate


def of_regions(rng, gap):
    group, region = np.tile([*"ab"], 160), np.repeat(np.arange(8), 40).astype(str)
    scores = rng.standard_normal(320) + gap * (group == "a")
    images = ImageSimilarities(scores[:, None], ["w"], group, region)
    return gender_difference(images, ["w"], [], resampling=FEW, rng=1)


def of_targets(rng, gap):
    targets = {str(number): rng.standard_normal((20, 30)) for number in range(8)}
    a, b = rng.standard_normal((2, 40, 30))
    return total_absolute_association(targets, a, b, resampling=FEW, rng=1)


@pytest.mark.parametrize(
    ("estimate", "gaps"),
    [
        (of_concepts(similarity_gap), (0.0, 0.3)),
        (of_concepts(normalized_similarity_mad), (0.0, 0.3)),
        (of_regions, (0.0, 0.3)),
        (of_targets, (0.0,)),
    ],
)
def test_intervals_of_means_hold_the_truth(estimate, gaps):
    for gap in gaps:
        estimates = [estimate(np.random.default_rng(seed), gap) for seed in range(SAMPLES)]
        ends = [estimate.interval() for estimate in estimates]
        assert sum(end.low <= gap <= end.high for end in ends) >= SAMPLES - 2
        for mean_norm, end in zip(estimates, ends, strict=True):
            assert end.low <= mean_norm.corrected <= end.high
