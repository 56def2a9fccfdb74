"""What the association metrics share between their draws and their estimates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.core.estimate import Ends, Estimate, Harm, no_ends
from equipoise.core.finding import Excluded, GroupValue
from equipoise.core.parts import Part, parts_to_table
from equipoise.metrics.associations.exchanged import Exchanged
from equipoise.metrics.associations.members import Members
from equipoise.metrics.associations.resampling import replicate_blocks, resampled
from equipoise.metrics.associations.space import Sets, Similarity, dropped_of, shared_members
from equipoise.metrics.building import NOTHING, Against, Percentile
from equipoise.metrics.measure import NO_INTERVAL
from equipoise.metrics.spec import make_estimate
from equipoise.stats.resampling import Bootstrap, Resampling

Floats = npt.NDArray[np.float64]


def replicates(
    sets: Sets,
    fixed: Collection[str],
    resampling: Resampling | None,
    seed: int,
    statistic: Callable[[Mapping[str, Floats]], Floats],
) -> Floats | None:
    """Return the statistic (replicates, s) on resampled sets, None where nothing is resampled."""
    if not isinstance(resampling, Bootstrap) or not resampled(sets, fixed):
        return None
    blocks = replicate_blocks(sets, fixed, resampling.replicates, seed)
    return np.concatenate([statistic(weights) for weights in blocks])


def method_of(
    sets: Sets, fixed: Collection[str], boot: Floats | None, resampling: Resampling | None
) -> str:
    """Say how the interval was made: what was resampled, and what was held fixed."""
    if resampling is None:
        return NO_INTERVAL
    if not isinstance(resampling, Bootstrap):
        return "none: use Bootstrap()"
    if boot is None:
        return "none: every set is fixed or has one member"
    moved = resampled(sets, fixed)
    still = [name for name in sets if name not in moved]
    text = f"percentile bootstrap over {', '.join(moved)}, {len(boot)} replicates"
    return f"{text}; {', '.join(still)} fixed" if still else text


def check_fixed(sets: Sets, fixed: Collection[str]) -> None:
    """Raise where a set to be held fixed does not exist."""
    if unknown := sorted({*fixed} - {*sets}):
        raise InputError(f"fixed: no set is called {unknown[0]!r}; expected some of {[*sets]}")


def ends_of(boot: Floats | None, index: int) -> Ends:
    """Percentile ends of column `index`, or none."""
    return no_ends if boot is None else Percentile(boot[:, index])


def against(
    tested: Exchanged | None, value: float, harm: Harm, factor: float, null: str
) -> Against:
    """Hold a multiple of the difference in means against its chance level."""
    if tested is None or np.isnan(value):
        return NOTHING
    text = f"{null}; {tested.text}"
    p = tested.p_value(harm)
    return Against(tested.chance(factor, text), p.value, f"{text}; {p.method}")


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
    """Return one number with what is known about it as a part."""
    low, high = ends(level)
    chance = held.chance
    return Part(
        metric,
        subject,
        value,
        low,
        high,
        chance=chance.mean if chance else np.nan,
        chance_low=chance.low if chance else np.nan,
        chance_high=chance.high if chance else np.nan,
        p_value=np.nan if held.p_value is None else held.p_value,
        n=n,
        by_group=by_group,
        excluded=excluded,
        reason=reason,
        shows=shows,
    )


def set_values(
    sets: Sequence[Members],
    values: Sequence[float],
    boots: Sequence[Floats | None],
    level: float,
) -> tuple[GroupValue, ...]:
    """Return a number of each set with its percentile interval."""
    found = []
    for one, value, boot in zip(sets, values, boots, strict=True):
        low, high = no_ends(level) if boot is None else Percentile(boot)(level)
        found.append(GroupValue(one.name, (one.name,), len(one), value, low, high))
    return tuple(found)


def compared(similarity: Similarity | None) -> dict[str, Any]:
    """Say what similarity is, as a parameter."""
    return {"similarity": "cosine" if similarity is None else "scores of pairs"}


def overlap(sets: Sets, *pairs: tuple[str, str]) -> dict[str, Any]:
    """Note members that stand in both sets of a pair: kept, and told."""
    found = {f"{a} and {b}": shared_members(sets[a], sets[b]) for a, b in pairs}
    shared = {names: count for names, count in found.items() if count}
    return {"in_both": shared} if shared else {}


def assembled(  # noqa: PLR0913 - one keyword for each field
    metric: str,
    value: float,
    sets: Sets,
    *,
    held: Against,
    parts: Sequence[Part] | Callable[[], Sequence[Part]],
    method: str,
    ends: Ends,
    params: Mapping[str, Any],
    reason: str = "",
    harm: Harm | None = None,
    no_chance: str = "no resampling was asked for, or there is no value",
) -> Estimate:
    """Return the estimate of a number of sets; parts may be made when they are first read."""
    return make_estimate(
        metric=metric,
        value=value,
        n={name: len(one) for name, one in sets.items()},
        method=method,
        params=params,
        chance=held.chance,
        no_chance="" if held.chance else no_chance,
        p_value=held.p_value,
        null=held.null,
        harm=harm,
        by=lambda: parts_to_table(parts() if callable(parts) else parts),
        excluded=dropped_of(sets),
        unit="row" if all(one.units is None for one in sets.values()) else "unit",
        reason=reason,
        ends=ends,
    )


def level_of(resampling: Resampling | None) -> float:
    """Return the confidence level of parts."""
    return 0.95 if resampling is None else resampling.level


def pair_units(first: Members, second: Members) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Units of two sets that exchange members: of both or of neither.

    Raises
    ------
    InputError
        When only one of them has units.
    """
    if first.units is None and second.units is None:
        return None
    if first.units is None or second.units is None:
        missing = first.name if first.units is None else second.name
        raise InputError(
            f"units: {missing!r} has none; {first.name} and {second.name} exchange members, "
            "so name the units of both"
        )
    return first.units, second.units
