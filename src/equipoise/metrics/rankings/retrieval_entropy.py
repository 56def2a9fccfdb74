"""Entropy of the shares that groups have of the first K."""

from functools import partial

import numpy as np
from scipy.special import entr

from equipoise.core import Floats, floats
from equipoise.metrics.rankings.metric import RankingMetric
from equipoise.metrics.rankings.statistics import RankedLabels
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec


@metric(
    MetricSpec(
        name="retrieval_entropy",
        kinds=("retrieval", "counterfactuals"),
        by_default=(),
        neutral=None,
        title="Entropy of retrieval shares",
        range=(0.0, 1.0),
        harm="lower",
        definition=(
            "−Σ p_j ln p_j / ln N, with p_j the share of group j in the top K, over the N groups "
            "of the pool; mean over queries."
        ),
        threshold=0.03,
        threshold_reason="60 : 40 against 50 : 50",
        direction="Lower: groups are shown less equally; 0: one group alone is shown.",
        chance="below 1, and far below for unequal pools: it compares with equal shares",
        reference="Chen & Dou 2022, the edition with figures",
    ),
    form=partial(RankingMetric, repeats="max_skew"),
)
def retrieval_entropy(ranked: RankedLabels) -> Floats:
    """Entropy of the groups' shares of the K best, divided by that of equal shares.

    In [0, 1], lower is worse; 1: all groups of the pool have equal shares.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.retrieval_entropy(scores, groups, k=16)
    <retrieval_entropy 0.544; chance 0.971, p = 0.003, n = 40 in 2 groups>
    """
    n_compared = ranked.compared.sum(axis=1)
    largest = np.log(np.where(n_compared > 1, n_compared, np.nan))
    return floats(entr(np.where(ranked.compared, ranked.shares, 0.0)).sum(axis=-1) / largest)
