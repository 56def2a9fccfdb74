"""Images with what checks rejected of them, their groups and their sets, made ready."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.groups import Groups
from equipoise.core.labels import encode

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Checked:
    """Images that were checked and have a group.

    Attributes
    ----------
    groups : Groups
        Of these images.
    values : ndarray of int64, shape (n, 2)
        Checks that rejected the image, and checks made of it.
    unit : ndarray of int64, shape (n,)
        Its set: the images among which groups are exchanged.
    cluster : ndarray of int64, shape (n,)
        What is resampled together: index into `names`.
    names : tuple of str
    stratum : ndarray of int64, shape (n,)
        Index into `strata`.
    strata : tuple of str
    excluded : mapping of str to int
    """

    groups: Groups
    values: Indices = field(repr=False)
    unit: Indices = field(repr=False)
    cluster: Indices = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    stratum: Indices = field(repr=False)
    strata: tuple[str, ...]
    excluded: dict[str, int]

    @property
    def cell(self) -> Indices:
        """Stratum and group of each image, as one number."""
        return self.stratum * len(self.groups) + self.groups.codes

    @property
    def shape(self) -> tuple[int, int]:
        """Strata and groups."""
        return len(self.strata), len(self.groups)

    def count(self, cell: Indices, values: Indices) -> Indices:
        """Add values (n, k) up by cell, shape (strata, groups, k)."""
        strata, groups = self.shape
        found = [
            np.bincount(cell, weights=column, minlength=strata * groups) for column in values.T
        ]
        # Sums of whole numbers below 2^53 are exact.
        return np.stack(found, axis=1).astype(np.int64).reshape(strata, groups, -1)


def checked(
    rejected: Any, groups: Any, *, checks: Any, sets: Any, clusters: Any, strata: Any
) -> Checked:
    """Bring images in one form, see `equipoise.metrics.rejections.gap.rejection_gap`.

    Raises
    ------
    InputError
        When lengths differ, or counts are no whole numbers from 0 to the checks made.
    """
    of = Groups.of(groups)
    values = _values(rejected, checks)
    n = len(values)
    given = {"groups": of.codes, "sets": sets, "clusters": clusters, "strata": strata}
    for name, one in given.items():
        if one is not None and len(one) != n:
            raise InputError(f"{name}: {len(one)} rows; expected {n}, as in rejected")
    unknown, without = values[:, 1] == 0, of.codes < 0
    kept = np.flatnonzero(~unknown & ~without)
    unit, _ = _named(sets, n, "sets")
    cluster, names = _named(sets if clusters is None else clusters, n, "clusters")
    stratum, labels = encode(np.full(n, "all") if strata is None else strata, what="strata")
    if (stratum < 0).any():
        raise InputError(f"strata, row {int(np.argmax(stratum < 0)) + 1}: missing")
    excluded = {
        "not checked": int(unknown.sum()),
        "missing group": int((without & ~unknown).sum()),
    }
    return Checked(
        of.take(kept),
        values[kept],
        unit[kept],
        cluster[kept],
        names,
        stratum[kept].astype(np.int64),
        labels,
        {why: many for why, many in excluded.items() if many},
    )


def _values(rejected: Any, checks: Any) -> Indices:
    counts = np.asarray(rejected, dtype=np.float64)
    if counts.ndim != 1 or not len(counts):
        raise InputError(f"rejected: shape {counts.shape}; expected one number per image, (n,)")
    made = np.ones(len(counts)) if checks is None else np.asarray(checks, dtype=np.float64)
    if made.shape != counts.shape:
        raise InputError(f"checks: shape {made.shape}; expected {counts.shape}, as rejected")
    made = np.where(np.isnan(counts), 0.0, made)
    counts = np.where(np.isnan(counts), 0.0, counts)
    wrong = ~((counts >= 0) & (counts <= made) & (counts == np.rint(counts)))
    wrong |= made != np.rint(made)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"rejected, row {row + 1}: {counts[row]:g} of {made[row]:g}; expected a whole number "
            "from 0 to the checks made, or NaN where there was none"
        )
    return np.stack([counts, made], axis=1).astype(np.int64)


def _named(labels: Any, n: int, what: str) -> tuple[Indices, tuple[str, ...]]:
    """Number labels; a row without one stands alone."""
    if labels is None:
        return np.arange(n, dtype=np.int64), tuple(map(str, range(n)))
    codes, names = encode(labels, what=what)
    alone = np.flatnonzero(codes < 0)
    numbered = codes.astype(np.int64)
    numbered[alone] = len(names) + np.arange(len(alone))
    return numbered, (*names, *(f"row {row}" for row in alone.tolist()))
