"""Who is worse off: the worst group, its counterpart, and the best group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from equipoise.core import GroupValue

Worse = Literal["lower", "higher"]


@dataclass(frozen=True)
class Contrast:
    """The group that is worse off and those it is held against.

    Attributes
    ----------
    worst : GroupValue
    counterpart : GroupValue
        Of the groups that differ from the worst in one attribute only, the one with the widest
        contrast; for a single attribute this is the best group.
    best : GroupValue
        The best group of all.
    """

    worst: GroupValue
    counterpart: GroupValue
    best: GroupValue


def contrast(by_group: Sequence[GroupValue], worse: Worse) -> Contrast | None:
    """Find the widest contrast that one attribute makes for the worst group.

    Groups with a note (too small, empty) take no part unless all have one. Equal values keep
    the order given.

    Parameters
    ----------
    by_group : sequence of GroupValue
    worse : "lower" or "higher"
        Which side of the value is worse.

    Returns
    -------
    Contrast or None
        None when fewer than two groups have a value, or all values are equal.
    """
    sign = 1 if worse == "lower" else -1
    valued = [part for part in by_group if not math.isnan(part.value)]
    groups = [part for part in valued if not part.note] or valued
    if len(groups) < 2:
        return None
    worst = min(groups, key=lambda part: sign * part.value)
    best = max(groups, key=lambda part: sign * part.value)
    if worst.value == best.value:
        return None
    near = [part for part in groups if _attributes_apart(part, worst) == 1]
    counterpart = max(near, key=lambda part: sign * part.value, default=best)
    return Contrast(worst, best if counterpart.value == worst.value else counterpart, best)


def _attributes_apart(a: GroupValue, b: GroupValue) -> int:
    return sum(one != other for one, other in zip(a.levels, b.levels, strict=False))
