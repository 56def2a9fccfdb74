"""Metrics on tables of group by true class by predicted label."""

from equipoise.metrics.counts.table import Counts, Null, count, item_sampler, units_of

__all__ = ["Counts", "Null", "count", "item_sampler", "units_of"]
