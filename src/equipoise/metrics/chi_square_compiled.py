"""Chi-square of large tables in one compiled pass; `chi_square` says which tables those are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from equipoise.metrics.layout import Layout
from equipoise.stats.compiled import compiled

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


def chi_square_fields(
    layout: Layout, cells: Floats, min_expected: float, yates: bool, rounding: float
) -> tuple[Floats, ...]:
    """Return the fields of `ChiSquare` for the strata of cells (r, columns, groups compared)."""
    found = np.empty((7, len(cells), len(layout.stratum)))
    _fill(np.ascontiguousarray(cells), layout.begins, min_expected, yates, rounding, found)
    return tuple(found)


@compiled("void(float64[:, :, ::1], int64[::1], float64, boolean, float64, float64[:, :, ::1])")
def _fill(
    cells: Floats,
    begins: Indices,
    min_expected: float,
    yates: bool,
    rounding: float,
    found: Floats,
) -> None:
    """Write chi-square, and what is left and was there of rows, groups and labels."""
    groups, squares = np.empty(cells.shape[2]), np.empty(cells.shape[2])
    labels = np.empty(max(1, cells.shape[1]))
    for draw in range(len(cells)):
        for stratum in range(len(begins) - 1):
            table = cells[draw, begins[stratum] : begins[stratum + 1]]
            _sum_labels(table, labels)
            _sum_groups(table, labels, groups)
            n, rows = groups.sum(), (groups > 0).sum()
            found[4, draw, stratum] = rows
            found[5, draw, stratum] = (labels[: len(table)] > 0).sum()
            found[6, draw, stratum] = n
            if min_expected > 0 and _drop(labels[: len(table)], groups, n, min_expected):
                _sum_groups(table, labels, groups)
                n, rows = groups.sum(), (groups > 0).sum()
            columns = (labels[: len(table)] > 0).sum()
            excess = _excess(table, labels, groups, squares)
            excess = 0.0 if excess < rounding else excess
            if yates and rows == 2 and columns == 2:
                excess = _moved(excess, labels[: len(table)], groups, n)
            found[0, draw, stratum] = n * excess if rows > 1 and columns > 1 else 0.0
            found[1, draw, stratum] = n
            found[2, draw, stratum] = rows
            found[3, draw, stratum] = columns


@compiled()
def _sum_labels(table: Floats, labels: Floats) -> None:
    for column in range(len(table)):
        total = 0.0
        for group in range(table.shape[1]):
            total += table[column, group]
        labels[column] = total


@compiled()
def _sum_groups(table: Floats, labels: Floats, groups: Floats) -> None:
    """Sum the columns whose sums are not 0, which is those that stay."""
    groups[:] = 0.0
    for column in range(len(table)):
        if labels[column] > 0:
            for group in range(table.shape[1]):
                groups[group] += table[column, group]


@compiled()
def _drop(labels: Floats, groups: Floats, n: float, min_expected: float) -> bool:
    """Set the sums of columns to 0 whose expected counts are too small; return whether any is."""
    smallest, dropped = 0.0, False
    for size in groups:
        if size > 0 and (smallest == 0 or size < smallest):
            smallest = size
    for column in range(len(labels)):
        # Products instead of quotients: exact for whole counts, also at the boundary.
        if labels[column] > 0 and labels[column] * smallest < min_expected * n:
            labels[column], dropped = 0.0, True
    return dropped


@compiled()
def _excess(table: Floats, labels: Floats, groups: Floats, squares: Floats) -> float:
    """Return chi-square / n = sum of O² / (R·C) - 1."""
    squares[:] = 0.0
    for column in range(len(table)):
        if labels[column] > 0:
            inverse = 1.0 / labels[column]
            for group in range(table.shape[1]):
                squares[group] += table[column, group] * table[column, group] * inverse
    total = 0.0
    for group in range(len(groups)):
        if groups[group] > 0:
            total += squares[group] / groups[group]
    return total - 1.0


@compiled()
def _moved(excess: float, labels: Floats, groups: Floats, n: float) -> float:
    """Move every cell of a 2×2 table up to a half towards its expected count."""
    if excess <= 0:
        return excess
    row_product = (n**2 - (groups**2).sum()) / 2.0
    column_product = (n**2 - (labels**2).sum()) / 2.0
    apart = np.sqrt(excess * row_product * column_product) / n
    return float(excess * (max(apart - 0.5, 0.0) / apart) ** 2)
