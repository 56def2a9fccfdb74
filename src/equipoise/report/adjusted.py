"""Findings at equal classes: their verdicts there, and what they no longer state."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from equipoise.core import Aggregate, Finding, NullHypothesis
from equipoise.core.conclusion import Adjustment
from equipoise.core.finding import REAL
from equipoise.metrics.building import folded

Adjustments = Mapping[int, Sequence[Adjustment]]
"""Adjustments of findings, by their places."""

_OF_ALL_CLASSES = (
    NullHypothesis.ROWS, NullHypothesis.UNITS, NullHypothesis.WITHIN_PREDICTION,
)  # fmt: skip


def leading_adjustment(adjustments: Sequence[Adjustment]) -> Adjustment | None:
    """Return the adjustment that a conclusion states first; None where the raw numbers lead."""
    return next((adjustment for adjustment in adjustments if adjustment.leads), None)


def at_equal_mix(findings: Sequence[Finding], adjustments: Adjustments) -> list[Finding]:
    """Return findings with verdict, value and interval at equal classes, where these lead.

    By them findings are merged and ranked.
    """
    return [
        _judged(finding, leading_adjustment(adjustments.get(place, ())))
        for place, finding in enumerate(findings)
    ]


def _judged(finding: Finding, adjustment: Adjustment | None) -> Finding:
    if adjustment is None:
        return finding
    sign = math.copysign(1.0, finding.value)
    value = sign * adjustment.size
    low, high = sorted((sign * adjustment.low, sign * adjustment.high))
    if finding.aggregate is Aggregate.DIFFERENCE:
        value, (low, high) = abs(value), folded(low, high)
    return replace(
        finding, verdict=adjustment.verdict, value=value, ci_low=low, ci_high=high,
        chance=0.0, chance_low=math.nan, chance_high=math.nan, excess=value,
    )  # fmt: skip


def explained_by_mix(findings: Sequence[Finding], adjustments: Adjustments) -> set[int]:
    """Return the places of findings whose difference is the mix of classes.

    Where the difference of the groups that lie farthest apart is none at equal classes, numbers of
    the same groups that compare them over all classes differ by the mix, too, unless they are real
    at equal classes.
    """
    mixed = {
        _comparison(finding)
        for place, finding in enumerate(findings)
        if not finding.group and _is_mix(finding, adjustments.get(place, ()))
    }
    return {
        place
        for place, finding in enumerate(findings)
        if _comparison(finding) in mixed
        and finding.null in _OF_ALL_CLASSES
        and not any(
            adjustment.by == "" and adjustment.verdict in REAL
            for adjustment in adjustments.get(place, ())
        )
    }


def _comparison(finding: Finding) -> tuple[str, str, str]:
    return finding.model, finding.groups, finding.version


def _is_mix(finding: Finding, adjustments: Sequence[Adjustment]) -> bool:
    adjustment = leading_adjustment(adjustments)
    real = finding.verdict in REAL and finding.tested and finding.leads
    return real and adjustment is not None and adjustment.verdict not in REAL


def turns(adjustments: Sequence[Adjustment]) -> bool:
    """Whether a difference has the other direction at equal values of another attribute."""
    return any(adjustment.by and adjustment.turns for adjustment in adjustments)
