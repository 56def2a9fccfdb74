"""Resampling, intervals, chance levels, multiplicity, verdicts and power."""

from equipoise.stats.association import Association
from equipoise.stats.power import (
    minimum_difference,
    minimum_effect_size,
    power_of_association,
    power_of_difference,
    sample_size_for_difference,
)
from equipoise.stats.resampling import Bootstrap, Permutation, Resampling

__all__ = [
    "Association",
    "Bootstrap",
    "Permutation",
    "Resampling",
    "minimum_difference",
    "minimum_effect_size",
    "power_of_association",
    "power_of_difference",
    "sample_size_for_difference",
]
