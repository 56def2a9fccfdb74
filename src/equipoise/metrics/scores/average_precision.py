"""How precise the highest scores are."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from equipoise.core import Floats, Integers, NullHypothesis
from equipoise.metrics.registry import metric
from equipoise.metrics.scores.metric import INTERVAL, RESULTS, ScoreMetric
from equipoise.metrics.scores.steps import Steps
from equipoise.metrics.scores.table import ScoredRows
from equipoise.metrics.spec import POINTS, MetricSpec
from equipoise.stats.intervals import divide


def prevalence_of_all(rows: ScoredRows) -> Mapping[str, float]:
    """Return the share of positives of all rows."""
    return {"prevalence": rows.prevalence}


@metric(
    MetricSpec(
        name="average_precision",
        kinds=("concepts", "predictions"),
        symbol="AP",
        harm="lower",
        sentence=RESULTS,
        definition=(
            "Sum over thresholds of precision times the gain in recall, tied scores grouped."
        ),
        direction="Lower: the group's images are ranked worse.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance="above 0 for the gap between groups",
        interval=INTERVAL,
        null=(
            "groups are exchangeable within each true class; over all rows where prevalence is not "
            "fixed"
        ),
        null_kind=NullHypothesis.REPLICATES,
        reference="Hall et al. 2023, 'Towards Reliable Assessments of Demographic Disparities'",
    ),
    form=partial(ScoreMetric.of, exchange="class", defaults=prevalence_of_all),
)
def average_precision(
    y_true: Integers, y_score: Floats, weights: Floats, *, prevalence: float
) -> Floats:
    """Average precision where each group has as large a share of positives."""
    steps = Steps.of(y_true, y_score, weights)
    positives, negatives = steps.positives.sum(axis=0), steps.negatives.sum(axis=0)
    # Groups with more positives would look better.
    weight = divide(positives * (1.0 - prevalence), negatives * prevalence)
    hits = np.cumsum(steps.positives[::-1], axis=0)
    mistakes = np.cumsum(steps.negatives[::-1], axis=0) * weight
    precision = np.nan_to_num(divide(hits, hits + mistakes))
    value = divide((steps.positives[::-1] * precision).sum(axis=0), positives)
    return np.where(negatives > 0.0, value, np.nan)
