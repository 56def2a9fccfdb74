"""From draws to the pieces of an estimate: chance levels, p-values, intervals, group values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.estimate import Chance, Ends, Harm, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import SCHEMA, Part
from equipoise.metrics.measure import NO_INTERVAL, Draws
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile, wilson
from equipoise.stats.resampling import Resampling

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
        held = against_chance(draws, index, harm)
        if held.chance and held.p_value is not None:
            found[:, place] = held.chance.mean, held.chance.low, held.chance.high, held.p_value
    return dict(zip(names, found, strict=True))


class Tested(TypedDict):
    """What a test against chance gives to an estimate."""

    chance: Chance | None
    no_chance: str
    p_value: float | None
    null: str


@dataclass(frozen=True)
class Against:
    """One number held against its chance level.

    Attributes
    ----------
    chance : Chance or None
    p_value : float or None
    null : str
        The null hypothesis, how it was drawn, and how p was reached.
    """

    chance: Chance | None
    p_value: float | None
    null: str

    def fields(self, no_chance: str) -> Tested:
        """Return the fields of an estimate; `no_chance` is the reason where there is none."""
        return {
            "chance": self.chance,
            "no_chance": "" if self.chance else no_chance,
            "p_value": self.p_value,
            "null": self.null,
        }


NOTHING = Against(None, None, "")


def against(
    null: Floats | None,
    value: float,
    harm: Harm,
    text: str,
    *,
    weights: Floats | float | None = None,
    resolution: float = 0.0,
    scale: float | None = None,
) -> Against:
    """Hold a number against draws of its null distribution, which `text` names."""
    if null is None or math.isnan(value) or np.isnan(null).all():
        return NOTHING
    found = p_value(null, value, harm, weights=weights, resolution=resolution, scale=scale)
    chance = band(null, method=text, weights=weights)
    return Against(chance, found.value, f"{text}; {found.method}" if text else found.method)


def against_chance(draws: Draws, index: int, harm: Harm) -> Against:
    """Hold number `index` of the draws against its null distribution."""
    return against(
        None if draws.null is None else draws.null[:, index],
        float(draws.observed[index]),
        harm,
        draws.null_text,
        weights=draws.weights,
        resolution=draws.resolution,
    )


@dataclass(frozen=True, eq=False)
class Percentile:
    """Ends of the percentile interval of bootstrap replicates, at any level."""

    replicates: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        low, high, _ = percentile(self.replicates, level)
        return float(low), float(high)


def ends_of(boot: Floats | None, index: int | None = None, otherwise: Ends = no_ends) -> Ends:
    """Return the percentile interval of replicates, or of column `index` of them."""
    if boot is None:
        return otherwise
    return Percentile(boot if index is None else boot[:, index])


def bootstrap_method(
    boot: Floats | None,
    resampling: Resampling | None,
    over: str,
    without: str = "none: use Bootstrap()",
) -> str:
    """Return how an interval was made."""
    if resampling is None:
        return NO_INTERVAL
    return without if boot is None else replicates_text(boot, over)


def replicates_text(boot: Floats, over: str) -> str:
    """Return what was resampled, and how often."""
    return f"percentile bootstrap over {over}, {len(boot)} replicates"


def number(  # noqa: PLR0913 - one keyword for each column
    metric: str,
    value: float,
    *,
    n: int,
    subject: str = "",
    ends: Ends = no_ends,
    level: float = 0.95,
    held: Against = NOTHING,
    by_group: tuple[GroupValue, ...] = (),
    reason: str = "",
    shows: str = "",
    excluded: tuple[Excluded, ...] = (),
) -> Part:
    """Return a number as a part, with its interval and chance level."""
    low, high = ends(level)
    chance = held.chance or Chance(math.nan, math.nan, math.nan, "")
    return Part(
        metric,
        subject,
        value,
        low,
        high,
        chance=chance.mean,
        chance_low=chance.low,
        chance_high=chance.high,
        p_value=math.nan if held.p_value is None else held.p_value,
        n=n,
        by_group=by_group,
        excluded=excluded,
        reason=reason,
        shows=shows,
    )


def part(
    metric: str, subject: str, draws: Draws, index: int, *, ends: Ends = no_ends, **columns: Any
) -> Part:
    """Return number `index` of the draws as a part; other columns are those of `number`."""
    return number(
        metric,
        float(draws.observed[index]),
        subject=subject,
        ends=ends if draws.intervals else no_ends,
        level=draws.level,
        **columns,
    )


def group_rows(
    groups: Groups,
    n: Iterable[float],
    values: Iterable[float],
    low: Iterable[float],
    high: Iterable[float],
    notes: Iterable[str],
) -> tuple[GroupValue, ...]:
    """Return the value of each group from columns, one row per group."""
    rows = zip(groups.names, groups.levels, n, values, low, high, notes, strict=True)
    return tuple(
        GroupValue(name, levels, round(many), float(value), float(start), float(stop), note)
        for name, levels, many, value, start, stop, note in rows
    )


def sizes(groups: Groups) -> dict[str, int]:
    """Return rows per group name, empty groups included."""
    return dict(zip(groups.names, groups.counts.tolist(), strict=True))


def group_values(
    groups: Groups,
    successes: Floats,
    totals: Floats,
    level: float,
    *,
    boot: Floats | None = None,
    nothing: str = "no rows",
) -> tuple[GroupValue, ...]:
    """Return the share of each group with its Wilson interval, or the one of its replicates.

    Parameters
    ----------
    groups : Groups
    successes, totals : ndarray, shape (groups,)
    level : float
    boot : ndarray, shape (replicates, groups), optional
        Bootstrap replicates of the shares, where rows are not independent.
    nothing : str
        What to note where a group's total is 0.
    """
    low, high = wilson(successes, totals, level) if boot is None else percentile(boot, level)[:2]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = successes / totals
    notes = [
        nothing if total == 0 else "" if usable else f"fewer than {groups.min_size} rows"
        for total, usable in zip(totals.tolist(), groups.usable.tolist(), strict=True)
    ]
    return group_rows(groups, totals, shares, low, high, notes)


def known_mean(values: Floats, axis: int = -1) -> Floats:
    """Return means of the numbers that are not NaN, NaN where there are none."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=axis) / known.sum(axis=axis))


def excluded_of(groups: Groups, excluded: dict[str, int]) -> dict[str, int]:
    """Add the groups that are empty or too small to the rows that were not counted."""
    empty = int((groups.counts == 0).sum())
    small = int(((groups.counts > 0) & ~groups.usable).sum())
    found = dict(excluded)
    if empty:
        found["empty groups"] = empty
    if small:
        found[f"groups under {groups.min_size} rows"] = small
    return found
