"""Similarity to a concept by group: effects of groups, the spread of means, and gaps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import combinations, pairwise

import numpy as np
import scipy
from scipy import special

from equipoise.core import (
    Aggregate,
    AnyArray,
    Booleans,
    Chance,
    Ends,
    Estimate,
    Floats,
    GroupLabels,
    GroupValue,
    InputError,
    Integers,
    Integers32,
    IntervalKind,
    Labels,
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
    ChanceTest,
    bootstrap_method,
    compare_with_chance,
    gaps,
    group_part,
    group_rows,
    known_ends,
    nan_mean,
    no_chance_reason,
    number,
    part,
    rows_of_replicates,
    sizes,
    too_small,
)
from equipoise.metrics.labels.comparisons import OTHERS, all_others
from equipoise.metrics.measure import DEFAULT, NO_REPLICATES, Draws
from equipoise.metrics.rankings.cosines import Scores
from equipoise.metrics.rankings.exchange import (
    UNITS,
    exchange_labels,
    group_sums,
)
from equipoise.metrics.rankings.metric import exchange_of, permutations, query_weights
from equipoise.metrics.rankings.pools import Pooling, Pools, image_keys, pools_of
from equipoise.metrics.rankings.statistics import deviation
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import ANY_NUMBER, COSINE, MetricSpec, make_estimate
from equipoise.stats.chance import band
from equipoise.stats.exchange import varies
from equipoise.stats.mean_norms import BOUNDS, Crossed, MeanNorm, Norm
from equipoise.stats.moments import Moments
from equipoise.stats.resampling import Bootstrap, Resampling, level_of
from equipoise.stats.streams import Seed, place_keys, unit_times
from equipoise.stats.threads import each, sum_results

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
    """Concepts with pools of the same images.

    Attributes
    ----------
    places : ndarray of int64, shape (concepts,)
        Indices of the pools.
    items : ndarray of int64, shape (n,)
        Images of groups that are compared, in sets of several groups.
    scores : ndarray of float64, shape (n, concepts)
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
        by_cell = np.bincount(flat, minlength=sets * self.groups).reshape(sets, self.groups)
        return floats(by_cell)

    @cached_property
    def connected(self) -> Integers:
        """Largest set of groups that are connected by sharing sets."""
        met = laplacian(self.counts).sum(axis=0)
        _, party = scipy.sparse.csgraph.connected_components(np.abs(met) > 0, directed=False)
        sizes = np.bincount(party, weights=self.counts.sum(axis=0))
        largest_component = np.flatnonzero(
            (party == sizes.argmax()) & (self.counts.sum(axis=0) > 0)
        )
        return integers(largest_component)

    @cached_property
    def centred(self) -> Floats:
        """Scores less the mean of their set, shape (n, concepts)."""
        sets, centred = len(self.counts), np.empty(self.scores.shape)
        if sets == 1:
            return self.scores
        sizes = self.counts.sum(axis=1)
        for column, row in enumerate(self.scores.T):
            sums = np.bincount(self.stratum, weights=row, minlength=sets)
            centred[:, column] = row - (sums / sizes)[self.stratum]
        return centred

    @cached_property
    def inverse(self) -> Floats:
        """What sums of centred scores of the kept groups are multiplied with."""
        total_laplacian = laplacian(self.counts).sum(axis=0)[np.ix_(self.connected, self.connected)]
        return np.linalg.inv(_anchored(total_laplacian[None])[0])

    def summed(self, units: Integers | None) -> Numbers:
        """Return what means by group and their variances add up for each image, (n, k).

        `plain` and its squares; where units (rows,) exchange groups as one, S² / n, S and n, with
        S the sum of the n images of a unit of one group.
        """
        if units is None:
            return lambda rows: with_squares(self.scores[rows])
        image_units, single_units = units[self.items], np.arange(len(self.items)) + len(units)
        image_units = numbered(
            np.where(varies(image_units, self.codes)[image_units], single_units, image_units)
        )
        sums = np.stack([np.bincount(image_units, column) for column in self.scores.T], axis=1)[
            image_units
        ]
        unit_sizes = floats(np.bincount(image_units)[image_units, None])
        return np.hstack([self.scores, sums**2 / unit_sizes, sums, unit_sizes]).__getitem__

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
        concepts, group_sums = len(self.places), sums[:, self.connected].transpose(0, 2, 1)
        n = counts[:, None, self.connected]
        means, squares = group_sums[:, :concepts] / n, group_sums[:, concepts : 2 * concepts]
        products, sizes = group_sums[:, :concepts], n
        if group_sums.shape[1] > 2 * concepts:
            products, sizes = group_sums[:, 2 * concepts : -1], group_sums[:, -1:]
        spread = squares - 2.0 * means * products + means**2 * sizes
        finest = _FLAT * squares.sum(axis=-1, keepdims=True)
        spread = np.maximum(spread, finest)
        differences = less_rest(effects[..., self.connected], n)
        error = np.sqrt(spread / n**2 + all_others(spread) / all_others(n) ** 2)
        return self._in_all_groups(
            np.where(differences == 0.0, 0.0, differences / np.where(error > 0.0, error, 1.0))
        )

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
        group_sums = sums[:, self.connected].transpose(0, 2, 1)
        if paired:
            return self._in_all_groups(group_sums @ self.inverse)
        with unwarned():
            means = group_sums / counts[:, None, self.connected]
        return self._in_all_groups(means - means.mean(axis=2, keepdims=True))

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
            rows, groups = slice(start, start + step), self.groups
            cells, numbers = self.codes + groups * self.loose, self.centred[rows]
            order, weights, sums, counts = resampled_group_sums(
                keys[rows], cells[rows], 2 * groups, numbers, replicates, rng
            )
            laplacians = np.zeros((replicates, groups, groups))
            # A set is drawn where the first of its images is.
            in_block = np.flatnonzero((first >= start) & (first < start + step))
            set_weights = weights[:, np.argsort(order)[first[in_block] - start]]
            size = max(1, _CELLS // max(groups**2, len(in_block)))
            for place in range(0, len(makeups), size):
                block_makeups = makeups[place : place + size]
                times = set_weights @ (
                    which[in_block, None] == place + np.arange(len(block_makeups))
                )
                laplacians += np.tensordot(times, laplacian(block_makeups), axes=1)
            return [sums[:, :, :groups], sums[:, :, groups:], counts[:, groups:], laplacians]

        inside, loose, counts, laplacians = sum_results(add, range(0, len(self.items), step))
        if self.loose.any():
            with unwarned():
                mean = loose.sum(axis=2) / counts.sum(axis=1)[:, None]
            loose -= counts[:, None] * np.nan_to_num(mean)[..., None]
            laplacians += laplacian(counts)
        inner = laplacians[:, self.connected[:, None], self.connected]
        return self._in_all_groups(_solved(inner, (inside + loose)[..., self.connected]))

    def _in_all_groups(self, effects: Floats) -> Floats:
        in_all_groups = nans((*effects.shape[:2], self.groups))
        in_all_groups[..., self.connected] = np.round(effects, _DECIMALS)
        return in_all_groups


def resampled_group_sums(
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
    defined = ~np.isnan(effects)
    weights, values = np.where(defined, counts, 0.0), np.where(defined, effects, 0.0)
    with unwarned():
        others_mean = all_others(weights * values) / all_others(weights)
    return np.where(defined, effects - others_mean, np.nan)


def laplacian(counts: Floats) -> Floats:
    """Return diag(c) − c cᵀ / n of each row of counts, shape (rows, groups, groups)."""
    total = np.maximum(counts.sum(axis=1), 1e-300)[:, None, None]
    diagonal = counts[:, :, None] * np.eye(counts.shape[1])
    return floats(diagonal - counts[:, :, None] * counts[:, None, :] / total)


def _anchored(inner: Floats) -> Floats:
    """Fix the constant that effects leave open, without changing their differences."""
    n_groups = inner.shape[1]
    scale = np.trace(inner, axis1=1, axis2=2) / n_groups
    return floats(inner + np.maximum(scale, 1e-300)[:, None, None] / n_groups)


def _solved(inner: Floats, sums: Floats) -> Floats:
    """Return effects from (replicates, groups, groups) and (replicates, concepts, groups)."""
    values = np.linalg.eigvalsh(inner)
    met = values[:, 1] > _NOTHING * np.maximum(values[:, -1], 1e-300) if inner.shape[1] > 1 else []
    effects = nans(sums.shape)
    solvable = np.flatnonzero(met)
    if len(solvable):
        solved = np.linalg.solve(_anchored(inner[solvable]), sums[solvable].transpose(0, 2, 1))
        effects[solvable] = solved.transpose(0, 2, 1)
    return effects


@record
class ExchangeStatistic:
    """A statistic of concepts of the same images, under exchanged groups.

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
            part = slice(start, start + _ROWS)
            block = np.ascontiguousarray(codes[:, part]), np.ascontiguousarray(self.numbers(part))
            group_sums(*block, sums, counts)
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
        return len(sizes) * self.width + int(np.sort(sizes)[: self.n_small(sizes)].sum())

    def n_small(self, sizes: Integers) -> int:
        """Return how many groups of some sizes are too small for a normal sum: see `Moments`."""
        return self.moments.n_small(np.sort(sizes), len(self.places))

    def draw_from_moments(self, sizes: Integers, draws: int, rng: Seed, name: str) -> Floats:
        """Return the statistic with groups exchanged between all images: see `Moments`."""

        def of_sums(sums: Floats) -> Floats:
            return self.statistic(sums, floats(sizes[None]))

        moments, first = self.moments, len(self.places)
        return np.concatenate(
            moments.exchanged_sums(of_sums, sizes, draws, rng, name, self.numbers, first)
        )


def uses_moments(items: Integers, pools: Pools) -> bool:
    """Return whether images are many, and neither of sets nor of units."""
    return len(items) >= _LARGE and pools.member is None and pools.units is None


def exchanges(
    measured: Sequence[ExchangeStatistic], pools: Pools, codes: Integers32, resampling: Resampling
) -> int:
    """Return how many exchanges of groups resolve the finest p-value, within the budget."""
    effort, groups = 0, len(pools.groups)
    for statistic in measured:
        if uses_moments(statistic.items, pools):
            effort += statistic.effort(np.bincount(codes[statistic.items], minlength=groups))
        else:
            effort += len(statistic.items)
    return permutations(resampling, effort)


def exchanged(
    measured: Sequence[ExchangeStatistic],
    pools: Pools,
    codes: Integers32,
    draws: int,
    rng: Seed,
    name: str,
) -> Floats | None:
    """Return statistics with exchanged groups, (draws, pools, ...); None if nothing can change.

    Parameters
    ----------
    measured : sequence of ExchangeStatistic
    pools : Pools
        Images exchange groups within sets; without these within their pool, units as one. Sums
        of many independent images are drawn from their moments.
    codes : ndarray of int32, shape (n,)
        Group of each image, -1 for none.
    draws, rng, name
        How many, and the key of the random streams.
    """
    computed, pending, groups = [], [], len(pools.groups)
    stratum, units = (pools.block, pools.units) if pools.member is None else (pools.member, None)
    for statistic in measured:
        if uses_moments(statistic.items, pools):
            sizes = np.bincount(codes[statistic.items], minlength=groups)
            key = f"{name}, block {pools.pools[statistic.places[0]].block}"
            computed.append((statistic.places, statistic.draw_from_moments(sizes, draws, rng, key)))
        else:
            pending.append(statistic)
    if pending:
        items = np.concatenate([statistic.items for statistic in pending])
        edges = np.cumsum([len(statistic.items) for statistic in pending])[:-1]

        def block(exchanged_codes: Integers32) -> Floats:
            parts = zip(pending, np.split(exchanged_codes, edges, axis=1), strict=True)
            return np.concatenate([statistic(part, groups) for statistic, part in parts], axis=1)

        parts = exchange_labels(block, (codes, stratum, units), items, draws, rng, name)
        if parts:
            places = np.concatenate([statistic.places for statistic in pending])
            computed.append((places, np.concatenate(parts)))
    if not computed:
        return None
    by_pool = nans((draws, len(pools.pools), *computed[0][1].shape[2:]))
    for places, values in computed:
        by_pool[:, places] = values
    return by_pool


def resampled_totals(
    statistic: ExchangeStatistic,
    codes: Integers32,
    start: int,
    groups: int,
    replicates: int,
    rng: Seed,
) -> tuple[Floats, Floats]:
    """Resample independent images: sums of large groups from moments, others image by image.

    Parameters
    ----------
    one : ExchangeStatistic
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
    sums, counts = np.zeros((replicates, groups, statistic.width)), np.zeros((replicates, groups))
    rows = np.split(np.argsort(codes, kind="stable"), np.bincount(codes).cumsum()[:-1])
    few = [np.empty(0, dtype=np.int64)]
    # Streams have the rank of a group's size, as renamed groups keep it.
    for rank, group in enumerate(sorted(range(len(rows)), key=lambda group: len(rows[group]))):
        moments = statistic.moments_of(members := rows[group]) if len(rows[group]) >= _FEW else None
        if moments is not None and moments.normal(len(members), first=len(statistic.places)):
            draws = moments.poisson_sums(replicates, rng, f"bootstrap, {start}, {rank}")
            counts[:, group], sums[:, group] = draws
        else:
            few.append(rows[group])
    chosen, step = np.concatenate(few), max(1, _CELLS // replicates)

    def add(at: int) -> list[Floats]:
        image_rows = chosen[at : at + step]
        numbers, keys = statistic.numbers(image_rows), place_keys(start + image_rows)
        _, _, block_sums, block_counts = resampled_group_sums(
            keys, codes[image_rows], groups, numbers, replicates, rng
        )
        return [block_sums.transpose(0, 2, 1), block_counts]

    if len(chosen):
        by_image = sum_results(add, range(0, len(chosen), step))
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
    n_alone : int
        Images whose set holds no other group: they compare nothing.
    pooling : Pooling
    """

    pools: Pools
    blocks: tuple[Block, ...]
    items: Integers
    n_alone: int
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
        member, names = (None, ()) if sets is None else encode(sets, subject="sets")
        same_items = pools.by_block(range(len(pools.pools)))
        built = [_block(pools, places, codes, member, scale) for places in same_items]
        blocks = tuple(block for block, _ in built if len(block.items) and len(block.connected) > 1)
        items = np.concatenate([np.empty(0, dtype=np.int64), *(block.items for block in blocks)])
        effects = cls(pools, blocks, items, sum(out for _, out in built), pooling)
        if member is not None and pools.units is not None:
            rows = items[member[items] >= 0]
            unit = numbered(effects.keys[rows])
            split = np.flatnonzero(varies(member[rows], unit))
            if len(split):
                raise InputError(
                    f"units: set {names[split[0]]!r} has images of several units; expected "
                    "each set within one unit, since sets are resampled whole"
                )
        return effects

    @cached_property
    def keys(self) -> Words:
        """Resampling key of each image: its unit, else its set, else itself; (n,)."""
        n_images = len(self.pools.groups.codes)
        return image_keys([block.items for block in self.blocks], n_images, self.pooling)

    @cached_property
    def estimable(self) -> Integers:
        """Indices of the pools that have a value, in order."""
        return np.flatnonzero(self.sizes.any(axis=1))

    @cached_property
    def effects(self) -> Floats:
        """Effects, (pools, groups); NaN where there are none."""
        return self._observed(self._measured(np.asarray), len(self.pools.groups))

    def _observed(self, measured: Sequence[ExchangeStatistic], columns: int) -> Floats:
        """Return statistics with the groups as they are, (pools, columns)."""
        observed = nans((len(self.pools.pools), columns))
        for block, statistic in zip(self.blocks, measured, strict=True):
            observed[statistic.places] = statistic(block.codes[None], block.groups)[0]
        return observed

    def _measured(self, function: Callable[[Floats], Floats]) -> list[ExchangeStatistic]:
        paired = self.pools.paired

        def statistic_of(block: Block) -> ExchangeStatistic:
            def statistic(sums: Floats, counts: Floats) -> Floats:
                return function(block.effects(sums, counts, paired=paired))

            by_image = block.centred if paired else block.scores
            return ExchangeStatistic(block.places, block.items, by_image.__getitem__, statistic)

        return [statistic_of(block) for block in self.blocks]

    @cached_property
    def tested(self) -> Floats:
        """Gap of each pool, then the test statistic by group, (pools, 1 + groups).

        How far a group lies above all others: in standard errors, so that a test is valid where
        spreads differ, unless images are compared within sets.
        """
        return self._observed(self._tested, 1 + len(self.pools.groups))

    @cached_property
    def _tested(self) -> list[ExchangeStatistic]:
        paired = self.pools.paired

        def statistic_of(block: Block) -> ExchangeStatistic:
            n_concepts = len(block.places)

            def statistic(sums: Floats, counts: Floats) -> Floats:
                effects = block.effects(sums[..., :n_concepts], counts, paired=paired)
                if paired:
                    single = less_rest(effects, counts[:, None])
                else:
                    single = block.ratios(effects, sums, counts)
                return np.concatenate([gaps(effects)[..., None], single], axis=-1)

            numbers = block.centred.__getitem__ if paired else block.summed(self.pools.units)
            return ExchangeStatistic(block.places, block.items, numbers, statistic)

        return [statistic_of(block) for block in self.blocks]

    @cached_property
    def sizes(self) -> Integers:
        """Images behind the effects, (pools, groups)."""
        sizes = np.zeros(self.pools.sizes.shape, dtype=np.int64)
        for block in self.blocks:
            sizes[block.places] = np.bincount(block.codes, minlength=block.groups)
        return sizes

    @cached_property
    def freedom(self) -> Integers:
        """Units with the group that has fewest of them, less one; (pools,)."""
        freedom = np.zeros(len(self.pools.pools), dtype=np.int64)
        for block in self.blocks:
            keys = None if uses_moments(block.items, self.pools) else self.keys[block.items]
            freedom[block.places] = spare_units(keys, block.codes, block.connected.tolist())
        return freedom

    def exchanged(
        self,
        draws: int,
        rng: Seed,
        name: str,
        function: Callable[[Floats], Floats] | None = None,
    ) -> Floats | None:
        """Return a function of effects under exchanges, or None if none changes it.

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
        effects = nans((replicates, *self.pools.sizes.shape))
        starts = np.cumsum([0, *(len(block.items) for block in self.blocks)]).tolist()
        for block, statistic, start in zip(
            self.blocks, self._measured(np.asarray), starts, strict=False
        ):
            if uses_moments(block.items, self.pools):
                totals = resampled_totals(
                    statistic, block.codes, start, block.groups, replicates, rng
                )
                effects[:, block.places] = statistic.statistic(*totals)
            else:
                effects[:, block.places] = block.resampled(self.keys[block.items], replicates, rng)
        return effects


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
    mixed = varies(stratum, codes[items])
    first = floats(pools.scores(places[0])[chosen])
    # By score and group, so that permuted rows give the same draws.
    order = np.lexsort((codes[items], first))
    order = order[mixed[stratum[order]]]
    strata = numbered(stratum[order])
    centred, rows = np.empty((len(order), len(places))), chosen[order]

    def centre(column: int) -> None:
        scores = scale * floats(pools.scores(places[column])[rows])
        centred[:, column] = scores - scores.sum() / max(len(scores), 1)

    each(centre, range(len(places)))
    block = Block(
        np.array(places), items[order], centred, codes[items][order],
        integers(strata), loose[order], len(pools.groups),
    )  # fmt: skip
    return block, len(items) - len(order)


@record
class Concepts:
    """One number of every concept, and their mean.

    Attributes
    ----------
    metric : str
    pools : Pools
    estimable : ndarray of int64
        Indices of the pools that have a value.
    resampling : Bootstrap, Permutation or None
    rng : int or Generator
    null : str
        The null hypothesis in words.
    """

    metric: str
    pools: Pools
    estimable: Integers
    resampling: Resampling | None
    rng: Seed
    null: str

    @property
    def unit(self) -> str:
        """What intervals of single concepts resample."""
        if self.pools.units is not None:
            return "unit"
        return "set" if self.pools.paired else "image"

    @property
    def several(self) -> bool:
        """Whether there are several concepts, over which their mean is resampled."""
        return len(self.pools.pools) > 1

    @cached_property
    def weights(self) -> Floats | None:
        """How often each concept with a value is in each replicate of the mean."""
        return query_weights(self.pools, self.estimable, self.resampling, self.rng)

    def mean(self, effects: Floats, boot: Floats, freedom: Integers, norm: Norm) -> MeanNorm:
        """Return the ends of the mean over concepts, from (concepts, groups) and its replicates."""
        estimable = self.estimable
        fewest = int(freedom[estimable].min(initial=_MANY))
        return MeanNorm(effects[estimable], boot[:, estimable], fewest, norm, self.weights)

    def draws(self, values: Floats, null: Floats | None, text: str = "") -> Draws:
        """Put the mean over concepts first, and each concept after it."""
        estimable = self.estimable
        if null is not None:
            null = np.insert(null, 0, null[:, estimable].mean(axis=1), axis=1)
        observed = np.append(values[estimable].mean() if len(estimable) else np.nan, values)
        return Draws.of(self.resampling, observed, None, null, text or self.null)

    def reason(self, index: int) -> str:
        """Say why a concept has no number; "" where it has one."""
        if index in self.estimable:
            return ""
        present = self.pools.sizes[index] > 0
        if (present & self.pools.groups.usable).sum() < 2:
            return "fewer than two groups with rows enough"
        if self.pools.paired:
            return "all scores are equal, or no set holds two groups"
        return "all scores are equal"

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
                chance_test=_chance_test(draws, tested, index + 1),
                n=sum(group.n for group in by_group[index]),
                by_group=by_group[index],
                reason=self.reason(index),
                shows=shows,
                part_of=pool.part_of,
                within_value=pool.within_value,
            )
            for index, pool in enumerate(pools.pools)
        ]
        undefined, method_text = math.isnan(value), NO_REPLICATES
        if isinstance(self.resampling, Bootstrap):
            crossed = " crossed with queries" if self.weights is not None else ""
            over = f"{BOUNDS} over {self.unit}s{crossed}" if self.several else over
            method_text = f"{over}, {self.resampling.replicates} replicates"
            if self.several and math.isnan(mean.estimate):
                method_text = f"none: a group has too few {self.unit}s for a query"
        resampling = None if undefined else self.resampling
        if pools.paired:
            params = {**params, "items_without_set": pools.without_set}
        return make_estimate(
            self.metric,
            value,
            n,
            bootstrap_method(None, resampling, "", method_text),
            params={"queries": len(pools.pools), **params},
            null=exchange_of(pools),
            **_chance_test(draws, tested, 0).fields(no_chance_reason(value, self.resampling)),
            by=[*parts, *further],
            excluded={**pools.excluded, **excluded, "empty groups": pools.empty},
            interval_kind=(IntervalKind.CONFIDENCE if self.several else IntervalKind.SIMULTANEOUS),
            unit="query" if self.several else self.unit,
            reason=self.reason(0) if undefined else "",
            ends=mean if self.several else ends(0),
            corrected=mean.estimate if self.several else math.nan,
        )


def null_of(pools: Pools, measured: Sequence[ExchangeStatistic], codes: Integers32) -> str:
    """Return the null hypothesis in words, and how it is drawn."""
    if pools.paired or pools.units is not None:
        return _SETS if pools.paired else UNITS

    def from_moments(statistic: ExchangeStatistic) -> bool:
        sizes = np.bincount(codes[statistic.items], minlength=len(pools.groups))
        return uses_moments(statistic.items, pools) and statistic.n_small(sizes) < len(sizes) - 1

    return f"{_IMAGES}; {_MOMENTS}" if any(map(from_moments, measured)) else _IMAGES


def _chance_test(draws: Draws, tested: Draws | None, index: int) -> ChanceTest:
    """Return the chance level of a number, with the p-value of the tested one."""
    chance_test = compare_with_chance(draws, index, "higher")
    p_test = compare_with_chance(tested or draws, index, "higher")
    return replace(
        chance_test, p_value=p_test.p_value, p_at_most=p_test.p_at_most,
        null_drawn=p_test.null_drawn,
    )  # fmt: skip


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


@metric(
    MetricSpec(
        name="normalized_similarity_mad",
        title="Spread of normalised similarity",
        symbol="MAD",
        kinds=("retrieval", "similarity", "counterfactuals"),
        by_default=("retrieval", "similarity"),
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
    )
)
def normalized_similarity_mad(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    pooling: Pooling = {"sets": sets, "units": units}
    codes, shape = pools.groups.codes, pools.sizes.shape
    blocks = [*_standardised(pools)]
    estimable = np.concatenate([np.empty(0, dtype=np.int64), *(block.places for block in blocks)])
    p, boot, null = nans(shape), np.empty((0, *shape)), None
    for block in blocks:
        p[block.places] = block(codes[block.items][None], shape[1])[0]
    compared = (pools.sizes > 0) & pools.groups.usable
    deviations, freedom = nans(len(pools.pools)), np.zeros(len(pools.pools), dtype=np.int64)
    deviations[estimable] = deviation(p[estimable], compared[estimable])
    if isinstance(resampling, Bootstrap):
        boot, freedom = _resample_blocks(
            blocks, pools, compared, pooling, resampling.replicates, rng
        )
    if resampling is not None:
        blocks = [
            replace(block, statistic=partial(_mad, compared[block.places])) for block in blocks
        ]
        n_draws = exchanges(blocks, pools, codes, resampling)
        null = exchanged(blocks, pools, codes, n_draws, rng, "similarity")
    text = null_of(pools, blocks if resampling is not None else (), codes)
    concepts = Concepts("normalized_similarity_mad", pools, estimable, resampling, rng, text)
    draws, compared_p = concepts.draws(deviations, null), np.where(compared, p, np.nan)

    def ends(index: int) -> Ends:
        columns = [index]
        return MeanNorm(compared_p[columns], boot[:, columns], int(freedom[index]), "deviations")

    by_group = []
    for index, n in enumerate(pools.sizes):
        rows, notes = (n, p[index], boot[:, index]), np.where(n > 0, "", _NOT_THERE)
        by_group.append(rows_of_replicates(pools.groups, *rows, draws.level, notes.tolist()))
    return concepts.estimate(
        draws,
        concepts.mean(compared_p, boot, freedom, "deviations"),
        ends,
        by_group,
        n=pools.counts,
        params={"null": "images within sets" if pools.paired else "images within pools"},
        excluded={"queries with one group or equal scores": len(pools.pools) - len(estimable)},
        over=f"{BOUNDS} over {concepts.unit}s",
        shows="normalised similarity",
    )


def _standardised(pools: Pools) -> Iterator[ExchangeStatistic]:
    """Yield the standardised scores of pools of the same images."""
    comparable = np.flatnonzero(((pools.sizes > 0) & pools.groups.usable).sum(axis=1) > 1)
    for same_items in pools.by_block(comparable.tolist()):
        table = {index: pools.scores(index) for index in same_items}
        places = [index for index, scores in table.items() if np.ptp(scores) > 0]
        if not places:
            continue
        items = pools.pools[same_items[0]].items
        # By score and group, so that permuted rows give the same draws.
        order = np.lexsort((pools.groups.codes[items], table[places[0]]))
        by_image = _by_image(table, places, order)
        yield ExchangeStatistic(np.array(places), items[order], by_image.__getitem__, _means)


def _by_image(table: dict[int, AnyArray], places: Sequence[int], order: Integers) -> Floats:
    """Return standardised scores of images in an order, (n, concepts), and empty the table."""
    standardised = np.empty((len(order), len(places)))

    def add(column: int) -> None:
        row = table.pop(places[column]).astype(np.float64)
        row -= row.mean()
        row /= row.std()
        standardised[:, column] = row[order]

    each(add, range(len(places)))
    return standardised


def _means(sums: Floats, counts: Floats) -> Floats:
    """Return sums (draws, groups, concepts) over counts, shape (draws, concepts, groups)."""
    with unwarned():
        return (sums / counts[..., None]).transpose(0, 2, 1)


def _mad(compared: Booleans, sums: Floats, counts: Floats) -> Floats:
    return deviation(np.round(_means(sums, counts), _DECIMALS), compared)


def _resample_blocks(
    blocks: Sequence[ExchangeStatistic],
    pools: Pools,
    compared: Booleans,
    pooling: Pooling,
    replicates: int,
    rng: Seed,
) -> tuple[Floats, Integers]:
    """Return p of resampled images, (replicates, pools, groups), and the freedom of each pool."""
    codes, shape = pools.groups.codes, pools.sizes.shape
    boot, freedom = nans((replicates, *shape)), np.zeros(len(pools.pools), dtype=np.int64)
    places = [block.items for block in blocks]
    starts = np.cumsum([0, *map(len, places)]).tolist()
    all_large = all(uses_moments(items, pools) for items in places)
    keys = None if all_large else image_keys(places, len(codes), pooling)
    for block, start in zip(blocks, starts, strict=False):
        block_keys = None if uses_moments(block.items, pools) or keys is None else keys[block.items]
        boot[:, block.places] = _resampled(block, codes, block_keys, start, replicates, rng)
        compared_groups = np.flatnonzero(compared[block.places[0]]).tolist()
        freedom[block.places] = spare_units(block_keys, codes[block.items], compared_groups)
    return boot, freedom


def _resampled(
    statistic: ExchangeStatistic,
    codes: Integers32,
    keys: Words | None,
    start: int,
    replicates: int,
    rng: Seed,
) -> Floats:
    """Return p of resampled images of some concepts, shape (replicates, concepts, groups).

    Images are taken some at a time, with all replicates; without keys their totals by group are
    drawn, see `resampled_totals`.
    """
    step, groups, image_groups = (
        max(1, _CELLS // replicates),
        int(codes.max()) + 1,
        codes[statistic.items],
    )

    def add(at: int, keys: Words) -> list[Floats]:
        part = slice(at, at + step)
        numbers = statistic.numbers(part)
        order, weights, sums, counts = resampled_group_sums(
            keys[part], image_groups[part], groups, numbers, replicates, rng
        )
        return [sums, counts, weights @ numbers[order] ** 2]

    if keys is None:
        squared = replace(statistic, numbers=lambda rows: with_squares(statistic.numbers(rows)))
        sums_and_squares, counts = resampled_totals(
            squared, image_groups, start, groups, replicates, rng
        )
        sums, squares = np.split(sums_and_squares.transpose(0, 2, 1), 2, axis=1)
        squares = squares.sum(axis=2)
    else:
        sums, counts, squares = sum_results(
            partial(add, keys=keys), range(0, len(statistic.items), step)
        )
    total = counts.sum(axis=1)[:, None]
    with unwarned():
        mean = sums.sum(axis=2) / total
        spread = np.sqrt(squares / total - mean**2)
        p = (sums / counts[:, None] - mean[..., None]) / spread[..., None]
    return floats(np.round(p, _DECIMALS))


@metric(
    _gap(
        name="similarity_gap",
        aggregate=Aggregate.DIFFERENCE,
        rest_metric="similarity_gap",
        range=(0.0, 2.0),
        range_note="for cosines",
        threshold=0.01,
        threshold_reason=COSINE,
        definition=(
            "Largest minus smallest group effect on an image's similarity to a concept, by least "
            "squares with counterfactual sets if there are any; mean over concepts."
        ),
    )
)
def similarity_gap(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    scale: float | None = None,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
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
    pools = pools_of(scores, groups, queries, within, sets, units, subjects)
    pooling: Pooling = {"sets": sets, "units": units}
    effects = Effects.of(pools, pooling, scale or 1.0)
    metric = "logit_gap" if scale else "similarity_gap"
    text = effects.null if resampling is not None else ""
    concepts = Concepts(metric, pools, effects.estimable, resampling, rng, text)
    null, boot, n_draws = None, np.empty((0, *pools.sizes.shape)), 0
    if resampling is not None:
        n_draws = effects.exchanges(resampling)
        null = effects.exchanged(n_draws, rng, "similarity gap")
    if isinstance(resampling, Bootstrap):
        boot = effects.resampled(resampling.replicates, rng)
    draws = concepts.draws(effects.tested[:, 0], None if null is None else null[..., 0])
    by_ratio, by_group = draws, []
    if null is not None and not pools.paired:
        by_ratio = _draw_ratios(concepts, effects, null)

    def ends(index: int) -> Ends:
        return simultaneous(effects.effects[index], boot[:, index], int(effects.freedom[index]))

    for index, values in enumerate(effects.effects):
        half = _student(boot[:, index], int(effects.freedom[index]), draws.level)
        by_group.append(_values(effects, (values, values - half, values + half), [index]))
    further = _list_further(concepts, effects, boot, by_group, null, n_draws)
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
            "queries without two groups to compare": len(pools.pools) - len(effects.estimable),
            "images whose set holds one group": effects.n_alone if pools.paired else 0,
        },
        over=f"simultaneous over pairs of groups, bootstrap over {concepts.unit}s",
        further=further,
    )


@metric(
    _gap(
        name="logit_gap",
        aggregate=Aggregate.DIFFERENCE,
        rest_metric="logit_gap",
        title="Similarity gap in logits",
        range=(0.0, math.inf),
        threshold=0.25,
        threshold_reason="the odds of a softmax change by more than 1.28 to 1",
        definition=(
            "The similarity gap times the model's own scale. e to its power is the ratio of the "
            "odds that a softmax over concepts gives."
        ),
    )
)
def logit_gap(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    scale: float,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Largest difference between groups in mean logit of a concept.

    Parameters
    ----------
    scale : float
        What makes a logit of a similarity, such as CLIP's learned temperature.
    scores, groups, queries, within, sets, units, subjects, resampling, rng
        See `similarity_gap`.

    Returns
    -------
    Estimate
        As `similarity_gap`, in logits.

    Raises
    ------
    InputError
        As `similarity_gap`.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.logit_gap(scores, groups, scale=2.0)
    <logit_gap difference 0.639 [0.000, 1.131]; chance 0.412, p = 0.048, n = 60 in 2 groups>
    """
    return similarity_gap(
        scores, groups, scale=scale, queries=queries, within=within, sets=sets, units=units,
        subjects=subjects, resampling=resampling, rng=rng,
    )  # fmt: skip


@metric(
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
    )
)
def group_effect(  # noqa: PLR0913 - one keyword for each choice
    scores: Scores,
    groups: GroupLabels,
    *,
    group: str,
    scale: float | None = None,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """How much more similar a concept is to images of a group than on average over groups.

    Parameters
    ----------
    group : str
        The group, or the groups of an intersection as findings name it.
    scores, groups, scale, queries, within, sets, units, subjects, resampling, rng
        See `similarity_gap`.

    Returns
    -------
    Estimate
        Mean over concepts, with its chance band and no p: the gap is tested. `.by` has every
        concept.

    Raises
    ------
    InputError
        As `similarity_gap`, and when there is no such group.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(6, 60))
    >>> groups = ["women", "men"] * 30
    >>> m.group_effect(scores, groups, group="women")
    <group_effect −0.063 [−0.248, 0.121]; chance 0.0002, n = 180>
    """
    gap = similarity_gap(
        scores, groups, scale=scale, queries=queries, within=within, sets=sets, units=units,
        subjects=subjects, resampling=resampling, rng=rng,
    )  # fmt: skip
    effects = [part for part in gap.parts if part.metric == "group_effect"]
    of_group = [part for part in effects if part.by_group[0].group == group]
    if not of_group:
        names = ", ".join(dict.fromkeys(part.by_group[0].group for part in effects))
        raise InputError(f"group={group!r}: expected one of {names}")
    main = next((part for part in of_group if not part.subject), of_group[0])
    chance, text = None, gap.no_chance or "nothing to exchange"
    if not math.isnan(main.chance):
        chance = Chance(main.chance, main.chance_low, main.chance_high, gap.null_drawn)
        text = ""
    return make_estimate(
        "group_effect",
        main.value,
        {group: main.n},
        gap.method,
        params=gap.params,
        chance=chance,
        no_chance=text,
        by=of_group,
        excluded=gap.excluded,
        unit=gap.unit,
        reason=main.reason,
        ends=known_ends(main.low, main.high),
    )


def _draw_ratios(concepts: Concepts, effects: Effects, null: Floats) -> Draws:
    """Return the largest difference of a group from all others in standard errors, and draws."""
    observed_ratio = np.fmax.reduce(np.abs(effects.tested[..., 1:]), axis=-1)
    null_ratio = np.fmax.reduce(np.abs(null[..., 1:]), axis=-1)
    return concepts.draws(observed_ratio, null_ratio, f"{concepts.null}, {_RATIOS}")


def _list_further(
    concepts: Concepts,
    effects: Effects,
    boot: Floats,
    by_group: Sequence[tuple[GroupValue, ...]],
    null: Floats | None,
    n_draws: int,
) -> list[Part]:
    """Return effects of single groups, also against all others, and the gap in pool order."""
    pools, bands = effects.pools, nans((1, *effects.pools.sizes.shape))
    if concepts.resampling is not None:
        chance = effects.exchanged(_BANDS, concepts.rng, "similarity band", np.asarray)
        bands = bands if chance is None else chance
    further = [*_group_effects(concepts, effects, boot, by_group, bands)]
    further += _against_rest(effects, concepts, by_group, boot, bands, null)
    if len(effects.estimable) and pools.paired and concepts.resampling is not None:
        further.append(_pool_order(concepts, effects, n_draws))
    return further


def _pool_order(concepts: Concepts, effects: Effects, n_draws: int) -> Part:
    """Return the gap of plain means against a random order of the pool."""
    pool_effects = replace(effects, pools=replace(effects.pools, member=None, units=None))
    null_gaps = pool_effects.exchanged(n_draws, concepts.rng, "similarity pool", gaps)
    pooled = concepts.draws(gaps(pool_effects.effects), null_gaps, pool_effects.null)
    chance_test, n = compare_with_chance(pooled, 0, "higher"), int(effects.sizes.sum())
    variant = Variant.POOL_ORDER
    return part(concepts.metric, "", pooled, 0, chance_test=chance_test, n=n, variant=variant)


def _student(replicates: Floats, freedom: int, level: float) -> Floats:
    """Return half the width of Student's intervals from replicates (replicates, groups)."""
    replicates = replicates[~np.isnan(replicates).all(axis=1)]
    if freedom < 1 or len(replicates) < 2:
        return floats(math.nan)
    normal = float(special.ndtri((1.0 + level) / 2.0))
    return floats(normal * widening(freedom, level) * replicates.std(axis=0))


def _against_rest(
    effects: Effects,
    concepts: Concepts,
    by_group: Sequence[tuple[GroupValue, ...]],
    boot: Floats,
    bands: Floats,
    null: Floats | None,
) -> Iterator[Part]:
    """Yield each group against all others, where a concept has three groups or more.

    `boot` has effects of resampled images, `bands` those of exchanged ones, and `null` the numbers
    that are tested.
    """
    level = level_of(concepts.resampling)
    comparable = (~np.isnan(effects.effects)).sum(axis=1) > 2
    for index in np.flatnonzero(comparable).tolist():
        n, group_effects, freedom = (
            effects.sizes[index],
            effects.effects[index],
            effects.freedom[index],
        )
        tests = None if null is None else null[:, index, 1:]
        tested = Draws.of(
            concepts.resampling, effects.tested[index, 1:], None, tests, concepts.null
        )
        differences, replicate_differences = (
            less_rest(group_effects, n),
            less_rest(boot[:, index], n),
        )
        null_differences, rest_effects = less_rest(bands[:, index], n), group_effects - differences
        rest_differences = boot[:, index] - replicate_differences
        half = _student(replicate_differences, int(freedom), level)
        rest_half = _student(rest_differences, int(freedom), level)
        numbers = [
            rest_effects,
            rest_effects - rest_half,
            rest_effects + rest_half,
            differences,
            differences - half,
            differences + half,
        ]
        for group in np.flatnonzero(~np.isnan(differences)).tolist():
            chance_test, group_value = (
                compare_with_chance(tested, group, "either"),
                by_group[index][group],
            )
            mean, below, above, value, low, high = (float(array[group]) for array in numbers)
            rest_value = GroupValue(OTHERS, (), int(n.sum() - n[group]), mean, below, above)
            yield number(
                concepts.metric,
                value,
                aggregate=Aggregate.AGAINST_REST,
                subject=(pool := effects.pools.pools[index]).name,
                part_of=pool.part_of,
                within_value=pool.within_value,
                ends=known_ends(low, high),
                chance_test=replace(chance_test, chance=band(null_differences[:, group], "either")),
                n=group_value.n + rest_value.n,
                by_group=(group_value, rest_value),
                shows="effect of the group",
            )


def _values(
    effects: Effects, numbers: tuple[Floats, Floats, Floats], chosen: list[int]
) -> tuple[GroupValue, ...]:
    pools = effects.pools
    in_pool = pools.sizes[chosen].any(axis=0)
    notes = np.where(in_pool, "in no set with the others", _NOT_THERE)
    notes = np.where(pools.groups.usable, notes, too_small(pools.groups))
    notes = np.where(np.isnan(numbers[0]), notes, "")
    counts = effects.sizes[chosen].sum(axis=0)
    return group_rows(pools.groups, counts, *numbers, notes.tolist())


def _group_effects(
    concepts: Concepts,
    effects: Effects,
    boot: Floats,
    by_group: Sequence[tuple[GroupValue, ...]],
    bands: Floats,
) -> Iterator[Part]:
    """Yield the effect of every group in every concept and on average, with chance bands."""
    estimable, groups = effects.estimable, len(effects.pools.groups)
    rows = [
        (effects.pools.pools[index].name, by_group[index], bands[:, index].T)
        for index in estimable.tolist()
    ]
    if len(estimable) > 1:
        mean_effects = nan_mean(effects.effects[estimable].T)
        half = np.array([_half(concepts, effects, boot, group) for group in range(groups)])
        values = _values(
            effects, (mean_effects, mean_effects - half, mean_effects + half), estimable.tolist()
        )
        null_means = np.stack([nan_mean(bands[:, estimable, group]) for group in range(groups)])
        rows.append(("", values, null_means))
    for concept, values, null_means in rows:
        for group_value, null in zip(values, null_means, strict=True):
            chance_test = ChanceTest(band(null), None, "")
            columns = {"reason": group_value.note, "shows": "effect of the group"}
            yield group_part("group_effect", concept, group_value, chance_test, **columns)


def _half(concepts: Concepts, effects: Effects, boot: Floats, group: int) -> float:
    """Return half the width of the interval of a group's mean effect over concepts."""
    group_pools = effects.estimable[~np.isnan(effects.effects[effects.estimable, group])]
    if not len(group_pools) or not (freedom := int(effects.freedom[group_pools].min())) > 0:
        return math.nan
    replicates = boot[:, group_pools, group]
    replicates = replicates[~np.isnan(replicates).any(axis=1)]
    if len(replicates) < 2:
        return math.nan
    deviations = (replicates - replicates.mean(axis=0)) * math.sqrt(1.0 + 1.0 / freedom)
    weights = concepts.weights
    weights = None if weights is None else weights[:, np.isin(effects.estimable, group_pools)]
    crossed = Crossed(effects.effects[group_pools, group], deviations, freedom, weights)
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
    compared = np.flatnonzero(~np.isnan(effects))
    replicates = boot[~np.isnan(boot[:, compared]).any(axis=1)][:, compared]
    if freedom < 1 or len(replicates) < 2:
        return no_ends
    first, second = np.array([*combinations(range(len(compared)), 2)]).T
    differences = effects[compared][first] - effects[compared][second]
    errors, largest = np.empty(len(first)), np.zeros(len(replicates))
    # Some pairs at a time: among many groups there are thousands.
    size = max(1, _CELLS // len(replicates))
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        pair_differences = replicates[:, first[part]] - replicates[:, second[part]]
        errors[part] = pair_differences.std(axis=0)
        deviations = np.abs(pair_differences - differences[part])
        with unwarned():
            ratio = np.where(errors[part] > 0, deviations / errors[part], 0.0)
        # Largest |difference − observed| / error over the pairs, in each replicate.
        largest = np.maximum(largest, ratio.max(axis=1))

    def ends(level: float) -> Span:
        half = float(np.quantile(largest, level)) * widening(freedom, level) * errors
        sizes = np.abs(differences)
        return float(np.maximum(sizes - half, 0.0).max()), float((sizes + half).max())

    return ends


def widening(freedom: int, level: float) -> float:
    """Return how much wider than the bootstrap's an interval of few units is.

    The bootstrap's variance lacks the factor n / (n − 1), and its quantiles are those of known
    variances.
    """
    upper = (1.0 + level) / 2.0
    student = float(special.stdtrit(freedom, upper)) / float(special.ndtri(upper))
    return student * float(np.sqrt((freedom + 1) / freedom))
