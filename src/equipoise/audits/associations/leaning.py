"""Who leans to whom, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType

from equipoise.core.finding import GroupValue

_HOW = MappingProxyType(
    {
        "II": "images with images",
        "ITP": "texts with images of both",
        "ITA": "images with texts of both",
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
    value: float,
    pair: tuple[str, str],
    modality: str = "",
    verb: str = "goes",
) -> str:
    """Say which of two targets goes with which of two sets."""
    if math.isnan(value) or value == 0:
        return ""
    near, far = pair if value > 0 else pair[::-1]
    first, second = targets
    return f"{first} {verb} with {near}, {second} with {far}{_how(modality)}"


def extremes(what: str, by_group: Sequence[GroupValue]) -> str:
    """Say which group is closest to something and which is farthest from it."""
    known = [one for one in by_group if not math.isnan(one.value)]
    if len(known) < 2:
        return ""
    low, high = (pick(known, key=lambda one: one.value) for pick in (min, max))
    return "" if low.value == high.value else f"{what}: {high.group} more than {low.group}"


def _how(modality: str) -> str:
    return f" ({_HOW[modality]})" if modality else ""
