"""The measures of an audit of predictions."""

from __future__ import annotations

from collections.abc import Iterator

from equipoise.audits.predictions.config import Config, EffectSizeOptions
from equipoise.metrics.counts import Counts
from equipoise.metrics.counts.accuracy import Accuracy
from equipoise.metrics.counts.effect_sizes import EffectSizes, SkewSize
from equipoise.metrics.counts.rates import DemographicParity, EqualizedOdds, Rates
from equipoise.metrics.measure import NULLS, Measure
from equipoise.metrics.table_metric import TABLE_METRICS


def measures_of(config: Config, counts: Counts) -> Iterator[Measure]:
    """Yield every metric of labels by group that is switched on."""
    metrics = config.metrics
    conditional = not counts.determines_target
    for kind in ("worst_group_accuracy", "accuracy_gap"):
        if getattr(metrics, kind) is not None:
            yield Accuracy(kind, "rows")
            if conditional:
                yield Accuracy(kind, "class")
    if metrics.demographic_parity is not None:
        yield DemographicParity()
    if metrics.equalized_odds is not None:
        yield EqualizedOdds(metrics.equalized_odds.aggregate)
    if metrics.rates is not None:
        yield from (Rates(null) for null in NULLS)
    if metrics.effect_sizes is not None:
        yield effect_sizes(metrics.effect_sizes)
    if metrics.skewsize is not None:
        yield SkewSize(**effect_sizes(metrics.skewsize).params)
    yield from (one for one in TABLE_METRICS.values() if config.audit in one.spec.kinds)


def effect_sizes(options: EffectSizeOptions) -> EffectSizes:
    """Return the measure of effect sizes that options describe."""
    return EffectSizes(options.statistic, options.min_expected, options.yates, options.formulation)
