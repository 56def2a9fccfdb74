"""Worlds of rankings whose preferences are known, and how intervals and tests hold in them."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from equipoise.metrics import systematic_preference
from equipoise.stats import Bootstrap, Permutation

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


def rankings_section(samples):
    """Return the section of the page on preferences of rankings."""
    crossed_worlds = [widths(*case, samples) for case in product(QUERIES, SHARED)]
    crossed_worlds += [widths(24, shared, samples, shift=0.3) for shared in SHARED]
    n_levels = 2 * samples
    blocks = [
        level(like, n, size, n_levels)
        for size, n, like in product(DIMENSIONS[::-1], GROUPS, LIKENESS)
    ]
    blocks += [
        level(like, n, size, n_levels, shift=0.6)
        for like, n, size in product((0.0, 0.5), GROUPS, DIMENSIONS)
    ]
    return [
        "## Preferences of rankings",
        "",
        f"Systematic preference: {IMAGES} images in two groups, the first {FIRST} of each query;",
        "images carry none or 30 % of the variance of scores. Width: mean width of the interval",
        "of a group over the width that its variance needs. “Too small” is how often the largest",
        f"preference is said to be below 5 points. {samples} samples per case.",
        "",
        "| queries | variance of images | shift of a group | coverage | width | too small |",
        "|---|---|---|---|---|---|",
        *(
            f"| {case.queries} | {case.shared:.0%} | {case.shift} | {case.coverage:.1%} | "
            f"{case.ratio:.2f} | {case.small:.0%} |"
            for case in crossed_worlds
        ),
        "",
        "24 queries in blocks of four: vectors of a block have the correlation “likeness”. Each",
        "query prefers some group, none is preferred on the whole, but where a group's scores are",
        "shifted. How often p ≤ 0.05, how many clusters there are on average, and how many",
        f"independent queries the 24 count as. {n_levels} samples per case.",
        "",
        "| likeness | groups | dimensions | shift | p ≤ 0.05 | clusters | count as |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {case.likeness} | {case.groups} | {case.dimensions} | {case.shift} | "
            f"{case.rejected:.1%} | {case.independent:.1f} | {case.effective:.1f} |"
            for case in blocks
        ),
        "",
    ]
