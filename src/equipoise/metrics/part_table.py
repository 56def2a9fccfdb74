"""Parts of an estimate as columns: thousands of parts and groups without an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.estimate import Harm
from equipoise.core.finding import Excluded
from equipoise.core.groups import Groups
from equipoise.core.parts import SCHEMA
from equipoise.metrics.building import against_chance
from equipoise.metrics.measure import Draws

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupColumns:
    """The value of every group in every part.

    Attributes
    ----------
    groups : Groups
    n : ndarray, shape (parts, groups)
        Rows, rounded where they are shown.
    value, low, high : ndarray, shape (parts, groups)
    note : ndarray of int64, shape (parts, groups)
        Index into `notes`.
    notes : sequence of str
    """

    groups: Groups
    n: Floats
    value: Floats
    low: Floats
    high: Floats
    note: Indices
    notes: Sequence[str]

    def arrow(self) -> pa.ListArray:
        """Return one list of records for each part."""
        kind = SCHEMA.field("by_group").type
        parts, groups = self.n.shape
        places = pa.array(np.tile(np.arange(groups, dtype=np.int32), parts))
        columns = [
            pa.array(self.groups.names, pa.string()).take(places),
            pa.array(self.groups.levels, pa.list_(pa.string())).take(places),
            pa.array(np.rint(self.n).astype(np.int64).ravel()),
            *(pa.array(one.ravel()) for one in (self.value, self.low, self.high)),
            pa.array(self.notes, pa.string()).take(pa.array(self.note.ravel())),
        ]
        records = pa.StructArray.from_arrays(columns, fields=list(kind.value_type))
        ends = np.arange(parts + 1, dtype=np.int32) * groups
        return pa.ListArray.from_arrays(pa.array(ends), records, type=kind)


@dataclass(frozen=True, eq=False)
class PartColumns:
    """Parts of one metric, see `equipoise.core.parts.Part`; each array has shape (parts,)."""

    metric: str
    subject: Sequence[str]
    value: Floats
    low: Floats
    high: Floats
    chance: Floats
    chance_low: Floats
    chance_high: Floats
    p_value: Floats
    n: Floats
    by_group: GroupColumns
    excluded: Sequence[tuple[Excluded, ...]]
    reason: Sequence[str]

    def table(self) -> pa.Table:
        """Return the parts as `equipoise.core.parts.parts_to_table` does."""
        numbers = ("value", "low", "high", "chance", "chance_low", "chance_high", "p_value")
        columns = {name: pa.array(getattr(self, name)) for name in numbers}
        same = {"metric": self.metric, "shows": ""}
        columns |= {name: pa.repeat(text, len(self.value)) for name, text in same.items()}
        columns |= {
            name: pa.array(getattr(self, name), pa.string()) for name in ("subject", "reason")
        }
        columns["n"] = pa.array(np.rint(self.n).astype(np.int64))
        columns["by_group"] = self.by_group.arrow()
        lists = [[vars(one) for one in some] for some in self.excluded]
        columns["excluded"] = pa.array(lists, SCHEMA.field("excluded").type)
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def group_columns(
    groups: Groups,
    successes: Floats,
    totals: Floats,
    ends: tuple[Floats, Floats],
    *,
    nothing: str = "no rows",
    large: npt.NDArray[np.bool_] | bool = True,
) -> GroupColumns:
    """Return the share of each group in each part, as `building.group_values` does in one.

    Parameters
    ----------
    groups : Groups
    successes, totals : ndarray, shape (parts, groups)
    ends : tuple of ndarray
        Low and high ends of the shares, each of that shape.
    nothing : str
        What to note where a group's total is 0.
    large : ndarray of bool, shape (parts, groups)
        Where a group has rows enough; where it has not, that is noted as for a small group.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = successes / totals
    notes = ("", nothing, f"fewer than {groups.min_size} rows")
    note = np.where(totals == 0, 1, np.where(groups.usable & large, 0, 2))
    return GroupColumns(groups, totals, shares, *ends, note, notes)


def against_each(draws: Draws, indices: range, harm: Harm) -> dict[str, Floats]:
    """Hold several numbers of the draws against their null distributions.

    Returns
    -------
    dict of str to ndarray, shape (indices,)
        chance, chance_low, chance_high and p_value, NaN where there is none.
    """
    names = ("chance", "chance_low", "chance_high", "p_value")
    found = np.full((len(names), len(indices)), np.nan)
    for place, index in enumerate(indices if draws.null is not None else ()):
        against = against_chance(draws, index, harm)
        if against.chance and against.p_value is not None:
            chance = against.chance
            found[:, place] = chance.mean, chance.low, chance.high, against.p_value
    return dict(zip(names, found, strict=True))
