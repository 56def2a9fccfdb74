"""Metrics as plain numbers, for libraries that take functions of labels and predictions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from numpy.typing import ArrayLike

from equipoise.core import Estimate, GroupLabels


def as_score(metric: Callable[..., Estimate]) -> Callable[..., float]:
    """Return a function that gives a metric's value alone, as a number.

    `sklearn.metrics.make_scorer` and fairlearn's `MetricFrame` take it.

    Parameters
    ----------
    metric : callable
        Of `equipoise.metrics`, of true labels, predicted labels and groups. For other keywords
        pass ``functools.partial(metric, null="class")``.

    Returns
    -------
    callable
        (y_true, y_pred, groups) to float; NaN where the metric can't be estimated.

    Examples
    --------
    >>> from equipoise import metrics as m
    >>> score = m.as_score(m.worst_group_accuracy)
    >>> score([1, 0] * 60, [1] * 60 + [1, 0] * 30, ["women"] * 60 + ["men"] * 60)
    0.5
    """

    @wraps(metric, assigned=("__name__", "__qualname__"), updated=())
    def score(y_true: ArrayLike, y_pred: ArrayLike, groups: GroupLabels) -> float:
        return float(metric(y_true, y_pred, groups, resampling=None))

    return score
