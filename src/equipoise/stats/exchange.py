"""Which rows may exchange their groups: those of a unit in one group together, or single ones."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from equipoise.core import AnyArray, Booleans, Integers, integers, numbered, record
from equipoise.stats.streams import shuffle_within

# Units that span the same strata exchange among themselves where there are as many.
_FEWEST_ALIKE = 20


@record
class Exchange:
    """Which rows may exchange their groups.

    Attributes
    ----------
    carrier : ndarray, shape (items,)
        Rows with one carrier share one group: the rows of a unit in one group, or fewer.
    pool : ndarray, shape (carriers,)
        Carriers of one pool exchange groups.
    group : ndarray, shape (carriers,)
    """

    carrier: Integers
    pool: Integers
    group: Integers

    @classmethod
    def of(cls, group: Integers, unit: Integers, stratum: Integers) -> Exchange:
        """Exchange the cells of all units: a cell has the rows of a unit in one group.

        What a cell has in common stays together, across strata too. It exchanges with cells alike
        in the strata they span (`_profiles`), of whatever unit: only a statistic in standard errors
        over units may be held against that.
        """
        carrier = _cells(group, unit)
        pool = numbered(_profiles(carrier, numbered(stratum)))
        _, first = np.unique(carrier, return_index=True)
        return cls(carrier, pool[first], group[first])

    @classmethod
    def within(
        cls, group: Integers, unit: Integers, stratum: Integers, *, by_row: bool = False
    ) -> Exchange:
        """Exchange units of one group as wholes, and others' groups within each of them.

        A unit of one group moves as a whole, so that what its rows have in common across strata
        stays together; it exchanges with units alike in the strata they span (`_profiles`). A
        unit of several groups moves in parts: its rows in a stratum, where they have one group,
        exchange with other units' in that stratum. Otherwise its cells there exchange among
        themselves, or its rows where they are independent (`by_row`).
        """
        strata = numbered(stratum)
        n_strata = int(strata.max()) + 1
        part = unit * n_strata + strata
        of_parts = numbered(part)
        smallest = np.arange(len(group)) if by_row else _cells(group, part)
        unit_moves, part_moves = ~varies(unit, group)[unit], ~varies(of_parts, group)[of_parts]
        carrier = _distinct(
            np.select([unit_moves, part_moves], [np.zeros_like(unit), np.ones_like(unit)], 2),
            np.select([unit_moves, part_moves], [unit, part], smallest),
        )
        pool = _distinct(
            np.where(unit_moves | part_moves, 0, 1),
            np.select([unit_moves, part_moves], [_profiles(unit, strata), strata], part),
        )
        _, first = np.unique(carrier, return_index=True)
        return cls(carrier, pool[first], group[first])

    def groups(self, rng: np.random.Generator) -> Integers:
        """Return each carrier's group after one random exchange within pools."""
        random = rng.random(len(self.pool))
        # Numbers between those of pools, sorted at once: several times as quick as pairs.
        keys = self.pool + random
        order = np.argsort(keys)
        ordered = keys[order]
        if (ordered[1:] == ordered[:-1]).any():
            order = np.lexsort((random, self.pool))
        exchanged = np.empty_like(self.group)
        exchanged[self._places] = self.group[order]
        return exchanged

    def shuffle(self, group: Integers, rng: np.random.Generator) -> Integers:
        """Return each row's group after one random exchange within pools."""
        return self.groups(rng)[self.carrier].astype(group.dtype)

    @cached_property
    def _places(self) -> Integers:
        """Carriers, pool after pool."""
        return np.argsort(self.pool, kind="stable")


@record
class RowExchange:
    """Exchanges of groups between single rows, for units of several groups.

    Units of one group exchange it as wholes. Units of several groups exchange all of these with
    units that have as many rows in each stratum, and shuffle them within each stratum.

    Attributes
    ----------
    uniform, mixed : ndarray of int64
        Rows of units of one group, and rows of others: alike units follow each other, and so do a
        unit's rows in a stratum.
    of_uniform : Exchange
        Of the rows of `uniform`.
    of_mixed : Exchange
        Of mixed units, each of which exchanges where its rows begin in `mixed`.
    place, step : ndarray, shape (mixed rows,)
        Number of each row's unit, and of the row in it.
    starts : ndarray of int64
        Where the rows of a mixed unit in a stratum begin, and the last of all end.
    """

    uniform: Integers
    mixed: Integers
    of_uniform: Exchange
    of_mixed: Exchange
    place: Integers
    step: Integers
    starts: Integers

    @classmethod
    def of(cls, group: Integers, unit: Integers, stratum: Integers) -> RowExchange:
        """Tell units of one group from units of several, and find which of these are alike."""
        varying = varies(unit, group)[unit]
        uniform, mixed = np.flatnonzero(~varying), np.flatnonzero(varying)
        of_uniform = Exchange.of(group[uniform], unit[uniform], stratum[uniform])
        units, strata = numbered(unit[mixed]), numbered(stratum[mixed])
        kind = _kinds(units, strata)
        order = np.lexsort((strata, units, kind[units]))
        mixed, units, strata = mixed[order], units[order], strata[order]
        new_unit, new_stratum = (np.diff(column, prepend=-1) != 0 for column in (units, strata))
        first = np.flatnonzero(new_unit)
        place = np.cumsum(new_unit) - 1
        return cls(
            uniform,
            mixed,
            of_uniform,
            Exchange(np.arange(len(first)), kind[units[first]], first),
            place,
            np.arange(len(mixed)) - first[place],
            np.append(np.flatnonzero(new_unit | new_stratum), len(mixed)),
        )

    def shuffle(self, group: Integers, rng: np.random.Generator) -> Integers:
        """Return each row's group after one random exchange."""
        exchanged = group.copy()
        exchanged[self.uniform] = self.of_uniform.shuffle(group[self.uniform], rng)
        source = self.of_mixed.groups(rng)[self.place] + self.step
        mixed_groups = group[self.mixed[source]]
        shuffle_within(rng.integers(0, 1 << 64, dtype=np.uint64), self.starts, mixed_groups)
        exchanged[self.mixed] = mixed_groups
        return exchanged


def _kinds(unit: Integers, stratum: Integers) -> Integers:
    """Number units by their numbers of rows in each stratum; alike ones have one number."""
    n_strata = int(stratum.max()) + 1
    pieces, rows = np.unique(unit * n_strata + stratum, return_counts=True)
    content = np.stack([pieces % n_strata, rows], axis=1)
    ends = np.cumsum(np.bincount(pieces // n_strata))[:-1]
    names = [part.tobytes() for part in np.split(content, ends)]
    number = {name: index for index, name in enumerate(sorted({*names}))}
    return np.array([number[name] for name in names])


def _profiles(unit: Integers, stratum: Integers) -> Integers:
    """Return for each row a number that its unit shares with the units it may exchange with.

    Those span the same strata. Where they are few, the unit joins those with rows in one
    stratum only: the one that most of its own rows are in, of several the first.
    """
    n_strata = int(stratum.max(initial=0)) + 1
    unit = numbered(unit)
    cells, rows = np.unique(unit * n_strata + stratum, return_counts=True)
    units, strata = cells // n_strata, cells % n_strata
    spans = np.bincount(units)
    last = np.cumsum(spans)
    first = last - spans
    # The largest part of each unit comes first.
    profile = strata[np.lexsort((strata, -rows, units))[first]]
    spanning = np.flatnonzero(spans > 1)
    names: dict[bytes, list[int]] = {}
    ends = first[spanning].tolist(), last[spanning].tolist()
    for unit_index, start, stop in zip(spanning.tolist(), *ends, strict=True):
        names.setdefault(strata[start:stop].tobytes(), []).append(unit_index)
    for index, members in enumerate(names[key] for key in sorted(names)):
        if len(members) >= _FEWEST_ALIKE:
            profile[members] = n_strata + index
    return integers(profile[unit])


def varies(places: AnyArray, values: AnyArray) -> Booleans:
    """Whether the values of each place differ, shape (places,)."""
    n_places, bounds = int(places.max(initial=-1)) + 1, np.iinfo(np.int64)
    low, high = np.full(n_places, bounds.max), np.full(n_places, bounds.min)
    np.minimum.at(low, places, values)
    np.maximum.at(high, places, values)
    return low < high


def _distinct(kind: Integers, name: Integers) -> Integers:
    """Number pairs from 0 in their order."""
    return numbered(kind * (int(name.max()) + 1) + name)


def _cells(group: Integers, unit: Integers) -> Integers:
    """Number the rows of a unit in one group, in the order in which they first appear.

    Names say nothing of it.
    """
    cell = unit * (int(group.max(initial=0)) + 1) + group
    _, first, place = np.unique(cell, return_index=True, return_inverse=True)
    return integers(np.argsort(np.argsort(first))[place])
