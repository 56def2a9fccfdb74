"""Metrics of count tables: a statistic with its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter

from numpy.typing import ArrayLike

from equipoise.core import (
    Estimate,
    Fact,
    Facts,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    floats,
    record,
)
from equipoise.core.types import Json
from equipoise.metrics.building import (
    count_estimate,
    ends_of,
    explain_undefined,
    replicates_text,
)
from equipoise.metrics.documenting import Form
from equipoise.metrics.labels.table import Counts, Null
from equipoise.metrics.measure import (
    DEFAULT,
    MEASURES,
    NO_REPLICATES,
    Draws,
    Measure,
    Statistic,
    Topic,
    measure_rows,
)
from equipoise.metrics.registry import (
    OptionTypes,
    check_options,
    defaults_of,
    metrics_of,
    options_of,
)
from equipoise.metrics.spec import SPECS, MetricSpec
from equipoise.stats import Resampling
from equipoise.stats.streams import Seed


@record
class CountMetric(Form):
    """A statistic of count tables as a metric: call it with labels, predictions and groups.

    Attributes
    ----------
    spec : MetricSpec
    statistic : callable
        From `Counts` and tables (r, outcomes, groups) to the numbers of the tables, shape (r,).
        Its keyword-only parameters are options of the metric.
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
        **options: Json,
    ) -> Estimate:
        """Return the estimate; see `equipoise.metrics` and `equipoise.metrics.count`."""
        return measure_rows(
            [self.with_options(**options).measure], y_true, y_pred, groups, weights=weights,
            units=units, resampling=resampling, rng=rng,
        )[0]  # fmt: skip

    @property
    def options(self) -> OptionTypes:
        """Types of its options, by name: the keyword-only parameters of the statistic."""
        return options_of(self.statistic)

    def with_options(self, **options: Json) -> CountMetric:
        """Return the metric with options set.

        Raises
        ------
        InputError
            When it doesn't take one.
        """
        check_options(self.spec.name, options, self.options)
        return replace(self, statistic=partial(self.statistic, **options)) if options else self

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
    no_test = (
        "a number of count tables describes models: it may be an extreme of groups, whose change "
        "percentiles miss too often"
    )

    def facts(self, counts: Counts) -> list[Fact]:  # noqa: ARG002 - the form of all measures
        """Return the fact of the number."""
        return [Fact(self.spec.name, self.spec.aggregate, "", self.spec.compared_to)]

    def __call__(self, counts: Counts, tables: Floats) -> Floats:
        """Return the number of each table, shape (r, 1)."""
        values = floats(self.statistic(counts, tables))
        if values.shape != (len(tables),):
            raise InputError(
                f"metric {self.spec.name!r}: gave numbers of shape {values.shape} for "
                f"{len(tables)} tables. To do: return one number for each table"
            )
        self.spec.check_values(values)
        return values[:, None]

    def estimate(self, counts: Counts, draws: Draws) -> Estimate:
        """Turn the numbers into the estimate."""
        method = NO_REPLICATES
        if draws.boot is not None:
            method = replicates_text(draws.boot, f"{counts.unit}s")
        return count_estimate(
            self.spec,
            counts,
            draws,
            method,
            ends=ends_of(draws.boot, 0),
            params=defaults_of(self.statistic),
            no_chance=self.spec.chance,
            reason=explain_undefined(draws.observed[0], "the metric is undefined for these counts"),
        )


def measures_of(counts: Counts, switches: Mapping[str, Facts], kind: str) -> list[Measure]:
    """Return the measures of an audit of labels by group.

    Parameters
    ----------
    counts : Counts
    switches : mapping of str to mapping
        Options of each metric that is switched on.
    kind : str
        The kind of audit: metrics of count tables are measured that report it.
    """
    registered = metrics_of(CountMetric, kind)
    count_metrics = [
        metric.with_options(**switches[name])
        for name, metric in registered.items()
        if name in switches
    ]
    topics = [(topic, name) for name, (topic, _) in MEASURES.items() if name in switches]
    measures = list[Measure]()
    for _, name in sorted(topics, key=itemgetter(0)):
        _, source = MEASURES[name]
        if isinstance(source, type):
            measures.append(source(**switches[name]))
        else:
            measures += source(counts, **switches[name])
    return [*measures, *(count_metric.measure for count_metric in count_metrics)]


def switches_about(topic: Topic) -> list[str]:
    """Return the keys that switch on the measures of a topic."""
    return [name for name in SPECS if name in MEASURES and MEASURES[name][0] is topic]
