"""Metrics of predicted numbers such as ages, one a file."""

from equipoise.metrics.numbers.mean_absolute_error import mean_absolute_error
from equipoise.metrics.numbers.mean_error import mean_error
from equipoise.metrics.numbers.metric import NumberMetric
from equipoise.metrics.numbers.share_within_tolerance import share_within_tolerance

__all__ = [
    "NumberMetric",
    "mean_absolute_error",
    "mean_error",
    "share_within_tolerance",
]
