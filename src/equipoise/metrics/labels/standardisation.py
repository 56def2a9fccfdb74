"""The difference of a rate between two sides at equal shares of strata: direct standardisation."""

from __future__ import annotations

import math

import numpy as np

from equipoise.core import Booleans, Floats, InputError, Integers, Span, record
from equipoise.metrics.labels.causes import SUPPORT
from equipoise.stats.intervals import divide, normal


@record
class StandardisedDifference:
    """A difference of two sides at the strata's shares over both, beside the difference as it is.

    Attributes
    ----------
    rates : tuple of float
        Of both sides, over all of their rows.
    standardised_rates : tuple of float
        Of both sides, at the strata's shares over both.
    difference : float
        First side minus the second at equal shares.
    ends : tuple of float
        Interval of `difference`.
    moved : float
        The difference over all rows minus `difference`.
    moved_ends : tuple of float
        Interval of `moved`, paired: of the same rows.
    p_value : float
        Of `difference` against 0.
    rows : tuple of int
        Rows of both sides in strata that are compared.
    left_out : tuple of int
        Rows of both sides in strata with fewer than five rows of a side.
    """

    rates: tuple[float, float]
    standardised_rates: tuple[float, float]
    difference: float
    ends: Span
    moved: float
    moved_ends: Span
    p_value: float
    rows: tuple[int, int]
    left_out: tuple[int, int]


def standardise(
    table: Floats,
    *,
    level: float = 0.95,
    pairs: int = 1,
    units: tuple[Integers, Integers] | None = None,
) -> StandardisedDifference | None:
    """Compare two sides at the strata's shares over both.

    Each stratum counts by its share of the rows of both sides, as in `explained_disparity`: strata
    with fewer than five rows of a side say nothing of the difference. Intervals are normal, with
    the variance of the linearised estimate.

    Parameters
    ----------
    table : ndarray, shape (2, strata, 2)
        Rows by side, stratum and outcome: 0 or 1.
    level : float
        Confidence level.
    pairs : int
        Pairs of groups of which the sides are the one that lies farthest apart: the interval and
        p-value of the difference at equal shares hold for all together (Bonferroni).
    units : tuple of ndarray, optional
        Unit of each row, and its place in the raveled table, for rows that repeat in units.

    Returns
    -------
    StandardisedDifference or None
        None where no stratum has enough rows of both sides.

    Raises
    ------
    InputError
        When the table isn't of two sides and two outcomes.

    References
    ----------
    Kitagawa 1955, JASA 50, 1168-1194.

    Examples
    --------
    >>> import numpy as np
    >>> from equipoise.metrics.labels.standardisation import standardise
    >>> table = np.array([[[10, 90], [60, 40]], [[5, 45], [120, 80]]])
    >>> standardised = standardise(table)
    >>> standardised.rates, standardised.standardised_rates
    ((0.65, 0.5), (0.5666666666666667, 0.5666666666666667))
    """
    if table.ndim != 3 or table.shape[::2] != (2, 2):
        raise InputError(f"table: shape {table.shape}; expected (2, strata, 2)")
    rows = table.sum(axis=2)
    shared = (rows >= SUPPORT).all(axis=0)
    if not shared.any():
        return None
    rates = _rates(table, shared)
    (first, second), (first_equal, second_equal) = rates
    difference, raw = first_equal - second_equal, first - second
    deviations, moved_deviations = _spread(table, shared, units)
    half, joint = float(normal(level)), float(normal(1.0 - (1.0 - level) / pairs))
    p_value = pairs * math.erfc(abs(difference) / (deviations * math.sqrt(2.0)))
    return StandardisedDifference(
        rates=(first, second),
        standardised_rates=(first_equal, second_equal),
        difference=difference,
        ends=_ends(difference, joint * deviations, 1.0),
        moved=raw - difference,
        moved_ends=_ends(raw - difference, half * moved_deviations, 2.0),
        p_value=min(p_value, 1.0),
        rows=_whole(rows[:, shared]),
        left_out=_whole(rows[:, ~shared]),
    )  # fmt: skip


def _ends(value: float, half: float, limit: float) -> Span:
    return max(value - half, -limit), min(value + half, limit)


def _whole(rows: Floats) -> tuple[int, int]:
    first, second = rows.sum(axis=1).tolist()
    return round(first), round(second)


def _rates(table: Floats, shared: Booleans) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return both sides' rates over all rows, and at equal shares of the shared strata."""
    weights = table.sum(axis=(0, 2)) * shared
    by_stratum = np.where(shared, divide(table[..., 1], table.sum(axis=2)), 0.0)
    first, second = divide(table[..., 1].sum(axis=1), table.sum(axis=(1, 2))).tolist()
    first_equal, second_equal = (by_stratum @ (weights / weights.sum())).tolist()
    return (first, second), (first_equal, second_equal)


def _spread(
    table: Floats, shared: Booleans, units: tuple[Integers, Integers] | None
) -> tuple[float, float]:
    """Return the standard errors of the difference at equal shares, and of what it moved.

    Half a row of each outcome is added to each cell that has rows: an error that was not seen may
    occur.
    """
    smoothed = table + 0.5 * (table.sum(axis=2, keepdims=True) > 0)
    influences = _influences(smoothed, shared)
    squares = [float((table * influence**2).sum()) for influence in influences]
    if units is not None:
        codes, places = units
        for index, influence in enumerate(_influences(table, shared)):
            sums = np.bincount(codes, influence.ravel()[places])
            present = np.count_nonzero(np.bincount(codes))
            clustered = (sums**2).sum() * present / max(present - 1, 1)
            squares[index] = max(squares[index], float(clustered))
    difference, moved = np.sqrt(squares).tolist()
    return difference, moved


def _influences(table: Floats, shared: Booleans) -> tuple[Floats, Floats]:
    """Return what a row of each cell adds to the difference at equal shares, and to its move."""
    rows = table.sum(axis=2)
    sign, outcome = np.array([1.0, -1.0])[:, None, None], np.array([0.0, 1.0])
    (first, second), (first_equal, second_equal) = _rates(table, shared)
    by_stratum = np.where(rows > 0, divide(table[..., 1], rows), 0.0)
    both = rows.sum(axis=0)
    weights = both * shared / both[shared].sum()
    within = np.where(shared, divide(weights[None, :].repeat(2, axis=0), rows), 0.0)
    equal = sign * within[..., None] * (outcome - by_stratum[..., None])
    gaps = by_stratum[0] - by_stratum[1] - (first_equal - second_equal)
    equal = equal + (np.where(shared, gaps, 0.0) / both[shared].sum())[None, :, None]
    totals = rows.sum(axis=1)[:, None, None]
    raw = sign * (outcome - np.array([first, second])[:, None, None]) / totals
    return equal, raw - equal
