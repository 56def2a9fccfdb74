"""Draws for concepts: shared weights of images, [Hall]'s fixed prevalence, permuted groups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import pdtr

from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import Cells, Flags, Floats, Indices, Metric, metric_of
from equipoise.metrics.items import Units, item_sampler
from equipoise.stats.draws import Sampler, TableSampler, block_sizes
from equipoise.stats.streams import stream, unit_uniforms

Weights = npt.NDArray[np.float32]

# P(at most k) of a Poisson variable with mean 1.
_POISSON = pdtr(np.arange(20), 1.0)


def image_weights(keys: npt.NDArray[np.uint64], replicates: int, seed: int) -> Weights:
    """Return how often each image counts in each bootstrap replicate, shape (n, replicates).

    Poisson(1) by unit, the same for every concept: means over concepts keep what concepts of one
    image have in common. Whole numbers, so that float32 sums are exact in any order.
    """
    distinct, place = np.unique(keys, return_inverse=True)
    weights = np.empty((len(keys), replicates), dtype=np.float32)
    for start, size in block_sizes(replicates, len(distinct)):
        uniforms = unit_uniforms(seed, "bootstrap", distinct, range(start, start + size))
        times = np.searchsorted(_POISSON, uniforms, side="right").astype(np.float32)
        weights[:, start : start + size] = times.T[place]
    return weights


def weighted_tables(cells: Cells, weights: Weights) -> Floats:
    """Return the table of each replicate, shape (replicates, cells)."""
    order = np.argsort(cells.cell, kind="stable")
    order = order[np.searchsorted(cells.cell[order], 0) :]
    ends = np.cumsum(np.bincount(cells.cell[order], minlength=cells.size))
    member = csr_array(
        (np.ones(len(order), np.float32), order, np.append(0, ends)),
        shape=(cells.size, len(cells.cell)),
    )
    return np.ascontiguousarray((member @ weights).T, dtype=np.float64)


def fixed_prevalence(
    cells: Cells, labels: Flags, draw: tuple[int, int], rng: tuple[int, str, str], replicates: int
) -> Iterator[Floats]:
    """Yield blocks of tables of positives and negatives drawn with replacement.

    Parameters
    ----------
    cells : Cells
    labels : ndarray of bool, shape (n,)
    draw : tuple of two int
        How many positives and negatives a replicate has.
    rng : tuple
        Seed and names of the stream. Rows are drawn by their place, so that models that share
        rows share draws.
    replicates : int
    """
    pools = [np.flatnonzero(which & (cells.cell >= 0)) for which in (labels, ~labels)]
    cell = [cells.cell[pool] for pool in pools]
    streams = [stream(rng[0], "hall", *rng[1:], which) for which in ("positives", "negatives")]
    for _, size in block_sizes(replicates, max(cells.size, sum(draw))):
        drawn = [
            one[own.integers(0, len(one), (size, many))]
            for one, own, many in zip(cell, streams, draw, strict=True)
        ]
        flat = np.concatenate(drawn, axis=1) + cells.size * np.arange(size)[:, None]
        counts = np.bincount(flat.ravel(), minlength=size * cells.size)
        yield counts.reshape(size, cells.size).astype(np.float64)


def permuted(
    metric: Metric,
    ratio: float | None,
    cells: Cells,
    strata: Indices,
    groups: Groups,
    units: Units | None,
    permutations: int,
    seed: int,
) -> Floats:
    """Return a metric by group with groups permuted within strata of cells.

    Parameters
    ----------
    metric, ratio
        See `metric_of`.
    cells : Cells
        Of the rows of all groups compared.
    strata : ndarray of int, shape (cells,)
    groups : Groups
        Of the same rows.
    units : Units or None
        Rows of one unit exchange groups together.
    permutations, seed : int

    Returns
    -------
    ndarray, shape (permutations, groups)
    """
    used = np.flatnonzero(cells.cell >= 0)
    sampler = _sampler(cells, used, groups, units)
    found = []
    for tables in sampler.permute(strata, permutations, seed):
        many, _, width = tables.shape
        flat = np.ascontiguousarray(tables.transpose(0, 2, 1)).reshape(many * width, -1)
        found.append(metric_of(metric, flat, ratio).reshape(many, width))
    return np.concatenate(found)


def _sampler(cells: Cells, used: Indices, groups: Groups, units: Units | None) -> Sampler:
    width = len(groups)
    if units is None:
        flat = cells.cell[used] * width + groups.codes[used]
        table = np.bincount(flat, minlength=cells.size * width)
        return TableSampler(table.reshape(cells.size, width).astype(np.float64))
    chosen = Units(units.codes[used], units.names)
    shape = (cells.size, width)
    return item_sampler(cells.cell[used][:, None], None, groups.take(used), chosen, shape)
