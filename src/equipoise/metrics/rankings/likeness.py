"""Queries that rank images alike: how alike they are, and which count as a single query."""

from __future__ import annotations

import numpy as np

from equipoise.core import AnyArray, Floats, Integers, Integers32, floats, integers
from equipoise.metrics.rankings.cosines import CosineScores

ALIKE = 0.4
"""Mean likeness from which on queries are resampled together, chosen by simulation."""

_SAME = 0.9
"""Correlation from which on queries that all resemble each other are alike."""

# Images that the likeness is measured on, at least and at most, and queries, at most.
_FEWEST_IMAGES, _MOST_IMAGES, _MOST_QUERIES = 30, 2000, 5000


def likeness(rows: Floats) -> Floats:
    """Return how alike rows of numbers are, shape (rows, rows), at most 1.

    It is their correlation after the mean row is taken away, or the plain correlation less 0.5
    where that is more: rows that are all alike differ from their mean by noise alone.

    Parameters
    ----------
    rows : ndarray, shape (queries, m)
        Scores of images, or vectors of queries.
    """
    unit = _normalized(rows - rows.mean(axis=1, keepdims=True))
    apart = _normalized(unit - unit.mean(axis=0))
    return np.maximum(apart @ apart.T, unit @ unit.T - (_SAME - ALIKE))


def _normalized(rows: Floats) -> Floats:
    norms = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return floats(np.where(norms > 1e-9, rows / np.maximum(norms, 1e-9), 0.0))


def cluster_alike(rows: Floats) -> Integers:
    """Return the cluster of each row, shape (rows,), by average linkage up to `ALIKE`.

    Clusters are numbered by their first rows.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if not 1 < len(rows) <= _MOST_QUERIES:
        return np.arange(len(rows))
    distance = 1.0 - likeness(rows)[np.triu_indices(len(rows), 1)]
    # Rounded, so that the order of sums decides no tie.
    tree = linkage(np.clip(distance, 0.0, 2.0).round(9), "average")
    labels = fcluster(tree, 1.0 - ALIKE, "distance")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return integers(np.argsort(np.argsort(first))[inverse])


def comparable_rows(
    table: AnyArray | CosineScores, groups: Integers32, items: Integers
) -> Floats | None:
    """Return a row of numbers per query that shows how it ranks; None where there is none.

    Scores of images are taken less the mean of their group: preferences for groups, which are
    tested, make no likeness. Where vectors of queries are given, they are the rows.

    Parameters
    ----------
    table : ndarray or CosineScores
        Scores of the images for every query.
    groups : ndarray of int32, shape (n,)
    items : ndarray of int64
        Images that queries rank.
    """
    if isinstance(table, CosineScores):
        return table.queries
    if table.ndim == 1 or len(items) < _FEWEST_IMAGES:
        return None
    if len(items) > _MOST_IMAGES:
        # Evenly spaced by their best scores: the same in any order of images and queries.
        order = items[np.argsort(table.max(axis=0)[items], kind="stable")]
        items = order[np.linspace(0, len(order) - 1, _MOST_IMAGES).round().astype(np.int64)]
    scores, codes = floats(table[:, items]), groups[items]
    member = np.eye(int(codes.max()) + 1)[codes]
    means = scores @ member / np.maximum(member.sum(axis=0), 1.0)
    return floats(scores - means[:, codes])
