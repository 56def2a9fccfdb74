"""Resampling, intervals, chance levels, multiplicity, verdicts and power."""

from equipoise.stats.association import Association
from equipoise.stats.power import (
    minimum_difference,
    minimum_effect_size,
    power_of_association,
    power_of_difference,
    sample_size_for_difference,
)
from equipoise.stats.ratios import score_ratio
from equipoise.stats.resampling import Bootstrap, Permutation, Resampling
from equipoise.stats.selection import (
    LeadingGap,
    LeadingSize,
    Selection,
    leading_gap,
    share_errors,
    simultaneous_normal,
    simultaneous_shares,
)

__all__ = [
    "Association",
    "Bootstrap",
    "LeadingGap",
    "LeadingSize",
    "Permutation",
    "Resampling",
    "Selection",
    "leading_gap",
    "minimum_difference",
    "minimum_effect_size",
    "power_of_association",
    "power_of_difference",
    "sample_size_for_difference",
    "score_ratio",
    "share_errors",
    "simultaneous_normal",
    "simultaneous_shares",
]
