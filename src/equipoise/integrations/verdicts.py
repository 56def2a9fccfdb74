"""The verdict on a single estimate, by the rules that audits follow."""

import math

from equipoise.core import Estimate, Verdict
from equipoise.metrics.spec import spec_for
from equipoise.stats.verdict import harmful_excess, harmful_reach, holds, judge


def verdict_of(estimate: Estimate, *, alpha: float = 0.05) -> tuple[Verdict, str]:
    """Return the verdict on an estimate, and the reason.

    An estimate is one test, so its p-value needs no correction. The practical threshold is that of
    the metric.

    Parameters
    ----------
    estimate : Estimate
    alpha : float
        Accepted rate of false discoveries.
    """
    spec = spec_for(estimate.metric, estimate.aggregate, estimate.compared_to)
    ends, chance = estimate.interval(), estimate.chance
    mean = math.nan if chance is None else chance.mean
    neutral = mean if spec.neutral is None else spec.neutral
    value = estimate.value if math.isnan(estimate.corrected) else estimate.corrected
    return judge(
        value=estimate.value,
        excess=harmful_excess(value, mean, estimate.harm),
        reach=harmful_reach(ends.low, ends.high, estimate.harm, neutral),
        q=math.nan if estimate.p_value is None else estimate.p_value,
        threshold=math.nan if spec.threshold is None else spec.threshold,
        alpha=alpha,
        holds_null=holds(ends.low, ends.high, neutral, spec.range),
    )
