"""Gaps between the shares of groups, and the parts that report them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from equipoise.core.estimate import Ends, Estimate, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.groups import Groups
from equipoise.metrics.building import (
    GroupColumns,
    PartColumns,
    against_chance,
    against_each,
    ends_of,
    excluded_of,
    group_columns,
    group_values,
    replicates_text,
    sizes,
)
from equipoise.metrics.confusion import enough
from equipoise.metrics.counts import Counts
from equipoise.metrics.measure import Draws
from equipoise.metrics.spec import make_estimate
from equipoise.stats.intervals import percentile, simultaneous_gap, wilson

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]

# Replicates of more shares than this would fill the memory: classes × groups × rates.
MAX_REPLICATED_SHARES = 25_000


def gaps(shares: Floats, usable: npt.NDArray[np.bool_] | slice = slice(None)) -> Floats:
    """Largest minus smallest share over usable groups, (..., groups) to (...).

    A group without a share (NaN) is left out; NaN where fewer than two remain.
    """
    compared = shares[..., usable]
    high = np.fmax.reduce(compared, axis=-1, initial=-np.inf)
    low = np.fmin.reduce(compared, axis=-1, initial=np.inf)
    several = (~np.isnan(compared)).sum(axis=-1) >= 2
    return np.where(several, high - low, np.nan)


def largest(values: Floats) -> Floats:
    """Largest of the last axis, NaN left out; NaN when there is no other."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(np.fmax.reduce(values, axis=-1))


def spread_level(level: float, members: int) -> float:
    """Confidence level of each of several intervals that hold together (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(members, 1)


def simultaneous_largest_gap(successes: Floats, totals: Floats, level: float = 0.95) -> Pair:
    """Interval of the largest of several gaps.

    Parameters
    ----------
    successes, totals : ndarray, shape (families, groups)
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    low, high : ndarray of shape ()
        The low end is the largest low end of the gaps, corrected for the number of families
        (Bonferroni) on top of the pairs of groups. The high end is their largest high end
        without correction: it is too low only when that of the truly largest gap is.
    """
    families = int(((totals > 0).sum(axis=-1) >= 2).sum())
    low, _ = simultaneous_gap(successes, totals, spread_level(level, families))
    _, high = simultaneous_gap(successes, totals, level)
    return largest(low), largest(high)


@dataclass(frozen=True, eq=False)
class Known:
    """Ends that were computed with those of all other parts, at one level only."""

    low: float
    high: float

    def __call__(self, level: float) -> tuple[float, float]:  # noqa: ARG002 - the form of `Ends`
        """Return the lower and upper end."""
        return self.low, self.high


@dataclass(frozen=True, eq=False)
class Family:
    """The gaps of one rate over all classes, and where they stand in the draws.

    Attributes
    ----------
    metric : str
        Name of the parts.
    base : str
        What the denominators count, in words.
    successes, totals : ndarray, shape (classes, groups)
    gaps : int
        Place of the first class's gap in the draws; the others follow.
    shares : int or None
        Place of the first class's first group, None when shares were not replicated.
    """

    metric: str
    base: str
    successes: Floats
    totals: Floats
    gaps: int
    shares: int | None


def family_table(counts: Counts, draws: Draws, family: Family) -> pa.Table:
    """Return one part per class: the gap, its interval and chance level, and every group."""
    many = len(counts.classes)
    low, high = _ends(counts, draws, family)
    places = range(family.gaps, family.gaps + many)
    value = draws.observed[family.gaps : family.gaps + many]
    return PartColumns(
        metric=family.metric,
        subject=counts.classes,
        value=value,
        low=low,
        high=high,
        **against_each(draws, places, "higher"),
        n=compared_rows(counts.groups, family.totals),
        by_group=_family_columns(counts, draws, family),
        excluded=without_rows(counts.groups, family.totals, family.base),
        reason=[too_few(one, needed(counts.groups, family.base)) for one in value.tolist()],
    ).table()


def _family_columns(counts: Counts, draws: Draws, family: Family) -> GroupColumns:
    """Return the shares of all groups in every class."""
    groups = counts.groups
    ends = replicated_ends(counts, draws, family.shares)
    if ends is None:
        ends = wilson(family.successes, family.totals, draws.level)
    nothing = f"no {family.base}"
    enough_rows = enough(family.totals, groups)
    return group_columns(
        groups, family.successes, family.totals, ends, nothing=nothing, large=enough_rows
    )


def replicated_ends(counts: Counts, draws: Draws, place: int | None) -> Pair | None:
    """Return ends (classes, groups) of replicated shares; None where they have closed forms."""
    if counts.independent:
        return None
    shape = (len(counts.classes), len(counts.groups))
    if draws.boot is None or place is None:
        return np.full(shape, np.nan), np.full(shape, np.nan)
    low, high, _ = percentile(draws.boot[:, place : place + shape[0] * shape[1]], draws.level)
    return low.reshape(shape), high.reshape(shape)


def _ends(counts: Counts, draws: Draws, family: Family) -> Pair:
    classes = len(counts.classes)
    if not draws.intervals:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    if draws.boot is not None:
        low, high, _ = percentile(draws.boot[:, family.gaps : family.gaps + classes], draws.level)
        return low, high
    if not counts.independent:
        return np.full(classes, np.nan), np.full(classes, np.nan)
    return simultaneous_gap(*compared(counts, family), draws.level)


def family_groups(
    counts: Counts, draws: Draws, family: Family, index: int
) -> tuple[GroupValue, ...]:
    """Return the shares of all groups in class `index` of a family."""
    found = group_values(
        counts.groups,
        family.successes[index],
        family.totals[index],
        draws.level,
        boot=replicated_shares(counts, draws, family.shares, index),
        nothing=f"no {family.base}",
    )
    large = enough(family.totals[index], counts.groups).tolist()
    note = f"fewer than {counts.groups.min_size} rows"
    return tuple(
        one if has or one.note else replace(one, note=note)
        for one, has in zip(found, large, strict=True)
    )


def replicated_shares(counts: Counts, draws: Draws, place: int | None, index: int) -> Floats | None:
    """Return replicates (r, groups) of the shares in class `index`; NaN where none were kept."""
    if counts.independent:
        return None
    groups = len(counts.groups)
    if draws.boot is None or place is None:
        return np.full((1, groups), np.nan)
    start = place + index * groups
    return draws.boot[:, start : start + groups]


def replicates_shares(counts: Counts, rates: int) -> bool:
    """Whether the shares of all classes and groups are replicated beside the gaps."""
    shares = rates * len(counts.classes) * len(counts.groups)
    return not counts.independent and shares <= MAX_REPLICATED_SHARES


def compared_rows(groups: Groups, totals: Floats) -> Floats:
    """Rows of the groups that were compared, (classes, groups) to (classes,)."""
    taking = np.where(enough(totals, groups), totals, 0.0)
    return np.asarray(np.rint(taking[..., groups.usable].sum(axis=-1)))


def without_rows(groups: Groups, totals: Floats, base: str) -> list[tuple[Excluded, ...]]:
    """Say for each class how many groups large enough were left out for want of rows."""
    absent = groups.usable & (totals == 0)
    small = groups.usable & ~absent & ~enough(totals, groups)
    counted = (one.sum(axis=-1).tolist() for one in (absent, small))
    reasons = (f"groups without {base}", f"groups with fewer than {groups.min_size} {base}")
    return [
        tuple(Excluded(reason, many) for reason, many in zip(reasons, pair, strict=True) if many)
        for pair in zip(*counted, strict=True)
    ]


def too_few(value: float, base: str) -> str:
    """Say why there is no gap, "" when there is one."""
    return f"fewer than two groups have {base}" if np.isnan(value) else ""


def needed(groups: Groups, base: str) -> str:
    """Say what a group needs to take part in a gap."""
    return base if groups.min_size <= 1 else f"at least {groups.min_size} {base}"


def compared(counts: Counts, family: Family) -> Pair:
    """Return successes and totals of the groups that are large enough; 0 in cells that are not."""
    usable = counts.groups.usable
    large = enough(family.totals, counts.groups)
    successes = np.where(large, family.successes, 0.0)
    return successes[:, usable], np.where(large, family.totals, 0.0)[:, usable]


def gap_method(counts: Counts, draws: Draws, over: str, *, rates: int) -> str:
    """Say how the interval of a largest gap was made."""
    if draws.boot is not None:
        kept = replicates_shares(counts, rates)
        left_out = "" if kept else "; too many groups for replicates of each share"
        return replicates_text(draws.boot, f"{counts.unit}s") + left_out
    if not counts.independent:
        return "none: rows are not independent; use Bootstrap()"
    return f"pairwise Newcombe intervals, simultaneous over {over} and groups"


def gap_estimate(
    metric: str,
    counts: Counts,
    draws: Draws,
    *,
    ends: Ends,
    method: str,
    base: str,
    params: Mapping[str, Any],
    by: pa.Table | None,
) -> Estimate:
    """Return the largest gap, the first number of the draws, as an estimate."""
    held = against_chance(draws, 0, "higher")
    closed = ends if counts.independent else no_ends
    return make_estimate(
        metric=metric,
        value=float(draws.observed[0]),
        n=sizes(counts.groups),
        method=method,
        params=params,
        **held.fields(""),
        by=by,
        excluded=excluded_of(counts.groups, dict(counts.excluded)),
        unit=counts.unit,
        reason=too_few(draws.observed[0], base),
        ends=ends_of(draws.boot, 0, closed),
    )
