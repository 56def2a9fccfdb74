"""Versions that change nothing: how often an effect is claimed, with differences and without."""

from math import sqrt

import numpy as np
import pytest

from equipoise.metrics import Choices, concept_metrics, design_choices
from equipoise.stats import Bootstrap

ALPHA, CONCEPTS, IMAGES = 0.05, 6, 1500
# As many differences as concepts and their mean, of which half are real in the second world.
SHIFTS = {"no difference": 0.0, "borderline differences": 0.35, "clear differences": 0.9}
CLAIMS = {"surfaces", "explains", "magnifies", "shrinks", "switches"}
QUICK, WHOLE = 12, 200


def world(seed, shift):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, IMAGES)
    labels = rng.random((IMAGES, CONCEPTS)) < 0.3
    scores = rng.standard_normal(labels.shape) + 1.2 * labels
    real = np.arange(CONCEPTS) < CONCEPTS // 2
    scores -= shift * ((group == 1)[:, None] & labels & real)
    return scores, labels, group, rng.random(IMAGES) < 0.85


def measured(scores, labels, group, seed, **choices):
    options = Choices(min_positives=20, **choices)
    resampling = Bootstrap(replicates=200, permutations=200)
    return concept_metrics(
        scores, labels, np.array(["a", "b", None])[group], ["average_precision"], options,
        resampling=resampling, rng=seed,
    )["average_precision"]  # fmt: skip


def claims(shift, seeds):
    """Count effects that are claimed of versions on fewer rows, by weights and by samples."""
    claimed = total = 0
    for seed in range(seeds):
        scores, labels, group, kept = world(seed, shift)
        versions = {
            "all": measured(scores, labels, group, seed, prevalence="observed"),
            "fewer": measured(scores, labels, np.where(kept, group, 2), seed),
            "sampled": measured(scores, labels, group, seed, prevalence="hall"),
        }
        effects = design_choices(versions, "all", alpha=ALPHA)["effect"].to_pylist()
        claimed += sum(effect in CLAIMS for effect in effects)
        total += len(effects)
    return claimed, total


@pytest.mark.slow
@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
def test_versions_that_change_nothing_have_no_effect(shift):
    claimed, total = claims(shift, QUICK)
    # Concepts of a seed share rows: twice the error of independent ones.
    assert claimed / total <= ALPHA + 3 * 2 * sqrt(ALPHA * (1 - ALPHA) / total)


@pytest.mark.slow(whole=True)
@pytest.mark.parametrize("shift", SHIFTS.values(), ids=SHIFTS)
def test_versions_that_change_nothing_have_no_effect_in_200_worlds(shift):
    claimed, total = claims(shift, WHOLE)
    assert claimed / total <= ALPHA + 3 * 2 * sqrt(ALPHA * (1 - ALPHA) / total)
