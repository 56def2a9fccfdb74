"""Effects of groups on similarity in every pool: observed, exchanged and resampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import connected_components

from equipoise.core.arrays import Bools, Floats, Indices
from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.metrics.building import gaps
from equipoise.metrics.rankings.estimates import permutations
from equipoise.metrics.rankings.exchange import (
    LabelExchange,
    exchange_alone,
    group_sums,
    of_shuffled,
)
from equipoise.metrics.rankings.pools import Pools
from equipoise.metrics.values.units import unit_codes
from equipoise.stats.draws import Exchange
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import Times, place_keys, stream, unit_keys, unit_times
from equipoise.stats.threads import added, each

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Numbers that are held at once: weights of images over all replicates, patterns of sets.
_CELLS = 4_000_000
# Of the largest eigenvalue, what counts as none: groups that do not meet in a set.
_NOTHING = 1e-9

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Block:
    """Concepts whose pools hold the same images.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
        Images of groups that are compared, in sets of several groups.
    scores : ndarray of float64, shape (concepts, n)
    codes : ndarray of int32, shape (n,)
    stratum : ndarray of int64, shape (n,)
        Set of each image, from 0.
    loose : ndarray of bool, shape (n,)
        Images of no set: independent ones, which are compared among themselves.
    groups : int
    """

    places: Indices
    items: Indices = field(repr=False)
    scores: Floats = field(repr=False)
    codes: Codes = field(repr=False)
    stratum: Indices = field(repr=False)
    loose: Bools = field(repr=False)
    groups: int

    @cached_property
    def counts(self) -> Floats:
        """Images by set and group, shape (sets, groups)."""
        flat = self.stratum * self.groups + self.codes
        sets = int(self.stratum.max(initial=-1)) + 1
        found = np.bincount(flat, minlength=sets * self.groups).reshape(sets, self.groups)
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def kept(self) -> Indices:
        """Groups that meet in sets, directly or through others: the largest such party."""
        met = laplacian(self.counts).sum(axis=0)
        _, party = connected_components(np.abs(met) > 0, directed=False)
        sizes = np.bincount(party, weights=self.counts.sum(axis=0))
        kept = np.flatnonzero((party == sizes.argmax()) & (self.counts.sum(axis=0) > 0))
        return kept.astype(np.int64)

    @cached_property
    def centred(self) -> Floats:
        """Scores less the mean of their set, shape (n, concepts)."""
        sets, found = len(self.counts), np.empty(self.scores.shape[::-1])
        sizes = self.counts.sum(axis=1)
        for column, row in enumerate(self.scores):
            sums = np.bincount(self.stratum, weights=row, minlength=sets)
            found[:, column] = row - (sums / sizes)[self.stratum]
        return found

    @cached_property
    def inverse(self) -> Floats:
        """What sums of centred scores of the kept groups are multiplied with."""
        whole = laplacian(self.counts).sum(axis=0)[np.ix_(self.kept, self.kept)]
        return np.asarray(np.linalg.inv(_anchored(whole[None])[0]))

    @cached_property
    def effects(self) -> Floats:
        """Effects of the groups, 0 on average; (concepts, groups), NaN where not compared."""
        return np.asarray(self.exchanged(self.codes[None], paired=True)[0])

    def exchanged(self, codes: Codes, *, paired: bool) -> Floats:
        """Return effects with other labels, (draws, concepts, groups).

        Parameters
        ----------
        codes : ndarray of int32, shape (draws, n)
        paired : bool
            Every set keeps its number of images of each group; otherwise all are one set.
        """
        sums = np.zeros((len(codes), self.groups, len(self.scores)))
        counts = np.zeros((len(codes), self.groups))
        group_sums(np.ascontiguousarray(codes), self._by_image(paired=paired), sums, counts)
        return self._of_sums(sums, counts, paired=paired)

    def shuffled(
        self,
        function: Callable[[Floats], Floats],
        draws: int,
        rng: int,
        name: str,
        *,
        paired: bool,
    ) -> Floats:
        """Return a function of effects with groups exchanged among all images.

        Parameters
        ----------
        function : callable
            Of effects (some draws, concepts, groups) to (some draws, concepts, ...).
        draws, rng, name
            How many, and the key of the random stream.
        paired
            As in `exchanged`.
        """
        sizes = np.bincount(self.codes, minlength=self.groups)

        def of_sums(sums: Floats) -> Floats:
            return function(self._of_sums(sums, sizes[None], paired=paired))

        scores = self._by_image(paired=paired)
        return np.concatenate(of_shuffled(of_sums, scores, sizes, draws, rng, name))

    def _by_image(self, *, paired: bool) -> Floats:
        return self.centred if paired else self._plain

    def _of_sums(self, sums: Floats, counts: npt.NDArray[Any], *, paired: bool) -> Floats:
        """Return effects from sums (draws, groups, concepts) of so many (draws, groups)."""
        known = sums[:, self.kept].transpose(0, 2, 1)
        if paired:
            return self._placed(known @ self.inverse)
        with np.errstate(invalid="ignore"):
            means = known / counts[:, None, self.kept]
        return self._placed(means - means.mean(axis=2, keepdims=True))

    @cached_property
    def _plain(self) -> Floats:
        """Scores less their mean over the pool, which rounds less than the scores do."""
        return np.ascontiguousarray((self.scores - self.scores.mean(axis=1, keepdims=True)).T)

    def resampled(self, times: Callable[[slice], Times], replicates: int) -> Floats:
        """Return effects with resampled images, (replicates, concepts, groups).

        NaN where groups no longer meet. Images are taken some at a time, with all replicates.

        Parameters
        ----------
        times : callable
            From places of images to how often each counts, (images, replicates); the same for all
            images of a set.
        replicates : int
        """
        step = max(1, _CELLS // replicates)

        def add(start: int) -> list[Floats]:
            held = slice(start, start + step)
            weights = times(held).T.astype(np.float64)
            return [*self._sums(weights, held), self._of_sets(weights, held)]

        members, loose, many, whole = added(add, range(0, len(self.items), step))
        if self.loose.any():
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = loose.sum(axis=2) / many.sum(axis=1)[:, None]
            loose -= many[:, None] * np.nan_to_num(mean)[..., None]
            whole += laplacian(many)
        inner = whole[:, self.kept[:, None], self.kept]
        return self._placed(_solved(inner, (members + loose)[..., self.kept]))

    def _sums(self, weights: Floats, held: slice) -> tuple[Floats, Floats, Floats]:
        """Add up scores of members of sets and of loose images, and count the loose ones."""
        shape = len(weights), self.groups
        sums = np.zeros((2, shape[0], len(self.scores), self.groups))
        many = np.zeros(shape)
        for index, chosen in enumerate((~self.loose[held], self.loose[held])):
            for group in range(self.groups):
                rows = np.flatnonzero(chosen & (self.codes[held] == group))
                if len(rows):
                    part = weights[:, rows]
                    sums[index, :, :, group] = part @ self.centred[held][rows]
                    many[:, group] = part.sum(axis=1) if index else 0.0
        return sums[0], sums[1], many

    @cached_property
    def _first(self) -> Indices:
        """The first image of each set."""
        members = np.flatnonzero(~self.loose)
        return np.asarray(members[np.unique(self.stratum[members], return_index=True)[1]])

    @cached_property
    def _patterns(self) -> tuple[Floats, Indices]:
        """Make-ups of sets, shape (patterns, groups), and which of them each set has."""
        names = self.stratum[self._first]
        patterns, which = np.unique(self.counts[names], axis=0, return_inverse=True)
        return patterns, which.reshape(-1)

    def _of_sets(self, weights: Floats, held: slice) -> Floats:
        """Add up what sets of one make-up give, times how often they were drawn.

        A set is drawn where the first of its images is.
        """
        found = np.zeros((len(weights), self.groups, self.groups))
        here = np.flatnonzero((self._first >= held.start) & (self._first < held.stop))
        if not len(here):
            return found
        drawn = weights[:, self._first[here] - held.start]
        patterns, which = self._patterns
        size = max(1, _CELLS // max(self.groups**2, len(here)))
        for start in range(0, len(patterns), size):
            part = patterns[start : start + size]
            times = drawn @ (which[here, None] == start + np.arange(len(part)))
            found += np.tensordot(times, laplacian(part), axes=1)
        return found

    def _placed(self, effects: Floats) -> Floats:
        found = np.full((*effects.shape[:2], self.groups), np.nan)
        found[..., self.kept] = np.round(effects, _DECIMALS)
        return found


def laplacian(counts: Floats) -> Floats:
    """Return diag(c) − c cᵀ / n of each row of counts, shape (rows, groups, groups)."""
    total = np.maximum(counts.sum(axis=1), 1e-300)[:, None, None]
    alone = counts[:, :, None] * np.eye(counts.shape[1])
    return np.asarray(alone - counts[:, :, None] * counts[:, None, :] / total)


def _anchored(inner: Floats) -> Floats:
    """Fix the constant that effects leave open, without changing their differences."""
    many = inner.shape[1]
    scale = np.trace(inner, axis1=1, axis2=2) / many
    return np.asarray(inner + np.maximum(scale, 1e-300)[:, None, None] / many)


def _solved(inner: Floats, sums: Floats) -> Floats:
    """Return effects from (replicates, groups, groups) and (replicates, concepts, groups)."""
    values = np.linalg.eigvalsh(inner)
    met = values[:, 1] > _NOTHING * np.maximum(values[:, -1], 1e-300) if inner.shape[1] > 1 else []
    found = np.full(sums.shape, np.nan)
    known = np.flatnonzero(met)
    if len(known):
        solved = np.linalg.solve(_anchored(inner[known]), sums[known].transpose(0, 2, 1))
        found[known] = solved.transpose(0, 2, 1)
    return found


Result = TypeVar("Result")
# Labels that a block of draws may hold.
_BLOCK_LABELS = 4_000_000


@dataclass(frozen=True, eq=False)
class UnitExchange:
    """Labels of units that change places within pools, see `equipoise.stats.draws`.

    Attributes
    ----------
    exchange : Exchange
    codes : ndarray of int32, shape (rows,)
        Labels of the rows that take part.
    source : ndarray of int64
        Place among those rows of each item that is looked at.
    """

    exchange: Exchange
    codes: Codes = field(repr=False)
    source: Indices = field(repr=False)

    @classmethod
    def of(cls, codes: Codes, stratum: Indices, items: Indices, units: Indices) -> UnitExchange:
        """Prepare draws.

        Parameters
        ----------
        codes : ndarray of int32, shape (n,)
            Labels; -1 does not take part.
        stratum : ndarray of int64, shape (n,)
            Labels exchange within a stratum; -1 does not take part.
        items : ndarray of int64, shape (m,)
            Rows whose labels are looked at.
        units : ndarray of int64, shape (n,)
            From `unit_codes`.
        """
        # Looked at first, in their order, so that permuted rows give the same draws.
        first = items[np.sort(np.unique(items, return_index=True)[1])]
        rest = np.setdiff1d(np.flatnonzero((codes >= 0) & (stratum >= 0)), first)
        rows = np.concatenate([first, rest])
        place = np.empty(len(codes), dtype=np.int64)
        place[rows] = np.arange(len(rows))
        group = codes[rows].astype(np.int64)
        return cls(Exchange.of(group, units[rows], stratum[rows]), codes[rows], place[items])

    @property
    def moves(self) -> bool:
        """Whether any exchange changes anything."""
        order = np.lexsort((self.exchange.group, self.exchange.pool))
        pool, group = self.exchange.pool[order], self.exchange.group[order]
        return bool(((pool[1:] == pool[:-1]) & (group[1:] != group[:-1])).any())

    def evaluate(
        self, function: Callable[[Codes], Result], draws: int, seed: int, name: str
    ) -> list[Result]:
        """Apply a function to blocks of draws (many, items), each of a stream of its own."""
        size = max(1, _BLOCK_LABELS // max(len(self.codes), 1))
        labels = self.codes.astype(np.int64)

        def block(start: int) -> Result:
            rng = stream(seed, name, start)
            many = min(size, draws - start)
            drawn = [self.exchange.shuffle(labels, rng)[self.source] for _ in range(many)]
            return function(np.stack(drawn).astype(np.int32))

        return each(block, range(0, draws, size))


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
        units = None
        if clusters is not None:
            units, _ = unit_codes(clusters, len(pools.groups.codes), "clusters")
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
            keys = self.keys[one.items]

            def times(held: slice, keys: npt.NDArray[np.uint64] = keys) -> Times:
                return unit_times(keys[held], replicates, rng)[:, 1:]

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
    keys, start = np.zeros(many, dtype=np.uint64), 0
    for one in blocks:
        keys[one.items] = place_keys(start, len(one.items))
        start += len(one.items)
    for labels, what in ((sets, "sets"), (clusters, "clusters")):
        if labels is not None:
            codes, names = encode(labels, what=what)
            named = np.append(unit_keys(names), np.uint64(0))
            keys = np.where(codes >= 0, named[codes], keys)
    return keys
