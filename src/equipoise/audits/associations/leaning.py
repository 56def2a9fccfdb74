"""Who leans to whom, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from equipoise.core.finding import GroupValue

_HOW = MappingProxyType(
    {
        "II": "images with images",
        "ITP": "texts of the target with images of the groups",
        "ITA": "images of the target with texts of the groups",
        "TT": "texts with texts",
    }
)


def closer(subject: str, value: float, pair: tuple[str, str], modality: str = "") -> str:
    """Say which of two sets a subject is closer to."""
    if math.isnan(value) or value == 0:
        return ""
    near, far = pair if value > 0 else pair[::-1]
    return f"{subject} is closer to {near} than to {far}{_how(modality)}"


def crossed(
    targets: tuple[str, str],
    means: tuple[float, float],
    pair: tuple[str, str],
    modality: str = "",
    *,
    plural: bool = False,
) -> str:
    """Say which of two targets goes more with which of two sets.

    Each goes with a set of its own only where their mean associations have different signs: two
    targets that both lean to the first set still differ.

    Parameters
    ----------
    targets : tuple of str
    means : tuple of float
        Mean association of each target; positive leans to the first of `pair`.
    pair : tuple of str
    modality : str
    plural : bool
        Whether the targets are named in the plural.
    """
    one, other = means
    if math.isnan(one) or math.isnan(other) or one == other:
        return ""
    near, far = pair if one > other else pair[::-1]
    first, second = targets
    verb, does = ("go", "do") if plural else ("goes", "does")
    if one * other < 0:
        return f"{first} {verb} with {near}, {second} with {far}{_how(modality)}"
    return f"{first} {verb} more with {near} than {second} {does}{_how(modality)}"


def extremes(what: str, by_group: Sequence[GroupValue]) -> str:
    """Say which group is closest to something and which is farthest from it."""
    known = [one for one in by_group if not math.isnan(one.value)]
    if len(known) < 2:
        return ""
    low, high = (pick(known, key=lambda one: one.value) for pick in (min, max))
    return "" if low.value == high.value else f"{what}: {high.group} more than {low.group}"


def _how(modality: str) -> str:
    return f" ({_HOW[modality]})" if modality else ""
