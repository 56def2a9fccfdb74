"""Checks of arguments; an error names the argument that is wrong."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from equipoise.core.arrays import Floats, floats
from equipoise.core.errors import InputError


def real_numbers(values: ArrayLike, subject: str, dimensions: int | None = 1) -> Floats:
    """Return an argument of numbers as float64.

    Parameters
    ----------
    values : array-like
    subject : str
        Name of the argument, for errors.
    dimensions : int or None
        How many it has; None where the function checks them.

    Raises
    ------
    InputError
        When the argument has other values than numbers, or not as many dimensions.
    """
    expected = "numbers" if dimensions is None else f"numbers in {dimensions} dimensions"
    expected = "numbers, shape (n,)" if dimensions == 1 else expected
    try:
        array = np.asarray(values)
        numbers = floats(array)
    except (TypeError, ValueError):
        raise InputError(f"{subject}: expected {expected}") from None
    if array.dtype.kind in "USMm" or numbers.ndim != (dimensions or numbers.ndim):
        raise InputError(f"{subject}: shape {array.shape} of {array.dtype}; expected {expected}")
    return numbers


def check_lengths(lengths: Mapping[str, int]) -> None:
    """Check that arguments have as many rows as the first of them.

    Raises
    ------
    InputError
        When one has not.
    """
    first, *further = lengths.items()
    for name, length in further:
        if length != first[1]:
            raise InputError(f"{name}: {length} rows; expected {first[1]}, as in {first[0]}")


def check_level(level: float) -> None:
    """Check that a confidence level is a share, and not a percentage.

    Raises
    ------
    InputError
        When it isn't a number between 0 and 1, both excluded.
    """
    # Callers without types pass texts, too.
    value: object = level
    number = float(value) if isinstance(value, int | float | np.number) else math.nan
    if not 0.0 < number < 1.0:
        share = f". To do: write {number / 100:g} for {number:g} %" if 1.0 < number < 100.0 else ""
        raise InputError(f"level={level!r}: expected a share between 0 and 1, such as 0.95{share}")
