"""Diversity of image sets: mean distances within and between sets, in linear time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy import special

from equipoise.core import (
    AnyArray,
    Chance,
    Estimate,
    Excluded,
    Floats,
    Floats32,
    GroupValue,
    InputError,
    Integers,
    NullHypothesis,
    Part,
    Span,
    Strings,
    floats,
    nans,
    record,
)
from equipoise.metrics.building import (
    UNTESTED,
    ChanceTest,
    compare_with_null,
    explain_undefined,
    number,
)
from equipoise.metrics.measure import DEFAULT, NO_INTERVAL
from equipoise.metrics.registry import metric
from equipoise.metrics.spec import COSINE, MetricSpec, make_estimate
from equipoise.metrics.vector_rows import Table, float_rows, inverse_lengths, project
from equipoise.metrics.vectors.sets import embedding_table, kernel_rows
from equipoise.stats.compiled import compiled
from equipoise.stats.moments import Moments
from equipoise.stats.resampling import Resampling, level_of
from equipoise.stats.streams import Seed, keys, shuffle
from equipoise.stats.threads import each

Labels = NDArray[np.uint16]

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
# Rows of the smallest set, and numbers of a vector, up to which sums are drawn from moments; and
# products of these numbers that are held at once.
_LARGE, _WIDEST, _PRODUCTS = 4096, 2048, 1 << 24

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
        n_rows = np.uint64(chosen.shape[0])
        begin = np.uint64(first + done)
        for column in range(np.uint64(totals.shape[0])):
            start = np.int64(column) * 64
            for i in range(chosen.shape[0]):
                for j in range(64):
                    inside = start + j < d
                    number = np.float64(rows[chosen[i], start + j]) if inside else 0.0
                    tile[i, j] = scale[chosen[i]] * number
            for line in range(np.uint64(labels.shape[0])):
                for i in range(n_rows):
                    to = np.uint64(labels[line, begin + i])
                    for j in range(np.uint64(64)):
                        totals[column, line, to, j] += tile[i, j]


@compiled(*float_rows("void(rows, float64[::1], float32[:, ::1])"))
def scaled(rows: AnyArray, scale: Floats, out: Floats32) -> None:
    """Write the rows, each times its scale."""
    n, d = rows.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = np.float64(rows[i, j]) * scale[i]


@record
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

    @classmethod
    def pool(cls, sums: Sequence[UnitSums]) -> UnitSums:
        """Return the sum of several sets together."""
        total = np.add.reduce([set_sums.total for set_sums in sums])
        count = sum(set_sums.count for set_sums in sums)
        return cls(total, count, sum(set_sums.zeros for set_sums in sums))

    @property
    def mean(self) -> Floats:
        """Mean unit vector, shape (d,); NaN for an empty set."""
        return self.total / self.count if self.count else nans(len(self.total))

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
    dimensions = {array.shape[1] for array in sets}
    if len(dimensions) > 1:
        raise InputError(f"sets of different dimensions {sorted(dimensions)}; expected one space")

    def add(_: int, rows: AnyArray, scale: Floats, total: Floats) -> None:
        add_scaled(rows, scale, total[:-1])
        total[-1] += np.count_nonzero(scale)

    sums_by_set = []
    for total, array in zip(
        _accumulated(sets, names, dimensions.pop() + 1, add), sets, strict=True
    ):
        count = int(total[-1])
        sums_by_set.append(UnitSums(total[:-1], count, len(array) - count))
    return sums_by_set


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
        projections = np.empty((len(rows), len(means)))
        project(rows, scale, means, projections)
        centred = (projections - centres[index])[scale > 0]
        total += np.einsum("ni,nj->ij", centred, centred)

    return _accumulated(sets, ["embeddings"] * len(sets), centres.shape, add)


def exchanged(
    sets: Sequence[Table], counts: Sequence[int], permutations: int, seed: Seed
) -> Floats:
    """Return ISS_cross under exchanged images, shape (permutations,).

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
    n_sets, d = len(sets), sets[0].shape[1]
    if n_sets > _MOST:
        raise InputError(f"sets: {n_sets}; expected at most {_MOST:,} that exchange images")
    owner = np.repeat(np.arange(n_sets, dtype=np.uint16), counts)
    tiles = -(-d // _WIDTH)
    most_together = max(_LEAST, _LABELS // owner.nbytes)
    step = max(1, min(_TOGETHER, most_together, _CELLS // (tiles * _WIDTH * n_sets)))
    streams = keys(seed, "exchange", n_streams=permutations)

    def cross(start: int) -> Floats:
        block_streams = streams[start : start + step]
        labels = np.tile(owner, (len(block_streams), 1))
        shuffle(block_streams, labels)
        totals, first = np.zeros((tiles, len(block_streams), n_sets, _WIDTH)), 0
        for array in sets:
            for rows, scale in blocks(array, "embeddings", range(len(array))):
                used = np.flatnonzero(scale)
                scatter(rows, scale, used, labels, first, totals)
                first += len(used)
        sums = np.concatenate(list(totals), axis=2)[:, :, :d]
        return _mean_between(sums, counts)

    return np.concatenate(each(cross, range(0, permutations, step)))


def _mean_between(sums: Floats, counts: Sequence[int]) -> Floats:
    """Return ISS_cross from sums of unit vectors, shape (permutations, sets, d)."""
    means, n_sets = sums / floats(counts)[:, None], len(counts)
    total = means.sum(axis=1)
    # Σ_{a<b} m_a·m_b from the sum of all means.
    cosines = np.einsum("rd,rd->r", total, total) - np.einsum("rsd,rsd->r", means, means)
    return floats(1.0 - cosines / 2.0 / (n_sets * (n_sets - 1) / 2.0))


def _moments(sets: Sequence[Table], sums: Sequence[UnitSums]) -> Moments:
    """Return the moments of the unit vectors of all sets together."""
    d, pooled = sets[0].shape[1], UnitSums.pool(sums)

    def read(work: tuple[int, range]) -> Iterator[Floats32]:
        index, span = work
        for vectors, scale in blocks(sets[index], "embeddings", span):
            unit_vectors = np.empty(vectors.shape, np.float32)
            scaled(vectors, scale, unit_vectors)
            yield unit_vectors if scale.all() else unit_vectors[scale > 0]

    # Every span has sums of d² products, which are held together.
    n_spans = -(-sum(map(len, sets)) // max(1, _PRODUCTS // d**2))
    spans = _spans(sets, max(n_spans, _CHUNK // d))
    return Moments.around(pooled.mean, pooled.count, read, spans)


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

    works = _spans(sets, max(1, _CHUNK // sets[0].shape[1]))
    totals = [np.zeros(shape) for _ in sets]
    for (index, _), total in zip(works, each(over, works), strict=True):
        totals[index] += total
    return totals


def _spans(sets: Sequence[Table], step: int) -> list[tuple[int, range]]:
    """Cut sets into spans, which do not depend on the number of threads."""
    spans = []
    for index, array in enumerate(sets):
        for start in range(0, len(array), step):
            spans.append((index, range(start, min(start + step, len(array)))))
    return spans


REFERENCE = "Mandal 2024, chapter 3 (image similarity score)"
_NULL = "both sets are equally diverse: Welch's t of the jackknifed difference, two-sided"
_FEW = "fewer than two images with a direction"
_WELCH = "jackknife over the images of each set, Student's t (Welch)"
_set = partial(
    MetricSpec,
    kinds=("diversity", "dataset"),
    range=(0.0, 2.0),
    reference=REFERENCE,
)


@dataclass(frozen=True)
class Spread:
    """Ends of a distance or a difference: value ± t · standard error, within bounds.

    Attributes
    ----------
    value, error, freedom : float
        Estimate, jackknife standard error and degrees of freedom of Student's t; NaN when a
        set is too small for them.
    least : float
        Lower bound; the upper one is 2.
    """

    value: float
    error: float
    freedom: float
    least: float = 0.0

    def half(self, level: float) -> float:
        """Return half the width of the interval."""
        return float(special.stdtrit(self.freedom, (1.0 + level) / 2.0)) * self.error

    def __call__(self, level: float) -> Span:
        """Return the lower and upper end."""
        ends = self.value - self.half(level), self.value + self.half(level)
        low, high = np.clip(ends, self.least, 2.0).tolist()
        return low, high

    def minus(self, other: Spread) -> Spread:
        """Return the difference of two independent distances, with Welch's degrees of freedom."""
        parts = (self.error**2, other.error**2)
        total = sum(parts)
        if not total > 0.0:
            return Spread(self.value - other.value, total, math.nan, -2.0)
        below = parts[0] ** 2 / self.freedom + parts[1] ** 2 / other.freedom
        return Spread(self.value - other.value, math.sqrt(total), total**2 / below, -2.0)


@record
class Sets:
    """Named sets of embeddings of one space, with the sums of their unit vectors.

    Metrics take them in place of arrays, and then read the arrays no further than they must.

    Attributes
    ----------
    names : tuple of str
    arrays : sequence of ndarray, shape (n_s, d)
    sums : sequence of UnitSums
    without_spreads : bool
        Without spreads.
    parent : tuple of (Sets, list of int), or None
        The sets that these are some of, and their places there.
    """

    names: Strings
    arrays: Sequence[Table]
    sums: Sequence[UnitSums]
    without_spreads: bool
    parent: tuple[Sets, list[int]] | None = None

    @classmethod
    def of(
        cls,
        sets: SetsLike,
        resampling: Resampling | None,
        least: int = 1,
        subject: str = "",
    ) -> Sets:
        """Check the sets and sum their unit vectors; without resampling spreads are unknown.

        Errors name the argument `subject`, without one `sets`.

        Raises
        ------
        InputError
            When there are too few sets, dimensions differ, or a set is not (n, d) real finite
            numbers.
        """
        without_spreads = resampling is None
        if not isinstance(sets, Mapping | Sets):
            sets = {str(index): array for index, array in enumerate(sets)}
        n_sets = len(sets.names if isinstance(sets, Sets) else sets)
        if n_sets < least:
            raise InputError(f"sets: {n_sets}; expected {least} or more sets of embeddings")
        if isinstance(sets, Sets):
            if sets.without_spreads == without_spreads:
                return sets
            return replace(sets, without_spreads=without_spreads)
        labels = [subject or f"sets[{str(name)!r}]" for name in sets]
        tables = [embedding_table(x, name) for x, name in zip(sets.values(), labels, strict=True)]
        return cls(tuple(map(str, sets)), tables, unit_sums(tables, labels), without_spreads)

    def only(self, names: Iterable[str]) -> Sets:
        """Return some of the sets."""
        places = [self.names.index(name) for name in names]
        chosen = tuple(self.names[place] for place in places)
        if chosen == self.names:
            return self
        arrays = [self.arrays[place] for place in places]
        sums = [self.sums[place] for place in places]
        return Sets(chosen, arrays, sums, self.without_spreads, (self, places))

    @property
    def counts(self) -> list[int]:
        """Images with a direction, of each set."""
        return [set_sums.count for set_sums in self.sums]

    @property
    def sizes(self) -> dict[str, int]:
        """Images with a direction, by the name of their set."""
        return dict(zip(self.names, self.counts, strict=True))

    @property
    def excluded(self) -> dict[str, int]:
        """Images without a direction."""
        return {"zero vectors": UnitSums.pool(self.sums).zeros}

    @cached_property
    def means(self) -> Floats:
        """Mean unit vector of each set, shape (sets, d)."""
        return np.stack([set_sums.mean for set_sums in self.sums])

    @cached_property
    def cosines(self) -> Floats:
        """Mean cosine of each pair of sets, shape (sets, sets), self-pairs included."""
        return floats(np.einsum("id,jd->ij", self.means, self.means))

    @cached_property
    def scatters(self) -> list[Floats]:
        """Of each set, sums of squares and products of projections on all sets' means."""
        if self.parent is None:
            return scatters(self.arrays, self.means)
        parent, places = self.parent
        return [parent.scatters[place][np.ix_(places, places)] for place in places]

    def exchanges(self, permutations: int, seed: Seed) -> tuple[Floats, str]:
        """Return ISS_cross under exchanged images, and how it was drawn.

        Sums of large sets are drawn from the moments of all unit vectors.
        """
        counts, d = self.counts, self.arrays[0].shape[1]
        # Few exchanges take less time than the moments.
        if min(counts) >= _LARGE and d <= min(_WIDEST, 16 * permutations):
            moments = _moments(self.arrays, self.sums)
            if moments.normal(min(counts), moments.rows):
                text = f"{permutations} exchanges drawn from the moments of the images"
                cross, sizes = partial(_mean_between, counts=counts), np.array(counts)
                replicates = moments.exchanged_sums(cross, sizes, permutations, seed, "sets")
                return np.concatenate(replicates), text
        return exchanged(self.arrays, counts, permutations, seed), f"{permutations} permutations"

    def within(self, a: int, *, include_self: bool = False) -> Spread:
        """Return the mean distance within a set.

        Deleting row i leaves (|S|² - 2 S·u_i + 1 - (n - 1)) / ((n - 1)(n - 2)) as mean cosine:
        the jackknife variance of this U-statistic is linear in n. It never pairs an image with
        its own copy, as a bootstrap would, and is on average not below the true variance (Efron
        & Stein).
        """
        n = self.sums[a].count
        factor = (n - 1.0) / n if include_self and n else 1.0
        value = factor * self.sums[a].distance
        if n < 3 or self.without_spreads:
            return Spread(value, math.nan, math.nan)
        squares = float(self.scatters[a][a, a])
        deviation = 2.0 * factor * n * np.sqrt(squares) / ((n - 1.0) * (n - 2.0))
        return Spread(value, float(np.sqrt((n - 1.0) / n) * deviation), n - 1.0)

    def between(self, chosen: Sequence[int], weights: Floats, value: float) -> Spread:
        """Return a weighted mean of distances between independent sets.

        The statistic is linear in each set's mean vector, so its jackknife variance is the sum
        over sets of a variance of projections on what the set is compared with; the degrees of
        freedom are Welch and Satterthwaite's.
        """
        n = np.array(self.counts, dtype=np.float64)[[*chosen]]
        if n.min() < 2 or self.without_spreads:
            return Spread(value, math.nan, math.nan)
        squares = np.empty(len(chosen))
        for place, (index, row) in enumerate(zip(chosen, weights, strict=True)):
            squares[place] = np.einsum("i,ij,j->", row, self.scatters[index], row)
        parts = squares / (n - 1.0) / n
        variance = float(parts.sum())
        effective = (n - 1.0).sum()
        if variance:
            effective = variance**2 / float((parts**2 / (n - 1.0)).sum())
        return Spread(value, float(np.sqrt(variance)), float(effective))

    def pair(self, a: int, b: int) -> Spread:
        """Return the mean distance of two sets, or within one, with its spread."""
        if a == b:
            return self.within(a)
        value = 1.0 - float(self.cosines[a, b])
        return self.between([a, b], np.eye(len(self.names))[[b, a]], value)

    def diversities(self, level: float) -> tuple[GroupValue, ...]:
        """Return the mean distance within each set as the value of a group."""
        spreads = [self.within(a) for a in range(len(self.names))]
        return tuple(
            GroupValue(
                name, (name,), n, spread.value, *spread(level),
                explain_undefined(spread.value, _FEW),
            )
            for name, n, spread in zip(self.names, self.counts, spreads, strict=True)
        )  # fmt: skip

    def part(
        self, metric: str, subject: str, chosen: Collection[int], spread: Spread, **columns: Any
    ) -> Part:
        """Return a number of some sets as a part."""
        pooled = UnitSums.pool([self.sums[index] for index in {*chosen}])
        if pooled.zeros:
            columns["excluded"] = (Excluded("zero vectors", pooled.zeros),)
        return number(metric, spread.value, subject=subject, ends=spread, n=pooled.count, **columns)


SetsLike = Sets | Sequence[ArrayLike] | Mapping[str, ArrayLike]


def principal_components(sets: Mapping[str, ArrayLike], components: int) -> dict[str, AnyArray]:
    """Project sets on the principal components of all their rows together.

    Rows of zeros, which have no direction, stay rows of zeros.

    Raises
    ------
    InputError
        When `components` does not fit, or sets are not as in `iss_cross`.
    """
    arrays = [np.asarray(embedding_table(array, f"sets[{x!r}]")) for x, array in sets.items()]
    all_rows = np.concatenate([floats(array) for array in arrays])
    directed = (all_rows != 0).any(axis=1)
    rows = all_rows[directed]
    if not 1 <= components <= min(rows.shape):
        raise InputError(
            f"components={components}: expected 1 to {min(rows.shape)}, "
            "the smaller of images and dimensions"
        )
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    projected = np.zeros((len(all_rows), components))
    projected[directed] = centred @ axes[:components].T
    return dict(zip(sets, np.split(projected, np.cumsum([*map(len, arrays)])[:-1]), strict=True))


@metric(
    _set(
        name="iss_intra",
        aliases=("iss", "image similarity score"),
        title="Diversity within a set",
        symbol="ISS intra",
        harm="lower",
        definition="Mean distance 1 − cos over the pairs of different images of a set.",
        direction="Lower: images of the set are more alike.",
        chance="none: one set has no groups to exchange",
        interval="jackknife of the U-statistic, Student's t",
        errata=(
            "The source's Algorithm 1 counts self-pairs, which lowers the value by (n − 1)/n: in "
            "its Table A.1, ISS cross exceeds ISS intra in 30 of 45 sets as printed, and in 3 of "
            "45 without self-pairs at n = 20."
        ),
    )
)
def iss_intra(
    embeddings: ArrayLike | Sets,
    *,
    include_self: bool = False,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Mean distance 1 - cos over the pairs of images of one set (ISS_intra).

    Parameters
    ----------
    embeddings : array-like, shape (n, d), or Sets
        One row per image; rows need not be normalised. Rows of zeros have no direction: they
        are left out and counted in `.excluded`.
    include_self : bool
        Count the n zero distances of images to themselves, as the source's Algorithm 1 does:
        lowers the value by the factor (n - 1) / n.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. Otherwise the interval is a closed form: nothing is drawn.

    Returns
    -------
    Estimate
        In [0, 2], lower is less diverse; NaN below two images. No chance level: one set has no
        groups to exchange.

    Raises
    ------
    InputError
        When the array is not (n, d) real finite numbers.

    References
    ----------
    Mandal 2024, chapter 3; Efron & Stein 1981, Annals of Statistics 9, 586-596.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.iss_intra(rng.normal(size=(50, 8)))
    <iss_intra 1.011 [0.992, 1.029]; n = 50>
    """
    named = embeddings if isinstance(embeddings, Sets) else {"images": embeddings}
    sets = Sets.of(named, resampling, subject="embeddings")
    spread = sets.within(0, include_self=include_self)
    return make_estimate(
        "iss_intra",
        spread.value,
        sets.sizes,
        NO_INTERVAL if resampling is None else "jackknife of the U-statistic, Student's t",
        params={"include_self": include_self},
        no_chance="one set has no groups to exchange",
        excluded=sets.excluded,
        unit="image",
        reason=explain_undefined(spread.value, _FEW),
        ends=spread,
    )


@metric(
    _set(
        name="iss_cross",
        null_kind=NullHypothesis.MEMBERS,
        neutral=None,
        title="Distance between sets",
        symbol="ISS cross",
        group_metric="iss_intra",
        definition="Mean over pairs of sets of the mean distance 1 − cos between their images.",
        threshold=0.01,
        threshold_reason=COSINE,
        direction="Higher: sets are further apart.",
        chance="the mean distance over all pairs of images",
        interval="jackknife over the images of each set, Welch's t",
        null="images are exchangeable between sets",
    )
)
def iss_cross(
    sets: SetsLike,
    *,
    resampling: Resampling | None = DEFAULT,
    rng: Seed = 0,
) -> Estimate:
    """Mean over pairs of sets of the mean distance between their images (ISS_cross).

    Parameters
    ----------
    sets : sequence or mapping of name to array-like (n_s, d), or Sets
        Two or more sets of one dimension, of any sizes. Zero rows as in `iss_intra`.
    resampling : Bootstrap, Permutation or None
        Permutations for the chance level; intervals are closed forms. None: the value alone.
    rng : int or Generator
        Seed.

    Returns
    -------
    Estimate
        In [0, 2], higher: sets lie further apart. Chance: images are exchangeable between sets,
        whose mean is exactly the mean distance over all pairs of images; p is one-sided. `.by`
        has "iss_intra" of each set and "mean_distance" of each pair of sets.

    Raises
    ------
    InputError
        When there are fewer than two sets, dimensions differ, or a set is not (n, d) real
        finite numbers.

    References
    ----------
    Mandal 2024, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.iss_cross(
    ...     {"women": rng.normal(size=(50, 8)), "men": rng.normal(size=(50, 8)) + 1}
    ... )
    <iss_cross 1.022 [0.950, 1.094]; chance 0.893, p ≤ 0.001, n = 100 in 2 groups>
    """
    named_sets = Sets.of(sets, resampling, least=2)
    n_sets = len(named_sets.names)
    weights = (1.0 - np.eye(n_sets)) / (n_sets * (n_sets - 1) / 2)
    value = 1.0 - float(named_sets.cosines[np.triu_indices(n_sets, 1)].mean())
    spread = named_sets.between(range(n_sets), weights, value)
    undefined, chance_test = math.isnan(value), UNTESTED
    if resampling is not None and not undefined:
        null, draw_text = named_sets.exchanges(resampling.permutations, rng)
        text = f"images are exchangeable between sets; {draw_text}"
        chance_test = compare_with_null(
            null, value, "higher", text, resolution=resampling.resolution, scale=1.0
        )
        if chance_test.chance:
            pooled = UnitSums.pool(named_sets.sums)
            chance_test = replace(
                chance_test, chance=replace(chance_test.chance, mean=pooled.distance)
            )
    parts = []
    for a, b in [*zip(range(n_sets), range(n_sets), strict=True), *combinations(range(n_sets), 2)]:
        pair_spread = named_sets.pair(a, b)
        metric, subject = "iss_intra", named_sets.names[a]
        if a != b:
            metric, subject = "mean_distance", f"{named_sets.names[a]} × {named_sets.names[b]}"
        reason = explain_undefined(pair_spread.value, _FEW)
        parts.append(
            named_sets.part(
                metric, subject, (a, b), pair_spread, level=level_of(resampling), reason=reason
            )
        )
    return make_estimate(
        "iss_cross",
        value,
        named_sets.sizes,
        _WELCH if resampling else NO_INTERVAL,
        **chance_test.fields("not estimable" if undefined else "resampling is off"),
        by=parts,
        excluded=named_sets.excluded,
        unit="image",
        reason=explain_undefined(value, "a set has no image with a direction"),
        ends=spread,
    )


@metric(
    _set(
        name="mean_distance",
        of_pair=True,
        title="Mean distance of two sets",
        group_metric="iss_intra",
        definition="Mean distance 1 − cos between images of two sets.",
        direction="Higher: the two sets are further apart.",
        chance="none: compare it with the diversity within both sets",
        interval="jackknife over the images of both sets, Welch's t",
    )
)
def mean_distance(sets: SetsLike, *, resampling: Resampling | None = DEFAULT) -> Estimate:
    """Mean distance 1 - cos between the images of two sets.

    Parameters
    ----------
    sets
        Two sets, as in `iss_cross`.
    resampling : Bootstrap, Permutation or None
        None gives the value alone. Otherwise the interval is a closed form.

    Returns
    -------
    Estimate
        In [0, 2], higher: the sets lie further apart. No chance level: read it beside `iss_intra`
        of both.

    Raises
    ------
    InputError
        When there are not two sets, or they are not as in `iss_cross`.

    References
    ----------
    Mandal 2024, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.mean_distance({"women": rng.normal(size=(50, 8)), "men": rng.normal(size=(50, 8)) + 1})
    <mean_distance 1.022 [0.950, 1.094]; n = 100 in 2 groups>
    """
    pair = Sets.of(sets, resampling, least=2)
    if len(pair.names) > 2:
        raise InputError(f"sets: {len(pair.names)}; expected 2, whose distance is measured")
    spread = pair.pair(0, 1)
    return make_estimate(
        "mean_distance",
        spread.value,
        pair.sizes,
        NO_INTERVAL if resampling is None else _WELCH,
        no_chance="it has no chance level: compare it with ISS intra",
        excluded=pair.excluded,
        unit="image",
        reason=explain_undefined(spread.value, _FEW),
        ends=spread,
    )


def mean_distances(
    sets: SetsLike,
    *,
    level: float = 0.95,
) -> pa.Table:
    """Matrix of mean distances of sets × sets, in long form.

    Parameters
    ----------
    sets
        As in `iss_cross`; one set is enough.
    level : float
        Confidence level of the intervals.

    Returns
    -------
    pyarrow.Table
        set_a, set_b, distance, low, high, n_a, n_b: all ordered pairs; set_a = set_b is
        ISS_intra without self-pairs. NaN where a set is too small.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.mean_distances(
    ...     {"women": rng.normal(size=(50, 8)), "men": rng.normal(size=(50, 8))}
    ... ).num_rows
    4
    """
    named_sets = Sets.of(sets, DEFAULT)
    rows = []
    for (a, name), (b, other_name) in product(enumerate(named_sets.names), repeat=2):
        spread = named_sets.pair(min(a, b), max(a, b))
        ends = dict(zip(("low", "high"), spread(level), strict=True))
        counts = {"n_a": named_sets.sums[a].count, "n_b": named_sets.sums[b].count}
        rows.append(
            {"set_a": name, "set_b": other_name, "distance": spread.value, **ends, **counts}
        )
    return pa.Table.from_pylist(rows)


@metric(
    _set(
        name="iss_difference",
        of_pair=True,
        null_kind=NullHypothesis.NORMAL,
        title="Difference in diversity",
        group_metric="iss_intra",
        range=(-2.0, 2.0),
        harm="either",
        sentence="{direction}, a difference of {size} in the embeddings{model}.",
        definition=(
            "Mean distance of two images of a set (ISS intra) minus that of another set, for the "
            "pair that differs most."
        ),
        threshold=0.02,
        threshold_reason=COSINE,
        direction="Either: negative means the first set's images are more alike.",
        chance="0",
        interval="jackknife of both U-statistics, Student's t with Welch's degrees of freedom",
        null="both sets are equally diverse: Welch's t, two-sided, Bonferroni over pairs",
        reference="Mandal 2024, chapter 3 (image similarity score); Efron & Stein 1981",
    )
)
def iss_difference(
    sets: SetsLike,
    *,
    resampling: Resampling | None = DEFAULT,
) -> Estimate:
    """Largest difference of ISS_intra between two of several sets.

    Parameters
    ----------
    sets : sequence or mapping of name to array-like (n_s, d), or Sets
        Two or more sets of independent images in one space, of any sizes.
    resampling : Bootstrap, Permutation or None
        None gives values alone. Otherwise intervals and tests are closed forms.

    Returns
    -------
    Estimate
        In [-2, 2]: of the pair that differs most, the first set's ISS_intra minus the second's;
        chance 0. `.by` has "iss_difference" of every pair ("a − b"), with the ISS_intra of
        both in `by_group`. The p-value of the whole is Bonferroni's over the pairs.

    Raises
    ------
    InputError
        When there are fewer than two sets, or they are not as in `iss_cross`.

    References
    ----------
    Mandal 2024, chapter 3; Efron & Stein 1981, Annals of Statistics 9, 586-596.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise import metrics as m
    >>> rng = np.random.default_rng(0)
    >>> m.iss_difference(
    ...     {"women": rng.normal(size=(50, 8)), "men": rng.normal(size=(50, 8)) + 1}
    ... )
    <iss_difference 0.498 [0.428, 0.567]; chance 0.000, p = 2.3e-20, n = 100 in 2 groups>
    """
    named_sets = Sets.of(sets, resampling, least=2)
    spreads = [named_sets.within(a) for a in range(len(named_sets.names))]
    level = level_of(resampling)
    diversities = named_sets.diversities(level)
    parts, differences, chance_tests = [], [], []
    for pair in combinations(range(len(spreads)), 2):
        difference, chance_test = spreads[pair[0]].minus(spreads[pair[1]]), UNTESTED
        if difference.error > 0.0:
            half = difference.half(0.95)
            p = float(
                2.0 * special.stdtr(difference.freedom, -abs(difference.value) / difference.error)
            )
            chance_test = ChanceTest(Chance(0.0, -half, half, _NULL), p, _NULL)
        groups = tuple(diversities[a] for a in pair)
        subject = f"{groups[0].group} − {groups[1].group}"
        defined = difference.error > 0.0 or (
            named_sets.without_spreads and not math.isnan(difference.value)
        )
        reason = "" if defined else "too few images with a direction in a set, or all are alike"
        parts.append(
            named_sets.part(
                "iss_difference", subject, pair, difference, level=level, chance_test=chance_test,
                by_group=groups, reason=reason, shows="iss_intra",
            )
        )  # fmt: skip
        differences.append(difference)
        chance_tests.append(chance_test)
    largest = int(np.argmax([-1.0 if math.isnan(p.value) else abs(p.value) for p in parts]))
    part, chance_test = parts[largest], chance_tests[largest]
    tests = sum(test.p_value is not None for test in chance_tests)
    if chance_test.p_value is not None:
        chance_test = replace(chance_test, p_value=min(1.0, tests * chance_test.p_value))
    null = _NULL if tests == 1 else f"{_NULL}; Bonferroni over {tests} pairs"
    return make_estimate(
        "iss_difference",
        part.value,
        named_sets.sizes,
        NO_INTERVAL if named_sets.without_spreads else "jackknife of both U-statistics, Welch's t",
        params={"pair": part.subject},
        **replace(chance_test, null_drawn="" if named_sets.without_spreads else null).fields(
            part.reason or "resampling is off"
        ),
        by=parts,
        excluded=named_sets.excluded,
        unit="image",
        reason=part.reason,
        ends=differences[largest],
    )
