"""Cells of rows: a group within a true class, or over all rows."""

from dataclasses import dataclass

from equipoise.core import Floats, Groups, Strings


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
