"""Sums of unit vectors: all that a mean cosine needs, mergeable over shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import check_unmasked
from equipoise.metrics.chosen_rows import ChosenRows, Table
from equipoise.metrics.unit_rows import float_rows, in_range, inverse_lengths, project, widened
from equipoise.stats.compiled import compiled
from equipoise.stats.threads import each

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

_SCATTER = tuple(
    signature
    for bits in (8, 16)
    for signature in float_rows(
        f"void(rows, float64[::1], int64[::1], uint{bits}[:, ::1], int64, float64[:, :, :, ::1])"
    )
)


@compiled(*float_rows("void(rows, float64[::1], float64[::1])"))
def add_scaled(rows: npt.NDArray[Any], scale: Floats, total: Floats) -> None:
    """Add the rows, each times its scale, to `total` (d,)."""
    n, d = rows.shape
    for i in range(n):
        factor = scale[i]
        if factor != 0.0:
            for j in range(d):
                total[j] += factor * np.float64(rows[i, j])


@compiled(*_SCATTER)
def scatter(
    rows: npt.NDArray[Any],
    scale: Floats,
    used: npt.NDArray[np.int64],
    labels: Labels,
    first: int,
    totals: Floats,
) -> None:
    """Add unit rows to the sums of the sets that each permutation puts them in.

    Tiles of 64 rows and 64 columns, and the sums of one permutation, stay in the first cache;
    indices are unsigned, so that none is checked for counting from the end.

    Parameters
    ----------
    rows, scale : ndarray, shape (n, d), (n,)
    used : ndarray, shape (m,)
        Rows that are not zero: these have labels.
    labels : ndarray, shape (permutations, all rows that are not zero)
    first : int
        Column of `labels` that belongs to the first of the used rows.
    totals : ndarray, shape (tiles of columns, permutations, sets, 64)
    """
    d = rows.shape[1]
    tile = np.zeros((64, 64))
    for done in range(0, used.shape[0], 64):
        chosen = used[done : done + 64]
        many = np.uint64(chosen.shape[0])
        begin = np.uint64(first + done)
        for column in range(np.uint64(totals.shape[0])):
            start = np.int64(column) * 64
            for i in range(chosen.shape[0]):
                for j in range(64):
                    inside = start + j < d
                    number = np.float64(rows[chosen[i], start + j]) if inside else 0.0
                    tile[i, j] = scale[chosen[i]] * number
            for line in range(np.uint64(labels.shape[0])):
                for i in range(many):
                    to = np.uint64(labels[line, begin + i])
                    for j in range(np.uint64(64)):
                        totals[column, line, to, j] += tile[i, j]


# Numbers that a thread takes at a time, and of those the ones that are normalised, and converted
# where need be, together: these stay in the cache. Fixed, for sums to have one order.
_CHUNK, _BLOCK = 1 << 21, 1 << 18


@dataclass(frozen=True, eq=False)
class UnitSums:
    """The sum of a set's unit vectors.

    Attributes
    ----------
    total : ndarray of float64, shape (d,)
        Sum of x / |x| over rows that are not zero.
    count : int
        Rows that are not zero.
    zeros : int
        Rows of length 0: they have no direction and take no part.
    """

    total: Floats = field(repr=False)
    count: int
    zeros: int

    @classmethod
    def of(cls, embeddings: Any, *, what: str = "embeddings") -> UnitSums:
        """Sum a set in one pass.

        Parameters
        ----------
        embeddings : array-like, shape (n, d)
            Any real type; memory-mapped arrays are read in blocks. Sums are float64.
        what : str
            Name of the argument, for errors.

        Raises
        ------
        InputError
            When the array is not numeric of shape (n, d) or holds NaN or infinite numbers.
        """
        return unit_sums([embedding_table(embeddings, what=what)], [what])[0]

    def merge(self, other: UnitSums) -> UnitSums:
        """Return the sums of both sets together.

        Raises
        ------
        InputError
            When their dimensions differ.
        """
        check_dimensions((self, other))
        return UnitSums(
            self.total + other.total, self.count + other.count, self.zeros + other.zeros
        )

    @property
    def mean(self) -> Floats:
        """Mean unit vector, shape (d,); NaN for an empty set."""
        return self.total / self.count if self.count else np.full(len(self.total), np.nan)

    @property
    def distance(self) -> float:
        """Mean distance 1 - cos over pairs of different rows; NaN below two rows."""
        n = self.count
        if n < 2:
            return float("nan")
        return 1.0 - (float(self.total @ self.total) - n) / (n * (n - 1.0))


def embedding_table(embeddings: Any, *, what: str = "embeddings") -> Table:
    """Return embeddings as they are, of shape (n, d) with n and d of at least 1.

    Raises
    ------
    InputError
        When rows differ in length, or the array is masked, empty, not numeric or of another shape.
    """
    check_unmasked(embeddings, what=what)
    try:
        array = embeddings if isinstance(embeddings, ChosenRows) else np.asarray(embeddings)
    except ValueError:
        raise InputError(f"{what}: rows of different lengths; expected shape (n, d)") from None
    if len(array.shape) != 2 or 0 in array.shape:
        raise InputError(f"{what}: shape {array.shape}; expected (n, d), neither of them 0")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{what}: type {array.dtype}; expected real numbers")
    return array


def embedding_array(embeddings: Any, *, what: str = "embeddings") -> npt.NDArray[Any]:
    """Return embeddings as a real array of shape (n, d), see `embedding_table`."""
    return np.asarray(embedding_table(embeddings, what=what))


def check_dimensions(sets: tuple[UnitSums, ...] | list[UnitSums]) -> None:
    """Raise an InputError when sets differ in their dimension."""
    found = sorted({len(one.total) for one in sets})
    if len(found) > 1:
        raise InputError(f"sets of different dimensions {found}; expected one embedding space")


def unit_sums(sets: Sequence[Table], whats: Sequence[str]) -> list[UnitSums]:
    """Sum the unit vectors of each set, all in one pass over threads.

    Raises
    ------
    InputError
        When a set holds NaN or infinite numbers.
    """

    def add(span: Span) -> tuple[Floats, int]:
        total, count = np.zeros(sets[span.index].shape[1]), 0
        for rows, scale in blocks(sets[span.index], whats[span.index], span):
            add_scaled(rows, scale, total)
            count += int(np.count_nonzero(scale))
        return total, count

    totals = [np.zeros(one.shape[1]) for one in sets]
    counts = [0] * len(sets)
    work = spans(sets)
    for span, (total, count) in zip(work, each(add, work), strict=True):
        totals[span.index] += total
        counts[span.index] += count
    return [
        UnitSums(total, count, len(one) - count)
        for total, count, one in zip(totals, counts, sets, strict=True)
    ]


def scatters(sets: Sequence[Table], means: Floats) -> list[Floats]:
    """Return sums of squares and products of the projections on all means, by set.

    Parameters
    ----------
    sets : sequence of ndarray, shape (n_s, d)
    means : ndarray, shape (sets, d)
        Mean unit vector of each set.

    Returns
    -------
    list of ndarray, shape (sets, sets)
        For each set, sum over its images of (u·m_i - centre)(u·m_j - centre).
    """
    centres: Floats = np.einsum("id,jd->ij", means, means)

    def add(span: Span) -> Floats:
        total = np.zeros_like(centres)
        for rows, scale in blocks(sets[span.index], "embeddings", span):
            found = np.empty((len(rows), len(means)))
            project(rows, scale, means, found)
            apart = (found - centres[span.index])[scale > 0]
            total += np.einsum("ni,nj->ij", apart, apart)
        return total

    totals = [np.zeros_like(centres) for _ in sets]
    work = spans(sets)
    for span, total in zip(work, each(add, work), strict=True):
        totals[span.index] += total
    return totals


def projections(embeddings: Table, direction: Floats) -> Floats:
    """Return each non-zero row's unit vector times a direction, shape (m,)."""

    def along(span: Span) -> Floats:
        found = []
        for rows, scale in blocks(embeddings, "embeddings", span):
            products = np.empty((len(rows), 1))
            project(rows, scale, direction[None], products)
            found.append(products[scale > 0, 0])
        return np.concatenate(found)

    return np.concatenate(each(along, spans([embeddings])))


@dataclass(frozen=True)
class Span:
    """Rows of one of several sets that a thread takes together."""

    index: int
    start: int
    stop: int


def spans(sets: Sequence[Table]) -> list[Span]:
    """Cut the rows of sets into spans that do not depend on the number of threads."""
    found = []
    for index, one in enumerate(sets):
        step = max(1, _CHUNK // one.shape[1])
        starts = range(0, len(one), step)
        found += [Span(index, start, min(start + step, len(one))) for start in starts]
    return found


def blocks(array: Table, what: str, span: Span) -> Iterator[tuple[npt.NDArray[Any], Floats]]:
    """Yield rows as float32 or float64 with 1 / |row|, 0 for rows of zeros.

    Raises
    ------
    InputError
        When a row holds NaN or infinite numbers.
    """
    step = max(1, _BLOCK // array.shape[1])
    for start in range(span.start, span.stop, step):
        rows = _floats(array[start : min(start + step, span.stop)])
        scale = np.empty(len(rows))
        # Squares of very small numbers sum to 0 too.
        if not inverse_lengths(rows, scale) or rows[scale == 0].any():
            rows = _in_range(rows, what, start)
            inverse_lengths(rows, scale)
        yield rows, scale


def _floats(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows as they are where kernels can read them, else a copy."""
    if rows.dtype in (np.float32, np.float64):
        return np.require(rows, requirements=["C", "A"])
    if rows.dtype == np.float16:
        return widened(rows)
    return np.ascontiguousarray(rows, dtype=np.float64)


def _in_range(rows: npt.NDArray[Any], what: str, start: int) -> Floats:
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    if not np.isfinite(largest).all():
        row = start + int(np.flatnonzero(~np.isfinite(largest))[0])
        raise InputError(f"{what}: NaN or infinite in row {row}; expected finite numbers")
    return in_range(rows, largest)
