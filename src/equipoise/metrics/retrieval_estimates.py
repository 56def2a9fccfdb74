"""From ranked pools to an estimate: mean over queries, chance, interval, one part per query."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import pdtr

from equipoise.core.errors import InputError
from equipoise.core.estimate import Estimate, Harm, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.building import NOTHING, Against, against_chance, part, replicates_of
from equipoise.metrics.measure import MAX_DRAWN_CELLS, NO_INTERVAL, Draws
from equipoise.metrics.retrieval_null import LabelExchange, simulate
from equipoise.metrics.retrieval_pools import Floats, Pools
from equipoise.metrics.retrieval_statistics import Drawn, Statistic
from equipoise.metrics.retrieval_tops import Tops
from equipoise.stats.resampling import Bootstrap, Exact, Resampling
from equipoise.stats.streams import unit_keys, unit_uniforms

Exactly = tuple[Floats, Floats]

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"
_ONE_QUERY = "none: the queries are one unit; chance band and p-value only"
_EXACT = (
    "resampling=Exact: only for max_skew of one query without sets, without a tie at place k "
    "and with few enough results; use Permutation()"
)
# P(at most n) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)


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
    metric, reference : str
    harm : "higher", "lower" or "either"
    pools : Pools
    tops : Tops
    statistic : Statistic
    others : tuple of Other
    exact : callable, optional
        Every value under random order of a pool (index into `pools`), with its probability.
    show : callable, optional
        What a part shows per group, from shares (p, groups); default: the shares.
    shows : str
        The same in words.
    params : mapping
    """

    metric: str
    reference: str
    harm: Harm
    pools: Pools
    tops: Tops
    statistic: Statistic
    others: tuple[Other, ...] = ()
    exact: Callable[[int], Exactly | None] | None = None
    show: Callable[[Floats], Floats] | None = None
    shows: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def observed(self) -> Drawn:
        """The labels as they are."""
        return Drawn(self.pools.groups.codes[self.tops.items][None], self.tops)


@dataclass(frozen=True, eq=False)
class _Null:
    """Values of all statistics on exchanged labels, each (draws, pools), and where they are from."""

    values: Sequence[Floats]
    text: str


def estimate(asked: Asked, resampling: Resampling | None, rng: int) -> Estimate:
    """Turn what is asked into the estimate, see `equipoise.metrics.retrieval`."""
    statistics = (asked.statistic, *(one.statistic for one in asked.others))
    observed = [one(asked.observed)[0] for one in statistics]
    sets = asked.pools.member is not None
    null = _null(asked, statistics, resampling, rng, sets=sets)
    weights = query_weights(asked.pools, asked.tops.pool, resampling, rng)
    draws = [
        _draws(values, null, index, weights, resampling) for index, values in enumerate(observed)
    ]
    exact = _exact(asked) if resampling is not None else {}
    if isinstance(resampling, Exact) and (len(exact) != 1 or len(asked.tops.pool) != 1):
        raise InputError(_EXACT)
    whole = _whole(asked, draws[0], exact)
    parts = [
        *_parts(asked, draws[0], exact),
        *_other_parts(asked, draws[1:]),
        *_pool_order(asked, draws[0], weights, resampling, rng),
    ]
    value = float(draws[0].observed[0])
    return Estimate(
        metric=asked.metric,
        value=value,
        n=asked.pools.counts,
        method=_method(draws[0], resampling, "queries"),
        reference=asked.reference,
        params=_params(asked),
        chance=whole.chance,
        no_chance="" if whole.chance else _why_none(value, resampling, sets=sets),
        p_value=whole.p_value,
        null=whole.null,
        harm=asked.harm,
        by=parts_to_table(parts),
        excluded={**asked.pools.excluded, **_left_out(asked)},
        unit="query",
        reason=_why_nan(asked, value),
        ends=replicates_of(draws[0], 0) or no_ends,
    )


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations are drawn: enough to resolve p, within the budget."""
    if isinstance(resampling, Exact):
        return 0
    bootstrap = isinstance(resampling, Bootstrap)
    least = resampling.permutations if bootstrap else resampling.replicates
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
    uniforms = unit_uniforms(rng, "bootstrap", keys, range(resampling.replicates))
    return np.searchsorted(_POISSON, uniforms, side="right").astype(np.float64)


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


def _null(
    asked: Asked,
    statistics: Sequence[Statistic],
    resampling: Resampling | None,
    rng: int,
    *,
    sets: bool,
) -> _Null | None:
    if resampling is None or isinstance(resampling, Exact) or not len(asked.tops.pool):
        return None
    exchange = exchange_of(asked.pools, asked.tops, sets=sets)
    if not exchange.moves:
        return None
    many = permutations(resampling, asked.tops.items.size)
    values = simulate(statistics, asked.tops, exchange, many, rng)
    return _Null(values, f"{SET_ORDER if sets else POOL_ORDER}; {many} permutations")


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


def _exactly(draws: Draws, place: int, exact: Exactly, harm: Harm) -> Against:
    values, mass = exact
    alone = Draws(
        draws.observed[[place + 1]], None, values[:, None], mass, draws.level,
        f"{POOL_ORDER}; all selections",
    )  # fmt: skip
    return against_chance(alone, 0, harm)


def _whole(asked: Asked, draws: Draws, exact: Mapping[int, Exactly]) -> Against:
    many = len(asked.tops.pool)
    if many == 1 and exact:
        return _exactly(draws, 0, exact[0], asked.harm)
    against = against_chance(draws, 0, asked.harm)
    if not exact or len(exact) < many or against.chance is None:
        return against
    mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
    return replace(against, chance=replace(against.chance, mean=mean))


def _parts(asked: Asked, draws: Draws, exact: Mapping[int, Exactly]) -> Iterator[Part]:
    places = {pool: place for place, pool in enumerate(asked.tops.pool.tolist())}
    shares = asked.observed.shares(len(asked.pools.groups))[0]
    shown = shares if asked.show is None else asked.show(shares)
    for index, pool in enumerate(asked.pools.pools):
        sizes, place = asked.pools.sizes[index], places.get(index)
        if place is None:
            nothing = np.full(len(sizes), np.nan)
            held = _by_group(asked, sizes, nothing)
            reason = _too_small(asked, index)
            yield Part(asked.metric, pool.name, math.nan, n=len(pool.items), by_group=held,
                       reason=reason)  # fmt: skip
            continue
        against = (
            _exactly(draws, place, exact[place], asked.harm)
            if place in exact
            else against_chance(draws, place + 1, asked.harm)
        )
        found = part(
            asked.metric, pool.name, draws, place + 1, ends=no_ends, against=against,
            n=len(pool.items), by_group=_by_group(asked, sizes, shown[place]),
            reason=_too_few(float(draws.observed[place + 1])),
        )  # fmt: skip
        yield replace(found, shows=_shows(asked, place))


def _by_group(asked: Asked, sizes: npt.NDArray[np.int64], values: Floats) -> tuple[GroupValue, ...]:
    groups = asked.pools.groups
    return tuple(
        GroupValue(name, level, many, value, math.nan, math.nan, _note(groups.min_size, many, ok))
        for name, level, many, value, ok in zip(
            groups.names, groups.levels, sizes.tolist(), values.tolist(), groups.usable.tolist(),
            strict=True,
        )
    )  # fmt: skip


def _note(least: int, many: int, usable: bool) -> str:
    if not many:
        return "not in the pool"
    return "" if usable else f"fewer than {least} rows"


def _shows(asked: Asked, place: int) -> str:
    ties = int(asked.tops.ties[place])
    text = asked.shows or f"share of the first {asked.tops.k}"
    return f"{text}; {ties} items tie for its last places" if ties else text


def _other_parts(asked: Asked, draws: Sequence[Draws]) -> Iterator[Part]:
    for other, drawn in zip(asked.others, draws, strict=True):
        ends = replicates_of(drawn, 0) or no_ends
        against = against_chance(drawn, 0, other.harm)
        n = sum(len(asked.pools.pools[index].items) for index in asked.tops.pool.tolist())
        several = len(asked.pools.pools) > 1
        if several or not other.each:
            yield part(other.metric, other.subject, drawn, 0, ends=ends, against=against, n=n)
        if other.each:
            for place, index in enumerate(asked.tops.pool.tolist()):
                pool = asked.pools.pools[index]
                held = against_chance(drawn, place + 1, other.harm)
                yield part(
                    other.metric, pool.name, drawn, place + 1,
                    ends=no_ends, against=held, n=len(pool.items),
                )  # fmt: skip


def _pool_order(
    asked: Asked, draws: Draws, weights: Floats | None, resampling: Resampling | None, rng: int
) -> list[Part]:
    """Hold the value against the secondary null too, where sets make another the primary."""
    if asked.pools.member is None:
        return []
    null = _null(asked, (asked.statistic,), resampling, rng, sets=False)
    again = _draws(draws.observed[1:], null, 0, weights, resampling)
    against = against_chance(again, 0, asked.harm) if null else NOTHING
    n = sum(len(asked.pools.pools[index].items) for index in asked.tops.pool.tolist())
    ends = replicates_of(again, 0) or no_ends
    found = part(f"{asked.metric}_pool_order", "", again, 0, ends=ends, against=against, n=n)
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


def _too_small(asked: Asked, index: int) -> str:
    many = len(asked.pools.pools[index].items)
    if (asked.pools.sizes[index] > 0).sum() < 2:
        return "fewer than two groups in the pool"
    return f"k={asked.tops.k}, and the pool has {many} items: nothing is left to choose"


def _too_few(value: float) -> str:
    return "fewer than two groups with rows enough" if math.isnan(value) else ""


def _left_out(asked: Asked) -> dict[str, int]:
    """Count pools that are not estimable and groups that no item has."""
    used = set(asked.tops.pool.tolist())
    reasons = [
        "queries with one group in the pool"
        if (asked.pools.sizes[index] > 0).sum() < 2
        else "queries with too small a pool for k"
        for index in range(len(asked.pools.pools))
        if index not in used
    ]
    found = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
    absent = int((asked.pools.sizes == 0).all(axis=0).sum())
    return {**found, "empty groups": absent} if absent else found


def _why_nan(asked: Asked, value: float) -> str:
    if not math.isnan(value):
        return ""
    if not len(asked.tops.pool):
        return f"no query can be estimated: {_too_small(asked, 0)}"
    return _too_few(value)


def _why_none(value: float, resampling: Resampling | None, *, sets: bool) -> str:
    if math.isnan(value):
        return "not estimable"
    if resampling is None:
        return "no resampling was asked for"
    held = "no counterfactual set" if sets else "no pool"
    return f"{held} holds several groups among the best items: nothing to exchange"


def _method(draws: Draws, resampling: Resampling | None, what: str) -> str:
    if draws.boot is not None:
        return f"percentile bootstrap over {what}, {len(draws.boot)} replicates"
    if resampling is None:
        return NO_INTERVAL
    return _ONE_QUERY if isinstance(resampling, Bootstrap) else "none: use Bootstrap()"
