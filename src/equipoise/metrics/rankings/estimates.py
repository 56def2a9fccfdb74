"""From ranked pools to an estimate: mean over queries, chance, interval, one part per query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, Harm
from equipoise.core.parts import SCHEMA, parts_to_table
from equipoise.metrics.building import (
    NOTHING,
    Against,
    GroupColumns,
    against_chance,
    against_each,
    bootstrap_method,
    ends_of,
    part,
    too_small,
)
from equipoise.metrics.measure import MAX_DRAWN_CELLS, Draws
from equipoise.metrics.rankings.exchange import Codes, LabelExchange
from equipoise.metrics.rankings.pools import Floats, Indices, Pools, Tops
from equipoise.metrics.rankings.statistics import Drawn, Statistic
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

Distribution = tuple[Floats, Floats]
"""Values and their probabilities."""

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"
_ONE_QUERY = "none: the queries are one unit; chance band and p-value only"
_EXACT = (
    "resampling=Exact: only for max_skew of one query without sets, without a tie at place k "
    "and with few enough results; use Permutation()"
)


@dataclass(frozen=True, eq=False)
class Beside:
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
class Measure:
    """What a ranking metric computes.

    Attributes
    ----------
    metric : str
    harm : "higher", "lower" or "either"
    pools : Pools
    tops : Tops
    statistic : Statistic
    beside : tuple of Beside
    exact : callable, optional
        Every value under random order of a pool (index into `pools`), with its probability.
    shown : callable
        What a part shows per group, (p, groups), from the ranked labels; default: the shares.
    shows : str
        The same in words.
    params : mapping
    """

    metric: str
    harm: Harm
    pools: Pools
    tops: Tops
    statistic: Statistic
    beside: tuple[Beside, ...] = ()
    exact: Callable[[int], Distribution | None] | None = None
    shown: Callable[[Drawn], Floats] = lambda drawn: drawn.shares[0]
    shows: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def statistics(self) -> list[Statistic]:
        """The main one, then those beside it."""
        return [self.statistic, *(one.statistic for one in self.beside)]


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(cells, 1))


def query_weights(
    pools: Pools, chosen: Indices, resampling: Resampling | None, rng: int
) -> Floats | None:
    """Return how often each pool's unit is in each bootstrap replicate, shape (replicates, p).

    None without a bootstrap, and where all pools are of one unit.
    """
    units = [pools.units[pools.pools[index].query] for index in chosen.tolist()]
    if not isinstance(resampling, Bootstrap) or len(set(units)) < 2:
        return None
    return unit_counts(rng, unit_keys(units), range(resampling.replicates)).astype(np.float64)


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


def estimates(
    measures: Sequence[Measure], resampling: Resampling | None, rng: int
) -> list[Estimate]:
    """Turn several measures into estimates: those of one ranking and K share their draws."""
    found: dict[int, Estimate] = {}
    for shared in {id(one.tops): one for one in measures}.values():
        pools, tops, sets = shared.pools, shared.tops, shared.pools.member is not None
        alike = [one for one in measures if one.tops is tops]
        every = [statistic for one in alike for statistic in one.statistics]
        main = _null(pools, tops, every, resampling, rng, sets=sets)
        first = [one.statistic for one in alike] if sets else []
        other = _null(pools, tops, first, resampling, rng, sets=False)
        weights = query_weights(pools, tops.pool, resampling, rng)
        observed = Drawn(pools.groups.codes[tops.items][None], tops, len(pools.groups))
        for one in alike:
            draws = [
                _draws(statistic(observed)[0], next(main), weights, resampling)
                for statistic in one.statistics
            ]
            values = draws[0].observed[1:]
            again = _draws(values, next(other), weights, resampling) if sets else None
            found[id(one)] = _estimate(one, observed, draws, again, resampling)
    return [found[id(one)] for one in measures]


def _null(
    pools: Pools,
    tops: Tops,
    statistics: Sequence[Statistic],
    resampling: Resampling | None,
    rng: int,
    *,
    sets: bool,
) -> Iterator[tuple[Floats, str] | None]:
    """Return each statistic on exchanged labels, (draws, pools), and how they were drawn."""
    nothing = iter([None] * len(statistics))
    if not statistics or resampling is None or isinstance(resampling, Exact) or not len(tops.pool):
        return nothing
    exchange = exchange_of(pools, tops, sets=sets)
    if not exchange.moves:
        return nothing
    many = permutations(resampling, tops.items.size)

    def block(codes: Codes) -> list[Floats]:
        drawn = Drawn(codes, tops, len(pools.groups))
        return [statistic(drawn) for statistic in statistics]

    blocks = zip(*exchange.evaluate(block, many, rng, "retrieval"), strict=True)
    text = f"{SET_ORDER if sets else POOL_ORDER}; {many} permutations"
    return iter([(np.concatenate(values), text) for values in blocks])


def _draws(
    values: Floats,
    null: tuple[Floats, str] | None,
    weights: Floats | None,
    resampling: Resampling | None,
) -> Draws:
    """Put the mean over pools first, and each pool after it."""
    each, text = null or (None, "")
    return Draws(
        observed=np.append(values.mean() if len(values) else np.nan, values),
        boot=None if weights is None else weighted_mean(weights, values)[:, None],
        null=None
        if each is None
        else np.concatenate([each.mean(axis=1, keepdims=True), each], axis=1),
        level=level_of(resampling),
        null_text=text,
        resolution=resolution_of(resampling),
        intervals=resampling is not None,
    )


def _estimate(
    measure: Measure,
    observed: Drawn,
    draws: Sequence[Draws],
    again: Draws | None,
    resampling: Resampling | None,
) -> Estimate:
    pools, tops, value = measure.pools, measure.tops, float(draws[0].observed[0])
    exact = _exact(measure) if resampling is not None else {}
    if isinstance(resampling, Exact) and (len(exact) != 1 or len(tops.pool) != 1):
        raise InputError(_EXACT)
    ends = ends_of(draws[0].boot, 0)
    without = _ONE_QUERY if isinstance(resampling, Bootstrap) else "none: use Bootstrap()"

    def parts() -> pa.Table:
        tables = [_of_queries(measure, observed, draws[0], exact)]
        for beside, drawn in zip(measure.beside, draws[1:], strict=True):
            tables += _of_beside(measure, beside, drawn)
        if again is not None:
            held = against_chance(again, 0, measure.harm) if again.null is not None else NOTHING
            n = int(pools.sizes[tops.pool].sum())
            name = f"{measure.metric}_pool_order"
            secondary = part(name, "", again, 0, ends=ends, held=held, n=n)
            shows = f"secondary null: {POOL_ORDER}"
            tables.append(parts_to_table([replace(secondary, shows=shows)]))
        return pa.concat_tables(tables).combine_chunks()

    return make_estimate(
        metric=measure.metric,
        value=value,
        n=pools.counts,
        method=bootstrap_method(draws[0].boot, resampling, "queries", without),
        params=_params(measure),
        **_whole(measure, draws[0], exact).fields(_why_none(measure, value, resampling)),
        harm=measure.harm,
        by=parts,
        excluded=_excluded(measure),
        unit="query",
        reason=_why_nan(measure, value),
        ends=ends,
    )


def _exact(measure: Measure) -> dict[int, Distribution]:
    """Return exact chance by place in `tops`, of the pools that have it."""
    if measure.exact is None or measure.pools.member is not None:
        return {}
    ties = measure.tops.ties
    found = {
        place: measure.exact(pool)
        for place, pool in enumerate(measure.tops.pool.tolist())
        if not ties[place]
    }
    return {place: one for place, one in found.items() if one is not None}


def _against_exact(draws: Draws, place: int, exact: Distribution, harm: Harm) -> Against:
    """Hold one pool against every value that random order can give."""
    null, text = exact[0][:, None], f"{POOL_ORDER}; all selections"
    alone = Draws(draws.observed[[place + 1]], None, null, exact[1], draws.level, text)
    return against_chance(alone, 0, harm)


def _whole(measure: Measure, draws: Draws, exact: Mapping[int, Distribution]) -> Against:
    many = len(measure.tops.pool)
    if many == 1 and exact:
        return _against_exact(draws, 0, exact[0], measure.harm)
    against = against_chance(draws, 0, measure.harm)
    if not exact or len(exact) < many or against.chance is None:
        return against
    mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
    return replace(against, chance=replace(against.chance, mean=mean))


def _of_queries(
    measure: Measure, observed: Drawn, draws: Draws, exact: Mapping[int, Distribution]
) -> pa.Table:
    """Return a part per pool, those that are not estimable included, with reason.

    Column by column: there may be thousands of queries, each with a dozen groups.
    """
    pools, chosen = measure.pools, measure.tops.pool
    shown, many = np.full(pools.sizes.shape, np.nan), len(pools.pools)
    shown[chosen] = measure.shown(observed)
    numbers = against_each(draws, range(1, len(chosen) + 1), measure.harm)
    for place, one in exact.items():
        held = _against_exact(draws, place, one, measure.harm)
        if held.chance is not None and held.p_value is not None:
            numbers["p_value"][place] = held.p_value
            for name in ("mean", "low", "high"):
                column = "chance" if name == "mean" else f"chance_{name}"
                numbers[column][place] = getattr(held.chance, name)
    columns = {"value": draws.observed[1:], **numbers}
    spread = {name: np.full(many, np.nan) for name in columns}
    for name, values in columns.items():
        spread[name][chosen] = values
    reasons = [_left_out(measure, index)[0] for index in range(many)]
    shows, text = [""] * many, measure.shows or f"share of the first {measure.tops.k}"
    for place, index in enumerate(chosen.tolist()):
        reasons[index] = _too_few(measure, float(spread["value"][index]))
        ties = int(measure.tops.ties[place])
        shows[index] = f"{text}; {ties} items tie for its last places" if ties else text
    groups, nothing = pools.groups, np.full(pools.sizes.shape, np.nan)
    small = np.where(groups.usable, "", too_small(groups))
    note = np.where(pools.sizes > 0, small, "not in the pool")
    by_group = GroupColumns(
        groups, pools.sizes.astype(np.float64), shown, nothing, nothing, note
    ).arrow()
    return _table(
        measure.metric, subject=[one.name for one in pools.pools], **spread, reason=reasons,
        shows=shows, n=pools.sizes.sum(axis=1), by_group=by_group,
    )  # fmt: skip


def _of_beside(measure: Measure, beside: Beside, draws: Draws) -> Iterator[pa.Table]:
    """Yield a number beside the main one: its mean over queries, then each query."""
    pools, held = measure.pools.pools, measure.tops.pool
    sizes = measure.pools.sizes[held].sum(axis=1)
    if len(pools) > 1 or not beside.each:
        whole, ends = against_chance(draws, 0, beside.harm), ends_of(draws.boot, 0)
        n = int(sizes.sum())
        yield parts_to_table(
            [part(beside.metric, beside.subject, draws, 0, ends=ends, held=whole, n=n)]
        )
    if beside.each:
        numbers = against_each(draws, range(1, len(held) + 1), beside.harm)
        names = [pools[index].name for index in held.tolist()]
        yield _table(beside.metric, subject=names, value=draws.observed[1:], n=sizes, **numbers)


def _table(metric: str, **columns: Any) -> pa.Table:
    """Return parts from some of their columns."""
    many = len(columns["value"])
    columns |= {"metric": [metric] * many, "excluded": [[]] * many}
    columns.setdefault("by_group", [[]] * many)
    for one in SCHEMA:
        empty = np.full(many, np.nan) if one.type == pa.float64() else [""] * many
        columns.setdefault(one.name, empty)
    return pa.table([pa.array(columns[one.name], type=one.type) for one in SCHEMA], schema=SCHEMA)


def _left_out(measure: Measure, index: int) -> tuple[str, str]:
    """Say why a pool is not estimable, and what such pools are counted as."""
    many = len(measure.pools.pools[index].items)
    if not many:
        return "no item is ranked for it", "queries without an item to rank"
    if (measure.pools.sizes[index] > 0).sum() < 2:
        return "fewer than two groups in the pool", "queries with one group in the pool"
    reason = f"k={measure.tops.k}, and the pool has {many} items: nothing is left to choose"
    return reason, "queries with too small a pool for k"


def _too_few(measure: Measure, value: float) -> str:
    """Say why a pool that is large enough has no value; "" when it has one."""
    if not math.isnan(value):
        return ""
    given = isinstance(measure.params.get("desired"), dict)
    return f"fewer than two groups with rows enough{' and a desired share above 0' * given}"


def _excluded(measure: Measure) -> dict[str, int]:
    """Count rows of no pool, pools that are not estimable and groups that no item has."""
    used, pools = set(measure.tops.pool.tolist()), measure.pools
    reasons = [_left_out(measure, i)[1] for i in range(len(pools.pools)) if i not in used]
    found = {**pools.excluded, **dict(sorted(Counter(reasons).items()))}
    absent = int((pools.sizes == 0).all(axis=0).sum())
    return {**found, "empty groups": absent} if absent else found


def _params(measure: Measure) -> dict[str, Any]:
    ties, pools = measure.tops.ties, measure.pools
    found = {
        "k": measure.tops.k,
        **measure.params,
        "queries": len(pools.pools),
        "tied_items": int(ties.sum()),
        "queries_with_ties": int((ties > 0).sum()),
        "null": "pool order",
    }
    if pools.member is None:
        return found
    return found | {"null": "order within sets", "items_without_set": pools.without_set}


def _why_nan(measure: Measure, value: float) -> str:
    if math.isnan(value) and not len(measure.tops.pool):
        return f"no query can be estimated: {_left_out(measure, 0)[0]}"
    return _too_few(measure, value)


def _why_none(measure: Measure, value: float, resampling: Resampling | None) -> str:
    if math.isnan(value):
        return "not estimable"
    if resampling is None:
        return "no resampling was asked for"
    held = "no pool" if measure.pools.member is None else "no counterfactual set"
    return f"{held} holds several groups among the best items: nothing to exchange"
