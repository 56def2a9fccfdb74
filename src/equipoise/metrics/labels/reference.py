"""References of shares: exact ones, and counts of a sample, which has an error of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from equipoise.core import InputError, floats

ReferenceKind = Literal["census", "sample"]
"""Whether a reference is of a whole population, and exact, or counted in a sample."""

# Percentages sum to 100, but for rounding; ratios such as 1 : 1 or 2 : 1 are of small numbers.
_PERCENT, _ROUNDING, _RATIO = 100.0, 1.0, 10.0
# Numbers that sum to between 100 less and 100 more of this look like percentages.
_NEAR_PERCENT = 10.0


def sample_size(numbers: Iterable[float], kind: ReferenceKind | None) -> float:
    """Return how many were counted for a reference; infinity where it is exact.

    Parameters
    ----------
    numbers : iterable of float
        Share or count of each group.
    kind : "census", "sample" or None
        None: whole numbers are counts of a sample, unless they sum to 100 as percentages do, or to
        less than 10 as a ratio does; other numbers are exact.

    Raises
    ------
    InputError
        When a sample has no whole numbers, or a single row.
    """
    values = floats([*numbers])
    total, whole = float(values.sum()), bool((values == np.rint(values)).all())
    if kind == "sample":
        if not whole or total <= 1.0:
            raise InputError(
                f"reference: {values.tolist()} aren't counts; expected how many of each group a "
                "sample has, or kind 'census'"
            )
        return total
    exact = not whole or total < _RATIO or abs(total - _PERCENT) <= _ROUNDING
    return math.inf if kind == "census" or exact else total


def check_total(numbers: Iterable[float], kind: ReferenceKind | None) -> None:
    """Refuse shares that don't sum to 1, and percentages that don't sum to 100.

    Parameters
    ----------
    numbers : iterable of float
        Share or count of every group.
    kind : "census", "sample" or None
        Numbers near 100 with a kind are counts.

    Raises
    ------
    InputError
        When all are at most 1 but not whole, or none has a kind and the sum is between 90 and 110.
    """
    values = floats([*numbers])
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        return
    total, whole = float(values.sum()), bool((values == np.rint(values)).all())
    if not whole and values.max() <= 1.0:
        if abs(total - 1.0) > _ROUNDING / _PERCENT:
            raise InputError(f"the shares of the reference sum to {total:g}; expected 1")
    elif kind is None and _ROUNDING < abs(total - _PERCENT) <= _NEAR_PERCENT:
        raise InputError(
            f"the percentages of the reference sum to {total:g}; expected 100, or kind 'sample' "
            "or 'census' if they are counts"
        )
