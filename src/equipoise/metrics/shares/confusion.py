"""What a classifier says of images whose class is known: the counts that a correction rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.labels import encode

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of what was said of images of each class.

    Attributes
    ----------
    classes : tuple of str
        True classes.
    outcomes : tuple of str
        What may be said: the classes, and further ones such as "unknown".
    counts : ndarray of int, shape (classes, outcomes)
    """

    classes: tuple[str, ...]
    outcomes: tuple[str, ...]
    counts: Counts = field(repr=False)

    @classmethod
    def of_labels(
        cls, true: Any, said: Any, *, outcomes: Sequence[str] = ()
    ) -> tuple[Confusion, int]:
        """Count labelled images.

        Parameters
        ----------
        true, said : array-like, shape (n,)
            The true class, and what was said; missing ones are left out.
        outcomes : sequence of str
            Outcomes to have a column, whether they occur or not.

        Returns
        -------
        tuple of Confusion and int
            And how many images were left out because either is missing.

        Raises
        ------
        InputError
            When the lengths differ, or no image has both.
        """
        rows, classes = encode(true, what="true labels")
        columns, found = encode(said, what="predicted labels")
        if len(rows) != len(columns):
            raise InputError(
                f"true labels: {len(rows)}; predicted: {len(columns)}; expected as many"
            )
        names = tuple(dict.fromkeys([*outcomes, *classes, *found]))
        place = np.array([names.index(one) for one in found], dtype=np.int64)
        known = (rows >= 0) & (columns >= 0)
        if not known.any():
            raise InputError(f"true labels: none of {len(rows)} images has one and a predicted one")
        cells = rows[known].astype(np.int64) * len(names) + place[columns[known]]
        counts = np.bincount(cells, minlength=len(classes) * len(names))
        return cls(classes, names, counts.reshape(len(classes), -1)), int((~known).sum())

    @classmethod
    def of_counts(cls, counts: Mapping[str, Mapping[str, int]]) -> Confusion:
        """Take counts by true class and outcome; what is not named is 0.

        Raises
        ------
        InputError
            When a count is negative or no whole number, or there is none.
        """
        classes = tuple(counts)
        outcomes = tuple(dict.fromkeys([*classes, *(o for row in counts.values() for o in row)]))
        cells = np.zeros((len(classes), len(outcomes)), dtype=np.int64)
        for row, (name, by_outcome) in enumerate(counts.items()):
            for outcome, count in by_outcome.items():
                cells[row, outcomes.index(outcome)] = whole(count, f"{name} as {outcome}")
        if not cells.any():
            raise InputError("confusion: no labelled image; expected counts by true class")
        return cls(classes, outcomes, cells)

    @property
    def labelled(self) -> Counts:
        """Labelled images of each class."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def rates(self) -> Floats:
        """Share of each outcome among the images of each class; NaN of a class without images."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / self.labelled[:, None])

    @cached_property
    def condition(self) -> float:
        """Largest over smallest singular value of the rates: how far errors are blown up."""
        if not np.isfinite(self.rates).all():
            return math.inf
        sizes = np.linalg.svd(self.rates, compute_uv=False)
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 1e-12 * sizes[0] else math.inf

    @property
    def accuracy(self) -> Floats:
        """Share of the images of each class that are named right."""
        places = [self.outcomes.index(one) for one in self.classes]
        return np.asarray(self.rates[np.arange(len(self.classes)), places])

    def over(self, outcomes: Sequence[str]) -> Confusion:
        """Return the counts with columns for exactly these outcomes, in their order."""
        cells = np.zeros((len(self.classes), len(outcomes)), dtype=np.int64)
        for column, name in enumerate(outcomes):
            if name in self.outcomes:
                cells[:, column] = self.counts[:, self.outcomes.index(name)]
        return Confusion(self.classes, tuple(outcomes), cells)


def whole(count: object, what: str) -> int:
    """Return a count as a whole number.

    Raises
    ------
    InputError
        When it is negative or none.
    """
    number = float(count) if isinstance(count, int | float | np.number) else math.nan
    if not number >= 0 or number != int(number):
        raise InputError(f"{what}: {count!r}; expected a whole number of images, at least 0")
    return int(number)
