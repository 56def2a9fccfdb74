"""Several measures of one ranking, curves over K, and distributions over queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from equipoise.core import (
    Estimate,
    Floats,
    GroupLabels,
    InputError,
    Labels,
    Part,
    Strings,
    nans,
)
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.metric import (
    RankingMetric,
    exchanged,
    measure_pools,
    query_weights,
    weighted_mean,
)
from equipoise.metrics.rankings.pools import Desired, Ranking, desired_shares, pools_of
from equipoise.metrics.rankings.statistics import RankedLabels, discounted, prefixes
from equipoise.metrics.registry import metrics_of
from equipoise.metrics.spec import is_main
from equipoise.stats.chance import band
from equipoise.stats.intervals import order_statistic, percentile
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed


def retrieval_measures(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    k: int,
    measures: Sequence[str] = (),
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
        Names of ranking metrics; default: those that an audit of retrieval measures. "bias_at_k"
        needs two groups, or `first` and `second`.
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
    known = metrics_of(RankingMetric)
    defaults = [name for name, metric in known.items() if metric.spec.is_default_of("retrieval")]
    names = tuple(dict.fromkeys(measures or defaults))
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"measures: {unknown[0]!r}; expected some of {', '.join(known)}")
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    all_estimates = measure_pools(
        pools, [known[name] for name in names], k, desired, resampling, rng, prefixes=prefixes,
        opposed=(first, second),
    )  # fmt: skip
    return dict(zip(names, all_estimates, strict=True))


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
