"""Which groups take part in a concept, and why others do not."""

from __future__ import annotations

from equipoise.core.groups import Groups
from equipoise.metrics.concepts.cells import Indices
from equipoise.metrics.concepts.inputs import Choices

_ANOTHER = "another group has too few positives or negatives"
_ALONE = "no other group to compare with"
FOLLOWS = (_ANOTHER, _ALONE)
"""Reasons that follow from those of other groups."""


def reasons_of(groups: Groups, positives: Indices, choices: Choices) -> tuple[str, ...]:
    """Say why each group leaves a concept, "" where it stays."""
    found = [
        _reason(usable, p, n - p, groups.min_size, choices)
        for usable, p, n in zip(
            groups.usable.tolist(), positives.tolist(), groups.counts.tolist(), strict=True
        )
    ]
    rare = any(one and usable for one, usable in zip(found, groups.usable, strict=True))
    if rare and choices.incomplete == "concept":
        found = [one or _ANOTHER for one in found]
    elif sum(not one for one in found) < 2:
        found = [one or _ALONE for one in found]
    return tuple(found)


def _reason(usable: bool, positives: int, negatives: int, least: int, choices: Choices) -> str:
    if positives + negatives == 0:
        return "no rows"
    if not usable:
        return f"fewer than {least} rows"
    if positives < choices.min_positives:
        return f"{positives} positives, fewer than {choices.min_positives}"
    if negatives == 0:
        return "no negatives"
    if choices.prevalence == "hall" and negatives < choices.prevalence_ratio:
        return f"{negatives} negatives, fewer than {choices.prevalence_ratio:g} for one positive"
    return ""
