"""Spread of the shares that groups have of the first K, about equal shares."""

from functools import partial

import numpy as np

from equipoise.core import Floats
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.statistics import RankedLabels, deviation
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import SHARES, MetricSpec


@metric(
    MetricSpec(
        name="retrieval_mad",
        kinds=("retrieval", "counterfactuals"),
        by_default=("retrieval",),
        neutral=None,
        title="Spread of retrieval shares",
        symbol="MAD",
        range=(0.0, 2.0),
        definition=(
            "Sum over groups of |p_j − mean of p|, with p_j the share of group j in the top K, "
            "over the groups of the pool; mean over queries."
        ),
        threshold=0.1,
        threshold_reason=SHARES,
        direction="Higher: groups are shown less equally.",
        chance="above 0, and far above for unequal pools: it compares with equal shares",
        reference=(
            "Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models', Table "
            "1"
        ),
    ),
    form=partial(RankingMetric, repeats="max_skew"),
)
def retrieval_mad(ranked: RankedLabels) -> Floats:
    """Sum over groups of |share of the K best − mean share|.

    A sum, as Chen & Dou print it and their tables have it, over the groups that are in the pool.
    It compares with equal shares: a pool of unequal groups has a chance level to match.
    In [0, 2), higher is worse.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.retrieval_mad(scores, groups, k=10)
    <retrieval_mad 1.000; chance 0.219, p ≤ 0.001, n = 40 in 2 groups>
    """
    comparable = ranked.compared.sum(axis=1) > 1
    return np.where(comparable, deviation(ranked.shares, ranked.compared), np.nan)
