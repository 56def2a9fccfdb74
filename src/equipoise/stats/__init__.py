"""Resampling, intervals, chance levels, multiplicity, verdicts and power."""

from equipoise.stats.resampling import Bootstrap, Exact, Permutation, Resampling

__all__ = ["Bootstrap", "Exact", "Permutation", "Resampling"]
