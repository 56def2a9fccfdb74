"""How well scores tell positives from negatives."""

from functools import partial

import numpy as np

from equipoise.core import Floats, Integers, NullHypothesis
from equipoise.metrics.registry import metric
from equipoise.metrics.scores.metric import INTERVAL, RESULTS, ScoreMetric
from equipoise.metrics.scores.steps import Steps
from equipoise.metrics.spec import POINTS, MetricSpec
from equipoise.stats.intervals import divide


@metric(
    MetricSpec(
        name="auroc",
        kinds=("concepts", "predictions"),
        title="AUROC",
        aliases=("roc_auc",),
        harm="lower",
        sentence=RESULTS,
        definition=(
            "Probability that a positive scores above a negative, ties one half; independent of "
            "prevalence."
        ),
        direction="Lower: the group's images are ranked worse.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0 for the gap between groups",
        interval=INTERVAL,
        null="groups are exchangeable within each true class",
        null_kind=NullHypothesis.REPLICATES,
        reference="Hanley & McNeil 1982, Radiology 143, 29-36; Hall et al. 2023 (by concept)",
    ),
    form=partial(ScoreMetric.of, exchange="class"),
)
def auroc(y_true: Integers, y_score: Floats, weights: Floats) -> Floats:
    """Probability that a positive scores above a negative."""
    steps = Steps.of(y_true, y_score, weights)
    below = np.cumsum(steps.negatives, axis=0) - steps.negatives
    won = (steps.positives * (below + steps.negatives / 2.0)).sum(axis=0)
    return divide(won, steps.positives.sum(axis=0) * steps.negatives.sum(axis=0))
