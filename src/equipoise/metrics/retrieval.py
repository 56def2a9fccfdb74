"""Whom a ranking shows first: Skew@K, its extremes, NDKL, Bias@K and shares of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.core.groups import Groups
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.retrieval_chance import max_skew_distribution
from equipoise.metrics.retrieval_estimates import Asked, Exactly, Other, estimate
from equipoise.metrics.retrieval_pools import Floats, Pools, pools_of
from equipoise.metrics.retrieval_statistics import (
    Bias,
    Bools,
    Divergence,
    GroupSkew,
    MaxSkew,
    MinSkew,
    ShareDeviation,
    Statistic,
    contrast,
    skews,
)
from equipoise.metrics.retrieval_tops import Desired, desired_shares, rank
from equipoise.stats.resampling import Resampling

_SKEW = "Geyik et al. 2019, KDD, definition 2 (Skew@K, MaxSkew@K, MinSkew@K)"
_NDKL = "Geyik et al. 2019, KDD, definition 4 (NDKL)"
_BIAS = "Wang et al. 2021, EMNLP, 'Are Gender-Neutral Queries Really Gender-Neutral?' (Bias@K)"
_MAD = "Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models', Table 1"
_TWO = ("pool", "uniform")


def max_skew(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """MaxSkew@K: how much the most favoured group is over-represented among the K best.

    Skew@K of a group is ln(its share of the K best / its desired share). Items that tie at the
    K-th score share the places left, in expectation.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n)
        Similarity of each item to each query, higher is better.
    groups : array-like (n,), mapping of str to array-like, or Groups
        Groups of the items; intersections of any number of attributes. Items of which an
        attribute is missing are left out and counted.
    k : int
        How many of the best items count. A pool of k items or fewer is not estimable.
    desired : "pool", "uniform" or mapping of group name to share
        The group's share of the pool, equal shares of the groups in the pool, or given shares.
        Where "pool" and "uniform" differ, `.by` has the other one too.
    queries : array-like, optional
        With scores (queries, n): names of the queries. With scores (n,): the query whose pool
        each item belongs to, such as the subject that the image shows.
    within : array-like (n,), mapping of str to array-like, or Groups, optional
        Marginals: the pool is restricted to one value of this other attribute, for each value.
    sets : array-like (n,), optional
        Counterfactual set of each item: images that share all but the attributes. They share
        an image too, so that chance level and p-value are those of a random order of the
        members within each set; those of a random order of the pool stand in `.by`.
    units : array-like, optional
        Unit of each query, shaped as `queries`: its queries are resampled together.
    resampling : Bootstrap, Permutation, Exact or None
        None gives the value alone.
    rng : int
        Seed.

    Returns
    -------
    Estimate
        Mean over queries, 0 or above, higher is worse. Chance: the same when the order is
        random, far above 0 for small K or many groups; its mean is exact where that is feasible.
        Interval: percentile bootstrap over queries; one query has a chance band and p only.
        `.by` has one part per query, with the groups' shares.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, k is below 1, `desired` does not fit, or
        Exact is asked for and not feasible.

    References
    ----------
    Geyik et al. 2019, KDD; Howard et al. 2024, section 4.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(_extreme("max_skew", pools, k, desired), resampling, rng)


def min_skew(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """MinSkew@K: how much the least favoured group is under-represented among the K best.

    Parameters
    ----------
    scores, groups, k, desired, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries, 0 or below, lower is worse; -inf where a group is not among the K
        best at all, and so is its chance level where chance alone leaves a group out.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Geyik et al. 2019, KDD, definition 3.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(_extreme("min_skew", pools, k, desired), resampling, rng)


def skew_at_k(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    desired: Desired = "pool",
    group: str | None = None,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Skew@K of groups: ln(share of the K best / desired share).

    Parameters
    ----------
    group : str, optional
        Display name of the group whose skew is the value. Default: the largest over groups.
    scores, groups, k, desired, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries; above 0 over-represented, below 0 under-represented, -inf when absent
        from the K best. `.by` has per query the skews of all groups, and the mean over queries
        of every group ("group_skew"), with chance level and two-sided p-value.

    Raises
    ------
    InputError
        As `max_skew`, and when there is no such group.

    References
    ----------
    Geyik et al. 2019, KDD, definition 2.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(_skews(pools, k, desired, group), resampling, rng)


def ndkl(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """NDKL: discounted mean over the prefixes 1..k of KL(shares in the prefix ‖ desired shares).

    Parameters
    ----------
    k : int
        The last prefix: k = n takes the whole order. Howard et al. take the square of the K of
        their Skew@K. A pool of fewer than k items is not estimable.
    scores, groups, desired, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries in nats, 0 or above, higher is worse; inf where an item is shown of a
        group whose desired share is 0. Each prefix that ends within a tie counts the expected
        shares. Chance by permutation.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Geyik et al. 2019, KDD, definition 4; Howard et al. 2024.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    tops = rank(pools, k, whole=True)
    shares = desired_shares(desired, pools)[tops.pool]
    others = ()
    if (other := _other_target(desired, pools, tops.pool)) is not None:
        name, given = other
        others = (Other(f"ndkl_{name}", "", Divergence(given), "higher", each=True),)
    asked = Asked(
        "ndkl", _NDKL, "higher", pools, tops, Divergence(shares), others,
        params={"desired": _told(desired)},
    )  # fmt: skip
    return estimate(asked, resampling, rng)


def bias_at_k(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    *,
    k: int,
    desired: Desired = "pool",
    first: str | None = None,
    second: str | None = None,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Bias@K: (n_first − n_second) / (n_first + n_second) among the K best; 0 when both are 0.

    Parameters
    ----------
    desired : "pool", "uniform" or mapping of group name to share
        Does not enter the value: `.params["at_desired_shares"]` is what these shares would give.
    first, second : str, optional
        The groups that are set against each other. Default, for two groups: "male" and "female"
        as in the source where they are called so, else their order.
    scores, groups, k, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries, in [-1, 1]; above 0 the first group is shown more. Two-sided p-value.

    Raises
    ------
    InputError
        As `max_skew`, and when the two groups are not two different ones.

    References
    ----------
    Wang et al. 2021, EMNLP, section 3; Howard et al. 2024.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    names = _opposed(pools.groups, first, second)
    places = tuple(pools.groups.names.index(name) for name in names)
    tops = rank(pools, k)
    wanted = desired_shares(desired, pools)[tops.pool]
    asked = Asked(
        "bias_at_k", _BIAS, "either", pools, tops, Bias(*places, len(pools.groups)),
        params={
            "first": names[0],
            "second": names[1],
            "desired": _told(desired),
            "at_desired_shares": float(contrast(wanted, *places).mean()) if len(wanted) else np.nan,
        },
    )  # fmt: skip
    return estimate(asked, resampling, rng)


def retrieval_mad(  # noqa: PLR0913 - one keyword for each choice
    scores: Any,
    groups: Any,
    k: int = 100,
    *,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
    resampling: Resampling | None = DEFAULT,
    rng: int = 0,
) -> Estimate:
    """Sum over groups of |share of the K best − mean share|.

    A sum, as Chen & Dou print it and their tables have it, over the groups that are in the pool.
    It compares with equal shares: a pool of unequal groups has a chance level to match.

    Parameters
    ----------
    scores, groups, k, queries, within, sets, units, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries, in [0, 2), higher is worse. `.by` has one part per query, with the
        groups' shares.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Chen & Dou 2022, Table 1.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    tops = rank(pools, k)
    compared = (pools.sizes > 0)[tops.pool] & pools.groups.usable
    asked = Asked(
        "retrieval_mad", _MAD, "higher", pools, tops, ShareDeviation(compared)
    )
    return estimate(asked, resampling, rng)


_EXTREMES: dict[str, type[MaxSkew] | type[MinSkew]] = {"max_skew": MaxSkew, "min_skew": MinSkew}


def _extreme(metric: str, pools: Pools, k: int, desired: Desired) -> Asked:
    tops = rank(pools, k)
    kind, harm = _EXTREMES[metric], "higher" if metric == "max_skew" else "lower"
    given = desired_shares(desired, pools)
    compared = (given > 0) & pools.groups.usable
    others = ()
    if (other := _other_target(desired, pools, tops.pool)) is not None:
        name, shares = other
        beside = kind(shares, (shares > 0) & pools.groups.usable)
        others = (Other(f"{metric}_{name}", "", beside, harm, each=True),)
    exact = _ExactMaxSkew(pools, tops.k, given, compared) if metric == "max_skew" else None
    return Asked(
        metric, _SKEW, harm, pools, tops, kind(given[tops.pool], compared[tops.pool]), others,
        exact=exact, params={"desired": _told(desired)},
    )  # fmt: skip


def _skews(pools: Pools, k: int, desired: Desired, group: str | None) -> Asked:
    names = pools.groups.names
    if group is not None and group not in names:
        raise InputError(f"group={group!r}: no such group; expected one of {', '.join(names)}")
    tops = rank(pools, k)
    given = desired_shares(desired, pools)[tops.pool]
    each = [GroupSkew(given, index) for index in range(len(names))]
    main: Statistic = MaxSkew(given, (given > 0) & pools.groups.usable)
    return Asked(
        "skew_at_k",
        _SKEW,
        "higher" if group is None else "either",
        pools,
        tops,
        main if group is None else each[names.index(group)],
        tuple(
            Other("group_skew", name, one, "either") for name, one in zip(names, each, strict=True)
        ),
        show=lambda shares: skews(shares, given),
        shows=f"skew among the first {k}",
        params={"desired": _told(desired), "group": group or "largest over groups"},
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
    desired: Desired, pools: Pools, chosen: Any
) -> tuple[str, Floats] | None:
    """Return the other of "pool" and "uniform" where they differ."""
    if desired not in _TWO:
        return None
    name = _TWO[1 - _TWO.index(desired)]
    main, other = (desired_shares(one, pools)[chosen] for one in (desired, name))
    return None if np.allclose(main, other, rtol=0.0, atol=1e-12) else (name, other)


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
