"""Effects of groups on similarity in every pool: observed, exchanged and resampled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from equipoise.core import Booleans, Floats, InputError, Integers, Integers32, Words, encode
from equipoise.metrics.building import gaps
from equipoise.metrics.rankings.exchange import (
    exchange_alone,
    exchange_labels,
    group_sums,
    of_shuffled,
)
from equipoise.metrics.rankings.pools import Pooling, Pools
from equipoise.stats.draws import varies
from equipoise.stats.streams import Seed, place_keys, unit_keys, unit_times
from equipoise.stats.threads import added

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Numbers that are held at once: weights of images over all replicates, patterns of sets.
_CELLS = 4_000_000
# Of the largest eigenvalue, what counts as none: groups that do not meet in a set.
_NOTHING = 1e-9
# Of the sum of squares, what is rounding only.
_FLAT = 1e-20


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

    places: Integers
    items: Integers
    scores: Floats
    codes: Integers32
    stratum: Integers
    loose: Booleans
    groups: int

    @cached_property
    def counts(self) -> Floats:
        """Images by set and group, shape (sets, groups)."""
        flat = self.stratum * self.groups + self.codes
        sets = int(self.stratum.max(initial=-1)) + 1
        found = np.bincount(flat, minlength=sets * self.groups).reshape(sets, self.groups)
        return np.asarray(found, dtype=np.float64)

    @cached_property
    def kept(self) -> Integers:
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
        return np.linalg.inv(_anchored(whole[None])[0])

    @cached_property
    def plain(self) -> Floats:
        """Scores less their mean over the pool, which rounds less than the scores do."""
        return np.ascontiguousarray((self.scores - self.scores.mean(axis=1, keepdims=True)).T)

    def summed(self, units: Integers | None) -> Floats:
        """Return what means by group and their variances add up for each image, shape (n, k).

        `plain` and its squares; where units (rows,) exchange groups as one, S² / n, S and n, with
        S the sum of the n images of a unit of one group.
        """
        if units is None:
            return np.hstack([self.plain, self.plain**2])
        own, alone = units[self.items], np.arange(len(self.items)) + len(units)
        own = np.unique(np.where(varies(own, self.codes)[own], alone, own), return_inverse=True)[1]
        sums = np.stack([np.bincount(own, column) for column in self.plain.T], axis=1)[own]
        many = np.bincount(own)[own, None].astype(np.float64)
        return np.hstack([self.plain, sums**2 / many, sums, many])

    def ratios(self, effects: Floats, sums: Floats, counts: Floats) -> Floats:
        """Return effects above all other images in standard errors, (draws, concepts, groups).

        Parameters
        ----------
        effects : ndarray, shape (draws, concepts, groups)
        sums : ndarray, shape (draws, groups, k)
            Of `summed`.
        counts : ndarray, shape (draws or 1, groups)
            Images of each group.
        """
        concepts, known = len(self.places), sums[:, self.kept].transpose(0, 2, 1)
        n = counts[:, None, self.kept]
        means, squares = known[:, :concepts] / n, known[:, concepts : 2 * concepts]
        products, sizes = known[:, :concepts], n
        if known.shape[1] > 2 * concepts:
            products, sizes = known[:, 2 * concepts : -1], known[:, -1:]
        spread = squares - 2.0 * means * products + means**2 * sizes
        finest = _FLAT * squares.sum(axis=-1, keepdims=True)
        spread = np.maximum(spread, finest)
        apart = less_rest(effects[..., self.kept], n)
        rest = n.sum(axis=-1, keepdims=True) - n
        error = np.sqrt(spread / n**2 + (spread.sum(axis=-1, keepdims=True) - spread) / rest**2)
        return self._placed(np.where(apart == 0.0, 0.0, apart / np.where(error > 0.0, error, 1.0)))

    def effects(self, sums: Floats, counts: Floats, *, paired: bool) -> Floats:
        """Return effects of groups, 0 on average: (draws, concepts, groups), NaN if not compared.

        Parameters
        ----------
        sums : ndarray, shape (draws, groups, concepts)
            Of `centred` where sets are kept, else of `plain`.
        counts : ndarray, shape (draws or 1, groups)
            Images of each group.
        paired : bool
            Every set keeps its number of images of each group; otherwise all are one set.
        """
        known = sums[:, self.kept].transpose(0, 2, 1)
        if paired:
            return self._placed(known @ self.inverse)
        with np.errstate(invalid="ignore"):
            means = known / counts[:, None, self.kept]
        return self._placed(means - means.mean(axis=2, keepdims=True))

    def resampled(self, keys: Words, replicates: int, rng: Seed) -> Floats:
        """Return effects with resampled images, (replicates, concepts, groups).

        NaN where groups no longer meet. Images are taken some at a time, with all replicates.

        Parameters
        ----------
        keys : ndarray of uint64, shape (n,)
            What each image is resampled with; the same for all images of a set.
        replicates, rng : int
        """
        step, shape = max(1, _CELLS // replicates), (replicates, self.groups)
        members = np.flatnonzero(~self.loose)
        names, first = np.unique(self.stratum[members], return_index=True)
        # Sets of one make-up add the same, times how often they were drawn.
        makeups, which = np.unique(self.counts[names], axis=0, return_inverse=True)
        first, which = members[first], which.reshape(-1)

        def add(start: int) -> list[Floats]:
            held = slice(start, start + step)
            weights = unit_times(keys[held], replicates, rng)[:, 1:].T.astype(np.float64)
            sums, many = np.zeros((2, replicates, len(self.scores), self.groups)), np.zeros(shape)
            for index, chosen in enumerate((~self.loose[held], self.loose[held])):
                for group in range(self.groups):
                    rows = np.flatnonzero(chosen & (self.codes[held] == group))
                    part = weights[:, rows]
                    sums[index, :, :, group] = part @ self.centred[held][rows]
                    many[:, group] = part.sum(axis=1) * index
            whole = np.zeros((*shape, self.groups))
            # A set is drawn where the first of its images is.
            here = np.flatnonzero((first >= start) & (first < start + step))
            drawn = weights[:, first[here] - start]
            size = max(1, _CELLS // max(self.groups**2, len(here)))
            for place in range(0, len(makeups), size):
                some = makeups[place : place + size]
                times = drawn @ (which[here, None] == place + np.arange(len(some)))
                whole += np.tensordot(times, laplacian(some), axes=1)
            return [*sums, many, whole]

        inside, loose, many, whole = added(add, range(0, len(self.items), step))
        if self.loose.any():
            with np.errstate(invalid="ignore", divide="ignore"):
                mean = loose.sum(axis=2) / many.sum(axis=1)[:, None]
            loose -= many[:, None] * np.nan_to_num(mean)[..., None]
            whole += laplacian(many)
        inner = whole[:, self.kept[:, None], self.kept]
        return self._placed(_solved(inner, (inside + loose)[..., self.kept]))

    def _placed(self, effects: Floats) -> Floats:
        found = np.full((*effects.shape[:2], self.groups), np.nan)
        found[..., self.kept] = np.round(effects, _DECIMALS)
        return found


def less_rest(effects: Floats, counts: Floats | Integers) -> Floats:
    """Return effects of groups less the mean over the images of all others, (..., groups)."""
    known = ~np.isnan(effects)
    many, held = np.where(known, counts, 0.0), np.where(known, effects, 0.0)
    total = (many * held).sum(axis=-1, keepdims=True) - many * held
    with np.errstate(invalid="ignore", divide="ignore"):
        rest = total / (many.sum(axis=-1, keepdims=True) - many)
    return np.where(known, effects - rest, np.nan)


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


@dataclass(frozen=True, eq=False)
class Exchanged:
    """Concepts of the same images, and what is measured when the images exchange groups.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
    by_image : ndarray, shape (n, concepts)
        Numbers that are added by group.
    statistic : callable
        From sums (draws, groups, concepts) and counts (draws or 1, groups) to an array (draws,
        concepts, ...).
    """

    places: Integers
    items: Integers
    by_image: Floats
    statistic: Callable[[Floats, Any], Floats]

    def __call__(self, codes: Integers32, groups: int) -> Floats:
        """Return the statistic with groups (draws, n)."""
        sums = np.zeros((len(codes), groups, self.by_image.shape[1]))
        counts = np.zeros((len(codes), groups))
        group_sums(np.ascontiguousarray(codes), self.by_image, sums, counts)
        return self.statistic(sums, counts)


def exchanged(
    measured: Sequence[Exchanged],
    pools: Pools,
    codes: Integers32,
    sets: Integers | None,
    units: Integers | None,
    draws: int,
    rng: Seed,
    name: str,
) -> Floats | None:
    """Return statistics with exchanged groups, (draws, pools, ...); None if nothing can change.

    Parameters
    ----------
    measured : sequence of Exchanged
    pools : Pools
    codes : ndarray of int32, shape (n,)
        Group of each image, -1 for none.
    sets : ndarray of int64, shape (n,), optional
        What images exchange groups within; by default their pool.
    units : ndarray of int64, shape (n,), optional
        Units that exchange groups as one, where there are no sets.
    draws, rng, name
        How many, and the key of the random streams.
    """
    done, rest, groups = [], [], len(pools.groups)
    stratum, units = (pools.block, units) if sets is None else (sets, None)
    for one in measured:
        if units is None and exchange_alone(one.items, codes, stratum):
            sizes = np.bincount(codes[one.items], minlength=groups)

            def of_sums(sums: Floats, one: Exchanged = one, sizes: Integers = sizes) -> Floats:
                return one.statistic(sums, sizes[None])

            key = f"{name}, block {pools.pools[one.places[0]].block}"
            parts = of_shuffled(of_sums, one.by_image, sizes, draws, rng, key)
            done.append((one.places, np.concatenate(parts)))
        else:
            rest.append(one)
    if rest:
        items = np.concatenate([one.items for one in rest])
        edges = np.cumsum([len(one.items) for one in rest])[:-1]

        def block(drawn: Integers32) -> Floats:
            parts = zip(rest, np.split(drawn, edges, axis=1), strict=True)
            return np.concatenate([one(part, groups) for one, part in parts], axis=1)

        parts = exchange_labels(block, (codes, stratum, units), items, draws, rng, name)
        if parts:
            places = np.concatenate([one.places for one in rest])
            done.append((places, np.concatenate(parts)))
    if not done:
        return None
    found = np.full((draws, len(pools.pools), *done[0][1].shape[2:]), np.nan)
    for places, values in done:
        found[:, places] = values
    return found


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of groups in all pools.

    Attributes
    ----------
    pools : Pools
    blocks : tuple of Block
        Of the pools that have a value.
    items : ndarray of int64
        Images of all blocks, one after the other.
    alone : int
        Images whose set holds no other group: they compare nothing.
    keys : ndarray of uint64, shape (n,)
        What each image is resampled with: its unit, else its set, else itself.
    """

    pools: Pools
    blocks: tuple[Block, ...]
    items: Integers
    alone: int
    keys: Words

    @classmethod
    def of(cls, pools: Pools, pooling: Pooling, scale: float) -> Effects:
        """Split pools into blocks that share their images, scores times `scale`.

        Raises
        ------
        InputError
            When lengths differ, or a set has images of several units.
        """
        codes, sets = usable_codes(pools), pooling.get("sets")
        member, names = (None, ()) if sets is None else encode(sets, what="sets")
        alike = pools.alike(range(len(pools.pools)))
        made = [_block(pools, places, codes, member, scale) for places in alike]
        blocks = tuple(block for block, _ in made if len(block.items) and len(block.kept) > 1)
        keys = image_keys([one.items for one in blocks], len(codes), pooling)
        items = np.concatenate([np.empty(0, dtype=np.int64), *(one.items for one in blocks)])
        if member is not None and pools.units is not None:
            rows = items[member[items] >= 0]
            unit = np.unique(keys[rows], return_inverse=True)[1]
            split = np.flatnonzero(varies(member[rows], unit))
            if len(split):
                raise InputError(
                    f"units: set {names[split[0]]!r} has images of several units; expected "
                    "each set within one unit, since sets are resampled whole"
                )
        alone = sum(out for _, out in made)
        return cls(pools, blocks, items, alone, keys)

    @cached_property
    def known(self) -> Integers:
        """Indices of the pools that have a value, in order."""
        return np.flatnonzero(self.sizes.any(axis=1))

    @cached_property
    def effects(self) -> Floats:
        """Effects, (pools, groups); NaN where there are none."""
        return self.observed(paired=True)

    def observed(self, *, paired: bool) -> Floats:
        """Return effects, (pools, groups); without `paired` by plain means, whatever the sets."""
        found = np.full(self.pools.sizes.shape, np.nan)
        for block, one in zip(self.blocks, self._measured(np.asarray, paired=paired), strict=True):
            found[one.places] = one(block.codes[None], block.groups)[0]
        return found

    def _measured(self, function: Callable[[Floats], Floats], *, paired: bool) -> list[Exchanged]:
        def one(block: Block) -> Exchanged:
            def statistic(sums: Floats, counts: Floats) -> Floats:
                return function(block.effects(sums, counts, paired=paired))

            by_image = block.centred if paired else block.plain
            return Exchanged(block.places, block.items, by_image, statistic)

        return [one(block) for block in self.blocks]

    @cached_property
    def tested(self) -> Floats:
        """The gap of each pool, then what each group is tested by, (pools, 1 + groups).

        How far a group lies above all others: in standard errors, so that a test is valid where
        spreads differ, unless images are compared within sets.
        """
        found = np.full((len(self.pools.pools), 1 + len(self.pools.groups)), np.nan)
        for block, one in zip(self.blocks, self._tested, strict=True):
            found[one.places] = one(block.codes[None], block.groups)[0]
        return found

    def tested_again(self, draws: int, rng: Seed) -> Floats | None:
        """Return `tested` with exchanged groups, (draws, pools, 1 + groups)."""
        codes, sets = usable_codes(self.pools), self.pools.member
        return exchanged(
            self._tested, self.pools, codes, sets, self.pools.units, draws, rng, "similarity gap"
        )

    @cached_property
    def _tested(self) -> list[Exchanged]:
        paired = self.pools.paired

        def one(block: Block) -> Exchanged:
            many = len(block.places)

            def statistic(sums: Floats, counts: Floats) -> Floats:
                effects = block.effects(sums[..., :many], counts, paired=paired)
                if paired:
                    single = less_rest(effects, counts[:, None])
                else:
                    single = block.ratios(effects, sums, counts)
                return np.concatenate([gaps(effects)[..., None], single], axis=-1)

            by_image = block.centred if paired else block.summed(self.pools.units)
            return Exchanged(block.places, block.items, by_image, statistic)

        return [one(block) for block in self.blocks]

    @cached_property
    def sizes(self) -> Integers:
        """Images behind the effects, (pools, groups)."""
        found = np.zeros(self.pools.sizes.shape, dtype=np.int64)
        for one in self.blocks:
            found[one.places] = np.bincount(one.codes, minlength=one.groups)
        return found

    @cached_property
    def freedom(self) -> Integers:
        """Units with the group that has fewest of them, less one; (pools,)."""
        found = np.zeros(len(self.pools.pools), dtype=np.int64)
        for one in self.blocks:
            found[one.places] = spare_units(self.keys[one.items], one.codes, one.kept.tolist())
        return found

    def exchanged(
        self,
        function: Callable[[Floats], Floats],
        draws: int,
        rng: Seed,
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
        sets, units = (None, None) if over_pools else (self.pools.member, self.pools.units)
        measured = self._measured(function, paired=self.pools.paired and not over_pools)
        codes = usable_codes(self.pools)
        return exchanged(measured, self.pools, codes, sets, units, draws, rng, name)

    def resampled(self, replicates: int, rng: Seed) -> Floats:
        """Return effects of resampled units, (replicates, pools, groups)."""
        found = np.full((replicates, *self.pools.sizes.shape), np.nan)
        for one in self.blocks:
            found[:, one.places] = one.resampled(self.keys[one.items], replicates, rng)
        return found


def spare_units(keys: Words, codes: Integers32, groups: Sequence[int]) -> int:
    """Return the units of the group that has fewest of them, less one."""
    return min(len(np.unique(keys[codes == group])) for group in groups) - 1


def usable_codes(pools: Pools) -> Integers32:
    """Return the group of each image; −1 for groups that are too small to compare."""
    codes = pools.groups.codes
    usable = np.append(pools.groups.usable, False)
    return np.where(usable[codes], codes, -1).astype(np.int32)


def _block(
    pools: Pools, places: list[int], codes: Integers32, sets: Integers32 | None, scale: float
) -> tuple[Block, int]:
    """Return the block of pools of the same images, and how many of these compare nothing."""
    pool = pools.pools[places[0]]
    chosen = np.flatnonzero(codes[pool.items] >= 0)
    items = pool.items[chosen]
    member = np.full(len(items), -1) if sets is None else sets[items]
    loose = member < 0
    stratum = np.unique(member, return_inverse=True)[1]
    several = varies(stratum, codes[items])
    first = pools.scores(places[0])[chosen].astype(np.float64)
    # By score and group, so that permuted rows give the same draws.
    order = np.lexsort((codes[items], first))
    order = order[several[stratum[order]]]
    strata = np.unique(stratum[order], return_inverse=True)[1]
    scores = np.empty((len(places), len(order)))
    for line, index in zip(scores, places, strict=True):
        line[:] = scale * pools.scores(index)[chosen[order]].astype(np.float64)
    made = Block(
        np.array(places), items[order], scores, codes[items][order],
        strata.astype(np.int64), loose[order], len(pools.groups),
    )  # fmt: skip
    return made, len(items) - len(order)


def image_keys(items: Sequence[Integers], many: int, pooling: Pooling) -> Words:
    """Return what each of so many images is resampled by, shape (many,).

    That of its unit, else of its set, else of its place among the items.
    """
    keys, start = np.zeros(many, dtype=np.uint64), 0
    for some in items:
        keys[some] = place_keys(start, len(some))
        start += len(some)
    for what in ("sets", "units"):
        if (labels := pooling.get(what)) is not None:
            codes, names = encode(labels, what=what)
            named = np.append(unit_keys(names), np.uint64(0))
            keys = np.where(codes >= 0, named[codes], keys)
    return keys
