"""Parts of a retrieval estimate: one per query, and numbers beside the main one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from equipoise.core.estimate import Harm, no_ends
from equipoise.core.parts import SCHEMA, parts_to_table
from equipoise.metrics.building import Against, against_chance, part, replicates_of
from equipoise.metrics.measure import Draws
from equipoise.metrics.retrieval.pools import Floats, Indices, Pools
from equipoise.metrics.retrieval.statistics import Drawn, Statistic
from equipoise.metrics.retrieval.tops import Tops

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
        ends = replicates_of(drawn, 0) or no_ends
        if len(pools) > 1 or not other.each:
            against = against_chance(drawn, 0, other.harm)
            yield parts_to_table(
                [part(other.metric, other.subject, drawn, 0, ends=ends, against=against, n=asked.n)]
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
