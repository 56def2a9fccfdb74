"""From draws to the pieces of an estimate: chance levels, p-values, intervals, group values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise.core.estimate import Chance, Ends, Harm, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.groups import Groups
from equipoise.core.parts import Part
from equipoise.metrics.measure import Draws
from equipoise.stats.chance import band, p_value
from equipoise.stats.intervals import percentile, wilson

Floats = npt.NDArray[np.float64]


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


NOTHING = Against(None, None, "")


def against_chance(draws: Draws, index: int, harm: Harm) -> Against:
    """Hold number `index` of the draws against its null distribution."""
    value = float(draws.observed[index])
    if draws.null is None or np.isnan(value):
        return NOTHING
    null = draws.null[:, index]
    kept = ~np.isnan(null)
    if not kept.any():
        return NOTHING
    weights = None if draws.weights is None else draws.weights[kept]
    found = p_value(null[kept], value, harm, weights=weights, resolution=draws.resolution)
    chance = band(null[kept], method=draws.null_text, weights=weights)
    text = f"{draws.null_text}; {found.method}" if draws.null_text else found.method
    return Against(chance, found.value, text)


@dataclass(frozen=True, eq=False)
class Percentile:
    """Ends of the percentile interval of bootstrap replicates, at any level."""

    replicates: Floats

    def __call__(self, level: float) -> tuple[float, float]:
        """Return the lower and upper end."""
        low, high, _ = percentile(self.replicates, level)
        return float(low), float(high)


def replicates_of(draws: Draws, index: int) -> Percentile | None:
    """Return the percentile interval of number `index`, None without replicates."""
    return None if draws.boot is None else Percentile(draws.boot[:, index])


def part(  # noqa: PLR0913 - one keyword for each column
    metric: str,
    subject: str,
    draws: Draws,
    index: int,
    *,
    ends: Ends,
    against: Against,
    n: int,
    by_group: tuple[GroupValue, ...] = (),
    excluded: tuple[Excluded, ...] = (),
    reason: str = "",
) -> Part:
    """Return number `index` of the draws as a part, with its interval and chance level."""
    low, high = ends(draws.level) if draws.intervals else no_ends(draws.level)
    chance = against.chance or Chance(math.nan, math.nan, math.nan, "")
    return Part(
        metric=metric,
        subject=subject,
        value=float(draws.observed[index]),
        low=low,
        high=high,
        chance=chance.mean,
        chance_low=chance.low,
        chance_high=chance.high,
        p_value=math.nan if against.p_value is None else against.p_value,
        n=n,
        by_group=by_group,
        excluded=excluded,
        reason=reason,
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
    notes = _notes(groups, totals, nothing)
    return tuple(
        GroupValue(name, levels, round(n), value, lo, hi, note)
        for name, levels, n, value, lo, hi, note in zip(
            groups.names,
            groups.levels,
            totals.tolist(),
            shares.tolist(),
            low.tolist(),
            high.tolist(),
            notes,
            strict=True,
        )
    )


def _notes(groups: Groups, totals: Floats, nothing: str) -> Sequence[str]:
    return [
        nothing if total == 0 else "" if usable else f"fewer than {groups.min_size} rows"
        for total, usable in zip(totals.tolist(), groups.usable.tolist(), strict=True)
    ]


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
