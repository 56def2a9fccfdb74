"""Parts of an estimate: one row per class, group or query, in one schema."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from equipoise.core.finding import (
    Aggregate,
    Excluded,
    GroupValue,
    Variant,
    as_row,
    schema_of,
    with_records,
)


@dataclass(frozen=True)
class Part:
    """One part of an estimate, with its own interval, chance level and sample sizes.

    Attributes
    ----------
    metric : str
        What the number is; differs from the estimate's metric where an estimate has parts of
        several kinds, such as the gap of every confusion rate.
    subject : str
        The class, concept or query.
    part_of : str or None
        As in `Finding`.
    within_value : str
        As in `Finding`.
    aggregate, variant : Aggregate, Variant
        As in `Finding`.
    value, low, high : float
        The number and its interval at the resampling object's level; NaN with `reason`.
    chance, chance_low, chance_high, p_value : float
        As in `Estimate`; NaN when there is none.
    p_at_most : bool
        As in `Finding`.
    n : int
        Rows behind the number.
    by_group : tuple of GroupValue
    excluded : tuple of Excluded
        What did not enter, with counts.
    reason : str
        Why the number cannot be estimated.
    shows : str
        What the values of `by_group` are, where the metric's name does not say.
    corrected : float
        As in `Finding`.
    """

    metric: str
    subject: str
    value: float
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    chance_low: float = math.nan
    chance_high: float = math.nan
    p_value: float = math.nan
    n: int = 0
    by_group: tuple[GroupValue, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    reason: str = ""
    shows: str = ""
    corrected: float = math.nan
    aggregate: Aggregate = Aggregate.VALUE
    variant: Variant = Variant.MAIN
    part_of: str | None = None
    within_value: str = ""
    p_at_most: bool = False


SCHEMA = schema_of(Part)


def parts_to_table(parts: Iterable[Part]) -> pa.Table:
    """Return parts as an Arrow table of `SCHEMA`, in the order given."""
    return pa.Table.from_pylist([as_row(part) for part in parts], schema=SCHEMA)


def parts_from_table(table: pa.Table) -> tuple[Part, ...]:
    """Rebuild parts from the table that `parts_to_table` makes."""
    return tuple(Part(**row) for row in map(with_records, table.to_pylist()))
