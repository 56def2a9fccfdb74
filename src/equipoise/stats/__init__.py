"""Resampling, intervals, chance levels, multiplicity, verdicts and power."""

from equipoise.stats.association import Association
from equipoise.stats.chance import PValue, band, benjamini_hochberg, holm, p_value, tail
from equipoise.stats.intervals import (
    ClosedForm,
    fisher_z,
    mean_t,
    percentile,
    scored,
    simultaneous_gap,
    simultaneous_minimum,
    simultaneous_shortfall,
    wilson,
)
from equipoise.stats.power import (
    minimum_difference,
    minimum_effect_size,
    power_of_association,
    power_of_difference,
    sample_size_for_difference,
)
from equipoise.stats.resampling import Bootstrap, Permutation, Resampling
from equipoise.stats.verdict import harmful_excess, harmful_reach, judge

__all__ = [
    "Association",
    "Bootstrap",
    "ClosedForm",
    "PValue",
    "Permutation",
    "Resampling",
    "band",
    "benjamini_hochberg",
    "fisher_z",
    "harmful_excess",
    "harmful_reach",
    "holm",
    "judge",
    "mean_t",
    "minimum_difference",
    "minimum_effect_size",
    "p_value",
    "percentile",
    "power_of_association",
    "power_of_difference",
    "sample_size_for_difference",
    "scored",
    "simultaneous_gap",
    "simultaneous_minimum",
    "simultaneous_shortfall",
    "tail",
    "wilson",
]
