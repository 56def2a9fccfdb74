"""Metrics on tables of group by true class by predicted label."""

from equipoise.metrics.labels.table import (
    Counts,
    Null,
    count,
    fill_labels,
    item_sampler,
    name_unit,
    units_of,
)

__all__ = ["Counts", "Null", "count", "fill_labels", "item_sampler", "name_unit", "units_of"]
