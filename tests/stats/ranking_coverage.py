"""Worlds of rankings whose preferences are known, and how intervals and tests hold in them."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from equipoise.metrics import systematic_preference
from equipoise.stats import Bootstrap, Permutation
from tools.calibration.tables import decimal

IMAGES, FIRST = 400, 40
QUERIES, SHARED = (24, 100, 200), (0.0, 0.3)
"""Queries that all rank the same images, and the share of variance that images carry."""
LIKENESS, GROUPS, BLOCK = (0.0, 0.3, 0.5, 0.7, 0.9), (2, 6), 4
"""Correlation of the queries of a block, and the numbers of groups."""
DIMENSIONS = (16, 64)
THRESHOLD = 0.05
ENDS, TESTS = Bootstrap(400, 1, resolution=1.0), Permutation(199, resolution=0.05)


class Width(NamedTuple):
    """Intervals of the preference of a group in one world."""

    queries: int
    shared: float
    shift: float
    coverage: float
    ratio: float
    small: float


class Level(NamedTuple):
    """How often p is at most 0.05 in one world, and how many queries count."""

    likeness: float
    groups: int
    dimensions: int
    shift: float
    rejected: float
    independent: float
    effective: float


def crossed(rng, queries, shared, shift=0.0):
    """Scores of images by queries: a part of the image's own, noise, and a shift of one group."""
    group = rng.permutation(np.arange(IMAGES) % 2)
    noise = math.sqrt(1 - shared) * rng.standard_normal((queries, IMAGES))
    images = math.sqrt(shared) * rng.standard_normal(IMAGES)
    return noise + images + shift * (group == 0), np.array(["a", "b"])[group]


def widths(queries, shared, samples, shift=0.0):
    """Measure intervals of one group, and how often the largest is below the threshold."""
    values, ends, small = [], [], []
    for seed in range(samples):
        scores, groups = crossed(np.random.default_rng([seed, queries]), queries, shared, shift)
        estimate = systematic_preference(scores, groups, k=FIRST, resampling=ENDS, rng=seed)
        part = next(part for part in estimate.parts if part.subject == "a")
        values.append(part.value)
        ends.append((part.low, part.high))
        small.append(estimate.interval().high < THRESHOLD)
    low, high = np.array(ends).T
    truth = np.mean(values) if shift else 0.0
    needed = 2 * 1.96 * np.std(values, ddof=1)
    covered = np.mean((low <= truth) & (truth <= high))
    return Width(queries, shared, shift, covered, np.mean(high - low) / needed, np.mean(small))


def embedded(rng, likeness, groups, dimensions, shift=0.0, queries=24):
    """Cosine-like scores of vectors: queries in blocks, images that differ by group.

    Every query prefers some group, any block another. `shift` adds to the scores of one group.
    """
    centres = np.repeat(rng.standard_normal((queries // BLOCK, dimensions)), BLOCK, axis=0)
    texts = math.sqrt(likeness) * centres
    texts += math.sqrt(1 - likeness) * rng.standard_normal((queries, dimensions))
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    group = rng.permutation(np.arange(IMAGES) % groups)
    images = rng.standard_normal((IMAGES, dimensions))
    images += rng.standard_normal((groups, dimensions))[group]
    scores = texts @ images.T
    return scores + shift * scores.std() * (group == 0), np.array([*"abcdef"])[group]


def level(likeness, groups, dimensions, samples, shift=0.0):
    """Measure how often a preference on the whole is found, and how many queries count."""
    p, independent, effective = [], [], []
    for seed in range(samples):
        rng = np.random.default_rng([seed, groups, dimensions])
        scores, names = embedded(rng, likeness, groups, dimensions, shift)
        estimate = systematic_preference(scores, names, k=FIRST, resampling=TESTS, rng=seed)
        p.append(1.0 if estimate.p_value is None else estimate.p_value)
        independent.append(estimate.params["independent_subjects"])
        effective.append(estimate.params["effective_subjects"])
    return Level(
        likeness, groups, dimensions, shift, np.mean(np.array(p) <= 0.05),
        np.mean(independent), np.mean(effective),
    )  # fmt: skip


def widths_table(samples):
    """Return intervals of one group; `too_small` are largest preferences judged below 5 points."""
    head = "queries", "image_variance", "shift", "samples", "coverage", "width", "too_small"
    worlds = [widths(*case, samples) for case in product(QUERIES, SHARED)]
    worlds += [widths(24, shared, samples, shift=0.3) for shared in SHARED]
    rows = [
        (
            case.queries, decimal(case.shared, 2), case.shift, samples, decimal(case.coverage),
            decimal(case.ratio, 2), decimal(case.small, 2),
        )
        for case in worlds
    ]  # fmt: skip
    return head, rows


def blocks_table(samples):
    """Return how often p is at most 0.05 for 24 queries in blocks of four similar ones."""
    head = (
        "likeness", "groups", "dimensions", "shift", "samples", "rejected", "clusters",
        "effective_queries",
    )  # fmt: skip
    blocks = [
        level(like, n, size, samples)
        for size, n, like in product(DIMENSIONS[::-1], GROUPS, LIKENESS)
    ]
    blocks += [
        level(like, n, size, samples, shift=0.6)
        for like, n, size in product((0.0, 0.5), GROUPS, DIMENSIONS)
    ]
    rows = [
        (
            case.likeness, case.groups, case.dimensions, case.shift, samples,
            decimal(case.rejected), decimal(case.independent, 1), decimal(case.effective, 1),
        )
        for case in blocks
    ]  # fmt: skip
    return head, rows
