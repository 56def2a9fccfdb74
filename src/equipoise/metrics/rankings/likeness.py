"""Queries that rank images alike: how alike they are, and which count as a single query."""

from __future__ import annotations

import numpy as np

from equipoise.core import AnyArray, Floats, Integers, Integers32, floats, integers
from equipoise.metrics.rankings.cosines import CosineScores

ALIKE = 0.5
"""Mean likeness from which on queries are resampled together, chosen by simulation."""

_SAME = 0.9
"""Correlation from which on queries that all resemble each other are alike."""

_HALVED = 3.0
"""Variances of noise that a squared likeness equals where noise shrinks it by half."""

_COUNTED, _ALLOWED = 2.5, 1.25
"""Factors of shrunken likeness: what a pair counts as, and what a cluster allows for."""

_MEDIAN_OF_NORMAL = 0.6745
"""Median of the absolute value of a standard normal number."""

# Numbers of a query that its likeness is measured on, at least, and images, at most.
_FEWEST, _MOST_IMAGES = 30, 2000
# Queries that are compared, and scores of cosines that are computed, at most.
_MOST_QUERIES, _MOST_SCORES = 5000, 1 << 25


def likeness(rows: Floats) -> Floats:
    """Return how alike rows of numbers are, shape (rows, rows), at most 1.

    It is their correlation after the mean row is taken away, or the plain correlation less 0.4
    where that is more: rows that are all alike differ from their mean by noise alone.

    Parameters
    ----------
    rows : ndarray, shape (queries, m)
        Scores of images, or vectors of queries.
    """
    unit = _normalized(rows - rows.mean(axis=1, keepdims=True))
    centred = _normalized(unit - unit.mean(axis=0))
    return np.maximum(centred @ centred.T, unit @ unit.T - (_SAME - ALIKE))


def _normalized(rows: Floats) -> Floats:
    norms = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return floats(np.where(norms > 1e-9, rows / np.maximum(norms, 1e-9), 0.0))


def cluster_alike(rows: Floats) -> Integers:
    """Return the cluster of each row, shape (rows,), by average linkage up to `ALIKE`.

    Clusters are numbered by their first rows. Each row is its own cluster where there are fewer
    than 30 numbers in it, or more than 5,000 rows.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if not 1 < len(rows) <= _MOST_QUERIES or rows.shape[1] < _FEWEST:
        return np.arange(len(rows))
    distance = 1.0 - likeness(rows)[np.triu_indices(len(rows), 1)]
    # Rounded, so that the order of sums decides no tie.
    tree = linkage(np.clip(distance, 0.0, 2.0).round(9), "average")
    labels = fcluster(tree, 1.0 - ALIKE, "distance")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return integers(np.argsort(np.argsort(first))[inverse])


def variance_inflation(rows: Floats, cluster: Integers) -> float:
    """Return by how much likeness beyond clusters raises the variance of a mean, 1 or more.

    Likeness of independent rows is noise, and symmetric about its median. So each pair counts as
    its likeness, shrunk by that noise, times 2.5, at most 1; pairs that are unlike count as less
    than 0. That adds little where rows are independent. Pairs of a cluster count too, as noise
    joins some of them: a cluster allows for 1.25 times their shrunken likeness, at most 1.

    Parameters
    ----------
    rows : ndarray, shape (queries, m)
    cluster : ndarray of int64, shape (queries,)
        Cluster of each row, see `cluster_alike`.
    """
    if cluster.max() == 0 or len(rows) > _MOST_QUERIES or rows.shape[1] < _FEWEST:
        return 1.0
    unit = _normalized(rows - rows.mean(axis=1, keepdims=True))
    centred = _normalized(unit - unit.mean(axis=0))
    first, second = np.triu_indices(len(rows), 1)
    joined = cluster[first] == cluster[second]
    excess = (centred @ centred.T)[first, second]
    excess -= np.median(excess[~joined])
    noise = float(np.median(np.abs(excess[~joined]))) / _MEDIAN_OF_NORMAL
    shrunk = excess**3 / np.maximum(_HALVED * noise**2 + excess**2, 1e-18)
    counted = len(rows) + 2.0 * float(np.clip(_COUNTED * shrunk, -1.0, 1.0).sum())
    allowed = len(rows) + 2.0 * float(np.clip(_ALLOWED * shrunk[joined], 0.0, 1.0).sum())
    return max(1.0, counted / allowed)


def comparable_rows(
    table: AnyArray | CosineScores, groups: Integers32, items: Integers, first: int
) -> Floats | None:
    """Return a row of numbers per query that shows how it ranks; None where there is none.

    Scores of images are taken less the mean of their group: preferences for groups, which are
    tested, make no likeness. Where scores are too many to be held, the rows are the queries'
    vectors.

    Parameters
    ----------
    table : ndarray or CosineScores
        Scores of the images for every query.
    groups : ndarray of int32, shape (n,)
    items : ndarray of int64
        Images that queries rank.
    first : int
        Query in whose order some of many images are taken, so that order of rows is no matter.
    """
    if isinstance(table, CosineScores) and table.cells > _MOST_SCORES:
        return table.queries
    if not isinstance(table, CosineScores) and table.ndim == 1:
        return None
    if len(items) > _MOST_IMAGES:
        order = items[np.argsort(_take(table, items, first), kind="stable")]
        items = order[np.linspace(0, len(order) - 1, _MOST_IMAGES).round().astype(np.int64)]
    rows, codes = _take(table, items), groups[items]
    member = np.eye(int(codes.max()) + 1)[codes]
    means = rows @ member / np.maximum(member.sum(axis=0), 1.0)
    return floats(rows - means[:, codes])


def _take(table: AnyArray | CosineScores, items: Integers, query: int | None = None) -> Floats:
    """Return the scores of some items, of one query or all."""
    if isinstance(table, CosineScores):
        return table.of_items(items) if query is None else table.of_query(query, items)
    return floats(table[:, items] if query is None else table[query, items])
