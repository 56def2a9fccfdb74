"""What is ranked for which query: scores, groups, counterfactual sets and units, checked once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import check_unmasked, encode
from equipoise.metrics.rankings.cosines import CosineScores

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Scores = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pool:
    """The items that one query ranks.

    Attributes
    ----------
    name : str
        The query, with the level of the marginal where there is one.
    query : int
        Index of the query.
    items : ndarray of int64, shape (m,)
        Rows of the data.
    block : int
        Pools of one block are pools of the same items.
    """

    name: str
    query: int
    items: Indices = field(repr=False)
    block: int


@dataclass(frozen=True, eq=False)
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
    units : tuple of str
        Per query, the unit that is resampled.
    excluded : dict of str to int
        Rows that are in no pool, by reason.
    without_set : int
        Items of no counterfactual set.
    """

    pools: tuple[Pool, ...]
    table: Scores | CosineScores = field(repr=False)
    groups: Groups
    block: Indices = field(repr=False)
    member: Indices | None = field(repr=False)
    units: tuple[str, ...]
    excluded: dict[str, int]
    without_set: int = 0

    @cached_property
    def sizes(self) -> Indices:
        """Items per pool and group, shape (pools, groups)."""
        return self._blocks[[one.block for one in self.pools]]

    @cached_property
    def _blocks(self) -> Indices:
        """Items per block and group, shape (blocks, groups)."""
        many, blocks = len(self.groups), 1 + max(one.block for one in self.pools)
        kept = self.block >= 0
        flat = self.block[kept] * many + self.groups.codes[kept]
        return np.bincount(flat, minlength=blocks * many).reshape(blocks, many)

    def scores(self, index: int) -> Scores:
        """Return the scores of a pool's items."""
        query, items = self.pools[index].query, self.pools[index].items
        if isinstance(self.table, CosineScores):
            return self.table.of_query(query, items)
        row = self.table if self.table.ndim == 1 else self.table[query]
        return row if len(items) == len(row) else row[items]

    @cached_property
    def counts(self) -> dict[str, int]:
        """Items per group name, each counted once."""
        return dict(zip(self.groups.names, self._blocks.sum(axis=0).tolist(), strict=True))


def pools_of(
    scores: Any,
    groups: Any,
    *,
    queries: Any = None,
    within: Any = None,
    sets: Any = None,
    units: Any = None,
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
    units : array-like, optional
        The unit of each query, resampled together; shaped as `queries`. Default: the query.

    Raises
    ------
    InputError
        When shapes do not fit, a score is no finite number, query names repeat, a query has
        several units, or no item is left.
    """
    table = scores if isinstance(scores, CosineScores) else _scores(scores)
    count = len(table) if isinstance(table, CosineScores) else table.shape[-1]
    found = Groups.of(groups)
    _check_length("groups", len(found.codes), count)
    levels = None if within is None else Groups.of(within)
    if levels is not None:
        _check_length("within", len(levels.codes), count)
    names, owner = _queries(queries, table)
    kept, excluded = _kept(found, levels, owner)
    if isinstance(table, CosineScores) and owner is not None:
        table = table.of_owner(owner, np.flatnonzero(kept))
    # Items of no pool exchange with none.
    block = np.where(kept, _block(levels, owner, count), -1)
    member, without = _members(sets, block, kept)
    pools = tuple(_pools(kept, names, owner, levels))
    chosen = _units(units, names, owner)
    return Pools(pools, table, found, block, member, chosen, excluded, without)


def _scores(scores: Any) -> Scores:
    check_unmasked(scores, what="scores")
    try:
        table = np.asarray(scores)
    except ValueError:
        raise InputError(
            "scores: rows of different lengths; expected (n,) or (queries, n)"
        ) from None
    if table.dtype.kind not in "fiu":
        raise InputError(f"scores: values of type {table.dtype}; expected real numbers")
    if table.ndim not in (1, 2) or not table.size:
        raise InputError(f"scores: shape {table.shape}; expected (n,) or (queries, n), not empty")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        where = ", ".join(
            f"{what} {place + 1}"
            for what, place in zip(("query", "item")[-table.ndim :], bad[0].tolist(), strict=True)
        )
        raise InputError(
            f"scores, {where}: {table[tuple(bad[0])]} is no finite number "
            f"({len(bad)} such scores). Leave these items out, or score them again"
        )
    return table.astype(np.float32) if table.dtype == np.float16 else table


def _check_length(what: str, length: int, expected: int) -> None:
    if length != expected:
        raise InputError(f"{what}: {length} items; expected {expected}, as in scores")


def _queries(queries: Any, table: Scores | CosineScores) -> tuple[tuple[str, ...], Indices | None]:
    """Return query names, and the query of each item where every item belongs to one."""
    if isinstance(table, CosineScores):
        return table.names, None if queries is None else _owner(queries, table)
    if table.ndim == 1:
        if queries is None:
            return ("",), None
        codes, names = encode(queries, what="queries")
        _check_length("queries", len(codes), len(table))
        return names, codes.astype(np.int64)
    if queries is None:
        return tuple(str(index) for index in range(len(table))), None
    names = tuple(str(name) for name in queries)
    if len(names) != len(table) or len(set(names)) < len(names):
        raise InputError(
            f"queries: {len(names)} names, {len(set(names))} of them distinct; "
            f"expected {len(table)} distinct ones, as scores has rows"
        )
    return names, None


def _owner(queries: Any, table: CosineScores) -> Indices:
    codes, labels = encode(queries, what="queries")
    _check_length("queries", len(codes), len(table))
    place = {name: index for index, name in enumerate(table.names)}
    unknown = [label for label in labels if label not in place]
    if unknown:
        raise InputError(
            f"queries: {unknown[0]!r} is no query of the scores; expected their names, "
            f"such as {table.names[0]!r}"
        )
    return np.array([*(place[label] for label in labels), -1], dtype=np.int64)[codes]


def _kept(
    groups: Groups, levels: Groups | None, owner: Indices | None
) -> tuple[Bools, dict[str, int]]:
    kept = groups.codes >= 0
    excluded = {"items without a group": int((~kept).sum())}
    for reason, codes in (
        ("items without a value of within", None if levels is None else levels.codes),
        ("items without a query", owner),
    ):
        if codes is not None:
            excluded[reason] = int((kept & (codes < 0)).sum())
            kept = kept & (codes >= 0)
    if not kept.any():
        raise InputError("no item has a group and a query; expected at least one")
    return kept, {reason: many for reason, many in excluded.items() if many}


def _block(levels: Groups | None, owner: Indices | None, count: int) -> Indices:
    block = np.zeros(count, dtype=np.int64) if owner is None else owner
    return block if levels is None else block * len(levels) + levels.codes


def _members(sets: Any, block: Indices, kept: Bools) -> tuple[Indices | None, int]:
    if sets is None:
        return None, 0
    codes, names = encode(sets, what="sets")
    _check_length("sets", len(codes), len(block))
    # Items of no set are independent images: they exchange among themselves, as a set does.
    member = np.where(kept, block * (len(names) + 1) + codes + 1, -1)
    return member, int((codes[kept] < 0).sum())


def _pools(
    kept: Bools,
    names: tuple[str, ...],
    owner: Indices | None,
    levels: Groups | None,
) -> Iterator[Pool]:
    """Yield the pools by query, and by level within a query."""
    block = _block(levels, owner, len(kept))
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(block[rows], kind="stable")]
    labels = ("",) if levels is None else levels.names
    blocks = len(labels) * (1 if owner is None else len(names))
    parts = np.split(rows, np.cumsum(np.bincount(block[rows], minlength=blocks))[:-1])
    for query, name in enumerate(names):
        for level, label in enumerate(labels):
            place = level if owner is None else query * len(labels) + level
            shown = f"{name} | {label}" if name and label else name or label
            if levels is None or levels.counts[level]:
                yield Pool(shown, query, parts[place], place)


def _units(units: Any, names: tuple[str, ...], owner: Indices | None) -> tuple[str, ...]:
    if units is None:
        return names
    if owner is not None:
        return _units_of_items(units, names, owner)
    found = tuple(str(unit) for unit in np.atleast_1d(np.asarray(units, dtype=object)).tolist())
    if len(found) != len(names):
        raise InputError(f"units: {len(found)} names; expected {len(names)}, one per query")
    return found


def _units_of_items(units: Any, names: tuple[str, ...], owner: Indices) -> tuple[str, ...]:
    codes, labels = encode(units, what="units")
    _check_length("units", len(codes), len(owner))
    found = []
    for query, name in enumerate(names):
        own = np.unique(codes[owner == query])
        if len(own) != 1 or own[0] < 0:
            raise InputError(f"units: query {name!r} has {len(own)} units; expected one")
        found.append(labels[own[0]])
    return tuple(found)
