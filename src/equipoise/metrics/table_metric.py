"""Metrics of your own: a function of count tables with its record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.building import against_chance, ends_of, excluded_of, sizes
from equipoise.metrics.counts import Counts, Null
from equipoise.metrics.measure import Draws, Floats, Statistic
from equipoise.metrics.spec import MetricSpec, make_estimate, register, unregister


@dataclass(frozen=True, eq=False)
class TableMetric:
    """A registered function of count tables; pass it to `equipoise.metrics.measure`.

    Attributes
    ----------
    spec : MetricSpec
    statistic : callable
        From `Counts` and tables (r, outcomes, groups) to the numbers of the tables, shape (r,).
    null : "rows", "class", "prediction" or None
        Within what groups are exchanged for the chance level; None: it has none.
    """

    spec: MetricSpec
    statistic: Statistic
    null: Null | None

    def replicated(self, counts: Counts) -> bool:  # noqa: ARG002 - the form of `Measure`
        """Return True: the interval is that of bootstrap replicates."""
        return True

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, shape (r, 1)."""
        values = np.asarray(self.statistic(counts, tables), dtype=np.float64)
        if values.shape != (len(tables),):
            raise InputError(
                f"metric {self.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{len(tables)} tables. To do: return one number for each table"
            )
        return values[:, None]

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        value, spec = float(draws.observed[0]), self.spec
        held = against_chance(draws, 0, spec.value_harm)
        replicates = 0 if draws.boot is None else len(draws.boot)
        return make_estimate(
            metric=spec.name,
            value=value,
            n=sizes(counts.groups),
            method=f"percentile bootstrap over {counts.unit}s, {replicates} replicates",
            **held.fields(spec.chance),
            harm=spec.value_harm,
            excluded=excluded_of(counts.groups, dict(counts.excluded)),
            unit=counts.unit,
            reason="the metric is undefined for these counts" if math.isnan(value) else "",
            ends=ends_of(draws.boot, 0),
        )


_REGISTERED: dict[str, TableMetric] = {}
TABLE_METRICS: Mapping[str, TableMetric] = MappingProxyType(_REGISTERED)
"""Every metric that `metric` registered, by name; audits of predictions report them."""


def remove(name: str) -> None:
    """Remove a metric that `metric` registered, to define it again."""
    del _REGISTERED[name]
    unregister(name)


def metric(spec: MetricSpec, *, null: Null | None = "rows") -> Callable[[Statistic], TableMetric]:
    """Register a function of count tables as a metric.

    Parameters
    ----------
    spec : MetricSpec
        With `kinds=("predictions",)`, audits of predictions report it, and `testing.thresholds`
        and `gate` accept its name.
    null : "rows", "class", "prediction" or None
        Within what groups are exchanged for the chance level.

    Raises
    ------
    InputError
        When the name is taken.
    """

    def registered(statistic: Statistic) -> TableMetric:
        found = TableMetric(register(spec), statistic, null)
        _REGISTERED[spec.name] = found
        return found

    return registered
