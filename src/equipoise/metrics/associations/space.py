"""Sets of embeddings, or of things that a model scores in pairs, as vectors.

Similarities are inner products: of unit vectors where similarity is the cosine, and of rows of
scores with unit axes where a fusion model scores pairs. Sums over a set are taken in fixed point,
so a number does not depend on the order of rows or on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.metrics.associations.members import (
    Members,
    dots,
    exact_mean,
    float_rows,
    unit_members,
)
from equipoise.metrics.chosen_rows import ChosenRows, Table

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Similarity = Callable[[Any, Any], npt.ArrayLike]

# Members that are compared by sorting.
_MANY = 1 << 14
# Types that vectors are kept in as given.
_STORED = (np.float16, np.float32, np.float64)


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores that a model gave to pairs, for `similarity=` with sets given as indices.

    Attributes
    ----------
    scores : array-like, shape (targets, attributes)
        Row i, column j: the similarity of target i and attribute j.
    """

    scores: npt.ArrayLike = field(repr=False)

    def __call__(self, targets: Any, attributes: Any) -> Floats:
        """Return the scores of chosen rows and columns.

        Raises
        ------
        InputError
            When an index lies outside the matrix or is no whole number.
        """
        matrix = np.asarray(self.scores, dtype=np.float64)
        if matrix.ndim != 2:
            raise InputError(f"scores: shape {matrix.shape}; expected (targets, attributes)")
        rows = _indices(targets, len(matrix), "targets", "rows")
        columns = _indices(attributes, matrix.shape[1], "attributes", "columns")
        return np.asarray(matrix[np.ix_(rows, columns)])


Sets = Mapping[str, Members]


def embed(
    targets: Mapping[str, Any],
    attributes: Mapping[str, Any],
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Any] | None = None,
) -> dict[str, Members]:
    """Turn named sets into vectors whose inner products are the similarities.

    Parameters
    ----------
    targets, attributes : mapping of str to array-like, shape (n, d)
        Embeddings; any length but 0 (they are normalised), any float type. With `similarity`,
        whatever it takes.
    similarity : callable, optional
        (targets, attributes) to scores of shape (targets, attributes), such as `PairScores`.
        Default: cosine.
    units : mapping of str to array-like, shape (n,), optional
        Per set, the names of the units that its members repeat within.

    Raises
    ------
    InputError
        When a set is empty, not of shape (n, d), of another dimension than the others, has no
        usable member, or units name an unknown set or are of another length.
    """
    given = {**targets, **attributes}
    if unknown := sorted({*(units or {})} - {*given}):
        raise InputError(f"units: no set is called {unknown[0]!r}; expected one of {[*given]}")
    if similarity is None:
        found = {name: _unit(name, rows) for name, rows in given.items()}
        _same_dimension(found)
    else:
        found = _scored(targets, attributes, similarity)
    return {name: _with_units(one, (units or {}).get(name)) for name, one in found.items()}


def associations(targets: Floats, a: Floats, b: Floats) -> Floats:
    """Return s(w, A, B) of each target, shape (n,)."""
    return dots(targets, exact_mean(a) - exact_mean(b))


def shared_members(first: Members, second: Members) -> int:
    """Count members of the first set that are, as vectors, in the second too."""
    if len(first) == 0 or first.dimension != second.dimension:
        return 0
    # Normalising leaves the last digits of equal directions apart; adding 0 makes -0 of them 0.
    # Copies: a column holds on to all of its block.
    firsts = [rows[:, 0].copy() for one in (first, second) for _, rows in one.blocks()]
    every = np.concatenate(firsts).round(12)
    heads = every[: len(first)], every[len(first) :]
    # Of few members quicker than sorting; of many, numbers as objects would take much memory.
    if len(every) < _MANY and set(heads[0].tolist()).isdisjoint(heads[1].tolist()):
        return 0
    both = np.intersect1d(heads[0], heads[1])
    if not len(both):
        return 0
    known, others = (
        np.round(one.take(np.flatnonzero(np.isin(head, both))), 12) + 0.0
        for one, head in zip((first, second), heads, strict=True)
    )
    rows = {row.tobytes() for row in others}
    return sum(row.tobytes() in rows for row in known)


def dropped_of(sets: Sets) -> dict[str, int]:
    """Members that were not used, by set and reason."""
    return {
        f"{name}: {why}": n for name, one in sets.items() for why, n in one.dropped.items() if n
    }


def _unit(name: str, given: Any) -> Members:
    return unit_members(name, _floats(name, given))


def _floats(name: str, given: Any) -> Table:
    """Return rows as they are stored where that is in a float type, else as float64."""
    if isinstance(given, np.ndarray | ChosenRows) and given.dtype in _STORED:
        array: Table = given
    else:
        try:
            array = float_rows(given)
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: expected numbers of shape (n, d); got vectors of different lengths or "
                "text"
            ) from None
    if len(array.shape) != 2:
        raise InputError(f"{name}: shape {array.shape}; expected (n, d), one vector per row")
    if not array.size:
        raise InputError(f"{name}: an empty set; expected at least one vector")
    return array


def _same_dimension(sets: Sets) -> None:
    dimensions = {name: one.dimension for name, one in sets.items()}
    if len(set(dimensions.values())) > 1:
        listed = ", ".join(f"{name} {d}" for name, d in dimensions.items())
        raise InputError(f"vectors of different dimensions: {listed}; embed all with one model")


def _scored(
    targets: Mapping[str, Any], attributes: Mapping[str, Any], similarity: Similarity
) -> dict[str, Members]:
    """Rows of scores against all attributes for targets, unit axes for attributes."""
    sizes = {name: len(things) for name, things in {**targets, **attributes}.items()}
    if empty := [name for name, size in sizes.items() if size == 0]:
        raise InputError(f"{empty[0]}: an empty set; expected at least one member")
    found: dict[str, Members] = {}
    for name, things in targets.items():
        blocks = [
            _scores(name, sizes[name], other, sizes[other], similarity(things, columns))
            for other, columns in attributes.items()
        ]
        found[name] = _all_of(name, np.concatenate(blocks, axis=1))
    axes = np.eye(sum(sizes[name] for name in attributes))
    start = 0
    for name in attributes:
        found[name] = _all_of(name, axes[start : start + sizes[name]])
        start += sizes[name]
    return found


def _scores(name: str, n: int, other: str, m: int, scores: npt.ArrayLike) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.shape != (n, m):
        raise InputError(
            f"similarity: scores of {name} and {other} have shape {array.shape}; expected {(n, m)}"
        )
    if bad := int((~np.isfinite(array)).sum()):
        raise InputError(
            f"similarity: {bad} of {array.size} scores of {name} and {other} are not finite; "
            "score the missing pairs or leave their members out"
        )
    return array


def _all_of(name: str, vectors: Floats) -> Members:
    return Members(name, vectors, np.arange(len(vectors)))


def _with_units(one: Members, units: Any) -> Members:
    if units is None:
        return one
    codes, names = encode(units, what=f"units[{one.name!r}]")
    if len(codes) != one.given:
        raise InputError(
            f"units[{one.name!r}]: {len(codes)} names; expected {one.given}, one per member"
        )
    if (codes < 0).any():
        raise InputError(
            f"units[{one.name!r}]: {int((codes < 0).sum())} names are missing; "
            "name the unit of every member"
        )
    kept = tuple(names[code] for code in codes[one.rows].tolist())
    return replace(one, units=kept)


def _indices(given: Any, size: int, what: str, where: str) -> Indices:
    indices = np.asarray(given)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise InputError(f"{what}: expected indices of {where} of the scores, whole numbers")
    if len(indices) and (indices.min() < 0 or indices.max() >= size):
        raise InputError(f"{what}: an index outside the {size} {where} of the scores")
    return indices.astype(np.int64)
