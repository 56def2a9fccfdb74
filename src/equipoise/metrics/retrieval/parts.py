"""Parts of a retrieval estimate: one per query, and numbers beside the main one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Harm, no_ends
from equipoise.core.finding import GroupValue
from equipoise.core.parts import Part
from equipoise.metrics.building import Against, against_chance, part, replicates_of
from equipoise.metrics.measure import Draws
from equipoise.metrics.retrieval.pools import Floats, Pools
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
    def statistics(self) -> tuple[Statistic, ...]:
        """The main one, then those beside it."""
        return (self.statistic, *(one.statistic for one in self.others))

    @cached_property
    def observed(self) -> Drawn:
        """The labels as they are."""
        return Drawn(self.pools.groups.codes[self.tops.items][None], self.tops)


def query_parts(asked: Asked, draws: Draws, exact: Mapping[int, Exactly]) -> Iterator[Part]:
    """Yield a part per pool, those that are not estimable included, with reason."""
    places = {pool: place for place, pool in enumerate(asked.tops.pool.tolist())}
    shares = asked.observed.shares(len(asked.pools.groups))[0]
    shown = shares if asked.show is None else asked.show(shares)
    for index, pool in enumerate(asked.pools.pools):
        sizes, place = asked.pools.sizes[index], places.get(index)
        if place is None:
            nothing = np.full(len(sizes), np.nan)
            held = _by_group(asked, sizes, nothing)
            reason = too_small(asked, index)
            yield Part(asked.metric, pool.name, math.nan, n=len(pool.items), by_group=held,
                       reason=reason)  # fmt: skip
            continue
        against = (
            exactly(draws, place, exact[place], asked.harm)
            if place in exact
            else against_chance(draws, place + 1, asked.harm)
        )
        found = part(
            asked.metric, pool.name, draws, place + 1, ends=no_ends, against=against,
            n=len(pool.items), by_group=_by_group(asked, sizes, shown[place]),
            reason=too_few(float(draws.observed[place + 1])),
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


def other_parts(asked: Asked, draws: Sequence[Draws]) -> Iterator[Part]:
    """Yield the numbers beside the main one: their mean over queries, then each query."""
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
    if (asked.pools.sizes[index] > 0).sum() < 2:
        return "fewer than two groups in the pool"
    return f"k={asked.tops.k}, and the pool has {many} items: nothing is left to choose"


def too_few(value: float) -> str:
    """Say why a pool that is large enough has no value; "" when it has one."""
    return "fewer than two groups with rows enough" if math.isnan(value) else ""
