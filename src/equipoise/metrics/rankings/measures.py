"""Whom a ranking shows first: Skew@K, its extremes, NDKL, Bias@K, shares, and curves over K."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from equipoise.core import (
    Ends,
    Estimate,
    Facts,
    Fields,
    Floats,
    GroupLabels,
    Groups,
    Harm,
    InputError,
    Integers,
    Integers32,
    Labels,
    NullHypothesis,
    Part,
    Span,
    Strings,
    Variant,
    floats,
    nans,
    numbered,
    parts_to_table,
    record,
    tally,
    unwarned,
)
from equipoise.metrics.building import (
    SCORE,
    ChanceTest,
    bootstrap_method,
    chance_columns,
    compare_with_chance,
    ends_of,
    explain_undefined,
    group_columns,
    no_chance_reason,
    part,
    parts_with_defaults,
    too_small,
)
from equipoise.metrics.measure import DEFAULT, MAX_DRAWN_CELLS, Draws
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.exchange import UNITS, exchange_labels
from equipoise.metrics.rankings.pools import (
    Desired,
    Pool,
    Pools,
    Ranking,
    TopK,
    desired_shares,
    pools_of,
)
from equipoise.metrics.rankings.statistics import (
    RankedLabels,
    Statistic,
    contrast,
    discounted,
    discounted_shares,
    divergence,
    entropy,
    extreme_skew,
    group_skew,
    max_skew_distribution,
    prefixes,
    share_deviation,
    skews,
)
from equipoise.metrics.spec import (
    ANY_NUMBER,
    OVER_QUERIES,
    RANDOM_ORDER,
    SHARES,
    SPECS,
    MetricSpec,
    is_main,
    make_estimate,
    register,
)
from equipoise.stats.chance import band
from equipoise.stats.intervals import ClosedForm, jackknife_score, order_statistic, percentile
from equipoise.stats.resampling import Bootstrap, Resampling, level_of, null_draws
from equipoise.stats.streams import Seed, unit_counts, unit_keys

Distribution = tuple[Floats, Floats]
"""Values and their probabilities."""

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"
_NO_INTERVAL = "none: use Bootstrap() and queries of several subjects"
_FEW = "fewer than two groups with rows enough"


@record
class SecondaryStatistic:
    """A secondary number of a metric, with parts of its own.

    Attributes
    ----------
    metric, subject : str
        Of the part of the mean over queries. Without a subject every query has a part too.
    statistic : Statistic
    harm : "higher", "lower" or "either"
    variant : Variant
    limits : (float, float)
        Least and greatest value.
    """

    metric: str
    subject: str
    statistic: Statistic
    harm: Harm
    variant: Variant = Variant.MAIN
    limits: Span = ANY_NUMBER


_TARGETS: Mapping[str, Variant] = MappingProxyType(
    {"uniform": Variant.UNIFORM_TARGET, "pool": Variant.POOL_TARGET}
)


@record
class RankingSpec:
    """A ranking metric: its statistic, harm, parts and parameters.

    Attributes
    ----------
    metric : str
    top_k : TopK
    statistic : Statistic
    harm : "higher", "lower" or "either"
    secondary : tuple of SecondaryStatistic
    exact : callable, optional
        Every value under random order of a pool (index into `top_k`), with its probability.
    group_numbers : callable
        What a part shows per group, (p, groups), from the ranked labels; default: the shares.
    shows : str
        The same in words.
    params : mapping
    limits : (float, float)
        Least and greatest value.
    """

    metric: str
    top_k: TopK
    statistic: Statistic
    harm: Harm
    secondary: tuple[SecondaryStatistic, ...] = ()
    exact: Callable[[int], Distribution | None] | None = None
    group_numbers: Callable[[RankedLabels], Floats] = lambda ranked: ranked.shares[0]
    shows: str = ""
    params: Facts = field(default_factory=dict)
    limits: Span = ANY_NUMBER

    def left_out(self, index: int) -> str:
        """Say why a pool is not estimable; "" where it is."""
        if index in self.top_k.pool:
            return ""
        pools = self.top_k.pools
        if not len(pools.pools[index].items):
            return "no item to rank"
        comparable = (pools.sizes[index] > 0).sum() > 1
        return "too small a pool for k" if comparable else "one group in the pool"


def order_null(pools: Pools) -> str:
    """Return the null hypothesis of a random order, as text."""
    if pools.paired:
        return SET_ORDER
    return POOL_ORDER if pools.units is None else UNITS


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(cells, 1))


def query_weights(
    pools: Pools, chosen: Integers, resampling: Resampling | None, rng: Seed
) -> Floats | None:
    """Return how often each pool's subject is in each bootstrap replicate, shape (replicates, p).

    Subjects that rank images alike are resampled together. None without a bootstrap, and where all
    pools are of one subject.
    """
    subjects = pools.resampled_with(chosen)
    if not isinstance(resampling, Bootstrap) or len(set(subjects)) < 2:
        return None
    return floats(unit_counts(rng, unit_keys(subjects), range(resampling.replicates)))


def weighted_mean(weights: Floats, values: Floats) -> Floats:
    """Return means over pools in every replicate; (r, p) and (p, ...) to (r, ...).

    Values of weight 0 do not enter, infinite ones neither.
    """
    shaped = weights.reshape(*weights.shape, *(1,) * (values.ndim - 1))
    with unwarned():
        sums = np.where(shaped > 0, shaped * values, 0.0).sum(axis=1)
        return floats(sums / shaped.sum(axis=1))


def mean_ends(limits: Span, top_k: TopK, draws: Draws) -> Ends:
    """Return the ends of the mean over queries, by the jackknife over their subjects.

    They are within the range of the metric. Percentiles of replicates where a query's number is
    infinite.
    """
    values, pools = draws.observed[1:], top_k.pools
    if draws.boot is None or not np.isfinite(values).all():
        return ends_of(draws.boot, 0)
    subject = numbered(pools.resampled_with(top_k.pool))
    remaining = len(values) - np.bincount(subject)
    left_out = (values.sum() - np.bincount(subject, values)) / remaining
    return ClosedForm(jackknife_score, (draws.observed[0], (left_out,), limits))


def exchanged(
    top_k: TopK,
    function: Callable[[RankedLabels], Sequence[Floats]],
    resampling: Resampling | None,
    rng: Seed,
) -> list[Floats] | None:
    """Return numbers with exchanged labels, or None if no exchange changes them.

    In pools, units exchange their groups as wholes.
    """
    if resampling is None:
        return None
    pools, items = top_k.pools, top_k.items

    def block(codes: Integers32) -> Sequence[Floats]:
        return function(RankedLabels(codes, top_k))

    within = pools.member
    stratum, units = (pools.block, pools.units) if within is None else (within, None)
    n_draws = permutations(resampling, items.size if units is None else max(items.size, len(units)))
    rows = pools.groups.codes, stratum, units
    blocks = exchange_labels(block, rows, items, n_draws, rng, "retrieval")
    return [np.concatenate(values) for values in zip(*blocks, strict=True)] or None


def estimates(
    measures: Sequence[RankingSpec], resampling: Resampling | None, rng: Seed
) -> list[Estimate]:
    """Turn measures into estimates; measures of one ranking and K share draws."""
    by_measure: dict[int, Estimate] = {}
    for top_k in {id(measure.top_k): measure.top_k for measure in measures}.values():
        sharing = [measure for measure in measures if measure.top_k is top_k]
        observed, all_statistics, main_statistics = RankedLabels.of(top_k), [], []
        for measure in sharing:
            all_statistics.append(measure.statistic)
            all_statistics += [secondary.statistic for secondary in measure.secondary]
            if top_k.pools.paired:
                main_statistics.append(measure.statistic)
        main = _draws(observed, all_statistics, resampling, rng)
        without_sets = replace(top_k, pools=replace(top_k.pools, member=None))
        pooled = _draws(RankedLabels.of(without_sets), main_statistics, resampling, rng)
        for measure in sharing:
            draws = [next(main) for _ in (measure, *measure.secondary)]
            by_measure[id(measure)] = _estimate(
                measure, observed, draws, next(pooled, None), resampling
            )
    return [by_measure[id(measure)] for measure in measures]


def _draws(
    observed: RankedLabels,
    statistics: Sequence[Statistic],
    resampling: Resampling | None,
    rng: Seed,
) -> Iterator[Draws]:
    """Yield each statistic: the mean over pools first, and each pool after it."""
    if not statistics:
        return
    top_k = observed.top_k
    # Without a ranking there is nothing to exchange.
    resampled = resampling if len(top_k.pool) else None

    def numbers(ranked: RankedLabels) -> list[Floats]:
        return [statistic(ranked) for statistic in statistics]

    null = exchanged(top_k, numbers, resampled, rng)
    weights = query_weights(top_k.pools, top_k.pool, resampling, rng)
    for place, (values,) in enumerate(numbers(observed)):
        yield Draws.of(
            resampling,
            np.append(values.mean() if len(values) else np.nan, values),
            None if weights is None else weighted_mean(weights, values)[:, None],
            None if null is None else np.column_stack([null[place].mean(axis=1), null[place]]),
            order_null(top_k.pools),
        )


def _estimate(
    measure: RankingSpec,
    observed: RankedLabels,
    draws: Sequence[Draws],
    pooled: Draws | None,
    resampling: Resampling | None,
) -> Estimate:
    top_k, value = measure.top_k, float(draws[0].observed[0])
    pools = top_k.pools
    exact = _exact(measure) if resampling is not None else {}
    ends, chance_test = (
        mean_ends(measure.limits, top_k, draws[0]),
        _compare_mean(measure, draws[0], exact),
    )

    def parts() -> pa.Table:
        tables = [_query_parts(measure, observed, draws[0], exact)]
        for extra, extra_draws in zip(measure.secondary, draws[1:], strict=True):
            tables += _secondary_tables(measure, extra, extra_draws)
        if pooled is not None:
            pool_order_test = compare_with_chance(pooled, 0, measure.harm)
            secondary = part(
                measure.metric, "", pooled, 0, ends=ends, chance_test=pool_order_test,
                n=int(top_k.sizes.sum()), variant=Variant.POOL_ORDER,
                shows=f"secondary null: {POOL_ORDER}",
            )  # fmt: skip
            tables.append(parts_to_table([secondary]))
        return pa.concat_tables(tables).combine_chunks()

    reasons = map(measure.left_out, range(len(pools.pools)))
    left_out = Counter(f"queries with {reason}" for reason in reasons if reason)
    null: Fields = {"null": "pool order"}
    if pools.paired:
        null = {"null": "order within sets", "items_without_set": pools.without_set}
    method = bootstrap_method(draws[0].boot, resampling, "queries", _NO_INTERVAL)
    if isinstance(ends, ClosedForm) and ends.function is jackknife_score:
        method = f"{SCORE} over queries"
    reason = "no query can be estimated: " + measure.left_out(0) if not len(top_k.pool) else _FEW
    return make_estimate(
        measure.metric,
        value,
        pools.counts,
        method,
        params={
            "k": top_k.k,
            **measure.params,
            "queries": len(pools.pools),
            "tied_items": int(top_k.ties.sum()),
            "queries_with_ties": tally(top_k.ties > 0),
            **null,
        },
        null=exchange_of(pools) if chance_test.null_drawn else NullHypothesis.NONE,
        **chance_test.fields(no_chance_reason(value, resampling)),
        harm=measure.harm,
        by=parts,
        excluded={**pools.excluded, **left_out, "empty groups": pools.empty},
        unit="query",
        reason=explain_undefined(value, reason),
        ends=ends,
    )


def _compare_mean(
    measure: RankingSpec, draws: Draws, exact: Mapping[int, Distribution]
) -> ChanceTest:
    """Hold the mean over queries against chance, exact where every query has exact chance."""
    queries = len(measure.top_k.pool)
    if len(exact) == queries == 1:
        return compare_with_chance(_enumerated(draws, 0, exact[0]), 0, measure.harm)
    chance_test = compare_with_chance(draws, 0, measure.harm)
    if exact and len(exact) == queries and chance_test.chance:
        mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
        chance_test = replace(chance_test, chance=replace(chance_test.chance, mean=mean))
    return chance_test


def exchange_of(pools: Pools) -> NullHypothesis:
    """Return the exchangeable units of pools: members of sets, units or items."""
    if pools.paired:
        return NullHypothesis.WITHIN_SETS
    return NullHypothesis.POOL_ORDER if pools.units is None else NullHypothesis.UNITS


def _exact(measure: RankingSpec) -> dict[int, Distribution]:
    """Return exact chance by place in `top_k`, of the pools that have it."""
    exact_chance: dict[int, Distribution] = {}
    pools = measure.top_k.pools
    if measure.exact is not None and not pools.paired and pools.units is None:
        for place in np.flatnonzero(measure.top_k.ties == 0).tolist():
            distribution = measure.exact(place)
            exact_chance |= {} if distribution is None else {place: distribution}
    return exact_chance


def _enumerated(draws: Draws, place: int, exact: Distribution) -> Draws:
    """Return one pool with every value that random order can give."""
    null, text = exact[0][:, None], f"{POOL_ORDER}; all selections"
    return Draws(draws.observed[[place + 1]], None, (null,), exact[1], draws.level, text)


def _query_parts(
    measure: RankingSpec, observed: RankedLabels, draws: Draws, exact: Mapping[int, Distribution]
) -> pa.Table:
    """Return a part per pool; a pool that can't be estimated has a reason.

    Column by column: there may be thousands of queries, each with a dozen groups.
    """
    pools, chosen = measure.top_k.pools, measure.top_k.pool
    groups = pools.groups
    group_numbers = nans(pools.sizes.shape)
    group_numbers[chosen] = measure.group_numbers(observed)
    numbers = chance_columns(draws, range(1, len(chosen) + 1), measure.harm)
    for place, distribution in exact.items():
        enumerated = _enumerated(draws, place, distribution)
        for name, column in chance_columns(enumerated, range(1), measure.harm).items():
            numbers[name][place] = column[0]
    by_pool = {}
    for name, values in {"value": draws.observed[1:], **numbers}.items():
        by_pool[name] = nans(len(pools.pools))
        by_pool[name][chosen] = values
    reasons = [
        measure.left_out(index) or explain_undefined(value, _FEW)
        for index, value in enumerate(by_pool["value"])
    ]
    shows, text = [""] * len(reasons), measure.shows or f"share of the first {measure.top_k.k}"
    for index, ties in zip(chosen.tolist(), measure.top_k.ties.tolist(), strict=True):
        shows[index] = f"{text}; {ties} items tie for its last places" if ties else text
    nothing = nans(pools.sizes.shape)
    small = np.where(groups.usable, "", too_small(groups))
    note = np.where(pools.sizes > 0, small, "not in the pool")
    sizes = floats(pools.sizes)
    by_group = group_columns(groups, sizes, group_numbers, nothing, nothing, note)
    return parts_with_defaults(
        measure.metric, None, **_subjects(pools.pools), **by_pool, reason=reasons,
        shows=shows, n=pools.sizes.sum(axis=1), by_group=by_group,
    )  # fmt: skip


def _subjects(pools: Sequence[Pool]) -> dict[str, list[str | None]]:
    """Return the columns of parts that name the pools."""
    return {
        "subject": [pool.name for pool in pools],
        "part_of": [pool.part_of for pool in pools],
        "within_value": [pool.within_value for pool in pools],
    }


def _secondary_tables(
    measure: RankingSpec, extra: SecondaryStatistic, draws: Draws
) -> Iterator[pa.Table]:
    """Yield a secondary number: its mean over queries, then each query."""
    top_k, sizes = measure.top_k, measure.top_k.sizes.sum(axis=1)
    pools = top_k.pools.pools
    if len(pools) > 1 or extra.subject:
        chance_test = compare_with_chance(draws, 0, extra.harm)
        ends = mean_ends(extra.limits, top_k, draws)
        n = int(sizes.sum())
        yield parts_to_table(
            [
                part(
                    extra.metric, extra.subject, draws, 0, ends=ends, chance_test=chance_test, n=n,
                    variant=extra.variant,
                )
            ]
        )  # fmt: skip
    if not extra.subject:
        numbers = chance_columns(draws, range(1, len(sizes) + 1), extra.harm)
        ranked = [pools[index] for index in top_k.pool.tolist()]
        variant = [extra.variant.value] * len(sizes)
        yield parts_with_defaults(
            extra.metric,
            None,
            **_subjects(ranked),
            variant=variant,
            value=draws.observed[1:],
            n=sizes,
            **numbers,
        )


def max_skew(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """MaxSkew@K: how much the most favoured group is over-represented among the K best.

    Skew@K of a group is ln(share of the K best / desired share). Ties share the last places.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        Similarity of each item to each query, higher is better.
    groups : array-like (n,), mapping of str to array-like, or Groups
        Groups of the items. Items without a group are left out and counted.
    k : int
        How many of the best items count. A pool of k items or fewer is not estimable.
    desired, queries, within, sets, units, subjects, resampling, rng
        See `equipoise.metrics.rankings`.

    Returns
    -------
    Estimate
        Mean over queries, 0 or above, higher is worse. Chance: random order, far above 0 for
        small K or many groups. Interval: score, with Student's t by the jackknife over
        queries; one query has a chance band and p only. `.by` has each query with the groups'
        shares.

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, k is below 1, or `desired` does not fit.

    References
    ----------
    Geyik et al. 2019, KDD; Howard et al. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.max_skew(scores, groups, k=10)
    <max_skew 0.693; chance 0.182, p = 0.00044, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["max_skew"], k, desired, resampling, rng)["max_skew"]


def min_skew(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """MinSkew@K: how much the least favoured group is under-represented among the K best.

    Parameters
    ----------
    scores, groups, k, desired, queries, within, sets, units, subjects, resampling, rng
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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.min_skew(scores, groups, k=10)
    <min_skew −∞; chance −0.282, p = 0.001, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["min_skew"], k, desired, resampling, rng)["min_skew"]


def skew_at_k(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Skew@K of groups: ln(share of the K best / desired share).

    Parameters
    ----------
    scores, groups, k, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`.

    Returns
    -------
    Estimate
        Mean over queries of the largest over groups. `.by` has per query the skews of all groups,
        and the mean over queries of every group ("group_skew"), with chance level and two-sided
        p-value: above 0 over-represented, below 0 under-represented, -inf when absent from the K
        best.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Geyik et al. 2019, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.skew_at_k(scores, groups, k=10).table().rows[0][:2]
    ('skew_at_k', '0.693')
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["skew_at_k"], k, desired, resampling, rng)["skew_at_k"]


def ndkl(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """NDKL: discounted mean over the prefixes 1..k of KL(shares in the prefix ‖ desired shares).

    Parameters
    ----------
    k : int
        The last prefix: k = n takes the whole order. Howard et al. take the square of the K of
        their Skew@K. A pool of fewer than k items is not estimable.
    scores, groups, desired, queries, within, sets, units, subjects, resampling, rng
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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.ndkl(scores, groups, k=40)
    <ndkl 0.393; chance 0.115, p = 0.001, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["ndkl"], k, desired, resampling, rng)["ndkl"]


def bias_at_k(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    first: str | None = None,
    second: str | None = None,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Bias@K: (n_first − n_second) / (n_first + n_second) among the K best; 0 when both are 0.

    Parameters
    ----------
    first, second : str, optional
        The groups that are set against each other. Default, for two groups: "male" and "female"
        as in the source where they are called so, else their order.
    scores, groups, k, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`. `desired` does not enter the value: `.params["at_desired_shares"]` is what
        these shares would give.

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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.bias_at_k(scores, groups, k=10, first="men", second="women")
    <bias_at_k 1.000; chance −0.007, p = 0.002, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    opposed = first, second
    return _measure_pools(pools, ["bias_at_k"], k, desired, resampling, rng, opposed=opposed)[
        "bias_at_k"
    ]


def retrieval_mad(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int = 100,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Sum over groups of |share of the K best − mean share|.

    A sum, as Chen & Dou print it and their tables have it, over the groups that are in the pool.
    It compares with equal shares: a pool of unequal groups has a chance level to match.

    Parameters
    ----------
    scores, groups, k, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`; equal shares are what is desired.

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

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.retrieval_mad(scores, groups, k=10)
    <retrieval_mad 1.000; chance 0.219, p = 0.001, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["retrieval_mad"], k, desired, resampling, rng)["retrieval_mad"]


def retrieval_entropy(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int = 100,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Entropy of the groups' shares of the K best, divided by that of equal shares.

    Parameters
    ----------
    scores, groups, k, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`; equal shares are what is desired.

    Returns
    -------
    Estimate
        Mean over queries, in [0, 1], lower is worse; 1: all groups of the pool have equal shares.

    Raises
    ------
    InputError
        As `max_skew`.

    References
    ----------
    Chen & Dou 2022, the edition with figures.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.retrieval_entropy(scores, groups, k=16)
    <retrieval_entropy 0.544; chance 0.971, p = 0.003, n = 40 in 2 groups>
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(pools, ["retrieval_entropy"], k, desired, resampling, rng)[
        "retrieval_entropy"
    ]


RankingMeasure = Literal[
    "max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad", "retrieval_entropy", "bias_at_k"
]
MEASURES: tuple[RankingMeasure, ...] = (
    "max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad",
)  # fmt: skip


def retrieval_measures(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    measures: Sequence[RankingMeasure] = MEASURES,
    prefixes: int | None = None,
    desired: Desired = "pool",
    first: str | None = None,
    second: str | None = None,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> dict[str, Estimate]:
    """Several measures of one ranking: items are ranked once, and labels drawn once for each K.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        See `max_skew`; `cosine_scores` ranks vectors without a table of scores.
    k : int
        How many of the best items count, in all measures but NDKL.
    measures : sequence of str
        Names of the functions: "max_skew", "min_skew", "skew_at_k", "ndkl", "retrieval_mad",
        "retrieval_entropy", "bias_at_k" (which needs two groups, or `first` and `second`).
    prefixes : int, optional
        The k of `ndkl`, such as the square of k; default: k.
    first, second : str, optional
        See `bias_at_k`.
    groups, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`.

    Returns
    -------
    dict of str to Estimate
        By the name of the measure, in the order asked for: what its function alone returns.

    Raises
    ------
    InputError
        As these functions; and where a measure is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> sorted(m.retrieval_measures(scores, groups, k=10))[:2]
    ['max_skew', 'min_skew']
    """
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    return _measure_pools(
        pools, measures, k, desired, resampling, rng, prefixes=prefixes, opposed=(first, second)
    )


def _measure_pools(
    pools: Pools,
    measures: Sequence[str],
    k: int,
    desired: Desired,
    resampling: Resampling | None,
    rng: Seed,
    *,
    prefixes: int | None = None,
    opposed: tuple[str | None, str | None] = (None, None),
) -> dict[str, Estimate]:
    """Return measures of one ranking by name, see `retrieval_measures`."""
    last = k if prefixes is None else prefixes
    ranking = Ranking.of(pools, k, last)
    top_k = ranking.top_k(k)
    requests: dict[str, Callable[[], RankingSpec]] = {
        "max_skew": lambda: _extreme("max_skew", top_k, desired),
        "min_skew": lambda: _extreme("min_skew", top_k, desired),
        "skew_at_k": lambda: _skew_of(top_k, desired),
        "ndkl": lambda: _ndkl(ranking.top_k(last, inclusive=True), desired),
        "retrieval_mad": lambda: RankingSpec(
            "retrieval_mad",
            top_k,
            share_deviation(top_k),
            "higher",
            limits=SPECS["retrieval_mad"].range,
        ),
        "retrieval_entropy": lambda: RankingSpec(
            "retrieval_entropy",
            top_k,
            entropy(top_k),
            "lower",
            limits=SPECS["retrieval_entropy"].range,
        ),
        "bias_at_k": lambda: _bias(top_k, desired, *opposed),
    }
    names = tuple(dict.fromkeys(measures))
    unknown = [name for name in names if name not in requests]
    if unknown or not names:
        raise InputError(
            f"measures: {unknown[0] if unknown else 'none'!r}; "
            f"expected some of {', '.join(get_args(RankingMeasure))}"
        )
    requested = [requests[name]() for name in names]
    return dict(zip(names, estimates(requested, resampling, rng), strict=True))


def _extreme(metric: Literal["max_skew", "min_skew"], top_k: TopK, desired: Desired) -> RankingSpec:
    """Return MaxSkew@K or MinSkew@K for both desired distributions."""
    largest, target_shares = metric == "max_skew", desired_shares(desired, top_k)
    statistic = partial(extreme_skew, usable=top_k.pools.groups.usable, largest=largest)
    return RankingSpec(
        metric=metric,
        top_k=top_k,
        statistic=statistic(target_shares),
        harm=SPECS[metric].value_harm,
        secondary=_other_target(metric, desired, top_k, statistic),
        exact=partial(_exact_max_skew, top_k, target_shares) if largest else None,
        params={"desired": _plain(desired, top_k.pools.groups)},
        limits=_limits(metric, target_shares),
    )


def _exact_max_skew(top_k: TopK, desired: Floats, place: int) -> Distribution | None:
    """Return every MaxSkew@K of a pool in random order; groups of one size and share are alike."""
    compared = (desired[place] > 0) & top_k.pools.groups.usable
    if compared.sum() < 2:
        return None
    columns = (top_k.sizes[place], desired[place], compared)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    sizes, shares, used = zip(*rows, strict=True)
    return max_skew_distribution(sizes, top_k.k, shares, used)


def _skew_of(top_k: TopK, desired: Desired) -> RankingSpec:
    """Return the largest Skew@K, and the Skew@K of every group."""
    groups, target_shares = top_k.pools.groups, desired_shares(desired, top_k)
    group_skews = {
        name: group_skew(target_shares, index) for index, name in enumerate(groups.names)
    }
    return RankingSpec(
        metric="skew_at_k",
        top_k=top_k,
        statistic=extreme_skew(target_shares, groups.usable),
        harm="higher",
        secondary=tuple(
            SecondaryStatistic("group_skew", name, statistic, "either")
            for name, statistic in group_skews.items()
        ),
        group_numbers=lambda ranked: skews(ranked.shares[0], target_shares),
        shows=f"skew among the first {top_k.k}",
        params={"desired": _plain(desired, top_k.pools.groups), "group": "largest over groups"},
    )


def _ndkl(top_k: TopK, desired: Desired) -> RankingSpec:
    """Return NDKL over the first k prefixes for both desired distributions."""
    target_shares = desired_shares(desired, top_k)
    return RankingSpec(
        metric="ndkl",
        top_k=top_k,
        statistic=divergence(target_shares),
        harm="higher",
        secondary=_other_target("ndkl", desired, top_k, divergence),
        group_numbers=discounted_shares,
        shows=f"share of the first {top_k.k} weighted by place",
        params={"desired": _plain(desired, top_k.pools.groups)},
        limits=_limits("ndkl", target_shares),
    )


def _limits(metric: str, desired: Floats) -> Span:
    """Return the range of a metric; where desired shares limit it, for these.

    MaxSkew@K and NDKL are largest where the rarest desired group is alone at the top.
    """
    low, high = SPECS[metric].range
    if metric in ("max_skew", "ndkl") and len(desired):
        rarest = np.where(desired > 0.0, desired, np.inf).min(axis=1)
        high = float(-np.log(rarest).mean())
    return low, high


def _bias(top_k: TopK, desired: Desired, first: str | None, second: str | None) -> RankingSpec:
    """Return Bias@K of two groups."""
    groups, target_shares = top_k.pools.groups, desired_shares(desired, top_k)
    names = _opposed(groups, first, second)
    first_index, second_index = map(groups.names.index, names)
    params = {
        "first": names[0],
        "second": names[1],
        "desired": _plain(desired, top_k.pools.groups),
        "at_desired_shares": float(contrast(target_shares, first_index, second_index).mean())
        if len(target_shares)
        else np.nan,
    }

    def statistic(ranked: RankedLabels) -> Floats:
        return contrast(ranked.shares, first_index, second_index)

    limits = SPECS["bias_at_k"].range
    return RankingSpec("bias_at_k", top_k, statistic, "either", params=params, limits=limits)


def _other_target(
    metric: str, desired: Desired, top_k: TopK, statistic: Callable[[Floats], Statistic]
) -> tuple[SecondaryStatistic, ...]:
    """Return the metric with the other of "pool" and "uniform", where they differ."""
    if isinstance(desired, Mapping):
        return ()
    name: Desired = "uniform" if desired == "pool" else "pool"
    main_shares, other_shares = desired_shares(desired, top_k), desired_shares(name, top_k)
    if np.allclose(main_shares, other_shares, rtol=0.0, atol=1e-12):
        return ()
    harm, variant = SPECS[metric].value_harm, _TARGETS[str(name)]
    limits = _limits(metric, other_shares)
    return (SecondaryStatistic(metric, "", statistic(other_shares), harm, variant, limits),)


def _plain(desired: Desired, groups: Groups) -> str | dict[str, float]:
    if isinstance(desired, str):
        return desired
    return {groups.display_name(str(name)): float(share) for name, share in desired.items()}


def _opposed(groups: Groups, first: str | None, second: str | None) -> tuple[str, str]:
    names = groups.names
    compared = [name for name, usable in zip(names, groups.usable, strict=True) if usable]
    if first is None and second is None and len(compared) == 2:
        lower_names = [name.lower() for name in compared]
        first, second = compared[::-1] if lower_names == ["female", "male"] else compared
    first, second = (name and groups.display_name(name) for name in (first, second))
    if first not in names or second not in names or first == second:
        raise InputError(
            f"first={first!r}, second={second!r}: expected two different groups of "
            f"{', '.join(names)}"
        )
    return first, second


_BANDS = ("chance", "chance_low", "chance_high")


def retrieval_curves(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    desired: Desired = "pool",
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> pa.Table:
    """MaxSkew@K, MinSkew@K and NDKL at every K from 1 to k.

    Parameters
    ----------
    k : int
        The last K. Queries whose pool has k items or fewer take no part in any K.
    scores, groups, desired, queries, within, sets, units, subjects, resampling, rng
        See `max_skew`.

    Returns
    -------
    pyarrow.Table
        metric, query ("" for the mean over queries), k, value, low, high (bootstrap over
        queries), chance, chance_low, chance_high (of the mean: pointwise 95 % band of random
        order), queries (how many are behind the value). NaN where there is no such number.

    Raises
    ------
    InputError
        As `max_skew`; also when no pool is large enough.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> scores = np.linspace(1, 0, 40)
    >>> groups = ["men"] * 12 + ["women", "men"] * 8 + ["women"] * 12
    >>> m.retrieval_curves(scores, groups, k=10).num_rows
    30
    """
    top_k = Ranking.of(pools_of(scores, groups, queries, within, sets, units, subjects), k).top_k(k)
    ranked = top_k.pools
    if not len(top_k.pool):
        raise InputError(f"k={k}: no pool of several groups has more than {k} items")
    shares = desired_shares(desired, top_k)
    compared = (shares > 0) & ranked.groups.usable

    def walk(ranked: RankedLabels) -> list[Floats]:
        kl, largest, smallest = prefixes(ranked, shares, compared)
        return [largest, smallest, discounted(kl)]

    def means(ranked: RankedLabels) -> list[Floats]:
        return [statistic.mean(axis=1) for statistic in walk(ranked)]

    names = ("max_skew", "min_skew", "ndkl")
    observed = {
        name: values for name, (values,) in zip(names, walk(RankedLabels.of(top_k)), strict=True)
    }
    null = exchanged(top_k, means, resampling, rng)
    weights, level = query_weights(ranked, top_k.pool, resampling, rng), level_of(resampling)
    tables = []
    for place, (metric, values) in enumerate(observed.items()):
        columns = {"value": values.mean(axis=0)}
        if weights is not None:
            boot = np.stack([weighted_mean(weights, column) for column in values.T], axis=1)
            columns["low"], columns["high"] = percentile(boot, level)
        if null is not None:
            bands = np.array(
                [(chance.mean, chance.low, chance.high) for chance in map(band, null[place].T)]
            )
            columns |= zip(_BANDS, bands.T, strict=True)
        tables.append(_curve(metric, "", len(values), columns))
    if len(ranked.pools) > 1:
        for metric, values in observed.items():
            for index, curve in zip(top_k.pool.tolist(), values, strict=True):
                tables.append(_curve(metric, ranked.pools[index].name, 1, {"value": curve}))
    return pa.concat_tables(tables)


def _curve(metric: str, query: str, queries: int, columns: Mapping[str, Floats]) -> pa.Table:
    n_places = len(columns["value"])
    named = {
        "metric": [metric] * n_places,
        "query": [query] * n_places,
        "k": np.arange(1, n_places + 1),
    }
    numbers = {name: nans(n_places) for name in ("value", "low", "high", *_BANDS)}
    return pa.table({**named, **numbers, **columns, "queries": [queries] * n_places})


def query_distribution(estimate: Estimate) -> dict[str, float | Strings]:
    """Distribution over queries of a retrieval metric, from the parts of its estimate.

    Returns
    -------
    dict
        queries and not_estimable (with and without a value), mean, sd (with n − 1; NaN below two
        queries), lowest, first_quartile, median, third_quartile, highest, and the names of the
        queries at the extremes, lowest_queries and highest_queries.

    Raises
    ------
    InputError
        When the estimate has no part with a value.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.query_distribution(m.max_skew(scores, groups, k=10))["queries"]
    6
    """
    query_parts = [query_part for query_part in estimate.parts if is_main(query_part, estimate)]
    estimable = [query_part for query_part in query_parts if not math.isnan(query_part.value)]
    if not estimable:
        raise InputError(f"{estimate.metric}: no query has a value")
    values = np.sort([query_part.value for query_part in estimable])
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    # Beside an infinite number, no line is drawn to it.
    places = np.array([0.0, 0.25, 0.5, 0.75, 1.0]) * (len(values) - 1)
    low, *quartiles, high = (float(order_statistic(values, place, outer=0)) for place in places)
    return {
        "queries": len(estimable),
        "not_estimable": len(query_parts) - len(estimable),
        "mean": float(values.mean()),
        "sd": float(values.std(ddof=1)) if finite else math.nan,
        "lowest": low,
        **dict(zip(("first_quartile", "median", "third_quartile"), quartiles, strict=True)),
        "highest": high,
        "lowest_queries": _subjects_at(estimable, low),
        "highest_queries": _subjects_at(estimable, high),
    }


def _subjects_at(query_parts: Iterable[Part], value: float) -> Strings:
    """Return the subjects of the parts that have a value."""
    return tuple(query_part.subject for query_part in query_parts if query_part.value == value)


_ranked = partial(
    MetricSpec,
    kinds=("retrieval", "counterfactuals"),
    interval=OVER_QUERIES,
    null=RANDOM_ORDER,
    group_label="share of the first images",
    of_whole=True,
)
_skew = partial(
    _ranked,
    unit="log ratio",
    threshold=0.22,
    threshold_reason="ln 1.25, the ratio of the four-fifths rule",
    reference="Geyik et al. 2019, KDD (Skew@K, MaxSkew@K, MinSkew@K)",
)
register(
    _skew(
        name="max_skew",
        title="MaxSkew@K",
        range=(0.0, math.inf),
        range_note=(
            "at most ln(1 / smallest desired share), where desired shares are those of the pool"
        ),
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
    _skew(
        name="min_skew",
        title="MinSkew@K",
        range=(-math.inf, 0.0),
        range_note="where desired shares are those of the pool",
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
    _skew(
        name="skew_at_k",
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
    _ranked(
        name="ndkl",
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
    _ranked(
        name="bias_at_k",
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
    _ranked(
        name="retrieval_mad",
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
    _ranked(
        name="retrieval_entropy",
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
)
