"""Retrieval at every K at once, and the distribution of a metric over queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate
from equipoise.metrics.measure import DEFAULT
from equipoise.metrics.rankings.estimates import (
    exchange_of,
    permutations,
    query_weights,
    weighted_mean,
)
from equipoise.metrics.rankings.pools import Floats, Pools, pools_of
from equipoise.metrics.rankings.statistics import Bools, Drawn, discounted, prefixes
from equipoise.metrics.rankings.tops import Desired, Ranking, Tops, desired_shares
from equipoise.stats.chance import band
from equipoise.stats.intervals import percentile
from equipoise.stats.resampling import Exact, Resampling, level_of

METRICS = ("max_skew", "min_skew", "ndkl")
SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("query", pa.string()),
        ("k", pa.int64()),
        *((name, pa.float64()) for name in ("value", "low", "high")),
        *((name, pa.float64()) for name in ("chance", "chance_low", "chance_high")),
        ("queries", pa.int64()),
    ]
)


def retrieval_curves(  # noqa: PLR0913 - one keyword for each choice
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
) -> pa.Table:
    """MaxSkew@K, MinSkew@K and NDKL at every K from 1 to k.

    Parameters
    ----------
    k : int
        The last K. Queries whose pool has k items or fewer take no part in any K.
    scores, groups, desired, queries, within, sets, units, resampling, rng
        See `equipoise.metrics.rankings.max_skew`.

    Returns
    -------
    pyarrow.Table
        metric, query ("" for the mean over queries), k, value, low, high (bootstrap over
        queries), chance, chance_low, chance_high (of the mean: pointwise 95 % band of random
        order), queries (how many are behind the value). NaN where there is no such number.

    Raises
    ------
    InputError
        As `max_skew`; also when no pool is large enough, or for Exact.
    """
    if isinstance(resampling, Exact):
        raise InputError("resampling=Exact: not available for curves; use Permutation()")
    pools = pools_of(scores, groups, queries=queries, within=within, sets=sets, units=units)
    tops = Ranking.of(pools, k).tops(k)
    if not len(tops.pool):
        raise InputError(f"k={k}: no pool of several groups has more than {k} items")
    shares = desired_shares(desired, pools)[tops.pool]
    walk = _Walk(tops, shares, (shares > 0) & pools.groups.usable)
    observed = {
        name: values[0]
        for name, values in walk(Drawn(pools.groups.codes[tops.items][None], tops)).items()
    }
    null = _null(pools, walk, resampling, rng)
    weights = query_weights(pools, tops.pool, resampling, rng)
    level = level_of(resampling)
    means = [_mean(name, observed[name], null.get(name), weights, level) for name in METRICS]
    several = len(pools.pools) > 1
    names = [pools.pools[index].name for index in tops.pool.tolist()] if several else []
    each = [
        _table(metric, name, {"value": observed[metric][place]}, 1)
        for metric in METRICS
        for place, name in enumerate(names)
    ]
    return pa.concat_tables([*means, *each])


@dataclass(frozen=True, eq=False)
class _Walk:
    """All statistics of all prefixes, each of shape (draws, pools, k)."""

    tops: Tops
    desired: Floats
    compared: Bools

    def __call__(self, drawn: Drawn) -> dict[str, Floats]:
        found = prefixes(drawn, self.desired, self.tops.k, compared=self.compared)
        skew = {name: found[name] for name in ("max_skew", "min_skew")}
        return {**skew, "ndkl": discounted(found["kl"])}


def _null(pools: Pools, walk: _Walk, resampling: Resampling | None, rng: int) -> dict[str, Floats]:
    """Return the mean over queries on exchanged labels, (draws, k) per metric; {} without."""
    exchange = exchange_of(pools, walk.tops, sets=True)
    if resampling is None or not exchange.moves:
        return {}
    many = permutations(resampling, walk.tops.items.size)

    def block(codes: npt.NDArray[np.int32]) -> dict[str, Floats]:
        return {name: each.mean(axis=1) for name, each in walk(Drawn(codes, walk.tops)).items()}

    found = exchange.evaluate(block, many, rng, "retrieval")
    return {name: np.concatenate([one[name] for one in found]) for name in METRICS}


def _mean(
    metric: str, values: Floats, null: Floats | None, weights: Floats | None, level: float
) -> pa.Table:
    columns = {"value": values.mean(axis=0)}
    if weights is not None:
        boot = np.stack([weighted_mean(weights, one) for one in values.T], axis=1)
        columns["low"], columns["high"], _ = percentile(boot, level)
    if null is not None:
        bands = [band(one) for one in null.T]
        columns["chance"] = np.array([one.mean for one in bands])
        columns["chance_low"] = np.array([one.low for one in bands])
        columns["chance_high"] = np.array([one.high for one in bands])
    return _table(metric, "", columns, len(values))


def _table(metric: str, query: str, columns: Mapping[str, Floats], queries: int) -> pa.Table:
    many = len(columns["value"])
    nothing = np.full(many, math.nan)
    named = {"metric": [metric] * many, "query": [query] * many, "k": np.arange(1, many + 1)}
    numbers = {name: columns.get(name, nothing) for name in SCHEMA.names[3:9]}
    return pa.table({**named, **numbers, "queries": [queries] * many}, schema=SCHEMA)


@dataclass(frozen=True)
class QueryDistribution:
    """How a metric is distributed over queries.

    Attributes
    ----------
    queries, not_estimable : int
        Queries with and without a value.
    mean, sd : float
        sd with n − 1; NaN below two queries.
    lowest, first_quartile, median, third_quartile, highest : float
    lowest_queries, highest_queries : tuple of str
        Names of the queries at the extremes.
    """

    queries: int
    not_estimable: int
    mean: float
    sd: float
    lowest: float
    first_quartile: float
    median: float
    third_quartile: float
    highest: float
    lowest_queries: tuple[str, ...]
    highest_queries: tuple[str, ...]


def query_distribution(estimate: Estimate) -> QueryDistribution:
    """Distribution over queries of a retrieval metric, from the parts of its estimate.

    Raises
    ------
    InputError
        When the estimate has no part with a value.
    """
    rows = [] if estimate.by is None else estimate.by.to_pylist()
    own = [row for row in rows if row["metric"] == estimate.metric]
    known = [row for row in own if not math.isnan(row["value"])]
    if not known:
        raise InputError(f"{estimate.metric}: no query has a value")
    values = np.sort(np.array([row["value"] for row in known]))
    finite = len(values) > 1 and bool(np.isfinite(values).all())
    low, high = float(values[0]), float(values[-1])
    first, median, third = (_quantile(values, share) for share in (0.25, 0.5, 0.75))
    return QueryDistribution(
        len(known),
        len(own) - len(known),
        float(values.mean()),
        float(values.std(ddof=1)) if finite else math.nan,
        low,
        first,
        median,
        third,
        high,
        tuple(row["subject"] for row in known if row["value"] == low),
        tuple(row["subject"] for row in known if row["value"] == high),
    )


def _quantile(values: Floats, share: float) -> float:
    """Return a quantile of sorted values; beside an infinite one, no line is drawn to it."""
    place = share * (len(values) - 1)
    below, above = float(values[math.floor(place)]), float(values[math.ceil(place)])
    if below == above or not (math.isfinite(below) and math.isfinite(above)):
        return below
    return below + (place - math.floor(place)) * (above - below)
