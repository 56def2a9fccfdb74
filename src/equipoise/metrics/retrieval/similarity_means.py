"""Mean standardised scores of groups, on exchanged groups and on resampled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.labels import encode
from equipoise.metrics.retrieval.estimates import permutations
from equipoise.metrics.retrieval.kernels import group_sums
from equipoise.metrics.retrieval.null import LabelExchange
from equipoise.metrics.retrieval.pools import Floats, Indices, Pools
from equipoise.metrics.retrieval.statistics import Bools, deviation
from equipoise.metrics.similarity.exchange import UnitExchange, unit_codes
from equipoise.stats.draws import block_sizes
from equipoise.stats.poisson import unit_times
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import unit_keys
from equipoise.stats.threads import each

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12


@dataclass(frozen=True, eq=False)
class Shared:
    """Concepts that score the same images: standardised scores (concepts, images)."""

    places: Indices
    items: Indices
    scores: Floats = field(repr=False)

    @cached_property
    def by_image(self) -> Floats:
        """Scores (images, concepts)."""
        return np.ascontiguousarray(self.scores.T)


@dataclass(frozen=True, eq=False)
class Similarity:
    """Standardised similarities of all pools.

    Attributes
    ----------
    pools : Pools
    shared : tuple of Shared
        The pools that have a value; `places` are their indices.
    keys : ndarray of uint64, shape (n,)
        What each image is resampled with: its unit, else its set, else itself.
    sets : bool
    clusters : ndarray of int64, shape (n,), or None
        Unit of each image.
    """

    pools: Pools
    shared: tuple[Shared, ...]
    keys: npt.NDArray[np.uint64] = field(repr=False)
    sets: bool
    clusters: Indices | None = field(default=None, repr=False)

    @classmethod
    def of(cls, pools: Pools, sets: Any, clusters: Any = None) -> Similarity:
        """Standardise the scores of pools that have several groups and scores."""
        held: dict[int, list[int]] = {}
        for index, one in enumerate(pools.pools):
            several = (pools.groups.usable & (pools.sizes[index] > 0)).sum() > 1
            if several and np.ptp(pools.scores(index)) > 0:
                # Pools of one block are pools of the same images.
                held.setdefault(one.block, []).append(index)
        shared = []
        for places in held.values():
            items = pools.pools[places[0]].items
            table = np.stack([pools.scores(i) for i in places]).astype(np.float64)
            table -= table.mean(axis=1, keepdims=True)
            table /= table.std(axis=1, keepdims=True)
            # By score and group, so that permuted rows give the same draws.
            order = np.lexsort((pools.groups.codes[items], table[0]))
            shared.append(Shared(np.array(places), items[order], table[:, order]))
        units = None if clusters is None else unit_codes(clusters, len(pools.groups.codes))
        keys = image_keys(pools, shared, sets if clusters is None else clusters)
        return cls(pools, tuple(shared), keys, sets is not None, units)

    @cached_property
    def known(self) -> Indices:
        """Indices of the pools that have a value, as `shared` has them."""
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *(one.places for one in self.shared)])

    @property
    def compared(self) -> Bools:
        """Groups of each pool that enter, shape (pools, groups)."""
        return np.asarray((self.pools.sizes > 0) & self.pools.groups.usable)

    @property
    def unit(self) -> str:
        """What the interval of the whole resamples."""
        if len(self.pools.pools) > 1:
            return "query"
        return self.of_one

    @property
    def of_one(self) -> str:
        """What the interval of one concept resamples."""
        if self.clusters is not None:
            return "unit"
        return "set" if self.sets else "image"

    @property
    def params(self) -> dict[str, Any]:
        """Parameters of the estimate."""
        found = {"queries": len(self.pools.pools), "null": "images within pools"}
        if not self.sets:
            return found
        return {**found, "null": "images within sets", "items_without_set": self.pools.without_set}

    @property
    def left_out(self) -> dict[str, int]:
        """Concepts without a value and groups without images."""
        missing = len(self.pools.pools) - len(self.known)
        absent = int((self.pools.sizes == 0).all(axis=0).sum())
        found = {"queries with one group or equal scores": missing, "empty groups": absent}
        return {reason: many for reason, many in found.items() if many}

    @cached_property
    def means(self) -> Floats:
        """Normalised similarity p of every group, (pools, groups); NaN where there is none."""
        found = np.full(self.pools.sizes.shape, np.nan)
        for one in self.shared:
            codes = self.pools.groups.codes[one.items][None]
            found[one.places] = group_means(one, codes, len(self.pools.groups))[0]
        return found

    def spread(self, p: Floats) -> Floats:
        """Return MAD of p, (..., pools, groups) to (..., pools)."""
        compared = np.broadcast_to(self.compared, p.shape)
        known = np.isin(np.arange(len(self.pools.pools)), self.known)
        return np.asarray(np.where(known, deviation(p, compared), np.nan))

    def why(self, index: int) -> str:
        """Say why a concept has no value."""
        if (self.pools.sizes[index] > 0).sum() < 2:
            return "fewer than two groups in the pool"
        if np.ptp(self.pools.scores(index)) == 0:
            return "all scores are equal"
        return "fewer than two groups with rows enough"

    def exchanged(self, resampling: Resampling, rng: int) -> Floats | None:
        """Return MAD with exchanged groups, (draws, pools); None where nothing can change."""
        items = np.concatenate([one.items for one in self.shared])
        codes, stratum = self.pools.groups.codes, self.pools.member
        exchange: LabelExchange | UnitExchange
        if stratum is None and self.clusters is not None:
            exchange = UnitExchange.of(codes, self.pools.block, items, self.clusters)
        else:
            exchange = LabelExchange.of(
                codes, self.pools.block if stratum is None else stratum, items
            )
        if not exchange.moves:
            return None
        edges = np.cumsum([len(one.items) for one in self.shared])[:-1]

        def block(codes: npt.NDArray[np.int32]) -> Floats:
            p = np.full((len(codes), *self.pools.sizes.shape), np.nan)
            for one, drawn in zip(self.shared, np.split(codes, edges, axis=1), strict=True):
                p[:, one.places] = group_means(one, drawn, len(self.pools.groups))
            return self.spread(p)

        many = permutations(resampling, len(items))
        return np.concatenate(exchange.evaluate(block, many, rng, "similarity"))

    def resampled(self, replicates: int, rng: int) -> Floats:
        """Return p of resampled images, shape (replicates, pools, groups)."""
        groups = len(self.pools.groups)
        found = np.full((replicates, *self.pools.sizes.shape), np.nan)
        for one in self.shared:
            codes, keys = self.pools.groups.codes[one.items], self.keys[one.items]
            found[:, one.places] = resampled_images(one, codes, keys, groups, replicates, rng)
        return found


def resampled_images(
    one: Shared,
    codes: npt.NDArray[np.int32],
    keys: npt.NDArray[np.uint64],
    groups: int,
    replicates: int,
    rng: int,
) -> Floats:
    """Return p of resampled images of some concepts, shape (replicates, concepts, groups)."""
    order = np.argsort(codes, kind="stable")
    scores, sizes = one.scores[:, order], np.bincount(codes, minlength=groups)
    units, inverse = np.unique(keys[order], return_inverse=True)

    def block(part: tuple[int, int]) -> Floats:
        start, size = part
        drawn = unit_times(units, size, rng, first=start)[:, 1:]
        return resampled_means(scores, sizes, drawn[inverse].T.astype(np.float64))

    return np.concatenate(each(block, block_sizes(replicates, len(inverse))))


def group_means(one: Shared, codes: npt.NDArray[np.int32], groups: int) -> Floats:
    """Return the mean standardised score of each group, (draws, concepts, groups)."""
    sums = np.zeros((len(codes), groups, len(one.scores)))
    counts = np.zeros((len(codes), groups))
    group_sums(np.ascontiguousarray(codes), one.by_image, sums, counts)
    with np.errstate(invalid="ignore"):
        found = (sums / counts[..., None]).transpose(0, 2, 1)
    return np.asarray(np.round(found, _DECIMALS)) if len(codes) > 1 else found


def resampled_means(scores: Floats, sizes: Indices, weights: Floats) -> Floats:
    """Return p of each group with weighted images, (replicates, concepts, groups).

    Parameters
    ----------
    scores : ndarray, shape (concepts, n)
        Standardised, images ordered by group.
    sizes : ndarray of int64, shape (groups,)
    weights : ndarray, shape (replicates, n)
    """
    edges = np.concatenate([[0], np.cumsum(sizes)])
    parts = [slice(start, stop) for start, stop in pairwise(edges.tolist())]
    sums = np.stack([weights[:, one] @ scores[:, one].T for one in parts], axis=2)
    counts = np.stack([weights[:, one].sum(axis=1) for one in parts], axis=1)[:, None]
    total = counts.sum(axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=2) / total
        spread = np.sqrt((weights @ (scores**2).T) / total - mean**2)
        found = (sums / counts - mean[..., None]) / spread[..., None]
    return np.asarray(np.round(found, _DECIMALS))


def image_keys(pools: Pools, shared: Sequence[Shared], sets: Any) -> npt.NDArray[np.uint64]:
    """Return the key that each image is resampled by: its set's, else its own, shape (n,).

    `sets` may be other units, too.
    """
    keys = np.zeros(len(pools.groups.codes), dtype=np.uint64)
    codes, names = (None, ()) if sets is None else encode(sets, what="sets or clusters")
    start = 0
    for one in shared:
        own = unit_keys([f"\x00{start + place}" for place in range(len(one.items))])
        start += len(own)
        if codes is not None:
            held = codes[one.items]
            own = np.where(held >= 0, np.append(unit_keys(names), np.uint64(0))[held], own)
        keys[one.items] = own
    return keys
