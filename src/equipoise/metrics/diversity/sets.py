"""Named sets of embeddings with the sums of their unit vectors, projected where asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from equipoise.core.errors import InputError
from equipoise.metrics.chosen_rows import Table
from equipoise.metrics.diversity.sums import (
    Floats,
    UnitSums,
    check_dimensions,
    embedding_array,
    embedding_table,
    scatters,
    unit_sums,
)


@dataclass(frozen=True)
class Spread:
    """The ends of a mean distance: value ± t · standard error, within [0, 2].

    Attributes
    ----------
    value, error, freedom : float
        Estimate, jackknife standard error and degrees of freedom of Student's t; NaN when a
        set is too small for them.
    """

    value: float
    error: float
    freedom: float

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        half = float(special.stdtrit(self.freedom, (1.0 + level) / 2.0)) * self.error
        return float(np.clip(self.value - half, 0, 2)), float(np.clip(self.value + half, 0, 2))


def within(count: int, squares: float, value: float, factor: float = 1.0) -> Spread:
    """Return the spread of the mean distance within a set.

    Deleting row i leaves (|S|² - 2 S·u_i + 1 - (n - 1)) / ((n - 1)(n - 2)) as mean cosine: the
    jackknife variance of this U-statistic is linear in n. It never pairs an image with its own
    copy, as a bootstrap would, and is on average not below the true variance (Efron & Stein).

    Parameters
    ----------
    count : int
        Rows that are not zero, n.
    squares : float
        Sum over rows of (u_i·m - |m|²)², where m = S / n.
    value : float
    factor : float
        By which the value differs from the mean over pairs of different rows.
    """
    n = count
    if n < 3:
        return Spread(value, np.nan, np.nan)
    deviation = 2.0 * factor * n * np.sqrt(squares) / ((n - 1.0) * (n - 2.0))
    return Spread(value, float(np.sqrt((n - 1.0) / n) * deviation), n - 1.0)


def between(counts: Sequence[int], squares: Sequence[float], value: float) -> Spread:
    """Return the spread of a weighted mean of distances between independent sets.

    The statistic is linear in each set's mean vector, so its jackknife variance is the sum over
    sets of a variance of projections; the degrees of freedom are Welch and Satterthwaite's.

    Parameters
    ----------
    counts : sequence of int
        Rows of each set that are not zero.
    squares : sequence of float
        Sums over each set's rows of the squared deviations of their projections on what the set
        is compared with: the weighted sum of the other sets' mean vectors.
    value : float
    """
    if min(counts) < 2:
        return Spread(value, np.nan, np.nan)
    n = np.asarray(counts, dtype=np.float64)
    parts = np.asarray(squares) / (n - 1.0) / n
    variance = float(parts.sum())
    effective = variance**2 / float((parts**2 / (n - 1.0)).sum()) if variance else (n - 1.0).sum()
    return Spread(value, float(np.sqrt(variance)), float(effective))


@dataclass(frozen=True, eq=False)
class Sets:
    """Named sets of embeddings of one space, with the sums of their unit vectors."""

    names: tuple[str, ...]
    arrays: tuple[Table, ...]
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
        tables = [embedding_table(x, what=w) for x, w in zip(sets.values(), whats, strict=True)]
        sums = unit_sums(tables, whats)
        check_dimensions(sums)
        if components is not None:
            zeros = [one.zeros for one in sums]
            # Centred, a row of zeros would get a direction that it does not have.
            arrays = [np.asarray(x) for x in tables]
            tables = [*_principal([x[(x != 0).any(axis=1)] for x in arrays], components)]
            again = unit_sums(tables, whats)
            sums = [replace(x, zeros=x.zeros + z) for x, z in zip(again, zeros, strict=True)]
        return cls(names, tuple(tables), tuple(sums))

    @property
    def zeros(self) -> int:
        """Rows without a direction."""
        return sum(one.zeros for one in self.sums)

    @cached_property
    def means(self) -> Floats:
        """Mean unit vector of each set, shape (sets, d)."""
        return np.stack([one.mean for one in self.sums])

    @cached_property
    def cosines(self) -> Floats:
        """Mean cosine of each pair of sets, shape (sets, sets), self-pairs included."""
        return np.asarray(np.einsum("id,jd->ij", self.means, self.means))

    @cached_property
    def scatters(self) -> list[Floats]:
        """Of each set, sums of squares and products of projections on all sets' means."""
        return scatters(self.arrays, self.means)

    @property
    def cross(self) -> float:
        """Mean over pairs of sets of their mean distance."""
        pairs = np.triu_indices(len(self.names), 1)
        return 1.0 - float(self.cosines[pairs].mean())

    def distance(self, a: int, b: int) -> float:
        """Return the mean distance of two sets, or within one."""
        return self.sums[a].distance if a == b else 1.0 - float(self.cosines[a, b])

    def pair(self, a: int, b: int) -> Spread:
        """Return the mean distance of two sets, or within one, with its spread."""
        value = self.distance(a, b)
        if a == b:
            return within(self.sums[a].count, float(self.scatters[a][a, a]), value)
        squares = [float(self.scatters[a][b, b]), float(self.scatters[b][a, a])]
        return between([self.sums[a].count, self.sums[b].count], squares, value)

    @property
    def cross_spread(self) -> Spread:
        """Mean over pairs of sets of their mean distance, with its spread."""
        many = len(self.names)
        weights = (1.0 - np.eye(many)) / (many * (many - 1) / 2)
        squares = [
            float(np.einsum("i,ij,j->", row, one, row))
            for row, one in zip(weights, self.scatters, strict=True)
        ]
        return between([one.count for one in self.sums], squares, self.cross)


def project(sets: Mapping[str, Any], components: int) -> dict[str, npt.NDArray[Any]]:
    """Project sets on the principal components of all their rows together.

    Rows of zeros, which have no direction, stay rows of zeros.

    Raises
    ------
    InputError
        When `components` does not fit, or sets are not as in `iss_cross`.
    """
    arrays = {name: embedding_array(one, what=f"sets[{name!r}]") for name, one in sets.items()}
    known = {name: (one != 0).any(axis=1) for name, one in arrays.items()}
    given = [one[known[name]] for name, one in arrays.items()]
    found = {}
    for name, one in zip(arrays, _principal(given, components), strict=True):
        found[name] = np.zeros((len(arrays[name]), components))
        found[name][known[name]] = one
    return found


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
