"""Weights of positives and negatives at each distinct score."""

from __future__ import annotations

import numpy as np

from equipoise.core import Floats, Integers, floats, record


@record
class Steps:
    """Positives and negatives at each distinct score, rising.

    Attributes
    ----------
    scores : ndarray of float64, shape (steps,)
    positives, negatives : ndarray of float64, shape (steps, tables)
    """

    scores: Floats
    positives: Floats
    negatives: Floats

    @classmethod
    def of(cls, y_true: Integers, y_score: Floats, weights: Floats) -> Steps:
        """Sum the weights of rows with equal scores; scores are rising."""
        first = np.flatnonzero(np.append(True, y_score[1:] != y_score[:-1]))
        positives = np.add.reduceat(weights * (y_true == 1)[:, None], first, axis=0)
        total = np.add.reduceat(weights, first, axis=0)
        return cls(y_score[first], floats(positives), floats(total - positives))
