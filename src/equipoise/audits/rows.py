"""Vectors of sets of items, without a copy of a large table for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.core.arrays import Integers
from equipoise.metrics.vector_rows import ChosenRows, Table

if TYPE_CHECKING:
    from equipoise.data import Vectors


def rows_of(vectors: Vectors, items: Integers) -> Table:
    """Return the vectors of some items that have one, shape (m, d), in the stored type.

    Tables in the other byte order are turned, which takes a copy.
    """
    if vectors.stored.dtype.isnative:
        return ChosenRows(vectors.stored, vectors.rows[items])
    return vectors.take(items)
