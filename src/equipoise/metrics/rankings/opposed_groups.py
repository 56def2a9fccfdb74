"""Bias@K: which of two opposed groups is shown more."""

from functools import partial

import numpy as np

from equipoise.core import Floats
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.statistics import RankedLabels
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import SHARES, MetricSpec


def contrast(shares: Floats, first: int, second: int) -> Floats:
    """Return (a − b) / (a + b) of two groups along the last axis; 0 when both are 0."""
    a, b = shares[..., first], shares[..., second]
    total = a + b
    return np.where(total > 0, (a - b) / np.where(total > 0, total, 1.0), 0.0)


@metric(
    MetricSpec(
        name="bias_at_k",
        kinds=("retrieval", "counterfactuals"),
        by_default=("counterfactuals",),
        aliases=("bias@k",),
        neutral=None,
        title="Bias@K",
        range=(-1.0, 1.0),
        harm="either",
        definition=(
            "(n of the first group − n of the second) / (their sum) in the top K, 0 when both are "
            "0; mean over queries."
        ),
        threshold=0.1,
        threshold_reason=SHARES,
        direction="Either: positive shows the first group more, negative the second.",
        chance="about the contrast of both groups' shares of the pool",
        reference=(
            "Wang et al. 2021, EMNLP, 'Are Gender-Neutral Queries Really Gender-Neutral?' (Bias@K)"
        ),
    ),
    form=partial(RankingMetric, repeats="max_skew", at_desired=contrast),
)
def bias_at_k(ranked: RankedLabels, first: int, second: int) -> Floats:
    """Bias@K: (n_first − n_second) / (n_first + n_second) among the K best; 0 when both are 0.

    In [-1, 1]; above 0 the first group is shown more. Two-sided p-value. `desired` does not
    enter the value: `.params["at_desired_shares"]` is what these shares would give.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.bias_at_k(scores, groups, k=10, first="men", second="women")
    <bias_at_k 1.000; chance −0.007, p ≤ 0.002, n = 40 in 2 groups>
    """
    return contrast(ranked.shares, first, second)
