"""Cells of rows: a group within a true class, or over all rows."""

from collections.abc import Mapping
from dataclasses import dataclass

from equipoise.core import Floats, Groups, Integers32, Strings
from equipoise.core.labels import Encoded


@dataclass(frozen=True)
class Outcomes:
    """How many rows of each group and class a model got right.

    Attributes
    ----------
    groups : Groups
    classes : tuple of str
    right, rows : ndarray, shape (groups, classes)
    """

    groups: Groups
    classes: Strings
    right: Floats
    rows: Floats


@dataclass(frozen=True)
class Cell:
    """A group of a model's rows, within a true class or over all.

    Attributes
    ----------
    groups : Groups
    group : int
        Index of the group.
    subject : str
        The true class; "" for all.
    n : int
    """

    groups: Groups
    group: int
    subject: str
    n: int

    @property
    def levels(self) -> Strings:
        """The group's label in each attribute."""
        return self.groups.levels[self.group]


@dataclass(frozen=True)
class Rate:
    """A rate over all rows that groups have in one design, with what it is of in each row.

    Attributes
    ----------
    metric, subject, version : str
        As in findings.
    outcome : ndarray of int, shape (n,)
        0 or 1; -1 where a row doesn't count.
    """

    metric: str
    subject: str
    version: str
    outcome: Integers32


@dataclass(frozen=True)
class Mix:
    """Rates of a design, and what rows may be mixed of.

    Attributes
    ----------
    groups : Groups
        Of the rows.
    rates : tuple of Rate
    strata : mapping of str to Encoded
        Attributes of the rows that are audited; "" has their true classes.
    units : Encoded or None
        Unit of each row.
    """

    groups: Groups
    rates: tuple[Rate, ...]
    strata: Mapping[str, Encoded]
    units: Encoded | None
