"""Every table with the margins of an observed one, and how likely chance makes each."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from equipoise.core.errors import InputError
from equipoise.stats.draws import group_order

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def exact_tables(table: Floats, strata: Indices, *, limit: int) -> tuple[Floats, Floats]:
    """Enumerate all rearrangements of groups within strata of a count table.

    Parameters
    ----------
    table : ndarray, shape (outcomes, groups)
        Whole counts of independent rows.
    strata : ndarray of int, shape (outcomes,)
        Groups are exchangeable within each stratum.
    limit : int
        The most tables that are enumerated.

    Returns
    -------
    tables : ndarray, shape (tables, outcomes, groups)
    weights : ndarray, shape (tables,)
        Probability of each table when groups are exchangeable; sums to 1.

    Raises
    ------
    InputError
        When there are more than `limit` tables.
    """
    order = group_order(table)
    counts = table[:, order].astype(np.int64)
    members = [np.flatnonzero(strata == name) for name in np.unique(strata)]
    parts: list[tuple[Indices, Floats]] = []
    for rows in members:
        before = math.prod(len(weights) for _, weights in parts)
        parts.append(_stratum(counts[rows], limit // before, limit))
    total = math.prod(len(weights) for _, weights in parts)
    tables, weights, index = np.zeros((total, *table.shape)), np.ones(total), np.arange(total)
    for rows, (some, mass) in zip(members, parts, strict=True):
        index, pick = np.divmod(index, len(mass))
        tables[:, rows[:, None], order] = some[pick]
        weights *= mass[pick]
    return tables, weights


def _stratum(table: Indices, most: int, limit: int) -> tuple[Indices, Floats]:
    """Fill the table cell by cell: all partial tables at once, each of which can be completed."""
    tables = np.zeros((1, *table.shape), dtype=np.int64)
    left = table.sum(axis=0)[None]
    for outcome, total in enumerate(table.sum(axis=1).tolist()):
        wanted = np.full(len(tables), total)
        for group in range(table.shape[1]):
            low = np.maximum(wanted - left[:, group + 1 :].sum(axis=1), 0)
            many = np.minimum(left[:, group], wanted) - low + 1
            if many.sum() > most:
                raise InputError(
                    f"resampling=Exact: more than {limit} rearrangements of the groups; "
                    "use Permutation(), or Exact(limit=...) with a larger limit"
                )
            source = np.repeat(np.arange(len(many)), many)
            step = np.arange(len(source)) - np.repeat(np.cumsum(many) - many, many)
            here = low[source] + step
            tables, left, wanted = tables[source], left[source], wanted[source] - here
            tables[:, outcome, group] = here
            left[:, group] -= here
    logs = -gammaln(tables + 1.0).sum(axis=(1, 2))
    weights = np.exp(logs - logs.max())
    return tables, weights / weights.sum()
