"""Whom a ranking shows first: Skew@K, its extremes, NDKL, Bias@K and shares of groups."""

from __future__ import annotations

from typing import Any

from equipoise.core.estimate import Estimate
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.estimates import estimate
from equipoise.metrics.rankings.pools import pools_of
from equipoise.metrics.rankings.requests import (
    asked_bias,
    asked_mad,
    asked_max_skew,
    asked_min_skew,
    asked_ndkl,
    asked_skews,
)
from equipoise.metrics.rankings.tops import Desired, Ranking
from equipoise.stats.resampling import Resampling


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
    scores : array-like, shape (n,) or (queries, n), or CosineScores
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
    Geyik et al. 2019, KDD; Howard et al. 2024.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(asked_max_skew(Ranking.of(pools, k), k, desired), resampling, rng)


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
    Geyik et al. 2019, KDD.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(asked_min_skew(Ranking.of(pools, k), k, desired), resampling, rng)


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
    Geyik et al. 2019, KDD.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(asked_skews(Ranking.of(pools, k), k, desired, group), resampling, rng)


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
    Geyik et al. 2019, KDD; Howard et al. 2024.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(asked_ndkl(Ranking.of(pools, k), k, desired), resampling, rng)


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
    Wang et al. 2021, EMNLP; Howard et al. 2024.
    """
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    return estimate(asked_bias(Ranking.of(pools, k), k, desired, first, second), resampling, rng)


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
    return estimate(asked_mad(Ranking.of(pools, k), k), resampling, rng)
