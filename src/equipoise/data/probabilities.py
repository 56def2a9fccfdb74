"""Probability columns: checked as probabilities, arranged in the order of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core import DataError
from equipoise.data.problems import counted, listed
from equipoise.data.tables import Table

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

# Wide enough for probabilities printed with three decimals, narrow enough to refuse logits.
SUM_TOLERANCE = 0.01
RANGE_TOLERANCE = 1e-6


def check_probabilities(table: Table, columns: Sequence[str]) -> Floats:
    """Return probability columns side by side, shape (rows, columns).

    A row whose cells are all empty has no probabilities and is NaN throughout.

    Raises
    ------
    DataError
        When a cell is NaN or infinite, is empty while others of its row are not, lies outside
        [0, 1], or a row does not sum to 1 within `SUM_TOLERANCE`.
    """
    empty: Mask = np.column_stack([table.numbers[name].is_null().to_numpy() for name in columns])
    values: Floats = np.column_stack(
        [table.numbers[name].fill_null(0.0).to_numpy() for name in columns]
    )
    whole_row = np.asarray(empty.all(axis=1))
    _refuse(~np.isfinite(values), values, table, columns, "a finite number")
    _refuse(empty & ~whole_row[:, None], values, table, columns, "a number in every column")
    outside = (values < -RANGE_TOLERANCE) | (values > 1 + RANGE_TOLERANCE)
    _refuse(outside, values, table, columns, "a number from 0 to 1")
    _check_sums(values, whole_row, table, columns)
    values[whole_row] = np.nan
    return np.asarray(np.clip(values, 0.0, 1.0))


def _refuse(
    wrong: Mask,
    values: Floats,
    table: Table,
    columns: Sequence[str],
    expected: str,
) -> None:
    if not wrong.any():
        return
    row, place = (int(index[0]) for index in np.nonzero(wrong))
    column = columns[place]
    empty = table.numbers[column][row] is None
    problem = "the cell is empty while others of its row are not" if empty else ""
    raise DataError(
        problem
        or f"{values[row, place]:g} is no probability ({counted(int(wrong.sum()), 'such cell')})",
        file=table.name,
        column=column,
        row=row + 1,
        expected=expected,
        fix="give probabilities, not logits or percentages; leave a whole row empty where the "
        "model gave no answer",
    )


def _check_sums(values: Floats, whole_row: Mask, table: Table, columns: Sequence[str]) -> None:
    # Column by column, so that the sum has one order whatever the memory layout.
    sums = np.zeros(len(values))
    for place in range(values.shape[1]):
        sums += values[:, place]
    wrong = np.flatnonzero((np.abs(sums - 1) > SUM_TOLERANCE) & ~whole_row)
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"the probabilities in {listed(columns, 5)} sum to {sums[row]:.4g} "
            f"({counted(len(wrong), 'such row')})",
            file=table.name,
            row=row + 1,
            expected=f"a sum of 1 within {SUM_TOLERANCE}",
            fix="name the columns of all classes, and give probabilities, not logits",
        )


def arrange(
    probabilities: Floats,
    names: Sequence[str],
    rename: Callable[[str], str],
    classes: Sequence[str],
    file: str,
) -> tuple[Floats, tuple[str, ...]]:
    """Add up columns that map to one class and put them in the order of the classes.

    Parameters
    ----------
    probabilities : ndarray (rows, columns)
    names : sequence of str
        What each column is the probability of, before the mapping.
    rename : callable
        From such a name to the class it counts for.
    classes : sequence of str
        The target's classes; they come first. Others follow in sorted order.

    Returns
    -------
    probabilities : ndarray (rows, classes)
    classes : tuple of str

    Raises
    ------
    DataError
        When a class of the target has no column.
    """
    mapped = [rename(name) for name in names]
    absent = [name for name in classes if name not in mapped]
    if absent:
        raise DataError(
            f"no probability column for {listed(absent, 5)}",
            file=file,
            expected=f"a column for every class of the target: {listed(classes)}",
            fix="add it to `probabilities:`, or map another column's class to it; for a class that "
            "the model cannot say, add a column of zeros",
        )
    every = (*classes, *sorted(set(mapped) - set(classes)))
    arranged = np.zeros((len(probabilities), len(every)))
    for place, name in enumerate(mapped):
        arranged[:, every.index(name)] += probabilities[:, place]
    return arranged, every
