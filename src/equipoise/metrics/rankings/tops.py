"""The best items of each pool, with ties at their places, and the shares that are desired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from numbers import Integral
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.rankings.cosines import CosineScores
from equipoise.metrics.rankings.pools import Floats, Indices, Pools, Scores
from equipoise.stats.threads import each

Desired = Literal["pool", "uniform"] | Mapping[str, float]

_ONE = 1e-9
# Scores from which threads pay.
_SPREAD = 1_000_000


@dataclass(frozen=True, eq=False)
class Tops:
    """The best items of the pools that are large enough.

    Attributes
    ----------
    k : int
    pool : ndarray of int64, shape (p,)
        Indices of the pools.
    items : ndarray of int64, shape (p, width)
        Best first; all items that tie with the K-th are listed, so width >= k; -1 beyond.
    begin, end : ndarray of int64, shape (p, width)
        Where the run of equal scores around each place begins and ends.
    """

    k: int
    pool: Indices
    items: Indices = field(repr=False)
    begin: Indices = field(repr=False)
    end: Indices = field(repr=False)

    @cached_property
    def weights(self) -> Floats:
        """Expected membership of each item in the first k, shape (p, width)."""
        last = np.arange(len(self.pool)), self.k - 1
        begin, end = self.begin[last][:, None], self.end[last][:, None]
        place = np.arange(self.items.shape[1])[None]
        part = (self.k - begin) / np.maximum(end - begin, 1)
        return np.where(place < begin, 1.0, np.where(place < end, part, 0.0))

    @cached_property
    def ties(self) -> Indices:
        """Items that tie for the last of the first k places, shape (p,); 0 where all fit in."""
        begin, end = self.begin[:, self.k - 1], self.end[:, self.k - 1]
        return np.where(end > self.k, end - begin, 0)

    @cached_property
    def tied(self) -> npt.NDArray[np.bool_]:
        """Pools in which any of the first k places is shared, shape (p,)."""
        first = np.s_[:, : self.k]
        return np.asarray((self.end[first] - self.begin[first] > 1).any(axis=1))


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best items of all pools, found once for every K that is asked for.

    Attributes
    ----------
    pools : Pools
    longest : int
        The largest K.
    """

    pools: Pools
    longest: int

    @classmethod
    def of(cls, pools: Pools, *ks: int) -> Ranking:
        """Prepare a ranking.

        Raises
        ------
        InputError
            When a K is below 1.
        """
        for k in ks:
            if not _whole(k) or k < 1:
                raise InputError(f"k={k}: expected a whole number of at least 1")
        return cls(pools, int(max(ks)))

    def tops(self, k: int, *, whole: bool = False) -> Tops:
        """Return the k best items of each pool with more than k items, ties included.

        Parameters
        ----------
        k : int
            At most `longest`.
        whole : bool
            Take pools of exactly k items too: the order says something where the selection
            does not.
        """
        if (k, whole) not in self._kept:
            self._kept[k, whole] = self._cut(int(k), k if whole else k + 1)
        return self._kept[k, whole]

    @cached_property
    def _kept(self) -> dict[tuple[int, bool], Tops]:
        return {}

    def _cut(self, k: int, least: int) -> Tops:
        several, items, begin, end = self._best
        large = np.array([len(self.pools.pools[i].items) >= least for i in several], dtype=bool)
        # What ties with the K-th item ends where its run ends.
        last = end[large, k - 1] if large.any() else np.full(0, k)
        width = int(last.max(initial=k)) if large.any() else k
        beyond = np.arange(width) >= last[:, None]
        cut = [np.where(beyond, off, table[large, :width])
               for off, table in ((-1, items), (0, begin), (0, end))]  # fmt: skip
        return Tops(k, np.array(several, dtype=np.int64)[large], *cut)

    @cached_property
    def _best(self) -> tuple[list[int], Indices, Indices, Indices]:
        """Pools of several groups, their best items and the runs of equal scores among them."""
        pools = self.pools
        several = np.flatnonzero((pools.sizes > 0).sum(axis=1) > 1).tolist()
        found = best(pools, several, self.longest)
        width = max((len(one) for one, _ in found), default=self.longest)
        width = max(width, self.longest)
        items = np.full((len(found), width), -1, dtype=np.int64)
        begin, end = np.zeros_like(items), np.zeros_like(items)
        if found:
            place, *ranked = _ranked(found, pools.groups.codes)
            for table, values in zip((items, begin, end), ranked, strict=True):
                table[place] = values
        return several, items, begin, end


def _ranked(
    found: Sequence[tuple[Indices, Scores]], codes: npt.NDArray[np.int32]
) -> tuple[tuple[Indices, Indices], Indices, Indices, Indices]:
    """Sort the items of all pools at once, best first.

    Returns
    -------
    tuple
        Pool and rank of each item, the item, and where its run of equal scores begins and ends.
    """
    lengths = np.array([len(rows) for rows, _ in found])
    pool = np.repeat(np.arange(len(found)), lengths)
    rows, scores = (np.concatenate(ones) for ones in zip(*found, strict=True))
    order = np.lexsort((codes[rows], scores, -pool))[::-1]
    scores = scores[order]
    rank = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    # What is sorted by pool stays so: `pool` needs no new order.
    starts = np.flatnonzero(np.append(True, (scores[1:] != scores[:-1]) | (np.diff(pool) != 0)))
    length = np.diff(np.append(starts, len(rows)))
    begin = np.repeat(rank[starts], length)
    return (pool, rank), rows[order], begin, begin + np.repeat(length, length)


def _whole(number: object) -> bool:
    return isinstance(number, Integral)


def best(pools: Pools, chosen: Sequence[int], k: int) -> list[tuple[Indices, Scores]]:
    """Return rows and scores of each pool's k best items, ties included; all of a smaller pool."""
    if not isinstance(pools.table, CosineScores):
        work = sum(len(pools.pools[index].items) for index in chosen)
        spread = each if work > _SPREAD else map
        return [*spread(partial(_best, pools, k), chosen)]
    found: dict[int, tuple[Indices, Scores]] = {}
    together: dict[int, list[int]] = {}
    for index in chosen:
        # Pools of one block are pools of the same items.
        together.setdefault(pools.pools[index].block, []).append(index)
    for places in together.values():
        items = pools.pools[places[0]].items
        queries = [pools.pools[index].query for index in places]
        ranked = pools.table.best(queries, items, min(k, len(items)))
        found.update(zip(places, ranked, strict=True))
    return [found[index] for index in chosen]


def _best(pools: Pools, k: int, index: int) -> tuple[Indices, Scores]:
    scores, items = pools.scores(index), pools.pools[index].items
    if k >= len(scores):
        return items, scores
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    kept = np.flatnonzero(scores >= last)
    return items[kept], scores[kept]


def desired_shares(desired: Desired, pools: Pools) -> Floats:
    """Return the share that each group should have, shape (pools, groups).

    Parameters
    ----------
    desired : "pool", "uniform" or mapping of group name to share
        The group's share of the pool; equal shares of the groups that are in the pool; or given.
    pools : Pools

    Raises
    ------
    InputError
        When `desired` is none of these, names an unknown group or leaves one out that is there,
        or shares are negative or do not sum to 1.
    """
    sizes = pools.sizes
    if isinstance(desired, Mapping):
        return np.broadcast_to(given_shares(desired, pools.groups), sizes.shape)
    if desired not in ("pool", "uniform"):
        raise InputError(f"desired={desired!r}: expected 'pool', 'uniform' or shares by group")
    mass = sizes if desired == "pool" else sizes > 0
    return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1))


def given_shares(desired: Mapping[str, float], groups: Groups) -> Floats:
    """Return the share of each group, shape (groups,).

    Raises
    ------
    InputError
        When a name is no group, a group that is there has no share, or shares are negative or do
        not sum to 1.
    """
    shares = {str(name): float(share) for name, share in desired.items()}
    unknown = sorted(shares.keys() - set(groups.names))
    if unknown:
        raise InputError(
            f"desired: {unknown[0]!r} is no group; expected some of {', '.join(groups.names)}"
        )
    absent = [
        name
        for name, many in zip(groups.names, groups.counts.tolist(), strict=True)
        if many and name not in shares
    ]
    if absent:
        raise InputError(f"desired: no share for {absent[0]!r}; expected one for every group")
    found = np.array([shares.get(name, 0.0) for name in groups.names])
    if not (found >= 0).all() or abs(found.sum() - 1.0) > _ONE:
        raise InputError(f"desired: shares sum to {found.sum():.6g}; expected 1, none negative")
    return found
