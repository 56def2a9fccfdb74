"""How far the images that several subjects rank move mean preferences."""

from __future__ import annotations

import numpy as np

from equipoise.core import AnyArray, Floats, Integers, floats, integers, record
from equipoise.metrics.rankings.exchange import in_order
from equipoise.metrics.rankings.pools import Pooling, Ranking, TopK, image_keys
from equipoise.stats.exchange import varies
from equipoise.stats.streams import Seed, stream, unit_times
from equipoise.stats.threads import sum_results

# Images whose replicates are added up at once.
_TOGETHER = 4096


@record
class ImageReplicates:
    """Bootstrap replicates of the images that pools rank.

    Attributes
    ----------
    times : ndarray of uint8, shape (keys, replicates)
        How often each image, or its unit or set, is in each replicate.
    place, member : ndarray of int64, shape (p, longest)
        Row of `times`, and group, of the best images of each pool.
    shares : ndarray, shape (p, replicates, groups)
        Share of each group in each pool.
    """

    times: AnyArray
    place: Integers
    member: Integers
    shares: Floats

    @classmethod
    def of(
        cls, top_k: TopK, items: Integers, pooling: Pooling, replicates: int, rng: Seed
    ) -> ImageReplicates:
        """Draw replicates of the images of pools, whose best ones are `items`.

        Images that are never among the best, and of no unit or set, are drawn group by group.
        """
        pools, codes = top_k.pools, top_k.pools.groups.codes
        n_groups = len(pools.groups)
        seed = int(stream(rng, "preference", "images").integers(1 << 62))
        keys = image_keys([in_order(items.ravel())], len(codes), pooling)
        blocks = block_of_pools(top_k)
        keyed = np.flatnonzero((keys != 0) & np.isin(pools.block, blocks))
        names, inverse = np.unique(keys[keyed], return_inverse=True)
        place = np.zeros(len(codes), dtype=np.int64)
        place[keyed] = inverse
        times = unit_times(names, replicates, seed)[:, 1:]
        shares = {}
        for block in np.unique(blocks).tolist():
            rows = keyed[pools.block[keyed] == block]
            counts = np.zeros((n_groups, len(names)))
            np.add.at(counts, (codes[rows], place[rows]), 1.0)
            unkeyed = (pools.block == block) & (keys == 0)
            n_unkeyed = np.bincount(codes[unkeyed], minlength=n_groups)
            sizes = floats(stream(seed, "others", block).poisson(n_unkeyed, (replicates, n_groups)))
            for start in range(0, len(names), _TOGETHER):
                part = slice(start, start + _TOGETHER)
                sizes += (counts[:, part] @ floats(times[part])).T
            shares[block] = sizes / np.maximum(sizes.sum(axis=1, keepdims=True), 1.0)
        pool_shares = np.stack([shares[block] for block in blocks.tolist()])
        return cls(times, place[items], integers(codes[items]), pool_shares)

    def preferences(self, pool: int, k: int) -> Floats:
        """Return shares of the first k less those of the pool, (replicates, groups)."""
        reached = np.minimum(self.times[self.place[pool]].cumsum(axis=0, dtype=np.int64), k)
        places_taken = floats(np.diff(reached, axis=0, prepend=0))
        member = self.member[pool][:, None] == np.arange(self.shares.shape[2])
        shares = places_taken.T @ member / np.maximum(reached[-1:].T, 1)
        return floats(shares - self.shares[pool])


def block_of_pools(top_k: TopK) -> Integers:
    """Return the block of the images of each pool, shape (p,)."""
    return np.array([top_k.pools.pools[index].block for index in top_k.pool.tolist()], np.int64)


def move_by_images(
    ranking: Ranking,
    top_k: TopK,
    owner: Integers,
    weights: Floats,
    pooling: Pooling,
    replicates: int,
    rng: Seed,
) -> Floats:
    """Return how far images that subjects share move mean preferences, (replicates, groups).

    Resampled images move a mean for two reasons: they are shared, and each query's own order of
    them is chance. Resampled subjects have the second already. So the moves are scaled to the
    covariance of different subjects. They are 0 where no image is shared.

    Parameters
    ----------
    ranking : Ranking
    top_k : TopK
    owner : ndarray of int64, shape (p,)
        Subject of each pool.
    weights : ndarray, shape (p,)
        Weight of each pool in the mean.
    pooling, replicates, rng
        Sets and units of images, number of replicates, and seed.

    References
    ----------
    Owen 2007, Annals of Applied Statistics 1, 386-411 (rows and columns that are both random).
    """
    if not varies(block_of_pools(top_k), owner).any():
        return np.zeros((replicates, top_k.sizes.shape[1]))
    longest = int(min(ranking.longest, top_k.sizes.sum(axis=1).min()))
    items = ranking.top_k(longest, inclusive=True).items[:, :longest]
    images = ImageReplicates.of(top_k, items, pooling, replicates, rng)

    def move(subject: int) -> list[Floats]:
        moves = np.zeros((replicates, top_k.sizes.shape[1]))
        for pool in np.flatnonzero(owner == subject).tolist():
            moves += weights[pool] * images.preferences(pool, top_k.k)
        return [moves, floats(moves.var(axis=0))]

    subjects = np.unique(owner)
    moves, variances = sum_results(move, subjects.tolist())
    moves = moves - moves.mean(axis=0)
    variance = moves.var(axis=0)
    pairs = 1.0 - (np.bincount(owner, weights) ** 2).sum()
    covariance = np.clip(variance - variances, 0.0, None) / pairs
    return floats(moves * np.sqrt(covariance / np.where(variance > 0, variance, 1.0)))
