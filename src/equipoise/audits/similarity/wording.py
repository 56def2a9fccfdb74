"""Who is favoured over whom, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from equipoise.core.finding import GroupValue


def favoured(by_group: Sequence[GroupValue]) -> tuple[GroupValue, GroupValue] | None:
    """Return the groups with the largest and the smallest effect; None where none differ."""
    known = [one for one in by_group if not math.isnan(one.value)]
    if len(known) < 2:
        return None
    high, low = (choose(known, key=lambda one: one.value) for choose in (max, min))
    return (high, low) if high.value > low.value else None


def leaning(
    by_group: Sequence[GroupValue], *, beyond_chance: bool, average: bool, logits: bool
) -> str:
    """Say which group a concept is closest to, and which it is farthest from.

    Parameters
    ----------
    by_group : sequence of GroupValue
        Effects.
    beyond_chance : bool
        Whether the gap is larger than chance gives on average.
    average : bool
        Whether effects are averages over concepts.
    logits : bool
    """
    pair = favoured(by_group)
    if pair is None:
        return ""
    where = "with opposite gaps cancelling over concepts, " if average else ""
    if not beyond_chance:
        return f"{where}no group is favoured beyond what chance gives"
    high, low = pair
    text = f"{where}{quoted(high.group)} is favoured over {quoted(low.group)}"
    if not logits:
        return text
    odds = math.exp(min(high.value - low.value, 50.0))
    return f"{text}: in a softmax, odds of {odds:.2f} to 1 where all else is equal"


def following(value: float, column: str) -> str:
    """Say whether preferences go with a declared column."""
    if math.isnan(value) or value == 0.0:
        return ""
    return f"preferences {'follow' if value > 0 else 'run against'} the column {quoted(column)}"


def quoted(name: str) -> str:
    """Return a name that reads as one thing in a sentence."""
    return f"“{name}”"
