"""Scores of concepts with what differs between two groups set by hand."""

import numpy as np


def world(
    seed,
    n=1200,
    concepts=4,
    prevalence=(0.3, 0.2),
    shift=None,
):
    """Normal scores; positives of group b score lower by `shift` of their concept."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    labels = rng.random((n, concepts)) < np.array(prevalence)[group][:, None]
    scores = rng.standard_normal((n, concepts)) + 1.2 * labels
    for concept, much in (shift or {}).items():
        scores[:, concept] -= much * ((group == 1) & labels[:, concept])
    return scores, labels, np.array(["a", "b"])[group]
