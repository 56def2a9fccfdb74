"""Mean standardised scores of groups, on exchanged groups and on resampled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.labels import encode
from equipoise.metrics.retrieval.estimates import permutations
from equipoise.metrics.retrieval.kernels import group_sums
from equipoise.metrics.retrieval.null import LabelExchange
from equipoise.metrics.retrieval.pools import Floats, Indices, Pools, Scores
from equipoise.metrics.retrieval.shuffled_sums import exchange_alone, of_shuffled
from equipoise.metrics.retrieval.statistics import Bools, deviation
from equipoise.metrics.similarity.exchange import UnitExchange, unit_codes
from equipoise.stats.poisson import unit_times
from equipoise.stats.resampling import Resampling
from equipoise.stats.streams import place_keys, unit_keys
from equipoise.stats.threads import added

# Rounding that hides the order in which a matrix product adds, far above its error.
_DECIMALS = 12
# Weights of images that are held at once, over all replicates.
_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class Shared:
    """Concepts that score the same images: standardised scores (images, concepts)."""

    places: Indices
    items: Indices
    by_image: Floats = field(repr=False)


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
        held: dict[int, dict[int, Scores]] = {}
        for index, one in enumerate(pools.pools):
            several = (pools.groups.usable & (pools.sizes[index] > 0)).sum() > 1
            if several and np.ptp(scores := pools.scores(index)) > 0:
                # Pools of one block are pools of the same images.
                held.setdefault(one.block, {})[index] = scores
        shared = [_shared(pools, held.pop(block)) for block in [*held]]
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
        many = permutations(resampling, sum(len(one.items) for one in self.shared))
        found = np.full((many, len(self.pools.pools)), np.nan)
        rest, codes = [], self.pools.groups.codes
        for one in self.shared:
            if self.clusters is None and exchange_alone(one.items, codes, self._stratum):
                found[:, one.places] = self._alone(one, many, rng)
            else:
                rest.append(one)
        moved = bool(rest) and self._exchange(rest, found, rng)
        return found if moved or len(rest) < len(self.shared) else None

    @property
    def _stratum(self) -> Indices:
        """What images exchange groups within, shape (n,)."""
        return self.pools.block if self.pools.member is None else self.pools.member

    def _alone(self, one: Shared, draws: int, rng: int) -> Floats:
        """Return MAD of the concepts of images that exchange groups, (draws, concepts)."""
        compared, codes = self.compared[one.places], self.pools.groups.codes[one.items]
        sizes = np.bincount(codes, minlength=compared.shape[1])

        def mad(sums: Floats) -> Floats:
            p = means_of(sums, sizes)
            return deviation(p, np.broadcast_to(compared, p.shape))

        name = f"similarity, block {self.pools.pools[one.places[0]].block}"
        return np.concatenate(of_shuffled(mad, one.by_image, sizes, draws, rng, name))

    def _exchange(self, some: Sequence[Shared], found: Floats, rng: int) -> bool:
        """Write MAD with exchanged groups, (draws, pools); return whether anything can change."""
        items = np.concatenate([one.items for one in some])
        codes = self.pools.groups.codes
        exchange: LabelExchange | UnitExchange
        if self.pools.member is None and self.clusters is not None:
            exchange = UnitExchange.of(codes, self.pools.block, items, self.clusters)
        else:
            exchange = LabelExchange.of(codes, self._stratum, items)
        if not exchange.moves:
            return False
        edges = np.cumsum([len(one.items) for one in some])[:-1]

        def block(codes: npt.NDArray[np.int32]) -> Floats:
            p = np.full((len(codes), *self.pools.sizes.shape), np.nan)
            for one, drawn in zip(some, np.split(codes, edges, axis=1), strict=True):
                p[:, one.places] = group_means(one, drawn, len(self.pools.groups))
            return self.spread(p)

        places = np.concatenate([one.places for one in some])
        drawn = np.concatenate(exchange.evaluate(block, len(found), rng, "similarity"))
        found[:, places] = drawn[:, places]
        return True

    def resampled(self, replicates: int, rng: int) -> Floats:
        """Return p of resampled images, shape (replicates, pools, groups)."""
        groups = len(self.pools.groups)
        found = np.full((replicates, *self.pools.sizes.shape), np.nan)
        for one in self.shared:
            codes, keys = self.pools.groups.codes[one.items], self.keys[one.items]
            found[:, one.places] = resampled_images(one, codes, keys, groups, replicates, rng)
        return found


def _shared(pools: Pools, scores: dict[int, Scores]) -> Shared:
    """Standardise the scores of pools of the same images."""
    places = np.array([*scores])
    items = pools.pools[places[0]].items
    by_image, order = np.empty((len(items), len(places))), None
    for column, place in enumerate(places.tolist()):
        row = scores.pop(place).astype(np.float64)
        row -= row.mean()
        row /= row.std()
        if order is None:
            # By score and group, so that permuted rows give the same draws.
            order = np.lexsort((pools.groups.codes[items], row))
        by_image[:, column] = row[order]
    return Shared(places, items[order], by_image)


def resampled_images(
    one: Shared,
    codes: npt.NDArray[np.int32],
    keys: npt.NDArray[np.uint64],
    groups: int,
    replicates: int,
    rng: int,
) -> Floats:
    """Return p of resampled images of some concepts, shape (replicates, concepts, groups).

    Images are taken some at a time, with all replicates.
    """
    step = max(1, _CELLS // replicates)

    def add(start: int) -> list[Floats]:
        held = start + np.argsort(codes[start : start + step], kind="stable")
        scores = one.by_image[held]
        weights = unit_times(keys[held], replicates, rng)[:, 1:].T.astype(np.float64)
        sizes = np.bincount(codes[held], minlength=groups)
        parts = [slice(stop - size, stop) for size, stop in zip(sizes, sizes.cumsum(), strict=True)]
        sums = np.stack([weights[:, part] @ scores[part] for part in parts], axis=2)
        counts = np.stack([weights[:, part].sum(axis=1) for part in parts], axis=1)
        return [sums, counts, weights @ scores**2]

    sums, counts, squares = added(add, range(0, len(codes), step))
    total = counts.sum(axis=1)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=2) / total
        spread = np.sqrt(squares / total - mean**2)
        found = (sums / counts[:, None] - mean[..., None]) / spread[..., None]
    return np.asarray(np.round(found, _DECIMALS))


def group_means(one: Shared, codes: npt.NDArray[np.int32], groups: int) -> Floats:
    """Return the mean standardised score of each group, (draws, concepts, groups)."""
    sums = np.zeros((len(codes), groups, one.by_image.shape[1]))
    counts = np.zeros((len(codes), groups))
    group_sums(np.ascontiguousarray(codes), one.by_image, sums, counts)
    return means_of(sums, counts, rounded=len(codes) > 1)


def means_of(sums: Floats, counts: npt.NDArray[Any], *, rounded: bool = True) -> Floats:
    """Return sums (draws, groups, concepts) over counts, shape (draws, concepts, groups)."""
    with np.errstate(invalid="ignore"):
        found = (sums / counts[..., None]).transpose(0, 2, 1)
    return np.asarray(np.round(found, _DECIMALS)) if rounded else found


def image_keys(pools: Pools, shared: Sequence[Shared], sets: Any) -> npt.NDArray[np.uint64]:
    """Return the key that each image is resampled by: its set's, else its own, shape (n,).

    `sets` may be other units, too.
    """
    keys = np.zeros(len(pools.groups.codes), dtype=np.uint64)
    codes, names = (None, ()) if sets is None else encode(sets, what="sets or clusters")
    start = 0
    for one in shared:
        own = place_keys(start, len(one.items))
        start += len(own)
        if codes is not None:
            held = codes[one.items]
            own = np.where(held >= 0, np.append(unit_keys(names), np.uint64(0))[held], own)
        keys[one.items] = own
    return keys
