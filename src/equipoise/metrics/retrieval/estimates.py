"""From ranked pools to an estimate: mean over queries, chance, interval, one part per query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, no_ends
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, against_chance, part, replicates_of
from equipoise.metrics.measure import MAX_DRAWN_CELLS, NO_INTERVAL, Draws
from equipoise.metrics.retrieval.null import LabelExchange, simulate
from equipoise.metrics.retrieval.parts import (
    POOL_ORDER,
    SET_ORDER,
    Asked,
    Exactly,
    exactly,
    other_tables,
    query_table,
    too_few,
    too_small,
)
from equipoise.metrics.retrieval.pools import Floats, Pools
from equipoise.metrics.retrieval.tops import Tops
from equipoise.metrics.spec import make_estimate
from equipoise.stats.poisson import unit_counts
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import unit_keys

_ONE_QUERY = "none: the queries are one unit; chance band and p-value only"
_EXACT = (
    "resampling=Exact: only for max_skew of one query without sets, without a tie at place k "
    "and with few enough results; use Permutation()"
)


@dataclass(frozen=True, eq=False)
class _Null:
    """Values of all statistics on exchanged labels, each (draws, pools), and how they are drawn."""

    values: Sequence[Floats]
    text: str


def estimate(asked: Asked, resampling: Resampling | None, rng: int) -> Estimate:
    """Turn what is asked into the estimate, see `equipoise.metrics.retrieval`."""
    return estimates([asked], resampling, rng)[0]


def estimates(asked: Sequence[Asked], resampling: Resampling | None, rng: int) -> list[Estimate]:
    """Turn several measures into estimates: those of one ranking and K share their draws."""
    found: dict[int, Estimate] = {}
    together: dict[int, list[int]] = {}
    for place, one in enumerate(asked):
        together.setdefault(id(one.tops), []).append(place)
    for places in together.values():
        group = [asked[place] for place in places]
        primary = _nulls(group, resampling, rng, sets=group[0].pools.member is not None)
        secondary: list[_Null | None] = [None] * len(group)
        if group[0].pools.member is not None:
            secondary = _nulls(
                [replace(one, others=()) for one in group], resampling, rng, sets=False
            )
        weights = query_weights(group[0].pools, group[0].tops.pool, resampling, rng)
        for place, *nulls in zip(places, primary, secondary, strict=True):
            found[place] = _estimate(asked[place], nulls, weights, resampling)
    return [found[place] for place in range(len(asked))]


def _estimate(
    asked: Asked,
    nulls: Sequence[_Null | None],
    weights: Floats | None,
    resampling: Resampling | None,
) -> Estimate:
    observed = [one(asked.observed)[0] for one in asked.statistics]
    sets = asked.pools.member is not None
    draws = [
        _draws(values, nulls[0], index, weights, resampling)
        for index, values in enumerate(observed)
    ]
    exact = _exact(asked) if resampling is not None else {}
    if isinstance(resampling, Exact) and (len(exact) != 1 or len(asked.tops.pool) != 1):
        raise InputError(_EXACT)
    whole = _whole(asked, draws[0], exact)

    def parts() -> pa.Table:
        again = _pool_order(asked, draws[0], nulls[1], weights, resampling)
        tables = query_table(asked, draws[0], exact), *other_tables(asked, draws[1:])
        return pa.concat_tables([*tables, parts_to_table(again)]).combine_chunks()

    value = float(draws[0].observed[0])
    return make_estimate(
        metric=asked.metric,
        value=value,
        n=asked.pools.counts,
        method=_method(draws[0], resampling),
        params=_params(asked),
        chance=whole.chance,
        no_chance="" if whole.chance else _why_none(value, resampling, sets=sets),
        p_value=whole.p_value,
        null=whole.null,
        harm=asked.harm,
        by=parts,
        excluded={**asked.pools.excluded, **_left_out(asked)},
        unit="query",
        reason=_why_nan(asked, value),
        ends=replicates_of(draws[0], 0) or no_ends,
    )


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations are drawn: enough to resolve p, within the budget."""
    if isinstance(resampling, Exact):
        return 0
    least = resampling.permutations if isinstance(resampling, Bootstrap) else resampling.replicates
    affordable = max(least, MAX_DRAWN_CELLS // max(cells, 1))
    return min(max(least, math.ceil(1.0 / resampling.resolution)), affordable)


def query_weights(
    pools: Pools, chosen: npt.NDArray[np.int64], resampling: Resampling | None, rng: int
) -> Floats | None:
    """Return how often each pool's unit is in each bootstrap replicate, shape (replicates, p).

    None without a bootstrap, and where all pools are of one unit.
    """
    units = [pools.units[pools.pools[index].query] for index in chosen.tolist()]
    if not isinstance(resampling, Bootstrap) or len(set(units)) < 2:
        return None
    keys = unit_keys(units)
    return unit_counts(rng, keys, range(resampling.replicates)).astype(np.float64)


def weighted_mean(weights: Floats, values: Floats) -> Floats:
    """Return means over pools in every replicate; (r, p) and (p, ...) to (r, ...).

    Values of weight 0 do not enter, infinite ones neither.
    """
    shaped = weights.reshape(*weights.shape, *(1,) * (values.ndim - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.where(shaped > 0, shaped * values, 0.0).sum(axis=1)
        return np.asarray(sums / shaped.sum(axis=1))


def exchange_of(pools: Pools, tops: Tops, *, sets: bool) -> LabelExchange:
    """Prepare draws of the labels of the best items, within sets or within pools."""
    stratum = pools.member if sets and pools.member is not None else pools.block
    return LabelExchange.of(pools.groups.codes, stratum, tops.items)


def _nulls(
    asked: Sequence[Asked], resampling: Resampling | None, rng: int, *, sets: bool
) -> list[_Null | None]:
    """Draw the null of measures of one ranking and K once for all of them."""
    tops, nothing = asked[0].tops, [None] * len(asked)
    if resampling is None or isinstance(resampling, Exact) or not len(tops.pool):
        return [*nothing]
    exchange = exchange_of(asked[0].pools, tops, sets=sets)
    if not exchange.moves:
        return [*nothing]
    many = permutations(resampling, tops.items.size)
    statistics = [statistic for one in asked for statistic in one.statistics]
    values = iter(simulate(statistics, tops, exchange, many, rng))
    text = f"{SET_ORDER if sets else POOL_ORDER}; {many} permutations"
    return [_Null([next(values) for _ in one.statistics], text) for one in asked]


def _draws(
    values: Floats,
    null: _Null | None,
    index: int,
    weights: Floats | None,
    resampling: Resampling | None,
) -> Draws:
    """Put the mean over pools first, and each pool after it."""
    known = len(values) > 0
    drawn = None
    if null is not None:
        each = null.values[index]
        drawn = np.concatenate([each.mean(axis=1, keepdims=True), each], axis=1)
    return Draws(
        observed=np.append(values.mean() if known else np.nan, values),
        boot=None if weights is None else weighted_mean(weights, values)[:, None],
        null=drawn,
        level=0.95 if resampling is None else resampling.level,
        null_text="" if null is None else null.text,
        resolution=getattr(resampling, "resolution", 0.0),
        intervals=resampling is not None,
    )


def _exact(asked: Asked) -> dict[int, Exactly]:
    """Return exact chance by place in `tops`, of the pools that have it."""
    if asked.exact is None or asked.pools.member is not None:
        return {}
    ties = asked.tops.ties
    found = (
        (place, asked.exact(pool))
        for place, pool in enumerate(asked.tops.pool.tolist())
        if not ties[place]
    )
    return {place: one for place, one in found if one is not None}


def _whole(asked: Asked, draws: Draws, exact: Mapping[int, Exactly]) -> Against:
    many = len(asked.tops.pool)
    if many == 1 and exact:
        return exactly(draws, 0, exact[0], asked.harm)
    against = against_chance(draws, 0, asked.harm)
    if not exact or len(exact) < many or against.chance is None:
        return against
    mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
    return replace(against, chance=replace(against.chance, mean=mean))


def _pool_order(
    asked: Asked,
    draws: Draws,
    null: _Null | None,
    weights: Floats | None,
    resampling: Resampling | None,
) -> list[Part]:
    """Hold the value against the secondary null too, where sets make another the primary."""
    if asked.pools.member is None:
        return []
    again = _draws(draws.observed[1:], null, 0, weights, resampling)
    against = against_chance(again, 0, asked.harm) if null else NOTHING
    ends = replicates_of(again, 0) or no_ends
    found = part(f"{asked.metric}_pool_order", "", again, 0, ends=ends, against=against, n=asked.n)
    return [replace(found, shows=f"secondary null: {POOL_ORDER}")]


def _params(asked: Asked) -> dict[str, Any]:
    ties = asked.tops.ties
    found = {
        "k": asked.tops.k,
        **asked.params,
        "queries": len(asked.pools.pools),
        "tied_items": int(ties.sum()),
        "queries_with_ties": int((ties > 0).sum()),
        "null": "pool order" if asked.pools.member is None else "order within sets",
    }
    if asked.pools.member is not None:
        found["items_without_set"] = asked.pools.without_set
    return found


def _why_out(asked: Asked, index: int) -> str:
    if not len(asked.pools.pools[index].items):
        return "queries without an item to rank"
    if (asked.pools.sizes[index] > 0).sum() < 2:
        return "queries with one group in the pool"
    return "queries with too small a pool for k"


def _left_out(asked: Asked) -> dict[str, int]:
    """Count pools that are not estimable and groups that no item has."""
    used = set(asked.tops.pool.tolist())
    reasons = [
        _why_out(asked, index) for index in range(len(asked.pools.pools)) if index not in used
    ]
    found = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    absent = int((asked.pools.sizes == 0).all(axis=0).sum())
    return {**found, "empty groups": absent} if absent else found


def _why_nan(asked: Asked, value: float) -> str:
    if not math.isnan(value):
        return ""
    if not len(asked.tops.pool):
        return f"no query can be estimated: {too_small(asked, 0)}"
    return too_few(asked, value)


def _why_none(value: float, resampling: Resampling | None, *, sets: bool) -> str:
    if math.isnan(value):
        return "not estimable"
    if resampling is None:
        return "no resampling was asked for"
    held = "no counterfactual set" if sets else "no pool"
    return f"{held} holds several groups among the best items: nothing to exchange"


def _method(draws: Draws, resampling: Resampling | None) -> str:
    if draws.boot is not None:
        return f"percentile bootstrap over queries, {len(draws.boot)} replicates"
    if resampling is None:
        return NO_INTERVAL
    return _ONE_QUERY if isinstance(resampling, Bootstrap) else "none: use Bootstrap()"
