"""Every table with the margins of an observed one, and how likely chance makes each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from equipoise.core.errors import InputError

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
    counts = table.astype(np.int64)
    members = [np.flatnonzero(strata == name) for name in np.unique(strata)]
    parts = [_stratum(counts[rows], limit) for rows in members]
    total = int(np.prod([len(tables) for tables, _ in parts], dtype=object))
    if total > limit:
        raise _too_many(limit)
    tables = np.zeros((total, *table.shape))
    weights = np.empty(total)
    for index, chosen in enumerate(product(*[range(len(tables)) for tables, _ in parts])):
        for rows, (some, _), pick in zip(members, parts, chosen, strict=True):
            tables[index, rows] = some[pick]
        weights[index] = np.prod([w[pick] for (_, w), pick in zip(parts, chosen, strict=True)])
    return tables, weights


def _too_many(limit: int) -> InputError:
    return InputError(
        f"resampling=Exact: more than {limit} rearrangements of the groups; "
        "use Permutation(), or Exact(limit=...) with a larger limit"
    )


def _stratum(table: Indices, limit: int) -> tuple[Floats, Floats]:
    found = []
    for drawn in _fill(table.sum(axis=1).tolist(), tuple(table.sum(axis=0).tolist())):
        found.append(drawn)
        if len(found) > limit:
            raise _too_many(limit)
    tables = np.array(found, dtype=np.float64)
    logs = -gammaln(tables + 1.0).sum(axis=(1, 2))
    weights = np.exp(logs - logs.max())
    return tables, weights / weights.sum()


def _fill(rows: list[int], left: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Yield the rows of every table with given row sums and `left` as column sums."""
    if len(rows) == 1:
        yield [left]
        return
    for first in _share(rows[0], left):
        rest = tuple(a - b for a, b in zip(left, first, strict=True))
        for others in _fill(rows[1:], rest):
            yield [first, *others]


def _share(total: int, left: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every way to take `total` from `left`."""
    if len(left) == 1:
        if total <= left[0]:
            yield (total,)
        return
    for here in range(max(0, total - sum(left[1:])), min(total, left[0]) + 1):
        for others in _share(total - here, left[1:]):
            yield (here, *others)
