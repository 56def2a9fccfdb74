"""Bootstrap replicates of sets of embeddings, the same for any number of threads.

Members count whole numbers of times, and vectors are rounded so that weighted sums are exact in
float64 whatever their order; what is lost is below 1e-9 of a replicate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt

from equipoise.metrics.associations.members import Members
from equipoise.metrics.associations.space import Sets
from equipoise.stats.poisson import unit_counts
from equipoise.stats.streams import stream, unit_keys

Floats = npt.NDArray[np.float64]

_BLOCK, _BLOCK_CELLS = 256, 4_000_000
_EXACT_BITS = 52
# Numbers of vectors that are made whole together.
_AT_ONCE = 1 << 20


def replicate_blocks(
    sets: Sets, fixed: Collection[str], replicates: int, seed: int
) -> Iterator[Mapping[str, Floats]]:
    """Yield blocks of weights (replicates, members) of every set.

    Members that repeat within units count a Poisson(1) number of times, a function of the unit's
    name alone; others are drawn with replacement. Sets that are fixed, or have one member, count
    each member once.
    """
    largest = max(len(one) for one in sets.values())
    size = max(1, min(_BLOCK, _BLOCK_CELLS // largest))
    for start in range(0, replicates, size):
        many = min(size, replicates - start)
        yield {name: _weights(one, name in fixed, start, many, seed) for name, one in sets.items()}


def resampled(sets: Sets, fixed: Collection[str]) -> tuple[str, ...]:
    """Names of the sets whose members vary between replicates."""
    return tuple(name for name, one in sets.items() if name not in fixed and _varies(one))


def mean_vectors(weights: Floats, vectors: Members | Floats) -> Floats:
    """Weighted means of vectors, shape (replicates, d); NaN where all weights are 0."""
    if isinstance(vectors, Members):
        largest, blocks = vectors.size, vectors.blocks()
    else:
        largest = max(float(vectors.max(initial=0.0)), -float(vectors.min(initial=0.0)))
        step = max(1, _AT_ONCE // vectors.shape[1])
        cuts = (slice(start, start + step) for start in range(0, len(vectors), step))
        blocks = ((here, vectors[here]) for here in cuts)
    totals = weights.sum(axis=1)
    heaviest = max(float(totals.max(initial=1.0)), 1.0)
    bits = math.floor(_EXACT_BITS - math.log2(heaviest) - math.log2(largest or 1.0))
    # Sums of whole numbers are exact, in blocks or not.
    parts = (weights[:, here] @ np.rint(np.ldexp(rows, bits)) for here, rows in blocks)
    sums = reduce(np.add, parts)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.ldexp(sums / totals[:, None], -bits))


def row_dots(first: Floats, second: Floats) -> Floats:
    """Inner product of each row with the same row of the other, shape (replicates,)."""
    return np.asarray(np.einsum("rd,rd->r", first, second))


def _varies(one: Members) -> bool:
    return len(set(one.units)) > 1 if one.units is not None else len(one) > 1


def _weights(one: Members, fixed: bool, start: int, size: int, seed: int) -> Floats:
    n = len(one)
    if fixed or not _varies(one):
        return np.ones((size, n))
    if one.units is not None:
        names, index = np.unique(one.units, return_inverse=True)
        counts = unit_counts(seed, unit_keys(names.tolist()), range(start, start + size))
        return np.asarray(counts[:, index], dtype=np.float64)
    drawn = stream(seed, "bootstrap", one.name, start).integers(n, size=(size, n))
    drawn += n * np.arange(size)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=size * n)
    return counts.reshape(size, n).astype(np.float64)
