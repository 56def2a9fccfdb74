"""The best items of each pool, with ties at their places, and the shares that are desired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.metrics.retrieval.pools import Floats, Indices, Pools, Scores

Desired = Literal["pool", "uniform"] | Mapping[str, float]

_ONE = 1e-9


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

    @property
    def ties(self) -> Indices:
        """Items that tie for the last of the first k places, shape (p,); 0 where all fit in."""
        begin, end = self.begin[:, self.k - 1], self.end[:, self.k - 1]
        return np.where(end > self.k, end - begin, 0)

    @cached_property
    def tied(self) -> npt.NDArray[np.bool_]:
        """Pools in which any of the first k places is shared, shape (p,)."""
        first = np.s_[:, : self.k]
        return np.asarray((self.end[first] - self.begin[first] > 1).any(axis=1))


def rank(pools: Pools, k: int, *, whole: bool = False) -> Tops:
    """Find the k best items of each pool with more than k items, all of those that tie included.

    Parameters
    ----------
    pools : Pools
    k : int
    whole : bool
        Take pools of exactly k items too: the order says something where the selection does not.

    Raises
    ------
    InputError
        When k is below 1.
    """
    if not _whole(k) or k < 1:
        raise InputError(f"k={k}: expected a whole number of at least 1")
    least = k if whole else k + 1
    several = (pools.sizes > 0).sum(axis=1) > 1
    chosen = [i for i, one in enumerate(pools.pools) if len(one.items) >= least and several[i]]
    found = [_best(pools.pools[i].scores, pools, i, k) for i in chosen]
    width = max((len(one) for one, _ in found), default=k)
    items = np.full((len(found), width), -1, dtype=np.int64)
    begin, end = np.zeros_like(items), np.zeros_like(items)
    for row, (best, scores) in enumerate(found):
        items[row, : len(best)] = best
        starts = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        length = np.diff(np.append(starts, len(best)))
        begin[row, : len(best)] = np.repeat(starts, length)
        end[row, : len(best)] = np.repeat(starts + length, length)
    return Tops(int(k), np.array(chosen, dtype=np.int64), items, begin, end)


def _whole(number: object) -> bool:
    return isinstance(number, Integral)


def _best(scores: Scores, pools: Pools, index: int, k: int) -> tuple[Indices, Scores]:
    """Return rows and scores of the best items, by score and then by group."""
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    found = np.flatnonzero(scores >= last)
    rows = pools.pools[index].items[found]
    order = np.lexsort((pools.groups.codes[rows], scores[found]))[::-1]
    return rows[order], scores[found][order]


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
        return np.broadcast_to(_given(desired, pools.groups), sizes.shape)
    if desired not in ("pool", "uniform"):
        raise InputError(f"desired={desired!r}: expected 'pool', 'uniform' or shares by group")
    mass = sizes if desired == "pool" else sizes > 0
    return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1))


def _given(desired: Mapping[str, float], groups: Groups) -> Floats:
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
