"""Rows without what a model gives: how many, and of how many of them a note tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LeftOut:
    """Rows that lack what a model gives.

    Attributes
    ----------
    rows : int
    failed : int
        Of them those on which the model failed when equipoise ran it. The report lists failures
        once, by model and group, and no note counts them again.
    """

    rows: int
    failed: int = 0

    @classmethod
    def of(cls, rows: int, *, made: bool) -> LeftOut:
        """Return rows that lack what was read.

        Parameters
        ----------
        rows : int
        made : bool
            Whether equipoise ran the model that gave it: then it failed on each of the rows, for
            it was asked about every one.
        """
        return cls(rows, rows if made else 0)

    @property
    def untold(self) -> int:
        """How many of them a note is to tell."""
        return self.rows - self.failed
