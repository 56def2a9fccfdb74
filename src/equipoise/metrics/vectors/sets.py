"""Sets of embeddings, or of things that a model scores in pairs, as vectors.

Similarities are inner products: of unit vectors where similarity is the cosine, and of rows of
scores with unit axes where a fusion model scores pairs. Sums over a set are taken in fixed point,
so a number does not depend on the order of rows or on threads. A million embeddings stay as small
as they are stored: float64 unit vectors of all of them exist for small sets only.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from equipoise.core import (
    AnyArray,
    Facts,
    Floats,
    InputError,
    Integers,
    Labels,
    Strings,
    encode,
    floats,
    record,
    tally,
)
from equipoise.core.labels import check_unmasked
from equipoise.metrics.vector_rows import (
    ChosenRows,
    Table,
    float_rows,
    inverse_lengths,
    project,
    widened,
)
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Result = TypeVar("Result")
Similarity = Callable[[Any, Any], ArrayLike]

# Numbers of unit vectors that are computed together, and the most of them that are kept.
_AT_ONCE, _KEPT = 1 << 18, 1 << 22
# Slices of so many numbers that a thread takes at a time.
_TOGETHER = 16
DROPPED = ("not a number or infinite", "zero vector")
"""Why members of a set can't be used."""


@compiled(*float_rows("void(rows, float64[::1], float64, float64, int64[::1])"))
def add_whole(
    values: AnyArray, scale: Floats, first: float, second: float, total: Integers
) -> None:
    """Add the rows, times their scale and both factors and rounded to whole numbers, to `total`."""
    n, d = values.shape
    for i in range(n):
        for j in range(d):
            unit = np.float64(values[i, j]) * scale[i]
            total[j] += np.int64(np.rint(unit * first * second))


@record
class PairScores:
    """Scores that a model gave to pairs, for `similarity=` with sets given as indices.

    Attributes
    ----------
    scores : array-like, shape (targets, attributes)
        Row i, column j: the similarity of target i and attribute j.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> scores = m.PairScores(rng.random((4, 6)))
    >>> m.association_score([0, 1, 2, 3], [0, 1, 2], [3, 4, 5], similarity=scores)
    <association_score −0.110 [−0.580, 0.360]; chance 0.000, p = 0.7, n = 10 in 3 groups>
    """

    scores: ArrayLike

    def __call__(
        self, targets: Sequence[int] | Integers, attributes: Sequence[int] | Integers
    ) -> Floats:
        """Return the scores of chosen rows and columns.

        Raises
        ------
        InputError
            When an index lies outside the matrix or is no whole number.
        """
        matrix, chosen = floats(self.scores), (targets, attributes)
        if min(np.min(indices, initial=0) for indices in chosen) < 0:
            raise InputError("scores: an index is negative")
        try:
            return matrix[np.ix_(*chosen)]  # type: ignore[arg-type]
        except (IndexError, ValueError) as error:
            raise InputError(f"scores: shape {matrix.shape}: {error}") from None


def dropped_of(name: str, reason: str) -> str:
    """Return why members of a set are left out, with the set's name."""
    return f"{name}: {reason}"


@record
class Members:
    """One set as vectors; metrics take it in place of an array.

    Attributes
    ----------
    stored : ndarray or ChosenRows, shape (given, d)
        As given, in any real type.
    rows : ndarray of int, shape (n,)
        Which of the given rows can be used.
    scale : ndarray, shape (n,), or None
        Inverse lengths of the rows; None: they are vectors as they are.
    units : tuple of str or None
        The unit of each usable member, where members repeat within units.
    dropped : mapping of str to int
        Unusable members by reason.
    """

    stored: Table
    rows: Integers
    scale: Floats | None = None
    units: Strings | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def independent(self) -> int:
        """How many members, or units of members, there are."""
        return len(self if self.units is None else {*self.units})

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows as given, and of their numbers."""
        return len(self.stored), self.dimension

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Return all vectors."""
        return self.vectors.astype(dtype or np.float64, copy=copy is not False)

    @property
    def dimension(self) -> int:
        """Numbers of a vector."""
        return int(self.stored.shape[1])

    @property
    def vectors(self) -> Floats:
        """All vectors, shape (n, d): for small sets."""
        return self.take(np.arange(len(self)))

    def blocks(self) -> Iterable[tuple[slice, Floats]]:
        """Yield places of members and their vectors, float64 and shape (m, d)."""
        if self._cached is not None:
            return [(slice(0, len(self)), self._cached)]
        return ((places, self._computed(places)) for places in _slices(len(self), self.dimension))

    def take(self, places: Integers) -> Floats:
        """Return the vectors of some members, shape (m, d)."""
        if self._cached is not None:
            return self._cached[places]
        cuts = _slices(len(places), self.dimension)
        return np.concatenate([self._computed(places[cut]) for cut in cuts])

    @cached_property
    def size(self) -> float:
        """Largest absolute number of all vectors."""
        if self._cached is not None:
            return float(max(self._cached.max(), -self._cached.min()))

        def largest(_: slice, rows: AnyArray, scale: Floats) -> float:
            return float((np.abs(rows).max(axis=1) * scale).max())

        return max(self._over(largest))

    @cached_property
    def mean(self) -> Floats:
        """Mean vector, shape (d,), a sum of 62-bit integers: the same for any order of rows."""
        if not self.size:
            return np.zeros(self.dimension)
        bits = math.floor(62 - math.log2(len(self)) - math.log2(self.size))
        # In two steps, for 2^bits may be no float.
        factors = math.ldexp(1.0, bits // 2), math.ldexp(1.0, bits - bits // 2)

        def added(_: slice, rows: AnyArray, scale: Floats) -> Integers:
            total = np.zeros(self.dimension, dtype=np.int64)
            add_whole(rows, scale, *factors, total)
            return total

        whole_sum = reduce(np.add, self._over(added))
        return np.ldexp(floats(whole_sum), -bits) / len(self)

    @cached_property
    def firsts(self) -> Floats:
        """First number of each vector, shape (n,)."""
        if self._cached is not None:
            return self._cached[:, 0]
        return np.concatenate(self._over(lambda _, rows, scale: rows[:, 0] * scale))

    def dots(self, direction: Floats) -> Floats:
        """Inner products with one direction (d,), each in one fixed order: shape (n,)."""
        return self.similarities(direction[None])[:, 0]

    def similarities(self, vectors: Floats) -> Floats:
        """Inner products with all rows (m, d) of others, each in one fixed order: (n, m)."""
        products = np.empty((len(self), len(vectors)))
        directions = np.ascontiguousarray(vectors, dtype=np.float64)
        self._over(lambda places, rows, scale: project(rows, scale, directions, products[places]))
        return products

    def _over(self, function: Callable[[slice, AnyArray, Floats], Result]) -> list[Result]:
        """Apply a function to slices of the members, in threads, and return its results in order.

        It takes the places of members, their rows as kernels take them, and the scale of each row.
        """
        if self._cached is not None:
            return [function(slice(0, len(self)), self._cached, _ones(len(self)))]
        slices = [*_slices(len(self), self.dimension)]

        def over(start: int) -> list[Result]:
            return [
                function(places, self._rows(places), self._scale(places))
                for places in slices[start : start + _TOGETHER]
            ]

        spans = each(over, range(0, len(slices), _TOGETHER))
        return [result for span in spans for result in span]

    @cached_property
    def _cached(self) -> Floats | None:
        fits = len(self) * self.dimension <= _KEPT
        return self._computed(slice(0, len(self))) if fits else None

    def _computed(self, places: slice | Integers) -> Floats:
        return self._rows(places) * self._scale(places)[:, None]

    def _rows(self, places: slice | Integers) -> AnyArray:
        all_rows = len(self.rows) == len(self.stored)
        return kernel_rows(self.stored[places if all_rows else self.rows[places]])

    def _scale(self, places: slice | Integers) -> Floats:
        return np.ones(len(self.rows[places])) if self.scale is None else self.scale[places]


@lru_cache(maxsize=2)
def _ones(n_rows: int) -> Floats:
    """Return the scale of vectors that are scaled already; nothing writes it."""
    return np.ones(n_rows)


def plain_members(vectors: Floats) -> Members:
    """Return vectors (n, d) as a set, as they are."""
    return Members(vectors, np.arange(len(vectors)))


def embed(
    targets: Mapping[str, ArrayLike],
    attributes: Mapping[str, ArrayLike],
    *,
    similarity: Similarity | None = None,
    units: Mapping[str, Labels] | None = None,
) -> dict[str, Members]:
    """Turn named sets into vectors with similarities as inner products.

    Parameters
    ----------
    targets, attributes : mapping of str to array-like, shape (n, d)
        Embeddings; any length but 0 (they are normalised), any real type. With `similarity`,
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
    named_sets, units = {**targets, **attributes}, units or {}
    if unknown := sorted({*units} - {*named_sets}):
        raise InputError(f"units: no set is called {unknown[0]!r}; expected one of {[*named_sets]}")
    if similarity is None:
        embedded = {name: unit_members(x, name) for name, x in named_sets.items()}
        dimensions = {name: members.dimension for name, members in embedded.items()}
        if len({*dimensions.values()}) > 1:
            raise InputError(f"sets of different dimensions: {dimensions}; embed with one model")
    else:
        embedded = _scored(targets, attributes, similarity)
    for name, labels in units.items():
        codes, names = encode(labels, subject=f"units[{name!r}]")
        expected = len(embedded[name].stored)
        if len(codes) != expected or (codes < 0).any():
            raise InputError(
                f"units[{name!r}]: {len(codes)} names, {tally(codes < 0)} of them "
                f"missing; expected {expected}, one per member"
            )
        member_units = tuple(names[code] for code in codes[embedded[name].rows].tolist())
        embedded[name] = replace(embedded[name], units=member_units)
    return embedded


def unit_members(embeddings: ArrayLike, name: str = "embeddings") -> Members:
    """Return the rows of an array that have a direction as unit vectors.

    Raises
    ------
    InputError
        As `embedding_table`; or no row can be used.
    """
    if isinstance(embeddings, Members):
        return embeddings
    array = embedding_table(embeddings, name)
    scale = np.empty(len(array))

    def measure(places: slice) -> None:
        inverse_lengths(kernel_rows(array[places]), scale[places])

    # Passing few vectors to threads takes as long as measuring them.
    if array.shape[0] * array.shape[1] <= _AT_ONCE:
        measure(slice(None))
    else:
        each(measure, _slices(*array.shape))
    (rows,) = (scale > 0).nonzero()
    zero = 0 if len(rows) == len(scale) else tally(scale == 0)
    n_invalid = len(scale) - len(rows) - zero
    dropped = dict(zip(DROPPED, (n_invalid, zero), strict=True))
    if not len(rows):
        raise InputError(f"{name}: none of its {len(array)} vectors can be used: {dropped}")
    return Members(array, rows, scale[rows], dropped=dropped)


def embedding_table(embeddings: ArrayLike, name: str = "embeddings") -> Table:
    """Return embeddings as they are, of shape (n, d) with n and d of at least 1.

    Raises
    ------
    InputError
        When rows differ in length, or the array is masked, empty, not numeric or of another shape.
    """
    check_unmasked(embeddings, subject=name)
    try:
        array = embeddings if isinstance(embeddings, ChosenRows) else np.asarray(embeddings)
    except ValueError:
        raise InputError(f"{name}: rows of different lengths; expected shape (n, d)") from None
    if len(array.shape) != 2 or 0 in array.shape:
        raise InputError(f"{name}: shape {array.shape}; expected (n, d), neither of them 0")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name}: type {array.dtype}; expected real numbers")
    return array


def kernel_rows(rows: AnyArray) -> AnyArray:
    """Return rows as contiguous float32 or float64: as they are where that is so, else a copy."""
    if rows.dtype == np.float16:
        return widened(rows)
    ready = rows.dtype in (np.float32, np.float64)
    if ready and rows.flags.c_contiguous and rows.flags.aligned:
        return rows
    return np.require(rows, None if ready else np.float64, ["C", "A"])


def shared_members(first: Members, second: Members) -> int:
    """Count members of the first set that are, as vectors, in the second too."""
    # Normalising leaves the last digits of equal directions apart; adding 0 makes -0 of them 0.
    heads = [members.firsts.round(12) + 0.0 for members in (first, second)]
    first_heads, second_heads = heads[0].copy(), heads[1].copy()
    first_heads.sort()
    second_heads.sort()
    shared_heads = first_heads[
        second_heads.take(second_heads.searchsorted(first_heads), mode="clip") == first_heads
    ]
    if not len(shared_heads):
        return 0
    first_rows, second_rows = (
        np.round(members.take(np.flatnonzero(np.isin(head, shared_heads))), 12) + 0.0
        for members, head in zip((first, second), heads, strict=True)
    )
    rows = {row.tobytes() for row in second_rows}
    return sum(row.tobytes() in rows for row in first_rows)


def _slices(rows: int, dimension: int) -> Iterator[slice]:
    step = max(1, _AT_ONCE // dimension)
    return (slice(start, min(start + step, rows)) for start in range(0, rows, step))


def _scored(targets: Facts, attributes: Facts, similarity: Similarity) -> dict[str, Members]:
    """Rows of scores against all attributes for targets, unit axes for attributes."""
    sizes = {name: len(inputs) for name, inputs in {**targets, **attributes}.items()}
    if empty := [name for name, size in sizes.items() if size == 0]:
        raise InputError(f"{empty[0]}: an empty set; expected at least one member")
    embedded: dict[str, Members] = {}
    for name, target_inputs in targets.items():
        blocks = []
        for attribute_name, columns in attributes.items():
            scores = floats(similarity(target_inputs, columns))
            if (
                scores.shape != (sizes[name], sizes[attribute_name])
                or not np.isfinite(scores).all()
            ):
                raise InputError(
                    f"similarity: scores of {name} and {attribute_name} of shape {scores.shape}; "
                    f"expected finite numbers ({sizes[name]}, {sizes[attribute_name]})"
                )
            blocks.append(scores)
        embedded[name] = plain_members(np.concatenate(blocks, axis=1))
    ends = np.cumsum([sizes[name] for name in attributes])
    for name, axes in zip(attributes, np.split(np.eye(ends[-1]), ends[:-1]), strict=True):
        embedded[name] = plain_members(axes)
    return embedded
