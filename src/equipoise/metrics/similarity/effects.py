"""Effects of groups on similarity in every pool: observed, exchanged and resampled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.metrics.retrieval.estimates import permutations
from equipoise.metrics.retrieval.null import LabelExchange
from equipoise.metrics.retrieval.pools import Floats, Indices, Pools
from equipoise.metrics.retrieval.shuffled_sums import exchange_alone
from equipoise.metrics.similarity.blocks import Block, Codes
from equipoise.metrics.similarity.exchange import UnitExchange, unit_codes
from equipoise.stats.poisson import Times, unit_times
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import place_keys, unit_keys

# Draws that the chance bands of single groups rest on.
_BANDS = 1000


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of groups in all pools.

    Attributes
    ----------
    pools : Pools
    blocks : tuple of Block
        Of the pools that have a value.
    alone : int
        Images whose set holds no other group: they compare nothing.
    paired : bool
        Whether there are counterfactual sets.
    clusters : ndarray of int64, shape (n,), or None
        Unit of each image.
    keys : ndarray of uint64, shape (n,)
        What each image is resampled with: its unit, else its set, else itself.
    """

    pools: Pools
    blocks: tuple[Block, ...] = field(repr=False)
    alone: int
    paired: bool
    clusters: Indices | None = field(repr=False)
    keys: npt.NDArray[np.uint64] = field(repr=False)

    @classmethod
    def of(cls, pools: Pools, sets: Any, clusters: Any, scale: float) -> Effects:
        """Split pools into blocks that share their images, scores times `scale`.

        Raises
        ------
        InputError
            When lengths differ, or a set has images of several units.
        """
        units = None if clusters is None else unit_codes(clusters, len(pools.groups.codes))
        codes = usable_codes(pools)
        member = None if sets is None else encode(sets, what="sets")[0]
        held: dict[int, list[int]] = {}
        for index, one in enumerate(pools.pools):
            held.setdefault(one.block, []).append(index)
        made = [_block(pools, places, codes, member, scale) for places in held.values()]
        blocks = tuple(block for block, _ in made if len(block.items) and len(block.kept) > 1)
        keys = _keys(blocks, len(codes), sets, clusters)
        if units is not None and sets is not None:
            _check_nested(sets, keys, blocks)
        return cls(pools, blocks, sum(out for _, out in made), sets is not None, units, keys)

    @cached_property
    def known(self) -> Indices:
        """Indices of the pools that have a value, in order."""
        none = np.empty(0, dtype=np.int64)
        return np.sort(np.concatenate([none, *(one.places for one in self.blocks)]))

    @cached_property
    def effects(self) -> Floats:
        """Effects, (pools, groups); NaN where there are none."""
        found = np.full(self.pools.sizes.shape, np.nan)
        for one in self.blocks:
            found[one.places] = one.effects
        return found

    @cached_property
    def sizes(self) -> Indices:
        """Images behind the effects, (pools, groups)."""
        found = np.zeros(self.pools.sizes.shape, dtype=np.int64)
        for one in self.blocks:
            found[one.places] = np.bincount(one.codes, minlength=one.groups)
        return found

    @cached_property
    def freedom(self) -> Indices:
        """Units with the group that has fewest of them, less one; (pools,)."""
        found = np.zeros(len(self.pools.pools), dtype=np.int64)
        for one in self.blocks:
            keys, kept = self.keys[one.items], [*one.kept]
            fewest = min(len(np.unique(keys[one.codes == group])) for group in kept)
            found[one.places] = fewest - 1
        return found

    def exchanged(self, resampling: Resampling, rng: int) -> Floats | None:
        """Return gaps with exchanged groups, (draws, pools); None where nothing can change."""
        many = permutations(resampling, len(self._items))
        return self._drawn(gaps, many, rng, "similarity gap")

    def bands(self, rng: int) -> Floats | None:
        """Return effects with exchanged groups, (draws, pools, groups), of no more draws."""
        return self._drawn(lambda effects: effects, _BANDS, rng, "similarity band")

    def pooled(self, resampling: Resampling, rng: int) -> Floats | None:
        """Return gaps of plain means with groups exchanged over pools, (draws, pools)."""
        many = permutations(resampling, len(self._items))
        return self._drawn(gaps, many, rng, "similarity pool", over_pools=True)

    @property
    def plain(self) -> Floats:
        """Gaps of plain means, whatever the sets; (pools,)."""
        codes = np.concatenate([one.codes for one in self.blocks])
        return np.asarray(gaps(self._with(self.blocks, codes[None], paired=False))[0])

    def resampled(self, replicates: int, rng: int) -> Floats:
        """Return effects of resampled units, (replicates, pools, groups)."""
        found = np.full((replicates, *self.pools.sizes.shape), np.nan)
        for one in self.blocks:
            times = partial(_times, self.keys[one.items], replicates, rng)
            found[:, one.places] = one.resampled(times, replicates)
        return found

    @cached_property
    def _items(self) -> Indices:
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *(one.items for one in self.blocks)])

    def _drawn(
        self,
        function: Callable[[Floats], Floats],
        draws: int,
        rng: int,
        name: str,
        *,
        over_pools: bool = False,
    ) -> Floats | None:
        """Return a function of effects with exchanged groups; None where nothing can change.

        Parameters
        ----------
        function : callable
            Of effects (some draws, concepts, groups) to (some draws, concepts, ...).
        draws, rng, name
            How many, and the key of the random streams.
        over_pools : bool
            Whether images exchange groups over their pool, whatever their sets and units, and
            effects are plain means.
        """
        sets = None if over_pools else self.pools.member
        units = None if over_pools or sets is not None else self.clusters
        stratum, codes = self.pools.block if sets is None else sets, usable_codes(self.pools)
        paired, rest = self.paired and not over_pools, []
        nothing = function(np.full((1, *self.pools.sizes.shape), np.nan))
        found = np.repeat(nothing, draws, axis=0)
        for one in self.blocks:
            if units is None and exchange_alone(one.items, codes, stratum):
                key = f"{name}, block {self.pools.pools[one.places[0]].block}"
                found[:, one.places] = one.shuffled(function, draws, rng, key, paired=paired)
            else:
                rest.append(one)
        moved = len(rest) < len(self.blocks)
        if rest:
            items = np.concatenate([one.items for one in rest])
            exchange: LabelExchange | UnitExchange
            if units is None:
                exchange = LabelExchange.of(codes, stratum, items)
            else:
                exchange = UnitExchange.of(codes, stratum, items, units)
            if exchange.moves:
                moved, places = True, np.concatenate([one.places for one in rest])
                parts = exchange.evaluate(
                    lambda drawn: function(self._with(rest, drawn, paired=paired)), draws, rng, name
                )
                found[:, places] = np.concatenate(parts)[:, places]
        return found if moved else None

    def _with(self, blocks: Sequence[Block], codes: Codes, *, paired: bool) -> Floats:
        """Return effects with other labels of some blocks' images, (draws, pools, groups)."""
        edges = np.cumsum([len(one.items) for one in blocks])[:-1]
        found = np.full((len(codes), *self.pools.sizes.shape), np.nan)
        for one, drawn in zip(blocks, np.split(codes, edges, axis=1), strict=True):
            found[:, one.places] = one.exchanged(drawn, paired=paired)
        return found


def gaps(effects: Floats) -> Floats:
    """Return largest less smallest effect along the last axis; NaN where there are none."""
    known = ~np.isnan(effects)
    high = np.where(known, effects, -np.inf).max(axis=-1)
    low = np.where(known, effects, np.inf).min(axis=-1)
    return np.asarray(np.where(known.sum(axis=-1) > 1, high - low, np.nan))


def usable_codes(pools: Pools) -> Codes:
    """Return the group of each image; −1 for groups that are too small to compare."""
    codes = pools.groups.codes
    usable = np.append(pools.groups.usable, False)
    return np.where(usable[codes], codes, -1).astype(np.int32)


def _block(
    pools: Pools, places: list[int], codes: Codes, sets: Codes | None, scale: float
) -> tuple[Block, int]:
    """Return the block of pools of the same images, and how many of these compare nothing."""
    pool = pools.pools[places[0]]
    chosen = np.flatnonzero(codes[pool.items] >= 0)
    items = pool.items[chosen]
    member = np.full(len(items), -1) if sets is None else sets[items]
    loose = member < 0
    stratum = np.unique(member, return_inverse=True)[1]
    several = _several(stratum, codes[items])
    table = (pools.scores(index)[chosen].astype(np.float64) for index in places)
    first = next(table)
    # By score and group, so that permuted rows give the same draws.
    order = np.lexsort((codes[items], first))
    order = order[several[stratum[order]]]
    strata = np.unique(stratum[order], return_inverse=True)[1]
    scores = np.empty((len(places), len(order)))
    for line, row in zip(scores, chain([first], table), strict=True):
        np.multiply(scale, row[order], out=line)
    made = Block(
        np.array(places), items[order], scores, codes[items][order],
        strata.astype(np.int64), loose[order], len(pools.groups),
    )  # fmt: skip
    return made, len(items) - len(order)


def _several(stratum: Indices, codes: Codes) -> npt.NDArray[np.bool_]:
    """Whether each set holds several groups."""
    many = int(stratum.max(initial=-1)) + 1
    low, high = np.full(many, np.iinfo(np.int32).max), np.full(many, -1)
    np.minimum.at(low, stratum, codes)
    np.maximum.at(high, stratum, codes)
    return np.asarray(low < high)


def _times(keys: npt.NDArray[np.uint64], replicates: int, rng: int, held: slice) -> Times:
    return unit_times(keys[held], replicates, rng)[:, 1:]


def _check_nested(sets: Any, keys: npt.NDArray[np.uint64], blocks: tuple[Block, ...]) -> None:
    codes, names = encode(sets, what="sets")
    none = np.empty(0, dtype=np.int64)
    rows = np.concatenate([none, *(one.items for one in blocks)])
    rows = rows[codes[rows] >= 0]
    unit = np.unique(keys[rows], return_inverse=True)[1]
    low, high = np.full(len(names), len(keys)), np.full(len(names), -1)
    np.minimum.at(low, codes[rows], unit)
    np.maximum.at(high, codes[rows], unit)
    split = np.flatnonzero(low < high)
    if len(split):
        raise InputError(
            f"clusters: set {names[split[0]]!r} has images of several units ({len(split)} such "
            "sets); expected each set within one unit, since sets are resampled whole"
        )


def _keys(blocks: tuple[Block, ...], many: int, sets: Any, clusters: Any) -> npt.NDArray[np.uint64]:
    keys = np.zeros(many, dtype=np.uint64)
    for items, own in zip((one.items for one in blocks), _own(blocks), strict=True):
        keys[items] = own
    for labels, what in ((sets, "sets"), (clusters, "clusters")):
        if labels is not None:
            codes, names = encode(labels, what=what)
            named = np.append(unit_keys(names), np.uint64(0))
            keys = np.where(codes >= 0, named[codes], keys)
    return keys


def _own(blocks: tuple[Block, ...]) -> Iterator[npt.NDArray[np.uint64]]:
    start = 0
    for one in blocks:
        yield place_keys(start, len(one.items))
        start += len(one.items)
