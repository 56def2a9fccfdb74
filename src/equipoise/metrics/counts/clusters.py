"""How many independent rows the rows of a group are worth where they repeat by unit."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
from scipy import special

from equipoise.core import Booleans, Floats, Integers
from equipoise.metrics.counts.table import Counts
from equipoise.stats.draws import ItemSampler

BASES = ("both", "truth", "prediction", "total")
"""Cells of one class against the rest that all others are sums and differences of."""

_LEVEL, _NONE = 0.975, 1e-9


def moments(counts: Counts, _: Floats | None = None) -> Floats | None:
    """Return sums over units of products of two cells, (bases, bases, classes, groups).

    None where rows are independent. Made for `Counts.once`, which passes a table, too.
    """
    sampler = counts.sampler
    if not isinstance(sampler, ItemSampler):
        return None
    classes, groups, weight = len(counts.classes), len(counts.groups), sampler.weight
    owner, group = _owners(sampler, groups)
    total = np.bincount(owner, weight)
    truth, prediction = counts.truth[sampler.outcome], counts.prediction[sampler.outcome]
    keys = np.concatenate([owner * classes + truth, owner * classes + prediction])
    cells, place = np.unique(keys, return_inverse=True)
    of_truth, of_prediction = np.split(place, 2)
    right = np.where(truth == prediction, weight, 0.0)
    values = [
        np.bincount(some, added, minlength=len(cells))
        for some, added in ((of_truth, right), (of_truth, weight), (of_prediction, weight))
    ]
    values.append(total[cells // classes])
    where = cells % classes * groups + group[cells // classes]
    found = np.empty((len(BASES), len(BASES), classes, groups))
    for one, other in combinations_with_replacement(range(len(BASES)), 2):
        product = np.bincount(where, values[one] * values[other], minlength=classes * groups)
        found[one, other] = found[other, one] = product.reshape(classes, groups)
    # A unit's rows count for every class, whether or not one has its label.
    found[-1, -1] = np.bincount(group, total**2, minlength=groups)
    return found


def accuracy_design(counts: Counts) -> Floats:
    """Return the design effect of each group's accuracy, 1 where rows are independent."""
    sampler, groups = counts.sampler, len(counts.groups)
    if not isinstance(sampler, ItemSampler):
        return np.ones(groups)
    owner, group = _owners(sampler, groups)
    right = np.isin(sampler.outcome, counts.right)
    hits, total = np.bincount(owner, sampler.weight * right), np.bincount(owner, sampler.weight)
    sums = (
        np.bincount(group, one, minlength=groups).astype(np.float64)
        for one in (hits, total, hits**2, hits * total, total**2)
    )
    return design_effects(*sums, least=least_design(counts))


def _owners(sampler: ItemSampler, groups: int) -> tuple[Integers, Integers]:
    """Return which rows of one unit in one group each entry is of, and their group."""
    pairs = sampler.unit[sampler.item] * groups + sampler.group[sampler.item]
    pairs, owner = np.unique(pairs, return_inverse=True)
    return owner, pairs % groups


def least_design(counts: Counts) -> float:
    """Return the least design effect: rows that share their weight may say more than one."""
    sampler = counts.sampler
    whole = not isinstance(sampler, ItemSampler) or bool((sampler.weight == 1.0).all())
    return 1.0 if whole else 0.0


def design_effects(
    successes: Floats,
    totals: Floats,
    squares: Floats,
    products: Floats,
    squared_totals: Floats,
    *,
    least: float = 1.0,
) -> Floats:
    """Return how many rows say as much as one that is independent.

    The cluster-robust variance of a share over that of independent rows, with an allowance for
    few units (Student's t), and at least that of all groups together. Where all rows or none of
    all groups succeed, a unit counts as one row.

    Parameters
    ----------
    successes, totals : ndarray
    squares, products, squared_totals : ndarray
        Sums over units of squared successes, of successes times totals, and of squared totals.
    least : float
        The least design effect.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        p, units = successes / totals, totals**2 / squared_totals
        apart = squares - 2.0 * p * products + p**2 * squared_totals
        variance = np.maximum(apart, 0.0) * units / (units - 1.0)
        simple = totals * p * (1.0 - p)
        few = special.stdtrit(np.maximum(units - 1.0, 1.0), _LEVEL) / special.ndtri(_LEVEL)
        known = (simple > _NONE * totals) & (units > 1.0 + _NONE) & (variance > _NONE * simple)
        # A group whose units happen to agree varies as much as the others do.
        pooled = _sum(known, variance) / _sum(known, simple)
        design = np.fmax(np.where(known, variance / simple, np.nan), pooled) * few**2
        design = np.where(np.isnan(design), totals / units, design)
        repeated = squared_totals > totals * (1.0 + _NONE)
    return np.where((totals > 0) & (repeated | (least == 0.0)), np.maximum(design, least), 1.0)


def _sum(known: Booleans, values: Floats) -> Floats:
    """Sum what is known over groups."""
    return np.asarray(np.where(known, values, 0.0).sum(axis=-1, keepdims=True))
