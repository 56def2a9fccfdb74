"""Metrics of count tables: a statistic with its record."""

from __future__ import annotations

from numpy.typing import ArrayLike

from equipoise.core import Estimate, Floats, GroupLabels, InputError, Labels, floats, record
from equipoise.metrics.building import (
    count_estimate,
    ends_of,
    explain_undefined,
    replicates_text,
)
from equipoise.metrics.labels.table import Counts, Null
from equipoise.metrics.measure import DEFAULT, Draws, Measure, Statistic, measure_rows
from equipoise.metrics.spec import MetricSpec
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed


@record
class CountMetric:
    """A statistic of count tables as a metric: call it with labels, predictions and groups.

    Attributes
    ----------
    spec : MetricSpec
    statistic : callable
        From `Counts` and tables (r, outcomes, groups) to the numbers of the tables, shape (r,).
    null : "rows", "class", "prediction" or None
        Within what groups are exchanged for the chance level; None: it has none.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> spec = m.MetricSpec(
    ...     name="tables", kinds=(), definition="How many.", direction="None.", reference="none"
    ... )
    >>> m.CountMetric(spec, lambda counts, tables: tables.sum(axis=(1, 2)), None).spec.title
    'Tables'
    """

    spec: MetricSpec
    statistic: Statistic
    null: Null | None = "rows"

    def __call__(
        self,
        y_true: Labels,
        y_pred: Labels,
        groups: GroupLabels,
        *,
        weights: ArrayLike | None = None,
        units: Labels | None = None,
        resampling: Resampling | None = DEFAULT,
        rng: Seed = 0,
    ) -> Estimate:
        """Return the estimate; see `equipoise.metrics` and `equipoise.metrics.count`."""
        return measure_rows(
            [self.measure], y_true, y_pred, groups, weights=weights, units=units,
            resampling=resampling, rng=rng,
        )[0]  # fmt: skip

    @property
    def measure(self) -> CountMeasure:
        """What `equipoise.metrics.measure` takes."""
        return CountMeasure(self.spec, self.statistic, self.null)


@record
class CountMeasure(Measure):
    """The measure behind a `CountMetric`."""

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
            self.spec,
            counts,
            draws,
            method,
            ends=ends_of(draws.boot, 0),
            no_chance=self.spec.chance,
            reason=explain_undefined(draws.observed[0], "the metric is undefined for these counts"),
        )
