"""How far probabilities are from what happened."""

from functools import partial

from equipoise.core import Floats, Integers
from equipoise.metrics.registry import metric
from equipoise.metrics.scores.metric import INTERVAL, RESULTS, ScoreMetric
from equipoise.metrics.spec import POINTS, MetricSpec
from equipoise.stats.intervals import divide


@metric(
    MetricSpec(
        name="brier_score",
        kinds=("predictions",),
        harm="higher",
        sentence=RESULTS,
        definition="Mean squared distance of the score from the outcome, 0 or 1.",
        direction="Higher: probabilities are farther from the truth.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="of all rows that of a calibrated model; above 0 for a difference",
        interval=INTERVAL,
        null="groups are exchangeable over all rows",
        reference="Brier 1950, Monthly Weather Review 78, 1-3",
    ),
    form=partial(ScoreMetric.of, probabilities=True),
)
def brier_score(y_true: Integers, y_score: Floats, weights: Floats) -> Floats:
    """Mean squared distance of probabilities from outcomes."""
    return divide(((y_true - y_score) ** 2) @ weights, weights.sum(axis=0))
