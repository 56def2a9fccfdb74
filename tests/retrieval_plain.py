"""Retrieval metrics the plain way: sort, loop, count. No code of the package."""

from math import inf, log, log2

import numpy as np


def expected_counts(scores, groups, i, n_groups):
    """Expected number of each group in the first i places: a tie shares the places left."""
    ordered = sorted(scores, reverse=True)
    last = ordered[i - 1]
    above = sum(s > last for s in scores)
    tied = sum(s == last for s in scores)
    counts = [0.0] * n_groups
    for s, g in zip(scores, groups, strict=True):
        counts[g] += 1.0 if s > last else (i - above) / tied if s == last else 0.0
    return counts


def desired_of(groups, n_groups, target):
    counts = [list(groups).count(g) for g in range(n_groups)]
    if target == "pool":
        return [c / len(groups) for c in counts]
    present = sum(c > 0 for c in counts)
    return [1 / present if c else 0.0 for c in counts]


def skews(scores, groups, k, n_groups, target):
    shares = [c / k for c in expected_counts(scores, groups, k, n_groups)]
    desired = desired_of(groups, n_groups, target)
    return {
        g: log(shares[g] / desired[g]) if shares[g] > 0 else -inf
        for g in range(n_groups)
        if desired[g] > 0
    }


def ndkl(scores, groups, k, n_groups, target):
    desired = desired_of(groups, n_groups, target)
    total = weights = 0.0
    for i in range(1, k + 1):
        shares = [c / i for c in expected_counts(scores, groups, i, n_groups)]
        kl = sum(p * log(p / d) for p, d in zip(shares, desired, strict=True) if p > 0)
        total += kl / log2(i + 1)
        weights += 1 / log2(i + 1)
    return total / weights


def mad(values):
    mean = sum(values) / len(values)
    return sum(abs(v - mean) for v in values)


def similarity_mad(scores, groups, n_groups):
    mean = sum(scores) / len(scores)
    sd = (sum((s - mean) ** 2 for s in scores) / len(scores)) ** 0.5
    by_group = [[s for s, g in zip(scores, groups, strict=True) if g == j] for j in range(n_groups)]
    return mad([(sum(h) / len(h) - mean) / sd for h in by_group if h])


def world(seed, n, groups, *, ties):
    """Scores and groups, every group present."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(groups), rng.integers(0, groups, n - groups)])
    scores = rng.standard_normal(n)
    return (np.round(scores) if ties else scores), rng.permutation(codes)
