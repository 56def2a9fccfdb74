"""Metrics of your own: a function of count tables with its record."""

from __future__ import annotations

from collections.abc import Callable

from equipoise.core import Estimate, Floats, InputError, floats, record
from equipoise.discovery import calling_module
from equipoise.metrics.building import (
    count_estimate,
    ends_of,
    explain_undefined,
    replicates_text,
)
from equipoise.metrics.counts import Counts, Null
from equipoise.metrics.measure import Draws, Measure, Statistic
from equipoise.metrics.spec import SPECS, MetricSpec, register_for, unregister


@record
class TableMetric(Measure):
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
    resamples = True
    compares = False

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, shape (r, 1)."""
        values = floats(self.statistic(counts, tables))
        if values.shape != (len(tables),):
            raise InputError(
                f"metric {self.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{len(tables)} tables. To do: return one number for each table"
            )
        return values[:, None]

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        method = "none: use Bootstrap()"
        if draws.boot is not None:
            method = replicates_text(draws.boot, f"{counts.unit}s")
        return count_estimate(
            self.spec.name,
            counts,
            draws,
            method=method,
            ends=ends_of(draws.boot, 0),
            no_chance=self.spec.chance,
            reason=explain_undefined(draws.observed[0], "the metric is undefined for these counts"),
        )


_REGISTERED: dict[str, TableMetric] = {}


def table_metrics(kind: str) -> list[TableMetric]:
    """Return every metric that `metric` registered for a kind of audit, also of plugins."""
    specs = [SPECS[name] for name in SPECS if name in _REGISTERED]
    return [_REGISTERED[spec.name] for spec in specs if kind in spec.kinds]


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
    PluginError
        When the name is taken.
    """

    def registered(statistic: Statistic) -> TableMetric:
        register_for(calling_module(), spec)
        table_metric = TableMetric(spec, statistic, null)
        _REGISTERED[spec.name] = table_metric
        return table_metric

    return registered
