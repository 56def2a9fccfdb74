"""Named sets of embeddings with the sums of their unit vectors, projected where asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.metrics.diversity.intervals import Spread, between, within
from equipoise.metrics.diversity.sums import (
    Floats,
    UnitSums,
    check_dimensions,
    embedding_array,
)


@dataclass(frozen=True, eq=False)
class Sets:
    """Named sets of embeddings of one space, with the sums of their unit vectors."""

    names: tuple[str, ...]
    arrays: tuple[npt.NDArray[Any], ...]
    sums: tuple[UnitSums, ...]

    @classmethod
    def of(cls, sets: Sequence[Any] | Mapping[str, Any], components: int | None) -> Sets:
        """Check the sets, project them and sum their unit vectors."""
        if not isinstance(sets, Mapping):
            sets = {str(index): one for index, one in enumerate(sets)}
        names = tuple(str(name) for name in sets)
        if not names:
            raise InputError("sets: none given; expected at least one set of embeddings")
        whats = [_what(name, names) for name in names]
        arrays = [embedding_array(x, what=w) for x, w in zip(sets.values(), whats, strict=True)]
        sums = [UnitSums.of(x, what=w) for x, w in zip(arrays, whats, strict=True)]
        check_dimensions(sums)
        if components is not None:
            zeros = [one.zeros for one in sums]
            # Centred, a row of zeros would get a direction that it does not have.
            arrays = _principal([x[(x != 0).any(axis=1)] for x in arrays], components)
            again = [UnitSums.of(x, what=w) for x, w in zip(arrays, whats, strict=True)]
            sums = [replace(x, zeros=x.zeros + z) for x, z in zip(again, zeros, strict=True)]
        return cls(names, tuple(arrays), tuple(sums))

    @property
    def zeros(self) -> int:
        """Rows without a direction."""
        return sum(one.zeros for one in self.sums)

    @cached_property
    def means(self) -> Floats:
        """Mean unit vector of each set, shape (sets, d)."""
        return np.stack([one.mean for one in self.sums])

    @property
    def even(self) -> Floats:
        """Equal weights of all pairs of sets, shape (sets, sets)."""
        many = len(self.names)
        return (1.0 - np.eye(many)) / (many * (many - 1) / 2)

    @property
    def cross(self) -> float:
        """Mean over pairs of sets of their mean distance."""
        cosines = self.means @ self.means.T
        return 1.0 - float((np.triu(cosines, 1) * self.even).sum())

    def pair(self, a: int, b: int) -> Spread:
        """Return the mean distance of two sets, or within one, with its spread."""
        if a == b:
            return within(self.arrays[a], self.sums[a], self.sums[a].distance)
        chosen = [a, b]
        both = Sets(
            tuple(self.names[one] for one in chosen),
            tuple(self.arrays[one] for one in chosen),
            tuple(self.sums[one] for one in chosen),
        )
        return both.spread(both.even, both.cross)

    def spread(self, weights: Floats, value: float) -> Spread:
        """Return the spread of a weighted mean over pairs of sets."""
        return between(self.arrays, self.sums, weights, value)


def _principal(arrays: list[npt.NDArray[Any]], components: int) -> list[npt.NDArray[Any]]:
    """Project all sets on the principal components of their rows together."""
    rows = np.concatenate([np.asarray(one, dtype=np.float64) for one in arrays])
    if not 1 <= components <= min(rows.shape):
        raise InputError(
            f"components={components}: expected 1 to {min(rows.shape)}, "
            "the smaller of images and dimensions"
        )
    centred = rows - rows.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    projected = centred @ axes[:components].T
    return np.split(projected, np.cumsum([len(one) for one in arrays])[:-1])


def _what(name: str, names: tuple[str, ...]) -> str:
    return "embeddings" if names == ("images",) else f"sets[{name!r}]"
