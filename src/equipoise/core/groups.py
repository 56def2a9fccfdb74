"""Groups of rows: one attribute, or the intersections of several."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeAlias

import numpy as np

from equipoise.core.arrays import AnyArray, Booleans, Integers, Integers32, tally
from equipoise.core.errors import InputError
from equipoise.core.labels import Labels, encode, in_bands, shape_of
from equipoise.core.records import record
from equipoise.core.types import Strings

MAX_INTERSECTIONS = 10_000
MIN_SIZE = 30
MIN_UNITS = 10
"""Units that a group needs for a verdict: fewer say little of all units there are."""

_NUMBER = r"[-+−]?\d[\d.,]*"
_BOUND = "under|below|less than|younger than|up to|at most|over|above|more than|older than|[<≤>≥]"
_BARE = re.compile(
    rf"(?:(?:{_BOUND})\s*)?{_NUMBER}(?:\s*(?:-|–|to)\s*{_NUMBER})?\s*"
    r"(?:\+|(?:and|or) (?:under|below|less|younger|over|above|more|older))?|yes|no|true|false",
    re.IGNORECASE,
)
"""Labels that mean nothing without their attribute: numbers, bands of numbers, yes and no."""


@record
class Groups:
    """Which group each row belongs to.

    Attributes
    ----------
    attributes : tuple of str
        Names of the attributes whose intersections form the groups.
    levels : tuple of tuple of str
        Per group, its label in each attribute. Every combination of observed labels has an
        entry, so an empty intersection is known by its count of 0.
    codes : ndarray of int32, shape (n,)
        Index into `levels`; -1 where an attribute is missing.
    min_size : int
        Groups with fewer rows are reported with their counts and left out of comparisons.
    named : bool
        Whether the attributes have names of their own; False for an array of labels alone.
    units : ndarray of int, shape (n,), or None
        Unit of each row, where rows repeat within units; -1: a unit of its own.

    Examples
    --------
    >>> from equipoise.core import Groups
    >>> Groups.of(
    ...     {"gender": ["women", "men"] * 40, "age": ["old"] * 40 + ["young"] * 40}
    ... ).names
    ('men, old', 'men, young', 'women, old', 'women, young')
    """

    attributes: Strings
    levels: tuple[Strings, ...]
    codes: Integers32
    min_size: int = 1
    named: bool = True
    units: Integers32 | Integers | None = None

    @classmethod
    def of(
        cls, groups: GroupLabels, *, min_size: int = MIN_SIZE, subject: str = "groups"
    ) -> Groups:
        """Build groups from one label array or a mapping of attribute to labels.

        Parameters
        ----------
        groups : array-like (n,), mapping of str to array-like (n,), or Groups
            None, NaN and empty strings mean a missing attribute.
        min_size : int
            Smallest group that takes part in comparisons, 30 as in audits. Ignored for a Groups.
        subject : str
            Name of the argument, for errors.

        Raises
        ------
        InputError
            When the mapping is empty, lengths differ, or the intersections are too many.
        """
        if isinstance(groups, Groups):
            return groups
        columns = groups if isinstance(groups, Mapping) else {"group": groups}
        if not columns:
            raise InputError(f"{subject}: an empty mapping; expected at least one attribute")
        names = tuple(str(name) for name in columns)
        places = [f"{subject}[{name!r}]" if columns is groups else subject for name in columns]
        encodings = (
            encode(labels, subject=place)
            for place, labels in zip(places, columns.values(), strict=True)
        )
        encoded = [in_bands(*encoding) for encoding in encodings]
        sizes = {len(codes) for codes, _ in encoded}
        if len(sizes) > 1:
            raise InputError(
                f"{subject}: attributes of different lengths {sorted(sizes)}; expected one length"
            )
        codes, levels = _intersect(encoded)
        return cls(names, levels, codes, min_size, isinstance(groups, Mapping))

    @property
    def name(self) -> str:
        """Names of the attributes, joined for display."""
        return " × ".join(self.attributes)

    @cached_property
    def names(self) -> Strings:
        """One display name per group: its labels joined by commas.

        The attribute's name stands before a label that means nothing by itself, such as "0",
        "20-29" or "yes": "Male 0". Labels that hold commas themselves are quoted where two groups
        would share a name.
        """
        parts = [self._display(level) for level in self.levels]
        plain = tuple(map(", ".join, parts))
        if len(set(plain)) == len(plain):
            return plain
        return tuple(", ".join(map(repr, part)) for part in parts)

    def display_name(self, name: str) -> str:
        """Return the display name of a group, also where it is named by its labels alone."""
        if name in self.names:
            return name
        by_labels = dict(zip(map(", ".join, self.levels), self.names, strict=True))
        return by_labels.get(name) or ", ".join(self._display((name,)))

    def _display(self, level: Strings) -> Strings:
        """Return the labels of a group, each after its attribute where that needs it."""
        if not self.named or len(level) != len(self.attributes):
            return level
        return tuple(
            f"{attribute.removesuffix(' band')} {label}" if _BARE.fullmatch(label) else label
            for attribute, label in zip(self.attributes, level, strict=True)
        )

    @property
    def facts(self) -> GroupFacts:
        """Everything but the codes."""
        return self.attributes, self.levels, self.min_size, self.named

    @cached_property
    def counts(self) -> Integers:
        """Rows per group, shape (groups,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))

    @property
    def n_missing(self) -> int:
        """Number of rows with a missing attribute."""
        return tally(self.codes < 0)

    @cached_property
    def n_units(self) -> Integers:
        """Units per group, shape (groups,); rows where they don't repeat."""
        if self.units is None:
            return self.counts
        rows = self.codes >= 0
        codes, units = self.codes[rows].astype(np.int64), self.units[rows]
        alone = np.bincount(codes[units < 0], minlength=len(self))
        cells = np.unique(codes[units >= 0] + len(self) * units[units >= 0].astype(np.int64))
        return alone + np.bincount(cells % len(self), minlength=len(self))

    @cached_property
    def large_enough(self) -> Booleans:
        """Groups that are not empty and have at least `min_size` rows, shape (groups,)."""
        return self.counts >= max(self.min_size, 1)

    @cached_property
    def usable(self) -> Booleans:
        """Groups that are compared, shape (groups,).

        They are large enough. Those of fewer than `MIN_UNITS` units are left out where two others
        remain; otherwise they are compared, and `few_units` says so.
        """
        enough = self.large_enough & self._enough_units
        return self.large_enough if tally(enough) < 2 else enough

    @property
    def few_units(self) -> bool:
        """Whether groups are compared that have too few units for a verdict."""
        return bool((self.usable & ~self._enough_units).any())

    @property
    def _enough_units(self) -> Booleans:
        if self.units is None:
            return np.ones(len(self), dtype=np.bool_)
        return self.n_units >= MIN_UNITS

    @property
    def large(self) -> Integers32:
        """Codes of rows, -1 in groups that are not usable while others are, shape (n,)."""
        if not self.usable.any():
            return self.codes
        return np.where(np.append(self.usable, False)[self.codes], self.codes, np.int32(-1))

    def __len__(self) -> int:
        return len(self.levels)

    def take(self, rows: AnyArray) -> Groups:
        """Return the groups of a selection of rows (indices or a mask); levels are kept."""
        units = None if self.units is None else self.units[rows]
        return Groups(
            self.attributes, self.levels, self.codes[rows], self.min_size, self.named, units
        )


GroupLabels: TypeAlias = Labels | Mapping[str, Labels] | Groups
"""Groups of rows: labels, labels by attribute, or `Groups`."""


def rows_of(groups: GroupLabels) -> int:
    """Return how many rows have a group, or none; 0 for an empty mapping."""
    if isinstance(groups, Groups):
        return len(groups.codes)
    columns = [*groups.values()] if isinstance(groups, Mapping) else [groups]
    return min((shape_of(labels)[:1] or (0,))[0] for labels in columns) if columns else 0


GroupFacts: TypeAlias = tuple[Strings, tuple[Strings, ...], int, bool]
"""Attributes, levels, smallest size, and whether the attributes are named; see `Groups`."""


class CountedGroups(Groups):
    """Groups with known row counts; the codes of rows are built when read."""

    def __init__(
        self,
        groups: GroupFacts,
        counts: Integers,
        codes: Callable[[], Integers32],
    ) -> None:
        names = ("attributes", "levels", "min_size", "named")
        # The class is frozen; cached properties keep what they hold in the same place.
        vars(self).update(zip(names, groups, strict=True), units=None, counts=counts, _codes=codes)

    @cached_property
    def codes(self) -> Integers32:
        """Index into `levels`, shape (n,)."""
        codes: Integers32 = vars(self)["_codes"]()
        return codes


def _intersect(
    encoded: list[tuple[Integers32, Strings]],
) -> tuple[Integers32, tuple[Strings, ...]]:
    total = math.prod(len(names) for _, names in encoded)
    if total > MAX_INTERSECTIONS:
        raise InputError(
            f"groups: {total} intersections; expected at most {MAX_INTERSECTIONS}. "
            "Use fewer attributes or coarser labels"
        )
    codes, names = encoded[0]
    levels: tuple[Strings, ...] = tuple((name,) for name in names)
    for more, more_names in encoded[1:]:
        missing = (codes < 0) | (more < 0)
        codes = np.where(missing, -1, codes * len(more_names) + more).astype(np.int32)
        levels = tuple((*level, name) for level in levels for name in more_names)
    return codes.astype(np.int32), levels
