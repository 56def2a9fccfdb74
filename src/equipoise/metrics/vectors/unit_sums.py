"""Sums of unit vectors: all that a mean cosine needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core import AnyArray, Floats, InputError, Integers
from equipoise.metrics.vector_rows import Table, float_rows, inverse_lengths, project
from equipoise.metrics.vectors.sets import kernel_rows
from equipoise.stats.compiled import compiled
from equipoise.stats.shuffling import keys, shuffle
from equipoise.stats.streams import Seed
from equipoise.stats.threads import each

Labels = npt.NDArray[np.uint16]

# Numbers that a thread takes at a time, and of those the ones that are normalised, and converted
# where need be, together: these stay in the cache. Fixed, for sums to have one order.
_CHUNK, _BLOCK = 1 << 21, 1 << 18
# Permutations that share a pass over the images: at most, where bytes of labels and numbers of
# sums may be held for so many; and, so that time grows as the images do, at least.
_TOGETHER, _LABELS, _CELLS, _LEAST = 64, 1 << 26, 1 << 22, 32
# Sets that labels of 16 bits tell apart.
_MOST = 1 << 16
# Columns of a tile in the kernel.
_WIDTH = 64

_SCATTER = float_rows(
    "void(rows, float64[::1], int64[::1], uint16[:, ::1], int64, float64[:, :, :, ::1])"
)


@compiled(*float_rows("void(rows, float64[::1], float64[::1])"))
def add_scaled(rows: AnyArray, scale: Floats, total: Floats) -> None:
    """Add the rows, each times its scale, to `total` (d,)."""
    n, d = rows.shape
    for i in range(n):
        factor = scale[i]
        if factor != 0.0:
            for j in range(d):
                total[j] += factor * np.float64(rows[i, j])


@compiled(*_SCATTER)
def scatter(
    rows: AnyArray,
    scale: Floats,
    used: Integers,
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

    total: Floats
    count: int
    zeros: int

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


def unit_sums(sets: Sequence[Table], names: Sequence[str]) -> list[UnitSums]:
    """Sum the unit vectors of each set, all in one pass over threads.

    Raises
    ------
    InputError
        When a set holds NaN or infinite numbers, or sets differ in their dimension.
    """
    dimensions = {one.shape[1] for one in sets}
    if len(dimensions) > 1:
        raise InputError(f"sets of different dimensions {sorted(dimensions)}; expected one space")

    def add(_: int, rows: AnyArray, scale: Floats, total: Floats) -> None:
        add_scaled(rows, scale, total[:-1])
        total[-1] += np.count_nonzero(scale)

    found = []
    for total, one in zip(_accumulated(sets, names, dimensions.pop() + 1, add), sets, strict=True):
        count = int(total[-1])
        found.append(UnitSums(total[:-1], count, len(one) - count))
    return found


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

    def add(index: int, rows: AnyArray, scale: Floats, total: Floats) -> None:
        found = np.empty((len(rows), len(means)))
        project(rows, scale, means, found)
        apart = (found - centres[index])[scale > 0]
        total += np.einsum("ni,nj->ij", apart, apart)

    return _accumulated(sets, ["embeddings"] * len(sets), centres.shape, add)


def exchanged(
    sets: Sequence[Table], counts: Sequence[int], permutations: int, seed: Seed
) -> Floats:
    """Return ISS_cross of sets whose images are exchanged at random, shape (permutations,).

    Every permutation sums the unit vectors of its sets anew, in float64 and in the order of the
    images; images are read in blocks, once for up to 64 permutations.

    Parameters
    ----------
    sets : sequence of ndarray, shape (n_s, d)
    counts : sequence of int
        Rows of each set that are not zero: the sizes that stay.
    permutations, seed : int

    Raises
    ------
    InputError
        When there are more than 65,536 sets.
    """
    many, d = len(sets), sets[0].shape[1]
    if many > _MOST:
        raise InputError(f"sets: {many}; expected at most {_MOST:,} that exchange images")
    owner = np.repeat(np.arange(many, dtype=np.uint16), counts)
    tiles = -(-d // _WIDTH)
    held = max(_LEAST, _LABELS // owner.nbytes)
    step = max(1, min(_TOGETHER, held, _CELLS // (tiles * _WIDTH * many)))
    streams = keys(seed, "exchange", many=permutations)

    def cross(start: int) -> Floats:
        some = streams[start : start + step]
        labels = np.tile(owner, (len(some), 1))
        shuffle(some, labels)
        totals, first = np.zeros((tiles, len(some), many, _WIDTH)), 0
        for one in sets:
            for rows, scale in blocks(one, "embeddings", range(len(one))):
                used = np.flatnonzero(scale)
                scatter(rows, scale, used, labels, first, totals)
                first += len(used)
        sums = np.concatenate(list(totals), axis=2)[:, :, :d]
        means = sums / np.asarray(counts, dtype=np.float64)[:, None]
        whole = means.sum(axis=1)
        # Σ_{a<b} m_a·m_b from the sum of all means.
        cosines = np.einsum("rd,rd->r", whole, whole) - np.einsum("rsd,rsd->r", means, means)
        return np.asarray(1.0 - cosines / 2.0 / (many * (many - 1) / 2.0))

    return np.concatenate(each(cross, range(0, permutations, step)))


def blocks(array: Table, name: str, span: range) -> Iterator[tuple[AnyArray, Floats]]:
    """Yield rows as float32 or float64 with 1 / |row|, 0 for rows of zeros.

    Raises
    ------
    InputError
        When a row holds NaN or infinite numbers.
    """
    step = max(1, _BLOCK // array.shape[1])
    for start in range(span.start, span.stop, step):
        rows = kernel_rows(array[start : min(start + step, span.stop)])
        scale = np.empty(len(rows))
        inverse_lengths(rows, scale)
        if len(bad := np.flatnonzero(np.isnan(scale))):
            raise InputError(f"{name}: NaN or infinite in row {start + bad[0]}")
        yield rows, scale


def _accumulated(
    sets: Sequence[Table],
    names: Sequence[str],
    shape: int | tuple[int, ...],
    add: Callable[[int, AnyArray, Floats, Floats], None],
) -> list[Floats]:
    """Return for each set a total to which `add` adds a set's index, its rows and their scale."""

    def over(work: tuple[int, range]) -> Floats:
        index, span = work
        total = np.zeros(shape)
        for rows, scale in blocks(sets[index], names[index], span):
            add(index, rows, scale, total)
        return total

    # Spans do not depend on the number of threads.
    step = max(1, _CHUNK // sets[0].shape[1])
    works = [
        (index, range(start, min(start + step, len(one))))
        for index, one in enumerate(sets)
        for start in range(0, len(one), step)
    ]
    totals = [np.zeros(shape) for _ in sets]
    for (index, _), total in zip(works, each(over, works), strict=True):
        totals[index] += total
    return totals
