"""What each retrieval metric computes: its statistic, its parts, its exact chance level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Harm
from equipoise.core.groups import Groups
from equipoise.metrics.rankings.chance import max_skew_distribution
from equipoise.metrics.rankings.estimates import Asked, Exactly, Other
from equipoise.metrics.rankings.pools import Floats, Pools
from equipoise.metrics.rankings.statistics import (
    Bias,
    Bools,
    Divergence,
    GroupSkew,
    MaxSkew,
    MinSkew,
    ShareDeviation,
    contrast,
    discounted_shares,
    skews,
)
from equipoise.metrics.rankings.tops import Desired, Ranking, desired_shares
from equipoise.metrics.spec import OVER_QUERIES, RANDOM_ORDER, SHARES, MetricSpec, register

SKEW = "Geyik et al. 2019, KDD (Skew@K, MaxSkew@K, MinSkew@K)"
NDKL = "Geyik et al. 2019, KDD (NDKL)"


def asked_max_skew(ranking: Ranking, k: int, desired: Desired) -> Asked:
    """Return MaxSkew@K, with that of the other target beside it."""
    pools = ranking.pools
    given = desired_shares(desired, pools)
    exact = _ExactMaxSkew(pools, k, given, (given > 0) & pools.groups.usable)
    return _extreme("max_skew", "higher", MaxSkew, ranking, k, desired, exact)


def asked_min_skew(ranking: Ranking, k: int, desired: Desired) -> Asked:
    """Return MinSkew@K, with that of the other target beside it."""
    return _extreme("min_skew", "lower", MinSkew, ranking, k, desired)


def asked_skews(ranking: Ranking, k: int, desired: Desired, group: str | None) -> Asked:
    """Return Skew@K of a group, or the largest, with that of every group beside it."""
    names = ranking.pools.groups.names
    if group is not None and group not in names:
        raise InputError(f"group={group!r}: no such group; expected one of {', '.join(names)}")
    pools, tops = ranking.pools, ranking.tops(k)
    given = desired_shares(desired, pools)[tops.pool]
    each = [GroupSkew(given, index) for index in range(len(names))]
    largest = MaxSkew(given, (given > 0) & pools.groups.usable)
    return Asked(
        metric="skew_at_k",
        harm="higher" if group is None else "either",
        pools=pools,
        tops=tops,
        statistic=largest if group is None else each[names.index(group)],
        others=tuple(
            Other("group_skew", name, one, "either") for name, one in zip(names, each, strict=True)
        ),
        show=lambda shares: skews(shares, given),
        shows=f"skew among the first {k}",
        params={"desired": _told(desired), "group": group or "largest over groups"},
    )


def asked_ndkl(ranking: Ranking, k: int, desired: Desired) -> Asked:
    """Return NDKL over the first k prefixes, with that of the other target beside it."""
    pools, tops = ranking.pools, ranking.tops(k, whole=True)
    other = _other_target(desired, pools, tops.pool)
    beside = [] if other is None else [(f"ndkl_{other[0]}", Divergence(other[1]))]
    return Asked(
        metric="ndkl",
        harm="higher",
        pools=pools,
        tops=tops,
        statistic=Divergence(desired_shares(desired, pools)[tops.pool]),
        others=tuple(Other(name, "", one, "higher", each=True) for name, one in beside),
        shown=discounted_shares,
        shows=f"share of the first {tops.k} weighted by place",
        params={"desired": _told(desired)},
    )


def asked_bias(
    ranking: Ranking, k: int, desired: Desired, first: str | None, second: str | None
) -> Asked:
    """Return Bias@K of two groups."""
    names = _opposed(ranking.pools.groups, first, second)
    one, other = (ranking.pools.groups.names.index(name) for name in names)
    pools, tops = ranking.pools, ranking.tops(k)
    wanted = desired_shares(desired, pools)[tops.pool]
    return Asked(
        metric="bias_at_k",
        harm="either",
        pools=pools,
        tops=tops,
        statistic=Bias(one, other, len(pools.groups)),
        params={
            "first": names[0],
            "second": names[1],
            "desired": _told(desired),
            "at_desired_shares": float(contrast(wanted, one, other).mean())
            if len(wanted)
            else np.nan,
        },
    )


def asked_mad(ranking: Ranking, k: int) -> Asked:
    """Return the sum of the shares' absolute deviations from their mean."""
    pools, tops = ranking.pools, ranking.tops(k)
    compared = (pools.sizes > 0)[tops.pool] & pools.groups.usable
    return Asked("retrieval_mad", "higher", pools, tops, ShareDeviation(compared))


def _extreme(
    metric: str,
    harm: Harm,
    kind: type[MaxSkew] | type[MinSkew],
    ranking: Ranking,
    k: int,
    desired: Desired,
    exact: _ExactMaxSkew | None = None,
) -> Asked:
    pools, tops = ranking.pools, ranking.tops(k)
    usable = pools.groups.usable
    given = desired_shares(desired, pools)[tops.pool]
    other = _other_target(desired, pools, tops.pool)
    beside = [] if other is None else [(f"{metric}_{other[0]}", other[1])]
    return Asked(
        metric=metric,
        harm=harm,
        pools=pools,
        tops=tops,
        statistic=kind(given, (given > 0) & usable),
        others=tuple(
            Other(name, "", kind(shares, (shares > 0) & usable), harm, each=True)
            for name, shares in beside
        ),
        exact=exact,
        params={"desired": _told(desired)},
    )


@dataclass(frozen=True, eq=False)
class _ExactMaxSkew:
    """Every MaxSkew@K of a pool in random order; groups of one size and share are alike."""

    pools: Pools
    k: int
    desired: Floats
    compared: Bools

    def __call__(self, index: int) -> Exactly | None:
        rows = zip(
            self.pools.sizes[index].tolist(), self.desired[index].tolist(),
            self.compared[index].tolist(), strict=True,
        )  # fmt: skip
        sizes, desired, compared = zip(*sorted(rows), strict=True)
        if sum(compared) < 2:
            return None
        return max_skew_distribution(sizes, self.k, desired, compared)


def _other_target(
    desired: Desired, pools: Pools, chosen: npt.NDArray[np.int64]
) -> tuple[str, Floats] | None:
    """Return the other of "pool" and "uniform" where they differ."""
    if isinstance(desired, Mapping):
        return None
    name: Desired = "uniform" if desired == "pool" else "pool"
    main, other = (desired_shares(one, pools)[chosen] for one in (desired, name))
    return None if np.allclose(main, other, rtol=0.0, atol=1e-12) else (str(name), other)


def _told(desired: Desired) -> str | dict[str, float]:
    return desired if isinstance(desired, str) else {str(g): float(p) for g, p in desired.items()}


def _opposed(groups: Groups, first: str | None, second: str | None) -> tuple[str, str]:
    names = groups.names
    if first is None and second is None and len(names) == 2:
        plain = [name.lower() for name in names]
        return (names[1], names[0]) if plain == ["female", "male"] else (names[0], names[1])
    for what, name in (("first", first), ("second", second)):
        if name is None or str(name) not in names:
            raise InputError(f"{what}={name!r}: no such group; expected one of {', '.join(names)}")
    if str(first) == str(second):
        raise InputError(f"first and second are both {first!r}; expected two different groups")
    return str(first), str(second)


_skew = partial(
    MetricSpec,
    kinds=("retrieval", "counterfactuals"),
    unit="log ratio",
    threshold=0.22,
    threshold_reason="ln 1.25, the ratio of the four-fifths rule",
    interval=OVER_QUERIES,
    null=RANDOM_ORDER,
    parameters={"k": "images that count", "desired": "pool, uniform or shares"},
    reference=SKEW,
)
register(
    _skew(
        name="max_skew",
        title="MaxSkew@K",
        range="[0, ln(1 / smallest desired share)] where desired shares are those of the pool",
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
            "In the top K{model}{subject}, the most over-represented group appears {value} as "
            "often as desired{groups}."
        ),
        reference=SKEW,
    )
)
register(
    _skew(
        name="min_skew",
        title="MinSkew@K",
        range="[−∞, 0] where desired shares are those of the pool",
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
            "In the top K{model}{subject}, the most under-represented group appears {value} as "
            "often as desired{groups}."
        ),
    )
)
register(
    _skew(
        name="skew_at_k",
        title="Skew@K",
        range="[−∞, ln(1 / smallest desired share)]",
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
        sentence=("In the top K{model}, the share{subject} is {value} the desired share{groups}."),
    )
)
register(
    MetricSpec(
        name="ndkl",
        title="NDKL",
        kinds=("retrieval", "counterfactuals"),
        range="[0, ln(1 / smallest desired share)]",
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
        interval=OVER_QUERIES,
        null=RANDOM_ORDER,
        parameters={
            "k": "the last prefix; Howard et al. take the square of their K",
            "desired": "pool, uniform or shares",
        },
        reference=NDKL,
    )
)
register(
    MetricSpec(
        name="bias_at_k",
        title="Bias@K",
        kinds=("retrieval", "counterfactuals"),
        range="[−1, 1]",
        harm="either",
        definition=(
            "(n of the first group − n of the second) / (their sum) in the top K, 0 when both are "
            "0; mean over queries."
        ),
        threshold=0.1,
        threshold_reason=SHARES,
        direction="Either: positive shows the first group more, negative the second.",
        chance="about the contrast of both groups' shares of the pool",
        interval=OVER_QUERIES,
        null=RANDOM_ORDER,
        parameters={
            "k": "images that count",
            "first": "group counted as positive",
            "second": "group counted as negative",
        },
        reference=(
            "Wang et al. 2021, EMNLP, 'Are Gender-Neutral Queries Really Gender-Neutral?' (Bias@K)"
        ),
    )
)
register(
    MetricSpec(
        name="retrieval_mad",
        title="Spread of retrieval shares",
        symbol="MAD",
        kinds=("retrieval", "counterfactuals"),
        range="[0, 2)",
        definition=(
            "Sum over groups of |p_j − mean of p|, with p_j the share of group j in the top K, "
            "over the groups of the pool; mean over queries."
        ),
        threshold=0.1,
        threshold_reason=SHARES,
        direction="Higher: groups are shown less equally.",
        chance="above 0, and far above for unequal pools: it compares with equal shares",
        interval=OVER_QUERIES,
        null=RANDOM_ORDER,
        parameters={"k": "images that count: 100"},
        reference=(
            "Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models', Table "
            "1"
        ),
    )
)
