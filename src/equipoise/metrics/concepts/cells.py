"""What a metric of one concept needs of the scores: which cell of a small table each row is in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from equipoise.metrics.concepts.kernels import pack

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Metric = Literal[
    "average_precision", "auroc", "true_positive_rate", "false_positive_rate", "precision", "f1"
]
RANKED: tuple[Metric, ...] = ("average_precision", "auroc")


@dataclass(frozen=True, eq=False)
class Cells:
    """The cell of each row.

    Ranked cells, with the U distinct scores of positives as thresholds in descending order: U
    cells of positives, U of negatives above threshold u and not above the one before, U of
    negatives that equal it, and one of negatives below all. Cells at a threshold: true and false
    positives' and negatives' counts in the order TP, FN, FP, TN.

    Attributes
    ----------
    cell : ndarray of int64, shape (n,)
        -1 where a row takes no part.
    positive : int
        Cells before this one hold positives.
    size : int
        Number of cells.
    """

    cell: Indices = field(repr=False)
    positive: int
    size: int


def packed_rows(
    scores: Floats, labels: Flags, measured: npt.NDArray[np.uint8], rows: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.uint32], int]:
    """Return each row's cell with its bits of `measured`, and how many thresholds there are.

    See `equipoise.metrics.concepts.kernels`.
    """
    packed = np.empty(len(rows), dtype=np.uint32)
    return packed, pack(scores, labels, measured, rows, packed)


def _all_rows(scores: Floats, labels: Flags) -> tuple[Indices, int]:
    every = np.arange(len(scores), dtype=np.int32)
    packed, many = packed_rows(scores, labels, np.zeros(len(scores), dtype=np.uint8), every)
    return (packed >> 2).astype(np.int64), many


def ranked_cells(scores: Floats, labels: Flags) -> Cells:
    """Return cells that keep everything that AP and AUROC need, ties included."""
    place, many = _all_rows(scores, labels)
    threshold, kind = place // 3, place % 3
    # Kinds are above, positive and equal; what is below all thresholds is last.
    cell = threshold + np.array([many, 0, 2 * many])[kind]
    cell[threshold == many] = 3 * many
    return Cells(cell, many, 3 * many + 1)


def threshold_cells(scores: Floats, labels: Flags, threshold: float, used: Flags) -> Cells:
    """Return the cells TP, FN, FP, TN of the rows used, predicted positive from a threshold on."""
    cell = np.where(labels, 0, 2) + (scores < threshold)
    return Cells(np.where(used, cell, -1).astype(np.int64), 2, 4)


def best_f1_threshold(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[float, float]:
    """Threshold with the largest F1 of "positive if the score is at least it", and that F1.

    Parameters
    ----------
    scores, labels : array-like, shape (n,)

    Returns
    -------
    threshold, f1 : float
        One of the scores, so that something is predicted positive; of equally good ones the
        larger. NaN when no label is positive.
    """
    values = np.ascontiguousarray(scores, dtype=np.float64)
    truth = np.ascontiguousarray(labels).astype(np.bool_)
    if not truth.any():
        return float("nan"), float("nan")
    # Below a positive's score, what another negative adds makes F1 smaller.
    place, many = _all_rows(values, truth)
    above, equal_true, equal = np.bincount(place, minlength=3 * many + 1)[:-1].reshape(-1, 3).T
    true = np.cumsum(equal_true)
    predicted = np.cumsum(above + equal_true + equal)
    # Equal quotients of whole numbers are equal floats: ties are exact.
    f1 = 2.0 * true / (predicted + truth.sum())
    best = int(np.argmax(f1))
    return float(np.unique(values[truth])[::-1][best]), float(f1[best])


def metric_of_sums(metric: Metric, sums: Floats, ratio: float | None) -> Floats:
    """Return a metric of the sums that kernels give.

    Parameters
    ----------
    metric : str
    sums : ndarray, shape (8, r)
        Sum over positives of the precision at their score; pairs of a positive and a negative in
        the right order, ties half; positives; negatives; TP, FN, FP and TN at the fixed threshold.
    ratio : float, optional
        As in `metric_of`.

    Returns
    -------
    ndarray, shape (r,)
        NaN where a denominator is 0.
    """
    precision, won, positives, negatives = sums[:4]
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric == "auroc":
            return np.asarray(won / (positives * negatives))
        if metric == "average_precision":
            # Negatives that are not there cannot be weighed.
            known = (positives > 0) & ((negatives > 0) | (ratio is None))
            return np.where(known, precision / positives, np.nan)
        return _at_threshold(metric, sums[4:].T, ratio)


def metric_of(metric: Metric, tables: Floats, ratio: float | None) -> Floats:
    """Return a metric of tables of cells.

    Parameters
    ----------
    metric : str
    tables : ndarray, shape (r, cells)
        Weights of the cells that `ranked_cells` (AP, AUROC) or `threshold_cells` gives.
    ratio : float, optional
        Weigh negatives so that there are this many for each positive.

    Returns
    -------
    ndarray, shape (r,)
        NaN where a denominator is 0.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        if metric in RANKED:
            return _ranked(metric, tables, ratio)
        return _at_threshold(metric, tables, ratio)


def _ranked(metric: Metric, tables: Floats, ratio: float | None) -> Floats:
    many = (tables.shape[1] - 1) // 3
    if many == 0:
        return np.full(len(tables), np.nan)
    true, above, equal = (tables[:, i * many : (i + 1) * many] for i in range(3))
    false = np.cumsum(above + equal, axis=1)
    positives = true.sum(axis=1)
    negatives = false[:, -1] + tables[:, -1]
    if metric == "auroc":
        won = (true * (negatives[:, None] - false + equal / 2.0)).sum(axis=1)
        return np.asarray(won / (positives * negatives))
    if ratio is not None:
        false *= (ratio * positives / negatives)[:, None]
    hits = np.cumsum(true, axis=1)
    terms = true * hits / (hits + false)
    # A threshold that no positive of this replicate has adds nothing.
    terms[(true == 0) & ~np.isnan(false)] = 0.0
    return np.asarray(terms.sum(axis=1) / positives)


def _at_threshold(metric: Metric, tables: Floats, ratio: float | None) -> Floats:
    tp, fn, fp, tn = tables.T
    if metric == "true_positive_rate":
        return np.asarray(tp / (tp + fn))
    if metric == "false_positive_rate":
        return np.asarray(fp / (fp + tn))
    weighted = fp if ratio is None else fp * (ratio * (tp + fn) / (fp + tn))
    if metric == "precision":
        return np.asarray(tp / (tp + weighted))
    # Without positives a group has no F1, though the quotient would be 0.
    return np.where(tp + fn > 0, 2.0 * tp / (2.0 * tp + weighted + fn), np.nan)
