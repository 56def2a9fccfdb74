"""From ranked pools to an estimate: mean over queries, chance, interval, one part per query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core import Ends, Estimate, Floats, Harm, Integers, Integers32, parts_to_table
from equipoise.metrics.building import (
    STUDENT,
    against_chance,
    against_each,
    bootstrap_method,
    ends_of,
    filled,
    group_columns,
    part,
    too_small,
    untested,
)
from equipoise.metrics.measure import MAX_DRAWN_CELLS, Draws
from equipoise.metrics.rankings.exchange import UNITS, exchange_labels
from equipoise.metrics.rankings.pools import Pools, Tops
from equipoise.metrics.rankings.statistics import Drawn, Statistic
from equipoise.metrics.spec import make_estimate
from equipoise.stats.intervals import ClosedForm, jackknife_t
from equipoise.stats.resampling import (
    Bootstrap,
    Resampling,
    null_draws,
)
from equipoise.stats.streams import Seed, unit_counts, unit_keys

Distribution = tuple[Floats, Floats]
"""Values and their probabilities."""

POOL_ORDER = "the order within each pool is random"
SET_ORDER = "the order within each counterfactual set is random"
_NO_INTERVAL = "none: use Bootstrap() and queries of several subjects"
_FEW = "fewer than two groups with rows enough"


@dataclass(frozen=True, eq=False)
class Beside:
    """A number reported beside the main one, as parts of their own.

    Attributes
    ----------
    metric, subject : str
        Of the part of the mean over queries. Without a subject every query has a part too.
    statistic : Statistic
    harm : "higher", "lower" or "either"
    """

    metric: str
    subject: str
    statistic: Statistic
    harm: Harm


@dataclass(frozen=True, eq=False)
class Measure:
    """What a ranking metric computes.

    Attributes
    ----------
    metric : str
    tops : Tops
    statistic : Statistic
    harm : "higher", "lower" or "either"
    beside : tuple of Beside
    exact : callable, optional
        Every value under random order of a pool (index into `tops`), with its probability.
    shown : callable
        What a part shows per group, (p, groups), from the ranked labels; default: the shares.
    shows : str
        The same in words.
    params : mapping
    """

    metric: str
    tops: Tops
    statistic: Statistic
    harm: Harm
    beside: tuple[Beside, ...] = ()
    exact: Callable[[int], Distribution | None] | None = None
    shown: Callable[[Drawn], Floats] = lambda drawn: drawn.shares[0]
    shows: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)

    def left_out(self, index: int) -> str:
        """Say why a pool is not estimable; "" where it is."""
        if index in self.tops.pool:
            return ""
        pools = self.tops.pools
        if not len(pools.pools[index].items):
            return "no item to rank"
        several = (pools.sizes[index] > 0).sum() > 1
        return "too small a pool for k" if several else "one group in the pool"


def permutations(resampling: Resampling, cells: int) -> int:
    """Return how many permutations resolve the finest p-value, within the budget."""
    return null_draws(resampling, MAX_DRAWN_CELLS // max(cells, 1))


def query_weights(
    pools: Pools, chosen: Integers, resampling: Resampling | None, rng: Seed
) -> Floats | None:
    """Return how often each pool's subject is in each bootstrap replicate, shape (replicates, p).

    None without a bootstrap, and where all pools are of one subject.
    """
    subjects = [pools.subjects[pools.pools[index].query] for index in chosen.tolist()]
    if not isinstance(resampling, Bootstrap) or len(set(subjects)) < 2:
        return None
    return unit_counts(rng, unit_keys(subjects), range(resampling.replicates)).astype(np.float64)


def weighted_mean(weights: Floats, values: Floats) -> Floats:
    """Return means over pools in every replicate; (r, p) and (p, ...) to (r, ...).

    Values of weight 0 do not enter, infinite ones neither.
    """
    shaped = weights.reshape(*weights.shape, *(1,) * (values.ndim - 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        sums = np.where(shaped > 0, shaped * values, 0.0).sum(axis=1)
        return np.asarray(sums / shaped.sum(axis=1))


def mean_ends(tops: Tops, draws: Draws) -> Ends:
    """Return the ends of the mean over queries, by the jackknife over their subjects.

    Percentiles of replicates where a query's number is infinite.
    """
    values, pools = draws.observed[1:], tops.pools
    if draws.boot is None or not np.isfinite(values).all():
        return ends_of(draws.boot, 0)
    names = [pools.subjects[pools.pools[index].query] for index in tops.pool.tolist()]
    subject = np.unique(names, return_inverse=True)[1]
    rest = len(values) - np.bincount(subject)
    left_out = (values.sum() - np.bincount(subject, values)) / rest
    return ClosedForm(jackknife_t, (draws.observed[0], (left_out,)))


def exchanged(
    tops: Tops,
    function: Callable[[Drawn], Sequence[Floats]],
    resampling: Resampling | None,
    rng: Seed,
    *,
    sets: bool,
) -> list[Floats] | None:
    """Return numbers of drawn labels, exchanged within sets or pools; None where nothing moves.

    In pools, units exchange their groups as wholes.
    """
    if resampling is None:
        return None
    pools, items = tops.pools, tops.items

    def block(drawn: Integers32) -> Sequence[Floats]:
        return function(Drawn(drawn, tops))

    within = pools.member if sets else None
    stratum, units = (pools.block, pools.units) if within is None else (within, None)
    many = permutations(resampling, items.size if units is None else max(items.size, len(units)))
    rows = pools.groups.codes, stratum, units
    blocks = exchange_labels(block, rows, items, many, rng, "retrieval")
    return [np.concatenate(values) for values in zip(*blocks, strict=True)] or None


def estimates(
    measures: Sequence[Measure], resampling: Resampling | None, rng: Seed
) -> list[Estimate]:
    """Turn several measures into estimates: those of one ranking and K share their draws."""
    found: dict[int, Estimate] = {}
    for tops in {id(one.tops): one.tops for one in measures}.values():
        alike, paired = [one for one in measures if one.tops is tops], tops.pools.paired
        observed, first = Drawn.of(tops), [one.statistic for one in alike]
        every = [s for one in alike for s in (one.statistic, *(b.statistic for b in one.beside))]
        main = _draws(observed, every, resampling, rng, sets=paired)
        pooled = _draws(observed, first if paired else [], resampling, rng, sets=False)
        for one in alike:
            draws = [next(main) for _ in (one, *one.beside)]
            found[id(one)] = _estimate(one, observed, draws, next(pooled, None), resampling)
    return [found[id(one)] for one in measures]


def _draws(
    observed: Drawn,
    statistics: Sequence[Statistic],
    resampling: Resampling | None,
    rng: Seed,
    *,
    sets: bool,
) -> Iterator[Draws]:
    """Yield each statistic: the mean over pools first, and each pool after it."""
    if not statistics:
        return
    tops = observed.tops

    def numbers(drawn: Drawn) -> list[Floats]:
        return [statistic(drawn) for statistic in statistics]

    null = exchanged(tops, numbers, resampling, rng, sets=sets)
    weights = query_weights(tops.pools, tops.pool, resampling, rng)
    for place, (values,) in enumerate(numbers(observed)):
        yield Draws.of(
            resampling,
            np.append(values.mean() if len(values) else np.nan, values),
            None if weights is None else weighted_mean(weights, values)[:, None],
            None if null is None else np.column_stack([null[place].mean(axis=1), null[place]]),
            SET_ORDER if sets else POOL_ORDER if tops.pools.units is None else UNITS,
        )


def _estimate(
    measure: Measure,
    observed: Drawn,
    draws: Sequence[Draws],
    pooled: Draws | None,
    resampling: Resampling | None,
) -> Estimate:
    tops, value = measure.tops, float(draws[0].observed[0])
    pools = tops.pools
    exact = _exact(measure) if resampling is not None else {}
    ends, against = mean_ends(tops, draws[0]), against_chance(draws[0], 0, measure.harm)
    if len(exact) == len(tops.pool) == 1:
        against = against_chance(_enumerated(draws[0], 0, exact[0]), 0, measure.harm)
    elif exact and len(exact) == len(tops.pool) and against.chance:
        mean = float(np.mean([(values * mass).sum() for values, mass in exact.values()]))
        against = replace(against, chance=replace(against.chance, mean=mean))

    def parts() -> pa.Table:
        tables = [_of_queries(measure, observed, draws[0], exact)]
        for beside, drawn in zip(measure.beside, draws[1:], strict=True):
            tables += _of_beside(measure, beside, drawn)
        if pooled is not None:
            held = against_chance(pooled, 0, measure.harm)
            name, shows = f"{measure.metric}_pool_order", f"secondary null: {POOL_ORDER}"
            n = int(tops.sizes.sum())
            secondary = part(name, "", pooled, 0, ends=ends, held=held, n=n, shows=shows)
            tables.append(parts_to_table([secondary]))
        return pa.concat_tables(tables).combine_chunks()

    reasons = map(measure.left_out, range(len(pools.pools)))
    left_out = Counter(f"queries with {why}" for why in reasons if why)
    null: dict[str, Any] = {"null": "pool order"}
    if pools.paired:
        null = {"null": "order within sets", "items_without_set": pools.without_set}
    method = bootstrap_method(draws[0].boot, resampling, "queries", _NO_INTERVAL)
    if isinstance(ends, ClosedForm) and ends.function is jackknife_t:
        method = f"{STUDENT} over queries"
    why = "no query can be estimated: " + measure.left_out(0) if not len(tops.pool) else _FEW
    return make_estimate(
        measure.metric,
        value,
        pools.counts,
        method,
        params={
            "k": tops.k,
            **measure.params,
            "queries": len(pools.pools),
            "tied_items": int(tops.ties.sum()),
            "queries_with_ties": int((tops.ties > 0).sum()),
            **null,
        },
        **against.fields(untested(value, resampling)),
        harm=measure.harm,
        by=parts,
        excluded={**pools.excluded, **left_out, "empty groups": pools.empty},
        unit="query",
        reason=why if math.isnan(value) else "",
        ends=ends,
    )


def _exact(measure: Measure) -> dict[int, Distribution]:
    """Return exact chance by place in `tops`, of the pools that have it."""
    found: dict[int, Distribution] = {}
    pools = measure.tops.pools
    if measure.exact is not None and not pools.paired and pools.units is None:
        for place in np.flatnonzero(measure.tops.ties == 0).tolist():
            one = measure.exact(place)
            found |= {} if one is None else {place: one}
    return found


def _enumerated(draws: Draws, place: int, exact: Distribution) -> Draws:
    """Return one pool with every value that random order can give."""
    null, text = exact[0][:, None], f"{POOL_ORDER}; all selections"
    return Draws(draws.observed[[place + 1]], None, null, exact[1], draws.level, text)


def _of_queries(
    measure: Measure, observed: Drawn, draws: Draws, exact: Mapping[int, Distribution]
) -> pa.Table:
    """Return a part per pool, those that are not estimable included, with reason.

    Column by column: there may be thousands of queries, each with a dozen groups.
    """
    pools, chosen = measure.tops.pools, measure.tops.pool
    groups = pools.groups
    shown = np.full(pools.sizes.shape, np.nan)
    shown[chosen] = measure.shown(observed)
    numbers = against_each(draws, range(1, len(chosen) + 1), measure.harm)
    for place, one in exact.items():
        held = against_each(_enumerated(draws, place, one), range(1), measure.harm)
        for name, column in held.items():
            numbers[name][place] = column[0]
    spread = {}
    for name, values in {"value": draws.observed[1:], **numbers}.items():
        spread[name] = np.full(len(pools.pools), np.nan)
        spread[name][chosen] = values
    reasons = [
        measure.left_out(index) or (_FEW if math.isnan(value) else "")
        for index, value in enumerate(spread["value"])
    ]
    shows, text = [""] * len(reasons), measure.shows or f"share of the first {measure.tops.k}"
    for index, ties in zip(chosen.tolist(), measure.tops.ties.tolist(), strict=True):
        shows[index] = f"{text}; {ties} items tie for its last places" if ties else text
    nothing = np.full(pools.sizes.shape, np.nan)
    small = np.where(groups.usable, "", too_small(groups))
    note = np.where(pools.sizes > 0, small, "not in the pool")
    sizes = pools.sizes.astype(np.float64)
    by_group = group_columns(groups, sizes, shown, nothing, nothing, note)
    return filled(
        measure.metric, subject=[one.name for one in pools.pools], **spread, reason=reasons,
        shows=shows, n=pools.sizes.sum(axis=1), by_group=by_group,
    )  # fmt: skip


def _of_beside(measure: Measure, beside: Beside, draws: Draws) -> Iterator[pa.Table]:
    """Yield a number beside the main one: its mean over queries, then each query."""
    tops, sizes = measure.tops, measure.tops.sizes.sum(axis=1)
    pools = tops.pools.pools
    if len(pools) > 1 or beside.subject:
        held, ends = against_chance(draws, 0, beside.harm), mean_ends(tops, draws)
        n = int(sizes.sum())
        yield parts_to_table(
            [part(beside.metric, beside.subject, draws, 0, ends=ends, held=held, n=n)]
        )
    if not beside.subject:
        numbers = against_each(draws, range(1, len(sizes) + 1), beside.harm)
        names = [pools[index].name for index in tops.pool.tolist()]
        yield filled(beside.metric, subject=names, value=draws.observed[1:], n=sizes, **numbers)
