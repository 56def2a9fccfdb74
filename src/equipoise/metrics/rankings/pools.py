"""What each query ranks, checked once: pools of items, their best ones, the desired shares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, partial
from typing import Any, Literal, TypedDict

import numpy as np

from equipoise.core import (
    AnyArray,
    Booleans,
    Floats,
    GroupLabels,
    Groups,
    InputError,
    Integers,
    Labels,
    Strings,
    Words,
    encode,
    floats,
    integers,
    record,
    tally,
)
from equipoise.core.labels import check_unmasked, unit_codes
from equipoise.metrics.rankings.cosines import CosineScores, Scores
from equipoise.metrics.rankings.likeness import (
    cluster_alike,
    comparable_rows,
    variance_inflation,
)
from equipoise.stats.streams import place_keys, unit_keys
from equipoise.stats.threads import each


@record
class Pool:
    """The items that one query ranks.

    Attributes
    ----------
    name : str
        The query, with the level of the marginal where there is one.
    query : int
        Index of the query.
    part_of : str or None
        The query, where `name` is that of a part of it.
    within_value : str
        The level of the marginal; "" without one.
    items : ndarray of int64, shape (m,)
        Rows of the data.
    block : int
        Pools of one block are pools of the same items.
    """

    name: str
    query: int
    items: Integers
    block: int
    part_of: str | None = None
    within_value: str = ""


@record
class Pools:
    """All pools, and which items may exchange their groups.

    Attributes
    ----------
    pools : tuple of Pool
    table : ndarray, shape (n,) or (queries, n), or CosineScores
        Scores of all rows.
    groups : Groups
        Of all rows, those that are left out included.
    block : ndarray of int64, shape (n,)
        Items of one block lie in the same pools: they exchange under the null of pool order.
    member : ndarray of int64, shape (n,), or None
        Items of one number are of the same block and counterfactual set.
    subjects : tuple of str
        Per query, what it is resampled with.
    units : ndarray of int64, shape (n,), or None
        Items of one number are of the same unit.
    excluded : dict of str to int
        Rows that are in no pool, by reason.
    without_set : int
        Items of no counterfactual set.
    vectors : ndarray, shape (queries, d), or None
        Of the queries, where they are known and `table` has the scores of other ones.
    """

    pools: tuple[Pool, ...]
    table: AnyArray | CosineScores
    groups: Groups
    block: Integers
    member: Integers | None
    subjects: Strings
    units: Integers | None
    excluded: dict[str, int]
    without_set: int = 0
    vectors: Floats | None = None

    @cached_property
    def _rows(self) -> tuple[AnyArray, Integers, Floats | None]:
        """Subjects, the subject of each query, and a row of numbers per subject, where known."""
        names, owner = np.unique(self.subjects, return_inverse=True)
        rows = self.vectors
        if rows is None:
            items, query = np.flatnonzero(self.block >= 0), int(np.argmin(owner))
            rows = comparable_rows(self.table, self.groups.codes, items, query)
        if rows is None:
            return names, owner, None
        by_subject = np.zeros((len(names), rows.shape[1]))
        np.add.at(by_subject, owner, rows)
        return names, owner, floats(by_subject / np.bincount(owner)[:, None])

    @cached_property
    def _cluster(self) -> Integers:
        """Cluster of each subject."""
        names, _, rows = self._rows
        return np.arange(len(names)) if rows is None else cluster_alike(rows)

    @cached_property
    def resampled(self) -> Strings:
        """Resampling unit of each query: the first subject of its cluster of alike ones."""
        names, owner, _ = self._rows
        first = names[np.unique(self._cluster, return_index=True)[1]]
        return tuple(first[self._cluster[owner]].tolist())

    @cached_property
    def inflation(self) -> float:
        """By how much subjects of different clusters that are alike raise variances of means."""
        rows = self._rows[2]
        return 1.0 if rows is None else variance_inflation(rows, self._cluster)

    def resampled_with(self, chosen: Integers) -> list[str]:
        """Return the resampling units of pools, see `resampled`."""
        return [self.resampled[self.pools[index].query] for index in chosen.tolist()]

    @cached_property
    def sizes(self) -> Integers:
        """Items per pool and group, shape (pools, groups)."""
        return self._blocks[[pool.block for pool in self.pools]]

    @cached_property
    def _blocks(self) -> Integers:
        """Items per block and group, shape (blocks, groups)."""
        n_groups, blocks = len(self.groups), 1 + max(pool.block for pool in self.pools)
        used = self.block >= 0
        flat = self.block[used] * n_groups + self.groups.codes[used]
        return np.bincount(flat, minlength=blocks * n_groups).reshape(blocks, n_groups)

    def scores(self, index: int) -> AnyArray:
        """Return the scores of a pool's items."""
        query, items = self.pools[index].query, self.pools[index].items
        if isinstance(self.table, CosineScores):
            return self.table.of_query(query, items)
        row = self.table if self.table.ndim == 1 else self.table[query]
        return row if len(items) == len(row) else row[items]

    def by_block(self, chosen: Iterable[int]) -> list[list[int]]:
        """Group pools that hold the same items."""
        by_block: dict[int, list[int]] = {}
        for index in chosen:
            by_block.setdefault(self.pools[index].block, []).append(index)
        return [*by_block.values()]

    @property
    def paired(self) -> bool:
        """Whether there are counterfactual sets."""
        return self.member is not None

    @property
    def empty(self) -> int:
        """Groups without an item in any pool."""
        return int((self._blocks == 0).all(axis=0).sum())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Items per group name, each counted once."""
        return dict(zip(self.groups.names, self._blocks.sum(axis=0).tolist(), strict=True))


class Pooling(TypedDict, total=False):
    """Sets and units of images, which are resampled together, see `equipoise.metrics.rankings`."""

    sets: Labels | None
    units: Labels | None


def image_keys(items: Sequence[Integers], n_images: int, pooling: Pooling) -> Words:
    """Return the resampling key of each image, shape (n_images,).

    That of its unit, else of its set, else of its place among the items.
    """
    keys, start = np.zeros(n_images, dtype=np.uint64), 0
    for image_items in items:
        keys[image_items] = place_keys(np.arange(start, start + len(image_items)))
        start += len(image_items)
    for subject, labels in (("sets", pooling.get("sets")), ("units", pooling.get("units"))):
        if labels is not None:
            codes, names = encode(labels, subject=subject)
            named = np.append(unit_keys(names), np.uint64(0))
            keys = np.where(codes >= 0, named[codes], keys)
    return keys


def pools_of(
    scores: Scores,
    groups: GroupLabels,
    queries: Labels | None = None,
    within: GroupLabels | None = None,
    sets: Labels | None = None,
    units: Labels | None = None,
    subjects: Labels | None = None,
) -> Pools:
    """Check the input of a ranking and say what every query ranks.

    Parameters
    ----------
    scores : array-like, shape (n,) or (queries, n), or CosineScores
        Similarity of each item to each query, higher is better. Any finite real numbers.
    groups : array-like (n,), mapping of str to array-like, or Groups
        The groups of the items, or attributes whose intersections are taken. Items of which an
        attribute is missing are in no pool, and counted.
    queries : array-like, optional
        With scores (queries, n): names of the queries. With scores (n,): the query of each item,
        whose pool it belongs to; an item without one is in no pool, and counted.
    within : array-like (n,), mapping of str to array-like, or Groups, optional
        Marginals: every value (or intersection of values) makes a pool of its own per query.
    sets : array-like (n,), optional
        Counterfactual set of each item; items without one are independent images.
    units : array-like (n,), optional
        Unit of each item, such as the person shown; items without one stand alone.
    subjects : array-like, optional
        Subject of each query, resampled together; shaped as `queries`. Default: the query.

    Raises
    ------
    InputError
        When shapes do not fit, a score is no finite number, query names repeat, a query has
        several subjects, or no item is left.
    """
    table = scores if isinstance(scores, CosineScores) else _scores(scores)
    count = len(table) if isinstance(table, CosineScores) else table.shape[-1]
    item_groups, levels = (
        Groups.of(groups, min_size=1),
        None if within is None else Groups.of(within, subject="within"),
    )
    level = None if levels is None else levels.codes
    names, owner = _queries(queries, table)
    codes, sets_of = (None, ()) if sets is None else encode(sets, subject="sets")
    used, excluded = np.ones(count, dtype=np.bool_), {}
    for subject, required, column in (
        ("groups", "a group", item_groups.codes),
        ("groups", f"a group of {item_groups.min_size} or more", item_groups.large),
        ("within", "a value of within", level),
        ("queries", "a query", owner),
        ("sets", "", codes),
    ):
        if column is not None and len(column) != count:
            raise InputError(f"{subject}: {len(column)} items; expected {count}, as in scores")
        if column is not None and required:
            excluded[f"items without {required}"] = tally(used & (column < 0))
            used &= column >= 0
    if not used.any():
        raise InputError("no item has a group and a query; expected at least one")
    vectors = None
    if isinstance(table, CosineScores) and owner is not None:
        vectors, table = table.queries, table.of_owner(owner, np.flatnonzero(used))
    block = np.zeros(count, dtype=np.int64) if owner is None else owner
    if levels is not None:
        block = block * len(levels) + levels.codes
    # Items of no pool exchange with none.
    block = np.where(used, block, -1)
    member, n_without_set = None, 0
    if codes is not None:
        # Items of no set are independent images: they exchange among themselves, as a set does.
        member = np.where(used, block * (len(sets_of) + 1) + codes + 1, -1)
        n_without_set = tally(codes[used] < 0)
    return Pools(
        tuple(_pools(block, names, levels, per_query=owner is not None)), table, item_groups, block,
        member, _subjects(subjects, names, owner),
        None if units is None else unit_codes(units, count, "units")[0], excluded, n_without_set,
        vectors,
    )  # fmt: skip


def _scores(scores: Any) -> AnyArray:
    check_unmasked(scores, subject="scores")
    try:
        table = np.asarray(scores)
    except ValueError:
        raise InputError("scores: rows of different lengths; expected one length") from None
    if table.dtype.kind not in "fiu" or table.ndim not in (1, 2) or not table.size:
        raise InputError(
            f"scores: {table.dtype} of shape {table.shape}; expected real numbers, (n,) or "
            "(queries, n), not empty"
        )
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        *query, item = (bad[0] + 1).tolist()
        where = f"query {query[0]}, item {item}" if query else f"item {item}"
        raise InputError(
            f"scores, {where}: {table[tuple(bad[0])]} isn't a finite number "
            f"({len(bad)} scores in all). Leave these items out, or score them again"
        )
    return table.astype(np.float32) if table.dtype == np.float16 else table


def _queries(queries: Any, table: AnyArray | CosineScores) -> tuple[Strings, Integers | None]:
    """Return query names, and the query of each item where every item belongs to one."""
    if isinstance(table, CosineScores):
        if queries is None:
            return table.names, None
        codes, names = encode(queries, subject="queries")
        if unknown := sorted({*names} - {*table.names}):
            raise InputError(
                f"queries: {unknown[0]!r} isn't a query of the scores; expected their names, "
                f"such as {table.names[0]!r}"
            )
        place = [*map(table.names.index, names), -1]
        return table.names, np.array(place, dtype=np.int64)[codes]
    if table.ndim == 1:
        if queries is None:
            return ("",), None
        codes, names = encode(queries, subject="queries")
        return names, integers(codes)
    names = tuple(map(str, range(len(table)) if queries is None else queries))
    if len(names) != len(table) or len({*names}) < len(names):
        raise InputError(
            f"queries: {len(names)} names, {len({*names})} of them distinct; "
            f"expected {len(table)} distinct names, one for each row of scores"
        )
    return names, None


def _pools(
    block: Integers, names: Strings, levels: Groups | None, *, per_query: bool
) -> Iterator[Pool]:
    """Yield the pools by query, and by level within a query."""
    rows = np.argsort(block, kind="stable")[tally(block < 0) :]
    labels = ("",) if levels is None else levels.names
    blocks = len(labels) * (len(names) if per_query else 1)
    parts = np.split(rows, np.cumsum(np.bincount(block[rows], minlength=blocks))[:-1])
    for query, name in enumerate(names):
        for level, label in enumerate(labels):
            place = query * len(labels) + level if per_query else level
            if levels is None or levels.counts[level]:
                pool_name = f"{name} | {label}" if name and label else name or label
                owner = None if levels is None else name
                yield Pool(pool_name, query, parts[place], place, owner, label)


def _subjects(subjects: Any, names: Strings, owner: Integers | None) -> Strings:
    """Return the subject of each query."""
    if subjects is None:
        return names
    codes, labels = encode(subjects, subject="subjects")
    query = np.arange(len(names)) if owner is None else owner
    if len(codes) != len(query):
        raise InputError(f"subjects: {len(codes)} names; expected {len(query)}, as in queries")
    pairs = np.unique(np.stack([query, codes])[:, query >= 0], axis=1)
    bad = np.flatnonzero(np.bincount(pairs[0], 1 + (pairs[1] < 0), len(names)) != 1)
    if len(bad):
        raise InputError(
            f"subjects: query {names[bad[0]]!r} has several subjects or none; expected one"
        )
    return tuple(labels[subject] for subject in pairs[1])


Desired = Literal["pool", "uniform"] | Mapping[str, float]


@record
class TopK:
    """The best items of the pools that are large enough.

    Attributes
    ----------
    pools : Pools
    k : int
    pool : ndarray of int64, shape (p,)
        Indices of the pools.
    items : ndarray of int64, shape (p, width)
        Best first; all items that tie with the K-th are listed, so width >= k; -1 beyond.
    begin, end : ndarray of int64, shape (p, k)
        Where the run of equal scores around each of the first places begins and ends.
    """

    pools: Pools
    k: int
    pool: Integers
    items: Integers
    begin: Integers
    end: Integers

    @cached_property
    def sizes(self) -> Integers:
        """Items per pool and group, shape (p, groups)."""
        return self.pools.sizes[self.pool]

    @cached_property
    def weights(self) -> Floats:
        """Expected membership of each item in the first k, shape (p, width)."""
        begin, end = self.begin[:, -1:], self.end[:, -1:]
        place = np.arange(self.items.shape[1])[None]
        part = (self.k - begin) / np.maximum(end - begin, 1)
        return np.where(place < begin, 1.0, np.where(place < end, part, 0.0))

    @cached_property
    def ties(self) -> Integers:
        """Items that tie for the last of the first k places, shape (p,); 0 where all fit in."""
        begin, end = self.begin[:, -1], self.end[:, -1]
        return np.where(end > self.k, end - begin, 0)

    @cached_property
    def tied(self) -> Booleans:
        """Pools in which any of the first k places is shared, shape (p,)."""
        return np.asarray((self.end - self.begin > 1).any(axis=1))


@record
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
            if int(k) != k or k < 1:
                raise InputError(f"k={k}: expected a whole number of at least 1")
        return cls(pools, int(max(ks)))

    def top_k(self, k: int, *, inclusive: bool = False) -> TopK:
        """Return the k best items of each pool with more than k items, ties included.

        Parameters
        ----------
        k : int
            At most `longest`.
        whole : bool
            Take pools of exactly k items too: the order says something where the selection
            does not.
        """
        comparable, items, begin, end = self._best
        lengths = np.array([len(self.pools.pools[i].items) for i in comparable], dtype=np.int64)
        large = lengths > k - inclusive
        # What ties with the K-th item ends where its run ends.
        last = end[large, k - 1]
        width = int(last.max(initial=k))
        best = np.where(np.arange(width) < last[:, None], items[large, :width], -1)
        runs = begin[large, :k], end[large, :k]
        return TopK(self.pools, int(k), comparable[large], best, *runs)

    @cached_property
    def _best(self) -> tuple[Integers, Integers, Integers, Integers]:
        """Pools of several groups, their best items and the runs of equal scores among them."""
        pools = self.pools
        comparable = np.flatnonzero((pools.sizes > 0).sum(axis=1) > 1)
        best_items = best(pools, comparable.tolist(), self.longest)
        lengths = np.array([len(rows) for rows, _ in best_items], dtype=np.int64)
        items = np.full((len(best_items), lengths.max(initial=self.longest)), -1, dtype=np.int64)
        begin, end = np.zeros((2, *items.shape), dtype=np.int64)
        if best_items:
            # The items of all pools are sorted at once, best first.
            pool = np.repeat(np.arange(len(best_items)), lengths)
            rows, scores = (np.concatenate(columns) for columns in zip(*best_items, strict=True))
            order = np.lexsort((pools.groups.codes[rows], scores, -pool))[::-1]
            scores = scores[order]
            # What is sorted by pool stays so: `pool` needs no new order.
            place = pool, np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            first = np.append(True, (scores[1:] != scores[:-1]) | (np.diff(pool) != 0))
            starts = np.flatnonzero(first)
            runs = np.diff(np.append(starts, len(rows)))
            items[place] = rows[order]
            begin[place] = np.repeat(place[1][starts], runs)
            end[place] = begin[place] + np.repeat(runs, runs)
        return comparable, items, begin, end


def best(pools: Pools, chosen: Sequence[int], k: int) -> list[tuple[Integers, AnyArray]]:
    """Return rows and scores of each pool's k best items, ties included; all of a smaller pool."""
    if not isinstance(pools.table, CosineScores):
        return each(partial(_best, pools, k), chosen)
    by_pool: dict[int, tuple[Integers, AnyArray]] = {}
    for places in pools.by_block(chosen):
        items = pools.pools[places[0]].items
        queries = [pools.pools[index].query for index in places]
        ranked = pools.table.best(queries, items, min(k, len(items)))
        by_pool.update(zip(places, ranked, strict=True))
    return [by_pool[index] for index in chosen]


def _best(pools: Pools, k: int, index: int) -> tuple[Integers, AnyArray]:
    scores, items = pools.scores(index), pools.pools[index].items
    if k >= len(scores):
        return items, scores
    last = np.partition(scores, len(scores) - k)[len(scores) - k]
    among_best = np.flatnonzero(scores >= last)
    return items[among_best], scores[among_best]


def desired_shares(desired: Desired, top_k: TopK) -> Floats:
    """Return the share that each group should have, shape (p, groups).

    Parameters
    ----------
    desired : "pool", "uniform" or mapping of group name to share
        The group's share of the pool; equal shares of the groups that are in the pool; or given.
    top_k : TopK

    Raises
    ------
    InputError
        When `desired` is none of these, names an unknown group or leaves one out that is there,
        or shares are negative or do not sum to 1.
    """
    sizes = top_k.sizes
    if isinstance(desired, Mapping):
        return np.broadcast_to(given_shares(desired, top_k.pools.groups), sizes.shape)
    if desired not in ("pool", "uniform"):
        raise InputError(f"desired={desired!r}: expected 'pool', 'uniform' or shares by group")
    mass = sizes if desired == "pool" else sizes > 0
    return floats(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1))


def given_shares(desired: Mapping[str, float], groups: Groups) -> Floats:
    """Return the share of each group, shape (groups,).

    Raises
    ------
    InputError
        When a name is no group, a group that is there has no share, or shares are negative or do
        not sum to 1.
    """
    shares = {groups.display_name(str(name)): float(share) for name, share in desired.items()}
    present = {name for name, n in zip(groups.names, groups.counts, strict=True) if n}
    expected = f"; expected a share for each of {', '.join(groups.names)}"
    if unknown := sorted(shares.keys() - {*groups.names}):
        near = get_close_matches(unknown[0], groups.names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"desired: {unknown[0]!r} isn't a group{expected}{hint}")
    if missing := sorted(present - shares.keys()):
        raise InputError(f"desired: {missing[0]!r} has no share{expected}")
    group_shares = np.array([shares.get(name, 0.0) for name in groups.names])
    if not (group_shares >= 0).all() or abs(group_shares.sum() - 1.0) > 1e-9:
        raise InputError(
            f"desired: shares sum to {group_shares.sum():.6g}; expected 1, none negative"
        )
    return group_shares
