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
from equipoise.core.labels import Codes, Encoded, encode, label_array
from equipoise.core.masked import check_unmasked
from equipoise.stats.draws import ItemSampler
from equipoise.stats.streams import unit_keys

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

# Probabilities of a row that were rounded or held in half precision.
SUM_TOLERANCE = 0.01
# Largest weight; squares and sums of weights up to it, and of their inverses, stay exact enough.
MOST_WEIGHT = 1e9


def labels_of(
    y_pred: Any, weights: Any, true_names: tuple[str, ...]
) -> tuple[Codes, tuple[str, ...], Floats | None]:
    """Return label codes (n, k), their names, and weights (n, k), None for 1 everywhere.

    Raises
    ------
    InputError
        When shapes do not fit, or weights or probabilities are none.
    """
    coded = isinstance(y_pred, Encoded)
    array = y_pred.codes if coded else label_array(y_pred, what="y_pred")
    if array.ndim == 1 and weights is None:
        codes, names = encode(y_pred if coded else array, what="y_pred")
        return codes[:, None], names, None
    if array.ndim != 2 or array.shape[1] == 0:
        single = "" if weights is not None else "(n,) or "
        raise InputError(f"y_pred: shape {array.shape}; expected {single}(n, k) with k >= 1")
    if array.dtype.kind == "f" and weights is None:
        return _soft(array, true_names)
    codes, names = encode(y_pred if coded else array.ravel(), what="y_pred")
    codes = codes.reshape(array.shape)
    if weights is None:
        return codes, names, np.full(array.shape, 1.0 / array.shape[1])
    return codes, names, _weights(weights, array.shape)


def _weights(weights: Any, shape: tuple[int, ...]) -> Floats:
    check_unmasked(weights, what="weights")
    try:
        array = np.asarray(weights)
        spread = array.astype(np.float64, casting="unsafe" if array.dtype.kind in "OU" else "safe")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"weights: expected numbers of shape {shape}, as y_pred") from None
    if spread.shape != shape:
        raise InputError(f"weights: shape {spread.shape}; expected {shape}, as y_pred")
    largest = _finite(spread, "weights").max(axis=1)
    if len(largest) and not largest.any():
        raise InputError("weights: all are 0; expected a row with weight")
    bad = np.flatnonzero((largest > MOST_WEIGHT) | (largest > 0) & (largest < 1 / MOST_WEIGHT))
    if len(bad):
        raise InputError(
            f"weights, row {bad[0] + 1}: the largest is {largest[bad[0]]:.4g}; expected 0, or "
            f"{1 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}. Scale all weights by the same number"
        )
    return spread


def _soft(
    array: npt.NDArray[Any], true_names: tuple[str, ...]
) -> tuple[Codes, tuple[str, ...], Floats]:
    if array.shape[1] != len(true_names):
        raise InputError(
            f"y_pred: probabilities of {array.shape[1]} classes; expected one column for each of "
            f"the {len(true_names)} sorted classes of y_true. Pass labels with weights= instead"
        )
    codes = np.broadcast_to(np.arange(array.shape[1], dtype=np.int32), array.shape)
    spread = _finite(array.astype(np.float64), "y_pred")
    sums = spread.sum(axis=1)
    bad = np.flatnonzero(np.abs(sums - 1.0) > SUM_TOLERANCE)
    if len(bad):
        raise InputError(
            f"y_pred, row {bad[0] + 1}: probabilities sum to {sums[bad[0]]:.4g}; expected 1 within "
            f"{SUM_TOLERANCE}. Pass k labels as integers or text, or labels with weights="
        )
    return codes, true_names, spread


def _finite(spread: Floats, what: str) -> Floats:
    bad = np.flatnonzero(~(np.isfinite(spread) & (spread >= 0)).all(axis=1))
    if len(bad):
        raise InputError(f"{what}, row {bad[0] + 1}: expected finite numbers of at least 0")
    return spread


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
