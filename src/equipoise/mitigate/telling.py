"""Telling which value of an attribute an image shows, by a linear rule learned from sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.mitigate.projection import principal_rows
from equipoise.mitigate.sets import ImageSets

Floats = npt.NDArray[np.float64]
Values = Mapping[str, Sequence[str]]

# Of the mean variance of a number, added to each: vectors of few images do not tell values by luck.
_RIDGE = 0.01
# Parts of the subjects that are left out in turn to see how often values are told right.
_PARTS = 10


def values_of(sets: ImageSets) -> dict[str, list[str]]:
    """Return the values of each attribute that images show, sorted.

    Raises
    ------
    InputError
        When an attribute has fewer than two.
    """
    found = {
        name: sorted({str(value) for value in column.tolist() if value is not None})
        for name, column in sets.attributes.items()
    }
    for name, values in found.items():
        if len(values) < 2:
            shown = f"{values[0]!r} alone" if values else "no value"
            raise InputError(
                f"images show {shown} of {name}; expected at least two values. To do: leave "
                f"{name} out of the attributes"
            )
    return found


def gate_of(
    vectors: Floats, sets: ImageSets, values: Values, rows: npt.NDArray[np.intp] | None = None
) -> tuple[Floats, Floats]:
    """Return the linear rule that tells values: ridge regression on which value an image shows.

    Parameters
    ----------
    vectors : ndarray of float64, shape (n, dimension)
        Of unit length.
    sets : ImageSets
        The same n images; those without a value of an attribute teach nothing of it.
    values : mapping of str to sequence of str
        See `values_of`.
    rows : ndarray of int, optional
        Images to learn from; all of them unless given.

    Returns
    -------
    slopes : ndarray of float64, shape (dimension, values)
        Columns in the order of `values`, attribute after attribute.
    offsets : ndarray of float64, shape (values,)
        A vector times slopes, plus offsets, is largest at its own value of each attribute.
    """
    chosen = np.arange(len(vectors)) if rows is None else rows
    slopes, offsets = [], []
    for name, found in values.items():
        column = sets.attributes[name]
        labelled = chosen[[value is not None for value in column[chosen].tolist()]]
        x = vectors[labelled]
        y = (column[labelled][:, None] == np.array(found, dtype=object)).astype(np.float64)
        centre, level = x.mean(axis=0), y.mean(axis=0)
        spread = (x - centre).T @ (x - centre)
        ridge = _RIDGE * np.trace(spread) / len(spread)
        slope = np.linalg.solve(spread + ridge * np.eye(len(spread)), (x - centre).T @ (y - level))
        slopes.append(slope)
        offsets.append(level - centre @ slope)
    return np.concatenate(slopes, axis=1), np.concatenate(offsets)


def told_right(
    vectors: Floats, sets: ImageSets, values: Values
) -> dict[str, dict[str, float | None]]:
    """Return how often each value is told right by what other subjects taught.

    Returns
    -------
    dict of str to dict of str to float or None
        By attribute and value, a share of the images that show it; None where it cannot be told,
        as there are no other subjects.
    """
    part = {name: place % _PARTS for place, name in enumerate(sets.subjects)}
    belongs = np.array([part[name] for name in sets.subject.tolist()])
    right: dict[str, dict[str, list[bool]]] = {
        name: {value: [] for value in found} for name, found in values.items()
    }
    for number in sorted({*part.values()}) if len(part) > 1 else ():
        others, own = np.flatnonzero(belongs != number), np.flatnonzero(belongs == number)
        slopes, offsets = gate_of(vectors, sets, values, others)
        scores, start = vectors[own] @ slopes + offsets, 0
        for name, found in values.items():
            best = scores[:, start : start + len(found)].argmax(axis=1)
            start += len(found)
            for shown, place in zip(
                sets.attributes[name][own].tolist(), best.tolist(), strict=True
            ):
                if shown is not None:
                    right[name][shown].append(shown == found[place])
    return {
        name: {value: float(np.mean(one)) if one else None for value, one in found.items()}
        for name, found in right.items()
    }


def directions_of(vectors: Floats, sets: ImageSets, values: Values) -> Floats:
    """Return the directions in which images lie from the mean of their set, by value.

    Returns
    -------
    ndarray of float64, shape (k, dimension)
        Orthonormal rows: one less than the values of each attribute, summed, or fewer.
    """
    apart = vectors.copy()
    for rows in sets.by_set().values():
        apart[rows] -= vectors[rows].mean(axis=0)
    means = []
    for name, found in values.items():
        column = sets.attributes[name]
        by_value = np.stack([apart[column == value].mean(axis=0) for value in found])
        means.append(by_value - by_value.mean(axis=0))
    return principal_rows(np.concatenate(means), sum(len(found) - 1 for found in values.values()))
