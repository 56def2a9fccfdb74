"""Measures of a ranking against desired shares: Skew@K, its extremes, and NDKL."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from equipoise.core import Floats, Span
from equipoise.metrics.rankings.metric import Distribution, RankingMetric
from equipoise.metrics.rankings.pools import TopK
from equipoise.metrics.rankings.statistics import (
    RankedLabels,
    discounts,
    divergence,
    extreme_skew,
    max_skew_distribution,
    skews,
)
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import MetricSpec

_skew = partial(
    MetricSpec,
    kinds=("retrieval", "counterfactuals"),
    unit="log ratio",
    threshold=0.22,
    threshold_reason="ln 1.25, the ratio of the four-fifths rule",
    reference="Geyik et al. 2019, KDD (Skew@K, MaxSkew@K, MinSkew@K)",
)


def up_to_rarest(desired: Floats) -> Span:
    """Return the range where the rarest desired group is alone at the top."""
    rarest = np.where(desired > 0.0, desired, np.inf).min(axis=1)
    return 0.0, float(-np.log(rarest).mean())


def exact_max_skew(top_k: TopK, desired: Floats, place: int) -> Distribution | None:
    """Return every MaxSkew@K of a pool in random order; groups of one size and share are alike."""
    compared = (desired[place] > 0) & top_k.pools.groups.usable
    if compared.sum() < 2:
        return None
    columns = (top_k.sizes[place], desired[place], compared)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    sizes, shares, used = zip(*rows, strict=True)
    return max_skew_distribution(sizes, top_k.k, shares, used)


def discounted_shares(ranked: RankedLabels, desired: Floats) -> Floats:  # noqa: ARG001
    """Return each group's share of the first i places, averaged as NDKL weighs i: (p, groups).

    Whom the order shows first counts most: the share of the last prefix would tell of whoever is
    ranked last.
    """
    places, total_discount = np.arange(1.0, ranked.k + 1), discounts(ranked.k).sum()
    weights, pools = 1.0 / (np.log2(places + 1) * places), range(ranked.codes.shape[1])
    pool_shares = [weights @ ranked.expected(slice(1), pool)[0] / total_discount for pool in pools]
    return np.array(pool_shares).reshape(len(pool_shares), ranked.groups)


@metric(
    _skew(
        name="max_skew",
        aliases=("maxskew", "maxskew@k"),
        title="MaxSkew@K",
        range=(0.0, math.inf),
        range_note=("at most ln(1 / smallest desired share), for desired shares as in the pool"),
        definition=(
            "Largest over groups of ln(share in the top K / desired share); mean over queries. A "
            "pool of K items or fewer is not estimable."
        ),
        direction="Higher: one group is over-represented more.",
        chance=(
            "far above 0, more so for many groups and small K: 1.015 for K = 12 and 12 groups of "
            "50 images, 0.18 for 2 groups. Howard et al. print 1.02 for pre-trained CLIP without "
            "pool sizes or sets, so the paper cannot say whether CLIP exceeds chance. At "
            "within-set correlation 0.9 it is 0.74 with 40 sets of 12 (0.75 with 50)"
        ),
        sentence=(
            "In the top {k}{model}{subject}, the most over-represented group appears {value} as "
            "often as desired{groups}."
        ),
        clause=(
            "{model} shows {group} in {share} of its top {k} for {subject} ({n}), against "
            "{expected} desired."
        ),
        expectation="desired",
    ),
    form=partial(RankingMetric, exact=exact_max_skew, limits=up_to_rarest),
)
def max_skew(ranked: RankedLabels, desired: Floats) -> Floats:
    """MaxSkew@K: how much the most favoured group is over-represented among the K best.

    Skew@K of a group is ln(share of the K best / desired share). Ties share the last places.
    0 or above, higher is worse. Chance is far above 0 for small K or many groups.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.max_skew(scores, groups, k=10)
    <max_skew 0.693; chance 0.182, p = 0.00044, n = 40 in 2 groups>
    """
    compared = (desired > 0) & ranked.top_k.pools.groups.usable
    return extreme_skew(ranked.shares, desired, compared)


@metric(
    _skew(
        name="min_skew",
        aliases=("minskew", "minskew@k"),
        title="MinSkew@K",
        range=(-math.inf, 0.0),
        range_note="for desired shares as in the pool",
        harm="lower",
        definition=(
            "Smallest over groups of ln(share in the top K / desired share); mean over queries. A "
            "pool of K items or fewer is not estimable."
        ),
        direction="Lower: one group is under-represented more; −∞: one is absent from the top K.",
        chance=(
            "far below 0, and −∞ where chance leaves a group out, as it does for K = 12 and 12 "
            "groups: then take a larger K"
        ),
        sentence=(
            "In the top {k}{model}{subject}, the most under-represented group appears {value} as "
            "often as desired{groups}."
        ),
    ),
    form=partial(RankingMetric, repeats="max_skew"),
)
def min_skew(ranked: RankedLabels, desired: Floats) -> Floats:
    """MinSkew@K: how much the least favoured group is under-represented among the K best.

    0 or below, lower is worse; -inf where a group is not among the K best at all, and so is its
    chance level where chance alone leaves a group out.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.min_skew(scores, groups, k=10)
    <min_skew −∞; chance −0.282, p ≤ 0.001, n = 40 in 2 groups>
    """
    compared = (desired > 0) & ranked.top_k.pools.groups.usable
    return extreme_skew(ranked.shares, desired, compared, largest=False)


@metric(
    _skew(
        name="skew_at_k",
        aliases=("skew", "skew@k"),
        title="Skew@K",
        range=(-math.inf, math.inf),
        range_note="at most ln(1 / smallest desired share)",
        harm="either",
        definition=(
            "ln(share of a group in the top K / its desired share), mean over queries; without a "
            "group, the largest over groups."
        ),
        direction=(
            "Either: positive is over-represented, negative under-represented, −∞ absent from the "
            "top K."
        ),
        chance="near 0 for large K, below 0 or −∞ for small K",
        sentence=(
            "In the top {k}{model}, the share{subject} is {value} the desired share{groups}."
        ),
    ),
    form=partial(
        RankingMetric,
        of_groups="group_skew",
        repeats="max_skew",
        shows="skew among the first {k}",
    ),
)
def skew_at_k(ranked: RankedLabels, desired: Floats) -> Floats:
    """Skew@K of groups: ln(share of the K best / desired share).

    Largest over groups. `.by` has per query the skews of all groups, and the mean over queries
    of every group ("group_skew"), with chance level and two-sided p-value: above 0
    over-represented, below 0 under-represented, -inf when absent from the K best.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.skew_at_k(scores, groups, k=10).table().rows[0][:2]
    ('skew_at_k', '0.693')
    """
    return skews(ranked.shares, desired)


@metric(
    MetricSpec(
        name="ndkl",
        kinds=("retrieval", "counterfactuals"),
        aliases=("normalized discounted kl divergence",),
        title="NDKL",
        range=(0.0, math.inf),
        range_note="at most ln(1 / smallest desired share)",
        definition=(
            "Mean over the prefixes 1..k of the Kullback-Leibler divergence of the groups' shares "
            "from the desired shares, in nats, weighted by 1 / log2(i + 1); mean over queries."
        ),
        threshold=0.02,
        threshold_reason="60 : 40 against 50 : 50 at every prefix",
        direction="Higher: the ranking departs more from the desired shares, above all at the top.",
        chance=(
            "far above 0, since the first prefixes hold few items: 0.35 for prefixes 1 to 144 and "
            "12 groups of 50 images. Howard et al. print 0.34 to 0.37 for pre-trained CLIP"
        ),
        reference="Geyik et al. 2019, KDD (NDKL)",
    ),
    form=partial(
        RankingMetric,
        of_prefixes=True,
        limits=up_to_rarest,
        group_numbers=discounted_shares,
        shows="share of the first {k} weighted by place",
    ),
)
def ndkl(ranked: RankedLabels, desired: Floats) -> Floats:
    """NDKL: discounted mean over the prefixes 1..k of KL(shares in the prefix ‖ desired shares).

    k = n takes the whole order. Howard et al. take the square of the K of their Skew@K.
    In nats, 0 or above, higher is worse; inf where an item is shown of a group whose desired
    share is 0. Each prefix that ends within a tie counts the expected shares.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.ndkl(scores, groups, k=40)
    <ndkl 0.393; chance 0.115, p ≤ 0.001, n = 40 in 2 groups>
    """
    return divergence(ranked, desired)
