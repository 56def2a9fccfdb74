"""Rows that repeat within units, or spread their weight over labels, made ready to be resampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import encode
from equipoise.stats.draws import ItemSampler
from equipoise.stats.streams import unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Units:
    """The unit of each row: index into the sorted names, -1 where a row is a unit of its own."""

    codes: Indices
    names: tuple[str, ...]


def units_of(units: Any, n: int, kept: npt.NDArray[np.bool_]) -> Units | None:
    """Encode the units of the rows that are kept, None without units.

    Raises
    ------
    InputError
        When `units` has another length than `n`.
    """
    if units is None:
        return None
    codes, names = encode(units, what="units")
    if len(codes) != n:
        raise InputError(f"units: {len(codes)} rows; expected {n}, as in y_true")
    chosen = codes[kept]
    present = np.unique(chosen[chosen >= 0])
    place = np.full(len(names) + 1, -1, dtype=np.int64)
    place[present] = np.arange(len(present))
    return Units(place[chosen], tuple(names[index] for index in present.tolist()))


def item_sampler(
    outcome: Indices,
    spread: Floats | None,
    groups: Groups,
    units: Units | None,
    shape: tuple[int, int],
) -> ItemSampler:
    """Return the sampler of rows with outcomes and weights (n, k); None weighs every entry 1."""
    n, width = outcome.shape
    weights = np.ones(outcome.shape) if spread is None else spread
    owner, names = (units.codes, units.names) if units else (np.full(n, -1), ())
    # Rows in an order of their content alone, so that permuted rows and renamed groups give the
    # same draws.
    content = [*weights.T[::-1], *outcome.T[::-1]]
    by_content = np.lexsort([*content, owner])
    rank = _group_ranks(groups, by_content, [owner, *outcome.T, *weights.T])
    order = np.lexsort([*content, rank[groups.codes], owner])
    unit = owner[order].astype(np.int64)
    alone = np.flatnonzero(unit < 0)
    unit[alone] = len(names) + np.arange(len(alone))
    return ItemSampler(
        outcome[order].ravel().astype(np.int64),
        np.repeat(np.arange(n), width),
        weights[order].ravel(),
        groups.codes[order].astype(np.int64),
        unit,
        unit_keys((*names, *(f"\x00{index}" for index in range(len(alone))))),
        shape,
    )


def _group_ranks(groups: Groups, order: Indices, columns: Sequence[npt.NDArray[Any]]) -> Indices:
    """Rank groups by what their rows hold, in a given order of rows, not by their names."""
    codes = groups.codes[order]
    rows = np.split(order[np.argsort(codes, kind="stable")], np.cumsum(groups.counts)[:-1])
    digests = []
    for members in rows:
        held = blake2b()
        for column in columns:
            held.update(column[members].tobytes())
        digests.append(held.digest())
    rank = np.empty(len(digests), dtype=np.int64)
    rank[sorted(range(len(digests)), key=digests.__getitem__)] = np.arange(len(digests))
    return rank
