"""From ranked pools to an estimate: mean over queries, chance, interval, one part per query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, Harm
from equipoise.core.parts import SCHEMA, Part, parts_to_table
from equipoise.metrics.building import (
    NOTHING,
    Against,
    against_chance,
    bootstrap_method,
    ends_of,
    part,
)
from equipoise.metrics.measure import MAX_DRAWN_CELLS, Draws
from equipoise.metrics.rankings.null import LabelExchange, simulate
from equipoise.metrics.rankings.pools import Floats, Indices, Pools
from equipoise.metrics.rankings.statistics import Drawn, Statistic
from equipoise.metrics.rankings.tops import Tops
from equipoise.metrics.spec import make_estimate
from equipoise.stats.resampling import (
    Bootstrap,
    Exact,
    Resampling,
    level_of,
    null_draws,
    resolution_of,
)
from equipoise.stats.streams import unit_counts, unit_keys

Exactly = tuple[Floats, Floats]

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"


@dataclass(frozen=True, eq=False)
class Other:
    """A number reported beside the main one, as parts of their own.

    Attributes
    ----------
    metric, subject : str
        Of the part of the mean over queries.
    statistic : Statistic
    harm : "higher", "lower" or "either"
    each : bool
        Whether every query has a part too.
    """

    metric: str
    subject: str
    statistic: Statistic
    harm: Harm
    each: bool = False


@dataclass(frozen=True, eq=False)
class Asked:
    """What a retrieval metric computes.

    Attributes
    ----------
    metric : str
    harm : "higher", "lower" or "either"
    pools : Pools
    tops : Tops
    statistic : Statistic
    others : tuple of Other
    exact : callable, optional
        Every value under random order of a pool (index into `pools`), with its probability.
    show : callable, optional
        What a part shows per group, from shares (p, groups); default: the shares.
    shown : callable, optional
        The same from the ranked labels, where the shares of the first k do not tell.
    shows : str
        The same in words.
    params : mapping
    """

    metric: str
    harm: Harm
    pools: Pools
    tops: Tops
    statistic: Statistic
    others: tuple[Other, ...] = ()
    exact: Callable[[int], Exactly | None] | None = None
    show: Callable[[Floats], Floats] | None = None
    shown: Callable[[Drawn, int], Floats] | None = None
    shows: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """The main one, then those beside it."""
        return (self.statistic, *(one.statistic for one in self.others))

    @property
    def n(self) -> int:
        """Items behind the mean over pools."""
        return int(self.pools.sizes[self.tops.pool].sum())

    @cached_property
    def observed(self) -> Drawn:
        """The labels as they are."""
        return Drawn(self.pools.groups.codes[self.tops.items][None], self.tops)


def query_table(asked: Asked, draws: Draws, exact: Mapping[int, Exactly]) -> pa.Table:
    """Return a part per pool, those that are not estimable included, with reason.

    Column by column: there may be thousands of queries, each with a dozen groups.
    """
    pools, chosen = asked.pools.pools, asked.tops.pool
    shown = np.full(asked.pools.sizes.shape, np.nan)
    shown[chosen] = _shown(asked)
    against = [
        exactly(draws, place, exact[place], asked.harm)
        if place in exact
        else against_chance(draws, place + 1, asked.harm)
        for place in range(len(chosen))
    ]
    values = np.full(len(pools), np.nan)
    values[chosen] = draws.observed[1:]
    shows = [""] * len(pools)
    reasons = dict.fromkeys(range(len(pools)))
    for place, index in enumerate(chosen.tolist()):
        reasons[index] = too_few(asked, float(values[index]))
        shows[index] = _shows(asked, place)
    why = [too_small(asked, index) if one is None else one for index, one in reasons.items()]
    return _table(
        asked.metric,
        {"subject": [one.name for one in pools], "value": values, "reason": why, "shows": shows,
         "n": asked.pools.sizes.sum(axis=1), "by_group": _by_group(asked, shown),
         **_chances(against, chosen, len(pools))},
    )  # fmt: skip


def _shown(asked: Asked) -> Floats:
    """Return what the parts show per group, (p, groups)."""
    groups = len(asked.pools.groups)
    if asked.shown is not None:
        return asked.shown(asked.observed, groups)
    shares = asked.observed.shares(groups)[0]
    return shares if asked.show is None else asked.show(shares)


def _chances(against: Sequence[Against], places: Indices, many: int) -> dict[str, Floats]:
    """Return chance levels and p-values as columns, NaN where there are none."""
    found = np.full((4, many), np.nan)
    for place, one in zip(places.tolist(), against, strict=True):
        if one.chance is not None:
            found[:3, place] = one.chance.mean, one.chance.low, one.chance.high
        if one.p_value is not None:
            found[3, place] = one.p_value
    return dict(zip(("chance", "chance_low", "chance_high", "p_value"), found, strict=True))


def _table(metric: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return parts from some of their columns."""
    many = len(columns["value"])
    rest = {"metric": [metric] * many, "excluded": [[]] * many, "by_group": [[]] * many}
    empty = {
        one.name: np.full(many, np.nan) if one.type == pa.float64() else [""] * many
        for one in SCHEMA
    }
    held = {**empty, **rest, **columns}
    return pa.table([pa.array(held[one.name], type=one.type) for one in SCHEMA], schema=SCHEMA)


def _by_group(asked: Asked, values: Floats) -> pa.Array:
    """Return the values of the groups, (pools, groups), as the column of nested records."""
    groups, sizes = asked.pools.groups, asked.pools.sizes
    pools, many = sizes.shape
    note = np.where(groups.usable, "", f"fewer than {groups.min_size} rows").astype(object)
    notes = np.where(sizes > 0, note, "not in the pool").ravel()
    index = np.tile(np.arange(many), pools)
    nothing = np.full(sizes.size, np.nan)
    columns = (
        pa.array(groups.names).take(index),
        pa.array(groups.levels, type=pa.list_(pa.string())).take(index),
        sizes.ravel(), values.ravel(), nothing, nothing, notes,
    )  # fmt: skip
    kind = SCHEMA.field("by_group").type
    held = pa.StructArray.from_arrays(
        [pa.array(one, type=part.type) for one, part in zip(columns, kind.value_type, strict=True)],
        fields=list(kind.value_type),
    )
    return pa.ListArray.from_arrays(pa.array(np.arange(pools + 1) * many, pa.int32()), held)


def _shows(asked: Asked, place: int) -> str:
    ties = int(asked.tops.ties[place])
    text = asked.shows or f"share of the first {asked.tops.k}"
    return f"{text}; {ties} items tie for its last places" if ties else text


def other_tables(asked: Asked, draws: Sequence[Draws]) -> Iterator[pa.Table]:
    """Yield the numbers beside the main one: their mean over queries, then each query."""
    pools = asked.pools.pools
    held, sizes = asked.tops.pool, asked.pools.sizes[asked.tops.pool].sum(axis=1)
    names = [pools[index].name for index in held.tolist()]
    for other, drawn in zip(asked.others, draws, strict=True):
        ends = ends_of(drawn.boot, 0)
        if len(pools) > 1 or not other.each:
            whole = against_chance(drawn, 0, other.harm)
            yield parts_to_table(
                [part(other.metric, other.subject, drawn, 0, ends=ends, held=whole, n=asked.n)]
            )
        if other.each:
            each = [against_chance(drawn, 1 + i, other.harm) for i in range(len(held))]
            yield _table(
                other.metric,
                {"subject": names, "value": drawn.observed[1:],
                 "n": sizes,
                 **_chances(each, np.arange(len(held)), len(held))},
            )  # fmt: skip


def exactly(draws: Draws, place: int, exact: Exactly, harm: Harm) -> Against:
    """Hold one pool against every value that random order can give."""
    values, mass = exact
    alone = Draws(
        draws.observed[[place + 1]], None, values[:, None], mass, draws.level,
        f"{POOL_ORDER}; all selections",
    )  # fmt: skip
    return against_chance(alone, 0, harm)


def too_small(asked: Asked, index: int) -> str:
    """Say why a pool is not estimable."""
    many = len(asked.pools.pools[index].items)
    if not many:
        return "no item is ranked for it"
    if (asked.pools.sizes[index] > 0).sum() < 2:
        return "fewer than two groups in the pool"
    return f"k={asked.tops.k}, and the pool has {many} items: nothing is left to choose"


def too_few(asked: Asked, value: float) -> str:
    """Say why a pool that is large enough has no value; "" when it has one."""
    if not math.isnan(value):
        return ""
    given = isinstance(asked.params.get("desired"), dict)
    return f"fewer than two groups with rows enough{' and a desired share above 0' * given}"


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
    """Turn what is asked into the estimate, see `equipoise.metrics.rankings`."""
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
        **whole.fields(_why_none(value, resampling, sets=sets)),
        harm=asked.harm,
        by=parts,
        excluded={**asked.pools.excluded, **_left_out(asked)},
        unit="query",
        reason=_why_nan(asked, value),
        ends=ends_of(draws[0].boot, 0),
    )


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(cells, 1))


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
        level=level_of(resampling),
        null_text="" if null is None else null.text,
        resolution=resolution_of(resampling),
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
    held = against_chance(again, 0, asked.harm) if null else NOTHING
    ends = ends_of(again.boot, 0)
    found = part(f"{asked.metric}_pool_order", "", again, 0, ends=ends, held=held, n=asked.n)
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
    without = _ONE_QUERY if isinstance(resampling, Bootstrap) else "none: use Bootstrap()"
    return bootstrap_method(draws.boot, resampling, "queries", without)
