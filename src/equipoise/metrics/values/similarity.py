"""Similarity to a concept by group: effects of groups, the spread of means, and gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import Unpack

import numpy as np
import scipy
from scipy import special

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    GroupValue,
    InputError,
    Integers,
    Integers32,
    IntervalKind,
    Part,
    Span,
    Variant,
    Words,
    encode,
    floats,
    integers,
    nans,
    no_ends,
    numbered,
    record,
    unwarned,
)
from equipoise.core.types import Json
from equipoise.metrics.building import (
    Against,
    against_chance,
    bootstrap_method,
    drawn_rows,
    gaps,
    group_part,
    group_rows,
    known_ends,
    known_mean,
    number,
    part,
    sizes,
    too_small,
    untested,
)
from equipoise.metrics.counts.comparisons import OTHERS, all_others
from equipoise.metrics.measure import DEFAULT, Draws
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.exchange import (
    UNITS,
    exchange_labels,
    group_sums,
)
from equipoise.metrics.rankings.measures import exchange_of, permutations, query_weights
from equipoise.metrics.rankings.pools import Pooling, Pools, image_keys, pools_of
from equipoise.metrics.rankings.statistics import deviation
from equipoise.metrics.spec import ANY_NUMBER, COSINE, MetricSpec, make_estimate, register
from equipoise.stats.chance import band
from equipoise.stats.draws import varies
from equipoise.stats.mean_norms import BOUNDS, Crossed, MeanNorm, Norm
from equipoise.stats.moments import Moments
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, place_keys, unit_times
from equipoise.stats.threads import added, each

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Numbers that are held at once: weights of images over all replicates, patterns of sets,
# differences of pairs.
_CELLS = 4_000_000
# Images from which on sums of large groups are drawn from their moments; below, no group's is.
_LARGE, _FEW = 1 << 13, 100
# Images whose numbers are read at once.
_ROWS = 1 << 16
# Draws that the chance bands of single groups rest on.
_BANDS = 1000
# Freedom where no concept limits it.
_MANY = 1 << 30
_NOT_THERE = "not in the pool"
_SETS = "groups are exchangeable within each counterfactual set"
_IMAGES = "groups are exchangeable over the images of each pool"
_MOMENTS = "sums of large groups are drawn from their permutation moments"
_RATIOS = "the largest difference from all other images in standard errors"
# Of the largest eigenvalue, what counts as none: groups that do not meet in a set.
_NOTHING = 1e-9
# Of the sum of squares, what is rounding only.
_FLAT = 1e-20

Numbers = Callable[[slice | Integers], Floats]
"""From some images, by their places, to k numbers of each, shape (some, k)."""


def with_squares(numbers: Floats) -> Floats:
    """Return numbers and their squares, (n, k) to (n, 2 k)."""
    return np.hstack([numbers, numbers**2])


@record
class Block:
    """Concepts whose pools hold the same images.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
        Images of groups that are compared, in sets of several groups.
    plain : ndarray of float64, shape (n, concepts)
        Scores less their mean over the pool, which rounds less than the scores do.
    codes : ndarray of int32, shape (n,)
    stratum : ndarray of int64, shape (n,)
        Set of each image, from 0.
    loose : ndarray of bool, shape (n,)
        Images of no set: independent ones, which are compared among themselves.
    groups : int
    """

    places: Integers
    items: Integers
    plain: Floats
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
        return floats(found)

    @cached_property
    def kept(self) -> Integers:
        """Groups that meet in sets, directly or through others: the largest such party."""
        met = laplacian(self.counts).sum(axis=0)
        _, party = scipy.sparse.csgraph.connected_components(np.abs(met) > 0, directed=False)
        sizes = np.bincount(party, weights=self.counts.sum(axis=0))
        kept = np.flatnonzero((party == sizes.argmax()) & (self.counts.sum(axis=0) > 0))
        return integers(kept)

    @cached_property
    def centred(self) -> Floats:
        """Scores less the mean of their set, shape (n, concepts)."""
        sets, found = len(self.counts), np.empty(self.plain.shape)
        if sets == 1:
            return self.plain
        sizes = self.counts.sum(axis=1)
        for column, row in enumerate(self.plain.T):
            sums = np.bincount(self.stratum, weights=row, minlength=sets)
            found[:, column] = row - (sums / sizes)[self.stratum]
        return found

    @cached_property
    def inverse(self) -> Floats:
        """What sums of centred scores of the kept groups are multiplied with."""
        whole = laplacian(self.counts).sum(axis=0)[np.ix_(self.kept, self.kept)]
        return np.linalg.inv(_anchored(whole[None])[0])

    def summed(self, units: Integers | None) -> Numbers:
        """Return what means by group and their variances add up for each image, (n, k).

        `plain` and its squares; where units (rows,) exchange groups as one, S² / n, S and n, with
        S the sum of the n images of a unit of one group.
        """
        if units is None:
            return lambda rows: with_squares(self.plain[rows])
        own, alone = units[self.items], np.arange(len(self.items)) + len(units)
        own = numbered(np.where(varies(own, self.codes)[own], alone, own))
        sums = np.stack([np.bincount(own, column) for column in self.plain.T], axis=1)[own]
        many = floats(np.bincount(own)[own, None])
        return np.hstack([self.plain, sums**2 / many, sums, many]).__getitem__

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
        error = np.sqrt(spread / n**2 + all_others(spread) / all_others(n) ** 2)
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
        with unwarned():
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
        step = max(1, _CELLS // replicates)
        members = np.flatnonzero(~self.loose)
        names, first = np.unique(self.stratum[members], return_index=True)
        # Sets of one make-up add the same, times how often they were drawn.
        makeups, which = np.unique(self.counts[names], axis=0, return_inverse=True)
        first, which = members[first], which.reshape(-1)

        def add(start: int) -> list[Floats]:
            held, groups = slice(start, start + step), self.groups
            cells, numbers = self.codes + groups * self.loose, self.centred[held]
            order, weights, sums, many = drawn_totals(
                keys[held], cells[held], 2 * groups, numbers, replicates, rng
            )
            whole = np.zeros((replicates, groups, groups))
            # A set is drawn where the first of its images is.
            here = np.flatnonzero((first >= start) & (first < start + step))
            drawn = weights[:, np.argsort(order)[first[here] - start]]
            size = max(1, _CELLS // max(groups**2, len(here)))
            for place in range(0, len(makeups), size):
                some = makeups[place : place + size]
                times = drawn @ (which[here, None] == place + np.arange(len(some)))
                whole += np.tensordot(times, laplacian(some), axes=1)
            return [sums[:, :, :groups], sums[:, :, groups:], many[:, groups:], whole]

        inside, loose, many, whole = added(add, range(0, len(self.items), step))
        if self.loose.any():
            with unwarned():
                mean = loose.sum(axis=2) / many.sum(axis=1)[:, None]
            loose -= many[:, None] * np.nan_to_num(mean)[..., None]
            whole += laplacian(many)
        inner = whole[:, self.kept[:, None], self.kept]
        return self._placed(_solved(inner, (inside + loose)[..., self.kept]))

    def _placed(self, effects: Floats) -> Floats:
        found = nans((*effects.shape[:2], self.groups))
        found[..., self.kept] = np.round(effects, _DECIMALS)
        return found


def drawn_totals(
    keys: Words, codes: AnyArray, groups: int, numbers: Floats, replicates: int, rng: Seed
) -> tuple[Integers, Floats, Floats, Floats]:
    """Draw images with the others of their key, and add up k numbers of each by group.

    Returns
    -------
    tuple
        Images by group; how often each of these is drawn, (replicates, n); sums, (replicates, k,
        groups); and counts, (replicates, groups).
    """
    order = np.argsort(codes, kind="stable")
    weights = floats(unit_times(keys[order], replicates, rng)[:, 1:].T)
    numbers, ends = numbers[order], np.bincount(codes, minlength=groups).cumsum().tolist()
    parts = [slice(*pair) for pair in pairwise([0, *ends])]
    sums = np.stack([weights[:, part] @ numbers[part] for part in parts], axis=2)
    counts = np.stack([weights[:, part].sum(axis=1) for part in parts], axis=1)
    return order, weights, sums, counts


def less_rest(effects: Floats, counts: Floats | Integers) -> Floats:
    """Return effects of groups less the mean over the images of all others, (..., groups)."""
    known = ~np.isnan(effects)
    many, held = np.where(known, counts, 0.0), np.where(known, effects, 0.0)
    with unwarned():
        rest = all_others(many * held) / all_others(many)
    return np.where(known, effects - rest, np.nan)


def laplacian(counts: Floats) -> Floats:
    """Return diag(c) − c cᵀ / n of each row of counts, shape (rows, groups, groups)."""
    total = np.maximum(counts.sum(axis=1), 1e-300)[:, None, None]
    alone = counts[:, :, None] * np.eye(counts.shape[1])
    return floats(alone - counts[:, :, None] * counts[:, None, :] / total)


def _anchored(inner: Floats) -> Floats:
    """Fix the constant that effects leave open, without changing their differences."""
    many = inner.shape[1]
    scale = np.trace(inner, axis1=1, axis2=2) / many
    return floats(inner + np.maximum(scale, 1e-300)[:, None, None] / many)


def _solved(inner: Floats, sums: Floats) -> Floats:
    """Return effects from (replicates, groups, groups) and (replicates, concepts, groups)."""
    values = np.linalg.eigvalsh(inner)
    met = values[:, 1] > _NOTHING * np.maximum(values[:, -1], 1e-300) if inner.shape[1] > 1 else []
    found = nans(sums.shape)
    known = np.flatnonzero(met)
    if len(known):
        solved = np.linalg.solve(_anchored(inner[known]), sums[known].transpose(0, 2, 1))
        found[known] = solved.transpose(0, 2, 1)
    return found


@record
class Exchanged:
    """Concepts of the same images, and what is measured when the images exchange groups.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
    numbers : callable
        From some of the images, by their places, to their numbers that are added by group, those
        of each concept first: (some, k).
    statistic : callable
        From sums (draws, groups, k) and counts (draws or 1, groups) to an array (draws,
        concepts, ...).
    """

    places: Integers
    items: Integers
    numbers: Numbers
    statistic: Callable[[Floats, Floats], Floats]

    def __call__(self, codes: Integers32, groups: int) -> Floats:
        """Return the statistic with groups (draws, n)."""
        sums = np.zeros((len(codes), groups, self.width))
        counts = np.zeros((len(codes), groups))
        for start in range(0, len(self.items), _ROWS):
            some = slice(start, start + _ROWS)
            held = np.ascontiguousarray(codes[:, some]), np.ascontiguousarray(self.numbers(some))
            group_sums(*held, sums, counts)
        return self.statistic(sums, counts)

    @property
    def width(self) -> int:
        """How many numbers each image has."""
        return len(self.numbers(slice(0, 1))[0])

    @cached_property
    def moments(self) -> Moments:
        """Moments of the numbers over all images."""
        return Moments.of(self.numbers, len(self.items), self.width)

    def moments_of(self, rows: Integers) -> Moments:
        """Return moments of the numbers over some images."""
        return Moments.of(lambda part: self.numbers(rows[part]), len(rows), self.width)

    def effort(self, sizes: Integers) -> int:
        """Return about how many numbers a draw from moments takes, with groups of some sizes."""
        return len(sizes) * self.width + int(np.sort(sizes)[: self.few(sizes)].sum())

    def few(self, sizes: Integers) -> int:
        """Return how many groups of some sizes are too small for a normal sum: see `Moments`."""
        return self.moments.few(np.sort(sizes), len(self.places))

    def drawn(self, sizes: Integers, draws: int, rng: Seed, name: str) -> Floats:
        """Return the statistic with groups exchanged between all images: see `Moments`."""

        def of_sums(sums: Floats) -> Floats:
            return self.statistic(sums, floats(sizes[None]))

        moments, first = self.moments, len(self.places)
        return np.concatenate(
            moments.exchanged_sums(of_sums, sizes, draws, rng, name, self.numbers, first)
        )


def many_independent(items: Integers, pools: Pools) -> bool:
    """Return whether images are many, and neither of sets nor of units."""
    return len(items) >= _LARGE and pools.member is None and pools.units is None


def exchanges(
    measured: Sequence[Exchanged], pools: Pools, codes: Integers32, resampling: Resampling
) -> int:
    """Return how many exchanges of groups resolve the finest p-value, within the budget."""
    effort, groups = 0, len(pools.groups)
    for one in measured:
        if many_independent(one.items, pools):
            effort += one.effort(np.bincount(codes[one.items], minlength=groups))
        else:
            effort += len(one.items)
    return permutations(resampling, effort)


def exchanged(
    measured: Sequence[Exchanged],
    pools: Pools,
    codes: Integers32,
    draws: int,
    rng: Seed,
    name: str,
) -> Floats | None:
    """Return statistics with exchanged groups, (draws, pools, ...); None if nothing can change.

    Parameters
    ----------
    measured : sequence of Exchanged
    pools : Pools
        Images exchange groups within sets; without these within their pool, units as one. Sums
        of many independent images are drawn from their moments.
    codes : ndarray of int32, shape (n,)
        Group of each image, -1 for none.
    draws, rng, name
        How many, and the key of the random streams.
    """
    done, rest, groups = [], [], len(pools.groups)
    stratum, units = (pools.block, pools.units) if pools.member is None else (pools.member, None)
    for one in measured:
        if many_independent(one.items, pools):
            sizes = np.bincount(codes[one.items], minlength=groups)
            key = f"{name}, block {pools.pools[one.places[0]].block}"
            done.append((one.places, one.drawn(sizes, draws, rng, key)))
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
    found = nans((draws, len(pools.pools), *done[0][1].shape[2:]))
    for places, values in done:
        found[:, places] = values
    return found


def resampled_totals(
    one: Exchanged, codes: Integers32, start: int, groups: int, replicates: int, rng: Seed
) -> tuple[Floats, Floats]:
    """Resample independent images: sums of large groups from moments, others image by image.

    Parameters
    ----------
    one : Exchanged
    codes : ndarray of int32, shape (n,)
        Groups of its images.
    start : int
        Place of the first of them among all that are resampled.
    groups, replicates, rng
        How many, and the seed.

    Returns
    -------
    tuple of ndarray
        Sums, shape (replicates, groups, k), and counts of images, (replicates, groups).
    """
    sums, counts = np.zeros((replicates, groups, one.width)), np.zeros((replicates, groups))
    rows = np.split(np.argsort(codes, kind="stable"), np.bincount(codes).cumsum()[:-1])
    few = [np.empty(0, dtype=np.int64)]
    # Streams have the rank of a group's size, as renamed groups keep it.
    for rank, group in enumerate(sorted(range(len(rows)), key=lambda group: len(rows[group]))):
        moments = one.moments_of(own := rows[group]) if len(rows[group]) >= _FEW else None
        if moments is not None and moments.normal(len(own), first=len(one.places)):
            drawn = moments.poisson_sums(replicates, rng, f"bootstrap, {start}, {rank}")
            counts[:, group], sums[:, group] = drawn
        else:
            few.append(rows[group])
    chosen, step = np.concatenate(few), max(1, _CELLS // replicates)

    def add(at: int) -> list[Floats]:
        some = chosen[at : at + step]
        numbers, keys = one.numbers(some), place_keys(start + some)
        _, _, drawn, many = drawn_totals(keys, codes[some], groups, numbers, replicates, rng)
        return [drawn.transpose(0, 2, 1), many]

    if len(chosen):
        by_image = added(add, range(0, len(chosen), step))
        sums, counts = sums + by_image[0], counts + by_image[1]
    return sums, counts


@record
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
    pooling : Pooling
    """

    pools: Pools
    blocks: tuple[Block, ...]
    items: Integers
    alone: int
    pooling: Pooling

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
        items = np.concatenate([np.empty(0, dtype=np.int64), *(one.items for one in blocks)])
        found = cls(pools, blocks, items, sum(out for _, out in made), pooling)
        if member is not None and pools.units is not None:
            rows = items[member[items] >= 0]
            unit = numbered(found.keys[rows])
            split = np.flatnonzero(varies(member[rows], unit))
            if len(split):
                raise InputError(
                    f"units: set {names[split[0]]!r} has images of several units; expected "
                    "each set within one unit, since sets are resampled whole"
                )
        return found

    @cached_property
    def keys(self) -> Words:
        """What each image is resampled with: its unit, else its set, else itself; (n,)."""
        many = len(self.pools.groups.codes)
        return image_keys([one.items for one in self.blocks], many, self.pooling)

    @cached_property
    def known(self) -> Integers:
        """Indices of the pools that have a value, in order."""
        return np.flatnonzero(self.sizes.any(axis=1))

    @cached_property
    def effects(self) -> Floats:
        """Effects, (pools, groups); NaN where there are none."""
        return self._observed(self._measured(np.asarray), len(self.pools.groups))

    def _observed(self, measured: Sequence[Exchanged], columns: int) -> Floats:
        """Return statistics with the groups as they are, (pools, columns)."""
        found = nans((len(self.pools.pools), columns))
        for block, one in zip(self.blocks, measured, strict=True):
            found[one.places] = one(block.codes[None], block.groups)[0]
        return found

    def _measured(self, function: Callable[[Floats], Floats]) -> list[Exchanged]:
        paired = self.pools.paired

        def one(block: Block) -> Exchanged:
            def statistic(sums: Floats, counts: Floats) -> Floats:
                return function(block.effects(sums, counts, paired=paired))

            by_image = block.centred if paired else block.plain
            return Exchanged(block.places, block.items, by_image.__getitem__, statistic)

        return [one(block) for block in self.blocks]

    @cached_property
    def tested(self) -> Floats:
        """The gap of each pool, then what each group is tested by, (pools, 1 + groups).

        How far a group lies above all others: in standard errors, so that a test is valid where
        spreads differ, unless images are compared within sets.
        """
        return self._observed(self._tested, 1 + len(self.pools.groups))

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

            numbers = block.centred.__getitem__ if paired else block.summed(self.pools.units)
            return Exchanged(block.places, block.items, numbers, statistic)

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
            keys = None if many_independent(one.items, self.pools) else self.keys[one.items]
            found[one.places] = spare_units(keys, one.codes, one.kept.tolist())
        return found

    def exchanged(
        self,
        draws: int,
        rng: Seed,
        name: str,
        function: Callable[[Floats], Floats] | None = None,
    ) -> Floats | None:
        """Return a function of effects with exchanged groups; None where nothing can change.

        Parameters
        ----------
        draws, rng, name
            How many, and the key of the random streams.
        function : callable, optional
            Of effects (some draws, concepts, groups) to (some draws, concepts, ...). Default:
            what is `tested`.
        """
        measured = self._tested if function is None else self._measured(function)
        return exchanged(measured, self.pools, usable_codes(self.pools), draws, rng, name)

    @cached_property
    def null(self) -> str:
        """The null hypothesis in words."""
        return null_of(self.pools, self._tested, usable_codes(self.pools))

    def exchanges(self, resampling: Resampling) -> int:
        """Return how many exchanges of groups resolve the finest p-value, within the budget."""
        return exchanges(self._tested, self.pools, usable_codes(self.pools), resampling)

    def resampled(self, replicates: int, rng: Seed) -> Floats:
        """Return effects of resampled units, (replicates, pools, groups)."""
        found = nans((replicates, *self.pools.sizes.shape))
        starts = np.cumsum([0, *(len(one.items) for one in self.blocks)]).tolist()
        for one, plain, start in zip(self.blocks, self._measured(np.asarray), starts, strict=False):
            if many_independent(one.items, self.pools):
                drawn = resampled_totals(plain, one.codes, start, one.groups, replicates, rng)
                found[:, one.places] = plain.statistic(*drawn)
            else:
                found[:, one.places] = one.resampled(self.keys[one.items], replicates, rng)
        return found


def spare_units(keys: Words | None, codes: Integers32, groups: Sequence[int]) -> int:
    """Return the units of the group that has fewest of them, less one; None: each is its own."""
    if keys is None:
        return int(np.bincount(codes)[groups].min()) - 1
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
    stratum = numbered(member)
    several = varies(stratum, codes[items])
    first = floats(pools.scores(places[0])[chosen])
    # By score and group, so that permuted rows give the same draws.
    order = np.lexsort((codes[items], first))
    order = order[several[stratum[order]]]
    strata = numbered(stratum[order])
    plain, kept = np.empty((len(order), len(places))), chosen[order]

    def centre(column: int) -> None:
        scores = scale * floats(pools.scores(places[column])[kept])
        plain[:, column] = scores - scores.sum() / max(len(scores), 1)

    each(centre, range(len(places)))
    made = Block(
        np.array(places), items[order], plain, codes[items][order],
        integers(strata), loose[order], len(pools.groups),
    )  # fmt: skip
    return made, len(items) - len(order)


@record
class Concepts:
    """One number of every concept, and their mean.

    Attributes
    ----------
    metric : str
    pools : Pools
    known : ndarray of int64
        Indices of the pools that have a value.
    resampling : Bootstrap, Permutation or None
    rng : int or Generator
    null : str
        The null hypothesis in words.
    """

    metric: str
    pools: Pools
    known: Integers
    resampling: Resampling | None
    rng: Seed
    null: str

    @property
    def unit(self) -> str:
        """What intervals of single concepts resample."""
        return "unit" if self.pools.units is not None else "set" if self.pools.paired else "image"

    @property
    def several(self) -> bool:
        """Whether there are several concepts, over which their mean is resampled."""
        return len(self.pools.pools) > 1

    @cached_property
    def weights(self) -> Floats | None:
        """How often each concept with a value is in each replicate of the mean."""
        return query_weights(self.pools, self.known, self.resampling, self.rng)

    def mean(self, effects: Floats, boot: Floats, freedom: Integers, norm: Norm) -> MeanNorm:
        """Return the ends of the mean over concepts, from (concepts, groups) and its replicates."""
        known = self.known
        fewest = int(freedom[known].min(initial=_MANY))
        return MeanNorm(effects[known], boot[:, known], fewest, norm, self.weights)

    def draws(self, each: Floats, null: Floats | None, text: str = "") -> Draws:
        """Put the mean over concepts first, and each concept after it."""
        known = self.known
        if null is not None:
            null = np.insert(null, 0, null[:, known].mean(axis=1), axis=1)
        observed = np.append(each[known].mean() if len(known) else np.nan, each)
        return Draws.of(self.resampling, observed, None, null, text or self.null)

    def reason(self, index: int) -> str:
        """Say why a concept has no number; "" where it has one."""
        if index in self.known:
            return ""
        present = self.pools.sizes[index] > 0
        if (present & self.pools.groups.usable).sum() < 2:
            return "fewer than two groups with rows enough"
        return "all scores are equal" + ", or no set holds two groups" * self.pools.paired

    def estimate(  # noqa: PLR0913 - one keyword for each choice
        self,
        draws: Draws,
        mean: MeanNorm,
        ends: Callable[[int], Ends],
        by_group: Sequence[tuple[GroupValue, ...]],
        *,
        tested: Draws | None = None,
        n: Mapping[str, int],
        params: Mapping[str, Json],
        excluded: Mapping[str, int],
        over: str,
        shows: str = "",
        further: Iterable[Part] = (),
    ) -> Estimate:
        """Return the mean over concepts; `over` says what one concept's interval resamples.

        `tested` are the draws of the numbers that p-values compare; by default the same.
        """
        pools, value = self.pools, float(draws.observed[0])
        parts = [
            part(
                self.metric,
                pool.name,
                draws,
                index + 1,
                ends=ends(index),
                held=_held(draws, tested, index + 1),
                n=sum(one.n for one in by_group[index]),
                by_group=by_group[index],
                reason=self.reason(index),
                shows=shows,
                part_of=pool.part_of,
                within_value=pool.within_value,
            )
            for index, pool in enumerate(pools.pools)
        ]
        none, without = math.isnan(value), "none: use Bootstrap()"
        if isinstance(self.resampling, Bootstrap):
            crossed = " crossed with queries" if self.weights is not None else ""
            over = f"{BOUNDS} over {self.unit}s{crossed}" if self.several else over
            without = f"{over}, {self.resampling.replicates} replicates"
        resampling = None if none else self.resampling
        if pools.paired:
            params = {**params, "items_without_set": pools.without_set}
        return make_estimate(
            self.metric,
            value,
            n,
            bootstrap_method(None, resampling, "", without),
            params={"queries": len(pools.pools), **params},
            null=exchange_of(pools),
            **_held(draws, tested, 0).fields(untested(value, self.resampling)),
            by=[*parts, *further],
            excluded={**pools.excluded, **excluded, "empty groups": pools.empty},
            interval_kind=(IntervalKind.CONFIDENCE if self.several else IntervalKind.SIMULTANEOUS),
            unit="query" if self.several else self.unit,
            reason=self.reason(0) if none else "",
            ends=mean if self.several else ends(0),
            corrected=mean.estimate if self.several else math.nan,
        )


def null_of(pools: Pools, measured: Sequence[Exchanged], codes: Integers32) -> str:
    """Return the null hypothesis of what is measured in words, and how it is drawn."""
    if pools.paired or pools.units is not None:
        return _SETS if pools.paired else UNITS

    def from_moments(one: Exchanged) -> bool:
        sizes = np.bincount(codes[one.items], minlength=len(pools.groups))
        return many_independent(one.items, pools) and one.few(sizes) < len(sizes) - 1

    return f"{_IMAGES}; {_MOMENTS}" if any(map(from_moments, measured)) else _IMAGES


def _held(draws: Draws, tested: Draws | None, index: int) -> Against:
    """Hold a number against its chance level, with the p-value of what is tested."""
    found, by = (against_chance(one, index, "higher") for one in (draws, tested or draws))
    return replace(found, p_value=by.p_value, drawn=by.drawn)


def normalized_similarity_mad(
    scores: Scores,
    groups: GroupLabels,
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
    **pooling: Unpack[Pooling],
) -> Estimate:
    """Sum over groups of |p_j − mean p|, with p_j = (mean of group j − mean) / sd of all scores.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n)
        Similarity of each image to each concept.
    groups, queries, within, sets, subjects
        See `equipoise.metrics.max_skew`. Images of one counterfactual set are
        resampled together, and exchange their groups within the set.
    units : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and,
        without sets, exchange their groups as one where they have one group.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts, 0 or above, higher is worse; for two groups the difference of their
        means in standard deviations. Interval: see `similarity_gap`; of the parts, over images,
        sets or units. `.corrected`: as there. `.by` has one part per concept, with p_j of the
        groups. Groups that are not in the pool take no part in the mean of p.

    Raises
    ------
    InputError
        When shapes do not fit, or a score is not finite.

    References
    ----------
    Chen & Dou 2022, Table 1 (ddof 0; a sum, as its tables have it).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.normalized_similarity_mad(scores, groups)
    <normalized_similarity_mad 0.320 [0.000, 0.550]; chance 0.203, p = 0.045, n = 60 in 2 groups>
    """
    pools = pools_of(scores, groups, **pooling)
    codes, shape = pools.groups.codes, pools.sizes.shape
    blocks = [*_standardised(pools)]
    known = np.concatenate([np.empty(0, dtype=np.int64), *(one.places for one in blocks)])
    p, boot, null = nans(shape), np.empty((0, *shape)), None
    for one in blocks:
        p[one.places] = one(codes[one.items][None], shape[1])[0]
    compared = (pools.sizes > 0) & pools.groups.usable
    each, freedom = nans(len(pools.pools)), np.zeros(len(pools.pools), dtype=np.int64)
    each[known] = deviation(p[known], compared[known])
    if isinstance(resampling, Bootstrap):
        boot = nans((resampling.replicates, *shape))
        places = [one.items for one in blocks]
        starts = np.cumsum([0, *map(len, places)]).tolist()
        every = all(many_independent(some, pools) for some in places)
        keys = None if every else image_keys(places, len(codes), pooling)
        for one, start in zip(blocks, starts, strict=False):
            own = None if many_independent(one.items, pools) or keys is None else keys[one.items]
            boot[:, one.places] = _resampled(one, codes, own, start, resampling.replicates, rng)
            kept = np.flatnonzero(compared[one.places[0]]).tolist()
            freedom[one.places] = spare_units(own, codes[one.items], kept)
    if resampling is not None:
        blocks = [replace(one, statistic=partial(_mad, compared[one.places])) for one in blocks]
        many = exchanges(blocks, pools, codes, resampling)
        null = exchanged(blocks, pools, codes, many, rng, "similarity")
    text = null_of(pools, blocks if resampling is not None else (), codes)
    concepts = Concepts("normalized_similarity_mad", pools, known, resampling, rng, text)
    draws, shown = concepts.draws(each, null), np.where(compared, p, np.nan)

    def ends(index: int) -> Ends:
        one = [index]
        return MeanNorm(shown[one], boot[:, one], int(freedom[index]), "deviations")

    by_group = []
    for index, n in enumerate(pools.sizes):
        rows, notes = (n, p[index], boot[:, index]), np.where(n > 0, "", _NOT_THERE)
        by_group.append(drawn_rows(pools.groups, *rows, draws.level, notes.tolist()))
    return concepts.estimate(
        draws,
        concepts.mean(shown, boot, freedom, "deviations"),
        ends,
        by_group,
        n=pools.counts,
        params={"null": "images within sets" if pools.paired else "images within pools"},
        excluded={"queries with one group or equal scores": len(pools.pools) - len(known)},
        over=f"{BOUNDS} over {concepts.unit}s",
        shows="normalised similarity",
    )


def _standardised(pools: Pools) -> Iterator[Exchanged]:
    """Yield the standardised scores of pools of the same images."""
    several = np.flatnonzero(((pools.sizes > 0) & pools.groups.usable).sum(axis=1) > 1)
    for alike in pools.alike(several.tolist()):
        table = {index: pools.scores(index) for index in alike}
        places = [index for index, scores in table.items() if np.ptp(scores) > 0]
        if not places:
            continue
        items = pools.pools[alike[0]].items
        # By score and group, so that permuted rows give the same draws.
        order = np.lexsort((pools.groups.codes[items], table[places[0]]))
        by_image = _by_image(table, places, order)
        yield Exchanged(np.array(places), items[order], by_image.__getitem__, _means)


def _by_image(table: dict[int, AnyArray], places: Sequence[int], order: Integers) -> Floats:
    """Return standardised scores of images in an order, (n, concepts), and empty the table."""
    found = np.empty((len(order), len(places)))

    def add(column: int) -> None:
        row = table.pop(places[column]).astype(np.float64)
        row -= row.mean()
        row /= row.std()
        found[:, column] = row[order]

    each(add, range(len(places)))
    return found


def _means(sums: Floats, counts: Floats) -> Floats:
    """Return sums (draws, groups, concepts) over counts, shape (draws, concepts, groups)."""
    with unwarned():
        return (sums / counts[..., None]).transpose(0, 2, 1)


def _mad(compared: Booleans, sums: Floats, counts: Floats) -> Floats:
    return deviation(np.round(_means(sums, counts), _DECIMALS), compared)


def _resampled(
    one: Exchanged, codes: Integers32, keys: Words | None, start: int, replicates: int, rng: Seed
) -> Floats:
    """Return p of resampled images of some concepts, shape (replicates, concepts, groups).

    Images are taken some at a time, with all replicates; without keys their totals by group are
    drawn, see `resampled_totals`.
    """
    step, groups, own = max(1, _CELLS // replicates), int(codes.max()) + 1, codes[one.items]

    def add(at: int, keys: Words) -> list[Floats]:
        some = slice(at, at + step)
        numbers = one.numbers(some)
        order, weights, sums, counts = drawn_totals(
            keys[some], own[some], groups, numbers, replicates, rng
        )
        return [sums, counts, weights @ numbers[order] ** 2]

    if keys is None:
        both = replace(one, numbers=lambda rows: with_squares(one.numbers(rows)))
        drawn, counts = resampled_totals(both, own, start, groups, replicates, rng)
        sums, squares = np.split(drawn.transpose(0, 2, 1), 2, axis=1)
        squares = squares.sum(axis=2)
    else:
        sums, counts, squares = added(partial(add, keys=keys), range(0, len(one.items), step))
    total = counts.sum(axis=1)[:, None]
    with unwarned():
        mean = sums.sum(axis=2) / total
        spread = np.sqrt(squares / total - mean**2)
        found = (sums / counts[:, None] - mean[..., None]) / spread[..., None]
    return floats(np.round(found, _DECIMALS))


def similarity_gap(
    scores: Scores,
    groups: GroupLabels,
    *,
    scale: float | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
    **pooling: Unpack[Pooling],
) -> Estimate:
    """Largest difference between groups in mean similarity to a concept.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        Similarity of each image to each concept.
    groups, queries, within, sets, subjects
        See `equipoise.metrics.max_skew`. With `sets`, images are compared within their
        set: similarity = set + group, by least squares.
    scale : float, optional
        What makes a logit of a similarity, such as CLIP's learned temperature: the gap is then in
        logits, what a softmax sees, and called "logit_gap".
    units : array-like (n,), optional
        Unit of each image, such as the person shown, whose images are resampled together, and
        exchange their groups as one where they have one group. Sets lie within units.
    resampling : Bootstrap, Permutation or None
        None gives the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        Mean over concepts of the gap (largest less smallest effect of a group), 0 or above,
        higher is worse. `.corrected` is the mean less what the noise of images makes of it, and
        the interval, of bounds over images crossed with concepts, is about it. Of one concept, and
        of the parts, simultaneous intervals of all pairs of groups over resampled units. `.by` has
        one part per concept with the effects of its groups, which are 0 on average; "group_effect"
        of every group and concept, with its own chance band; over several concepts also that of
        each group on average (subject ""); with three groups or more each of them against all
        others ("…_against_rest"); with sets the gap of plain means against the null of
        pool order (its variant is "pool_order").

    Raises
    ------
    InputError
        When shapes do not fit, a score is not finite, `scale` is not above 0, or a set has images
        of several units.

    References
    ----------
    Chen & Dou 2022 (similarity by group); Hothorn, Bretz & Westfall 2008, Biometrical Journal 50,
    346-363 (simultaneous intervals).

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.similarity_gap(scores, groups)
    <similarity_gap difference 0.319 [0.000, 0.566]; chance 0.206, p = 0.048, n = 60 in 2 groups>
    """
    if scale is not None and not (math.isfinite(scale) and scale > 0):
        raise InputError(f"scale={scale}: expected a number above 0, or None for no logits")
    pools = pools_of(scores, groups, **pooling)
    effects = Effects.of(pools, pooling, scale or 1.0)
    metric = "logit_gap" if scale else "similarity_gap"
    text = effects.null if resampling is not None else ""
    concepts = Concepts(metric, pools, effects.known, resampling, rng, text)
    null, boot, many = None, np.empty((0, *pools.sizes.shape)), 0
    if resampling is not None:
        many = effects.exchanges(resampling)
        null = effects.exchanged(many, rng, "similarity gap")
    if isinstance(resampling, Bootstrap):
        boot = effects.resampled(resampling.replicates, rng)
    draws = concepts.draws(effects.tested[:, 0], None if null is None else null[..., 0])
    by_ratio, by_group = draws, []
    if null is not None and not pools.paired:
        both = (effects.tested, null)
        each, again = (np.fmax.reduce(np.abs(one[..., 1:]), axis=-1) for one in both)
        by_ratio = concepts.draws(each, again, f"{concepts.null}, {_RATIOS}")

    def ends(index: int) -> Ends:
        return simultaneous(effects.effects[index], boot[:, index], int(effects.freedom[index]))

    for index, found in enumerate(effects.effects):
        half = _student(boot[:, index], int(effects.freedom[index]), draws.level)
        by_group.append(_values(effects, (found, found - half, found + half), [index]))
    bands = nans((1, *pools.sizes.shape))
    if resampling is not None:
        chance = effects.exchanged(_BANDS, rng, "similarity band", np.asarray)
        bands = bands if chance is None else chance
    further = [*_group_effects(concepts, effects, boot, by_group, bands)]
    further += _against_rest(effects, concepts, by_group, (boot, bands, null))
    if len(effects.known) and pools.paired and resampling is not None:
        further.append(_pool_order(concepts, effects, many))
    mean = concepts.mean(effects.effects, boot, effects.freedom, "range")
    return concepts.estimate(
        draws,
        mean,
        ends,
        by_group,
        tested=by_ratio,
        n=sizes(pools.groups.take(effects.items)),
        params={"scale": scale, **({"compared": "within sets"} if pools.paired else {})},
        excluded={
            "queries without two groups to compare": len(pools.pools) - len(effects.known),
            "images whose set holds one group": effects.alone * pools.paired,
        },
        over=f"simultaneous over pairs of groups, bootstrap over {concepts.unit}s",
        further=further,
    )


def _pool_order(concepts: Concepts, effects: Effects, many: int) -> Part:
    """Return the gap of plain means against a random order of the pool."""
    plain = replace(effects, pools=replace(effects.pools, member=None, units=None))
    again = plain.exchanged(many, concepts.rng, "similarity pool", gaps)
    pooled = concepts.draws(gaps(plain.effects), again, plain.null)
    held, n = against_chance(pooled, 0, "higher"), int(effects.sizes.sum())
    variant = Variant.POOL_ORDER
    return part(concepts.metric, "", pooled, 0, held=held, n=n, variant=variant)


def _student(drawn: Floats, freedom: int, level: float) -> Floats:
    """Return half the width of Student's intervals from replicates (replicates, groups)."""
    drawn = drawn[~np.isnan(drawn).all(axis=1)]
    if freedom < 1 or len(drawn) < 2:
        return floats(math.nan)
    normal = float(special.ndtri((1.0 + level) / 2.0))
    return floats(normal * widening(freedom, level) * drawn.std(axis=0))


def _against_rest(
    effects: Effects,
    concepts: Concepts,
    by_group: Sequence[tuple[GroupValue, ...]],
    drawn: tuple[Floats, Floats, Floats | None],
) -> Iterator[Part]:
    """Yield each group against all others, where a concept has three groups or more.

    `drawn` are effects of resampled images, effects of exchanged ones, and what is tested.
    """
    level, (boot, bands, null) = level_of(concepts.resampling), drawn
    several = (~np.isnan(effects.effects)).sum(axis=1) > 2
    for index in np.flatnonzero(several).tolist():
        n, found, freedom = effects.sizes[index], effects.effects[index], effects.freedom[index]
        tests = None if null is None else null[:, index, 1:]
        tested = Draws.of(
            concepts.resampling, effects.tested[index, 1:], None, tests, concepts.null
        )
        apart, again = less_rest(found, n), less_rest(boot[:, index], n)
        by_chance, rest = less_rest(bands[:, index], n), found - apart
        half, of_rest = (
            _student(one, int(freedom), level) for one in (again, boot[:, index] - again)
        )
        numbers = [rest, rest - of_rest, rest + of_rest, apart, apart - half, apart + half]
        for group in np.flatnonzero(~np.isnan(apart)).tolist():
            held, own = against_chance(tested, group, "either"), by_group[index][group]
            mean, below, above, value, low, high = (float(one[group]) for one in numbers)
            others = GroupValue(OTHERS, (), int(n.sum() - n[group]), mean, below, above)
            yield number(
                concepts.metric,
                value,
                aggregate=Aggregate.AGAINST_REST,
                subject=(pool := effects.pools.pools[index]).name,
                part_of=pool.part_of,
                within_value=pool.within_value,
                ends=known_ends(low, high),
                held=replace(held, chance=band(by_chance[:, group])),
                n=own.n + others.n,
                by_group=(own, others),
                shows="effect of the group",
            )


def _values(
    effects: Effects, numbers: tuple[Floats, Floats, Floats], chosen: list[int]
) -> tuple[GroupValue, ...]:
    pools = effects.pools
    there = pools.sizes[chosen].any(axis=0)
    notes = np.where(there, "in no set with the others", _NOT_THERE)
    notes = np.where(pools.groups.usable, notes, too_small(pools.groups))
    notes = np.where(np.isnan(numbers[0]), notes, "")
    many = effects.sizes[chosen].sum(axis=0)
    return group_rows(pools.groups, many, *numbers, notes.tolist())


def _group_effects(
    concepts: Concepts,
    effects: Effects,
    boot: Floats,
    by_group: Sequence[tuple[GroupValue, ...]],
    bands: Floats,
) -> Iterator[Part]:
    """Yield the effect of every group in every concept and on average, with chance bands."""
    known, groups = effects.known, len(effects.pools.groups)
    every = [
        (effects.pools.pools[index].name, by_group[index], bands[:, index].T)
        for index in known.tolist()
    ]
    if len(known) > 1:
        each = known_mean(effects.effects[known].T)
        half = np.array([_half(concepts, effects, boot, group) for group in range(groups)])
        values = _values(effects, (each, each - half, each + half), known.tolist())
        drawn = np.stack([known_mean(bands[:, known, group]) for group in range(groups)])
        every.append(("", values, drawn))
    for concept, values, drawn in every:
        for one, null in zip(values, drawn, strict=True):
            held = Against(band(null), None, "")
            shown = {"reason": one.note, "shows": "effect of the group"}
            yield group_part("group_effect", concept, one, held, **shown)


def _half(concepts: Concepts, effects: Effects, boot: Floats, group: int) -> float:
    """Return half the width of the interval of a group's mean effect over concepts."""
    own = effects.known[~np.isnan(effects.effects[effects.known, group])]
    if not len(own) or not (freedom := int(effects.freedom[own].min())) > 0:
        return math.nan
    drawn = boot[:, own, group]
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    if len(drawn) < 2:
        return math.nan
    moved = (drawn - drawn.mean(axis=0)) * math.sqrt(1.0 + 1.0 / freedom)
    weights = concepts.weights
    weights = None if weights is None else weights[:, np.isin(effects.known, own)]
    crossed = Crossed(effects.effects[own, group], moved, freedom, weights)
    return crossed.half(level_of(concepts.resampling))


def simultaneous(effects: Floats, boot: Floats, freedom: int) -> Ends:
    """Return ends of the largest difference of effects: intervals of all pairs that hold at once.

    Parameters
    ----------
    effects : ndarray, shape (groups,)
    boot : ndarray, shape (replicates, groups)
        NaN where groups do not meet.
    freedom : int
        Units of the smallest group, less one. Without any, and with few replicates, there are no
        ends.
    """
    kept = np.flatnonzero(~np.isnan(effects))
    drawn = boot[~np.isnan(boot[:, kept]).any(axis=1)][:, kept]
    if freedom < 1 or len(drawn) < 2:
        return no_ends
    first, second = np.array([*combinations(range(len(kept)), 2)]).T
    differences = effects[kept][first] - effects[kept][second]
    errors, largest = np.empty(len(first)), np.zeros(len(drawn))
    # Some pairs at a time: among many groups there are thousands.
    size = max(1, _CELLS // len(drawn))
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        apart = drawn[:, first[part]] - drawn[:, second[part]]
        errors[part] = apart.std(axis=0)
        moved = np.abs(apart - differences[part])
        with unwarned():
            ratio = np.where(errors[part] > 0, moved / errors[part], 0.0)
        # Largest |difference − observed| / error over the pairs, in each replicate.
        largest = np.maximum(largest, ratio.max(axis=1))

    def ends(level: float) -> Span:
        half = float(np.quantile(largest, level)) * widening(freedom, level) * errors
        apart = np.abs(differences)
        return float(np.maximum(apart - half, 0.0).max()), float((apart + half).max())

    return ends


def widening(freedom: int, level: float) -> float:
    """Return how much wider than the bootstrap's an interval of few units is.

    The bootstrap's variance lacks the factor n / (n − 1), and its quantiles are those of known
    variances.
    """
    upper = (1.0 + level) / 2.0
    student = float(special.stdtrit(freedom, upper)) / float(special.ndtri(upper))
    return student * float(np.sqrt((freedom + 1) / freedom))


_gap = partial(
    MetricSpec,
    kinds=("similarity",),
    reference=(
        "Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models'; Hothorn, "
        "Bretz & Westfall 2008 (simultaneous intervals)"
    ),
    direction="Higher: one group is more similar to the concept than another.",
    chance="above 0, more so for small and many groups",
    interval=(
        "bootstrap over images, sets or units, simultaneous over pairs of groups; of the mean over "
        "concepts, bounds over images crossed with concepts"
    ),
    null=(
        "groups are exchangeable within each counterfactual set, else over the pool; between units "
        "that have one group; without sets in standard errors, valid where spreads differ"
    ),
)
register(
    _gap(
        name="similarity_gap",
        aggregate=Aggregate.DIFFERENCE,
        rest="similarity_gap",
        range=(0.0, 2.0),
        range_note="for cosines",
        threshold=0.01,
        threshold_reason=COSINE,
        definition=(
            "Largest minus smallest group effect on an image's similarity to a concept, by least "
            "squares with counterfactual sets if there are any; mean over concepts."
        ),
    ),
    _gap(
        name="logit_gap",
        aggregate=Aggregate.DIFFERENCE,
        rest="logit_gap",
        title="Similarity gap in logits",
        range=(0.0, math.inf),
        threshold=0.25,
        threshold_reason="the odds of a softmax change by more than 1.28 to 1",
        definition=(
            "The similarity gap times the model's own scale. e to its power is the ratio of the "
            "odds that a softmax over concepts gives."
        ),
    ),
    _gap(
        name="group_effect",
        range=ANY_NUMBER,
        harm="either",
        definition=(
            "Similarity of a concept to images of a group minus the average over groups, all else "
            "equal; in logits where the scale is known."
        ),
        direction="Either: positive means the group is closer to the concept than average.",
        chance="0",
        interval="bootstrap over images, sets or units with Student's quantiles",
        null="that of the gap, which is tested",
    ),
    MetricSpec(
        name="normalized_similarity_mad",
        title="Spread of normalised similarity",
        symbol="MAD",
        kinds=("retrieval", "similarity", "counterfactuals"),
        range=(0.0, math.inf),
        definition=(
            "Sum over groups of |p_j − mean of p|, with p_j = (mean similarity of group j − mean "
            "of all images) / standard deviation of all images; mean over concepts."
        ),
        threshold=0.2,
        threshold_reason="0.2 standard deviations, where Cohen's band small begins",
        direction="Higher: groups differ more in similarity to the concept.",
        chance="above 0, more so for small and many groups",
        interval="bounds over images, sets or units, crossed with concepts",
        null="images are exchangeable within each counterfactual set, else within the pool",
        reference="Chen & Dou 2022, 'Measuring and Mitigating Bias in Vision-and-Language Models'",
        errata=(
            "The text says that 'doctor' is more similar to women, Table 1 says men. Table 2 "
            "prints two of seven races, so its MAD cannot be recomputed."
        ),
    ),
)
