"""Which rows may exchange their groups when rows repeat within units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]

# Units that span the same strata exchange among themselves where there are as many.
_FEWEST_ALIKE = 20


@dataclass(frozen=True, eq=False)
class Exchange:
    """Which rows may exchange their groups.

    Attributes
    ----------
    carrier : ndarray, shape (items,)
        Rows with one carrier share one group: a unit, its part in a stratum, or a single row.
    pool : ndarray, shape (carriers,)
        Carriers of one pool exchange groups.
    group : ndarray, shape (carriers,)
    """

    carrier: Indices
    pool: Indices
    group: Indices

    @classmethod
    def of(cls, group: Indices, unit: Indices, stratum: Indices) -> Exchange:
        """Find carriers and pools from each row's group, unit and stratum.

        A unit of one group moves as a whole, so that what its rows have in common across strata
        stays together; it exchanges with units alike in the strata they span (`_profiles`). A
        unit of several groups moves in parts: its rows in a stratum, where they have one group,
        exchange with other units' in that stratum, otherwise among themselves.
        """
        strata = np.unique(stratum, return_inverse=True)[1]
        many = int(strata.max()) + 1
        cell = unit * many + strata
        of_cells = np.unique(cell, return_inverse=True)[1]
        rows = np.arange(len(group))
        whole, even = ~_mixed(group, unit), ~_mixed(group, of_cells)
        carrier = _distinct(
            np.select([whole, even], [np.zeros_like(rows), np.ones_like(rows)], 2),
            np.select([whole, even], [unit, cell], rows),
        )
        pool = _distinct(
            np.where(whole | even, 0, 1),
            np.select([whole, even], [_profiles(unit, strata), strata], cell),
        )
        _, first = np.unique(carrier, return_index=True)
        return cls(carrier, pool[first], group[first])

    @cached_property
    def _places(self) -> Indices:
        return np.argsort(self.pool, kind="stable")

    def shuffle(self, group: Indices, rng: np.random.Generator) -> Indices:
        """Return each row's group after one random exchange within pools."""
        order = np.lexsort((rng.random(len(self.pool)), self.pool))
        exchanged = np.empty_like(self.group)
        exchanged[self._places] = self.group[order]
        return exchanged[self.carrier].astype(group.dtype)


def _profiles(unit: Indices, stratum: Indices) -> Indices:
    """Return for each row a number that its unit shares with the units it may exchange with.

    Those span the same strata. Where they are few, the unit joins those with rows in one
    stratum only: the one that most of its own rows are in, of several the first.
    """
    many = int(stratum.max()) + 1
    unit = np.unique(unit, return_inverse=True)[1]
    cells, rows = np.unique(unit * many + stratum, return_counts=True)
    units, strata = cells // many, cells % many
    # The largest part of each unit comes first.
    order = np.lexsort((strata, -rows, units))
    home = strata[order[np.unique(units[order], return_index=True)[1]]]
    spans = np.bincount(units)
    profile = home.copy()
    several = np.flatnonzero(spans > 1)
    names: dict[bytes, list[int]] = {}
    for one, span in zip(several.tolist(), _spanned(units, strata, several), strict=True):
        names.setdefault(span, []).append(one)
    for index, members in enumerate(names[key] for key in sorted(names)):
        if len(members) >= _FEWEST_ALIKE:
            profile[members] = many + index
    return np.asarray(profile[unit])


def _spanned(units: Indices, strata: Indices, chosen: Indices) -> Iterator[bytes]:
    """Yield the strata of each chosen unit; `units` is sorted, then `strata`."""
    first = np.searchsorted(units, chosen)
    last = np.searchsorted(units, chosen, side="right")
    for start, stop in zip(first.tolist(), last.tolist(), strict=True):
        yield strata[start:stop].tobytes()


def _mixed(group: Indices, part: Indices) -> npt.NDArray[np.bool_]:
    """Whether the part that each row belongs to has rows of several groups."""
    lowest = np.full(part.max() + 1, group.max())
    highest = np.zeros(part.max() + 1, dtype=np.int64)
    np.minimum.at(lowest, part, group)
    np.maximum.at(highest, part, group)
    return np.asarray((lowest != highest)[part])


def _distinct(kind: Indices, name: Indices) -> Indices:
    """Number pairs from 0 in their order."""
    return np.asarray(np.unique(kind * (int(name.max()) + 1) + name, return_inverse=True)[1])
