"""How far probabilities are from the shares that come true."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from equipoise.core import Floats, InputError, Integers, floats, integers
from equipoise.metrics.registry import metric
from equipoise.metrics.scores.metric import INTERVAL, RESULTS, ScoreMetric
from equipoise.metrics.scores.steps import Steps
from equipoise.metrics.scores.table import ScoredRows
from equipoise.metrics.spec import POINTS, MetricSpec
from equipoise.stats.intervals import divide


def fifteen_bins(rows: ScoredRows) -> Mapping[str, float]:  # noqa: ARG001 - as for any rows
    """Return the usual number of bins."""
    return {"bins": 15}


@metric(
    MetricSpec(
        name="expected_calibration_error",
        kinds=("predictions",),
        symbol="ECE",
        aliases=("ece",),
        harm="higher",
        sentence=RESULTS,
        definition=(
            "Mean distance of the mean score from the share of positives, over bins of as many "
            "rows each; groups have bins of their own."
        ),
        direction="Higher: probabilities are farther from the shares that come true.",
        threshold=0.05,
        threshold_reason=POINTS,
        chance=(
            "above 0, more so for small groups: of all rows that of a calibrated model, whose "
            "outcomes are drawn from the scores"
        ),
        interval=INTERVAL + ", centred at the value",
        null="groups are exchangeable among rows of alike scores",
        reference=(
            "Naeini, Cooper & Hauskrecht 2015, AAAI; Kumar, Liang & Ma 2019, NeurIPS; Roelofs et "
            "al. 2022, AISTATS (bins of equal mass, bias)"
        ),
    ),
    form=partial(
        ScoreMetric.of, exchange="score", probabilities=True, shifts=True, defaults=fifteen_bins
    ),
)
def expected_calibration_error(
    y_true: Integers, y_score: Floats, weights: Floats, *, bins: float
) -> Floats:
    """Mean distance of probabilities from the shares that come true, over bins of rows."""
    if bins != int(bins) or bins < 1:
        raise InputError(f"bins={bins:g}: expected a whole number of at least 1")
    steps, n_bins = Steps.of(y_true, y_score, weights), int(bins)
    n = steps.positives + steps.negatives
    total = n.sum(axis=0)
    # Equal scores share a bin: the one of their middle row.
    middle = divide(np.cumsum(n, axis=0) - n / 2.0, total)
    bin_of = integers(np.clip(np.nan_to_num(middle) * n_bins, 0, n_bins - 1))
    place = bin_of * n.shape[1] + np.arange(n.shape[1])
    excess = (steps.positives - steps.scores[:, None] * n).ravel()
    sums = np.bincount(place.ravel(), excess, minlength=n_bins * n.shape[1])
    return divide(floats(np.abs(sums.reshape(n_bins, -1)).sum(axis=0)), total)
