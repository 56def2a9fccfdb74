"""Metrics of scores of a binary outcome, one a file."""

from equipoise.metrics.scores.auroc import auroc
from equipoise.metrics.scores.average_precision import average_precision
from equipoise.metrics.scores.brier_score import brier_score
from equipoise.metrics.scores.equal_error_rate import equal_error_rate
from equipoise.metrics.scores.expected_calibration_error import expected_calibration_error
from equipoise.metrics.scores.metric import ScoreMetric

__all__ = [
    "ScoreMetric",
    "auroc",
    "average_precision",
    "brier_score",
    "equal_error_rate",
    "expected_calibration_error",
]
