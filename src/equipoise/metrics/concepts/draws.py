"""Draws for concepts: shared weights of images, [Hall]'s fixed prevalence, permuted groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import Cells, Flags, Floats, Indices, Metric, metric_of
from equipoise.metrics.concepts.kernels import LANES, fixed_draws
from equipoise.metrics.concepts.weighing import by_cell, weigh
from equipoise.metrics.items import Units, item_sampler
from equipoise.stats.draws import Sampler, TableSampler
from equipoise.stats.streams import stream

Times = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int32]
Packed = npt.NDArray[np.uint32]


def weighted_sums(
    packed: tuple[Packed, int],
    rows: Rows,
    measured: npt.NDArray[np.uint8],
    times: tuple[Times, npt.NDArray[np.int32]],
    ratio: float | None,
) -> Floats:
    """Return the sums of every replicate of one group, for `metric_of_sums`.

    Parameters
    ----------
    packed : tuple
        Of the group's rows, and how many thresholds they have: see `kernels.pack`.
    rows : ndarray of int32
        The group's rows.
    measured : ndarray, shape (n,)
        The two lowest bits of `packed`, of all rows.
    times : tuple
        How often all rows count, see `equipoise.stats.poisson.unit_times`, and what the group's
        rows come to.
    ratio : float, optional

    Returns
    -------
    ndarray, shape (8, replicates)
    """
    ordered, ends = np.empty_like(rows), np.zeros(3 * packed[1] + 1, dtype=np.int64)
    by_cell(packed[0], rows, ordered, ends)
    sums = np.zeros((8, times[0].shape[1]))
    weigh(ordered, ends, measured, *times, 0.0 if ratio is None else float(ratio), sums)
    return sums


def fixed_prevalence(
    packed: tuple[Packed, int],
    labels: Flags,
    draw: tuple[int, int, int, int],
    rng: tuple[int, str, str],
    replicates: int,
) -> Floats:
    """Draw positives and negatives with replacement.

    Parameters
    ----------
    packed : tuple
        Of the group's rows, and how many thresholds they have: see `kernels.pack`.
    labels : ndarray of bool
        Of the same rows.
    draw : tuple of four int
        How many positives and negatives a replicate has, and how many positives and negatives
        of those that are measured at the fixed threshold: the first that are drawn.
    rng : tuple
        Seed and names of the stream. Rows are drawn by their place, so that models that share
        rows share draws.
    replicates : int

    Returns
    -------
    ndarray, shape (8, replicates)
        For `metric_of_sums`.
    """
    sums = np.empty((replicates, 8))
    state = stream(rng[0], "hall", *rng[1:]).integers(1 << 32, size=(8, LANES), dtype=np.uint32)
    rows, many = packed
    fixed_draws(rows[labels], rows[~labels], np.array(draw), state, many, sums)
    return sums.T


def permuted(
    metrics: Sequence[Metric],
    ratio: float | None,
    cells: Cells,
    strata: Indices,
    groups: Groups,
    units: Units | None,
    permutations: int,
    seed: int,
) -> list[Floats]:
    """Return metrics by group with groups permuted within strata of cells.

    Parameters
    ----------
    metrics, ratio
        See `metric_of`; all metrics have the same cells.
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
    list of ndarray, shape (permutations, groups)
        One per metric.
    """
    used = np.flatnonzero(cells.cell >= 0)
    sampler = _sampler(cells, used, groups, units)
    found: list[list[Floats]] = [[] for _ in metrics]
    for tables in sampler.permute(strata, permutations, seed):
        many, _, width = tables.shape
        flat = np.ascontiguousarray(tables.transpose(0, 2, 1)).reshape(many * width, -1)
        for values, metric in zip(found, metrics, strict=True):
            values.append(metric_of(metric, flat, ratio).reshape(many, width))
    return [np.concatenate(values) for values in found]


def _sampler(cells: Cells, used: Indices, groups: Groups, units: Units | None) -> Sampler:
    width = len(groups)
    if units is None:
        flat = cells.cell[used] * width + groups.codes[used]
        table = np.bincount(flat, minlength=cells.size * width)
        return TableSampler(table.reshape(cells.size, width).astype(np.float64))
    chosen = Units(units.codes[used], units.names)
    shape = (cells.size, width)
    return item_sampler(cells.cell[used][:, None], None, groups.take(used), chosen, shape)
