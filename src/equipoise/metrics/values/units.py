"""Units that are resampled together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from equipoise.core.arrays import AnyArray, Booleans, Floats, Integers
from equipoise.core.errors import InputError
from equipoise.core.labels import encode
from equipoise.stats.streams import Seed, unit_counts, unit_keys


def unit_codes(labels: Any, n: int, what: str) -> tuple[Integers, tuple[str, ...]]:
    """Return the unit of each of n rows, from 0, and names; a row without a label stands alone.

    Raises
    ------
    InputError
        When there is not one label per row.
    """
    codes, names = encode(labels, what=what)
    if len(codes) != n:
        raise InputError(f"{what}: {len(codes)} rows; expected {n}")
    alone = np.flatnonzero(codes < 0)
    found = codes.astype(np.int64)
    found[alone] = len(names) + np.arange(len(alone))
    return found, (*names, *(f"row {row}" for row in alone.tolist()))


def varies(places: AnyArray, values: AnyArray) -> Booleans:
    """Whether the values of each place differ, shape (places,)."""
    many, bounds = int(places.max(initial=-1)) + 1, np.iinfo(np.int64)
    low, high = np.full(many, bounds.max), np.full(many, bounds.min)
    np.minimum.at(low, places, values)
    np.maximum.at(high, places, values)
    return low < high


@dataclass(frozen=True, eq=False)
class Units:
    """Rows that are resampled together.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
    names : sequence of str
    named : bool
        Whether units were named; otherwise every row is one.
    """

    codes: Integers
    names: Sequence[str]
    named: bool = True

    @classmethod
    def of(cls, units: Any, count: int) -> Units:
        """Return the units of `count` rows, see `unit_codes`; by default every row is one.

        Raises
        ------
        InputError
            When there is not one unit per row.
        """
        labels = np.full(count, None) if units is None else units
        return cls(*unit_codes(labels, count, "units"), named=units is not None)

    @property
    def name(self) -> str:
        """The unit of resampling, in a word."""
        return "unit" if self.named else "row"

    def times(self, replicates: int, seed: Seed) -> Floats:
        """Return how often each unit counts in each replicate, (replicates, units)."""
        return unit_counts(seed, unit_keys(self.names), range(replicates)).astype(np.float64)
