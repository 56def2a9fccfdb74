"""The error at the threshold that misses as many as it wrongly takes."""

from functools import partial

import numpy as np

from equipoise.core import Floats, Integers, floats, unwarned
from equipoise.metrics.registry import metric
from equipoise.metrics.scores.metric import INTERVAL, RESULTS, ScoreMetric
from equipoise.metrics.scores.steps import Steps
from equipoise.metrics.spec import POINTS, MetricSpec


@metric(
    MetricSpec(
        name="equal_error_rate",
        kinds=("predictions",),
        symbol="EER",
        aliases=("eer",),
        harm="higher",
        sentence=RESULTS,
        definition=(
            "False positive rate at the threshold at which it equals the false negative rate. Each "
            "group has its own threshold; between two scores both rates are interpolated."
        ),
        direction="Higher: the scores separate positives from negatives less well.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0 for the gap between groups",
        interval=INTERVAL,
        null="groups are exchangeable within each true class",
        reference="Grother, Ngan & Hanaoka 2019, NIST IR 8280 (FRVT part 3), section 3",
    ),
    form=partial(ScoreMetric.of, exchange="class"),
)
def equal_error_rate(y_true: Integers, y_score: Floats, weights: Floats) -> Floats:
    """Error rate at the threshold where false positive and false negative rates are equal."""
    steps = Steps.of(y_true, y_score, weights)
    start = np.zeros((1, weights.shape[1]))
    # Below the lowest score all are taken, above the highest none.
    missed = np.concatenate([start, np.cumsum(steps.positives, axis=0)])
    refused = np.concatenate([start, np.cumsum(steps.negatives, axis=0)])
    with unwarned():
        false_negative, false_positive = missed / missed[-1], 1.0 - refused / refused[-1]
        excess = false_negative - false_positive
        after = np.argmax(excess > 0.0, axis=0)
        columns = np.arange(weights.shape[1])
        low, high = excess[after - 1, columns], excess[after, columns]
        share = -low / (high - low)
        before = false_positive[after - 1, columns]
        return floats(before + share * (false_positive[after, columns] - before))
