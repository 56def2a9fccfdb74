"""Shares that were expected of groups, and the group that departs most from its own."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from equipoise.core import Finding, GroupValue
from equipoise.core.sentences import named
from equipoise.metrics.spec import spec_of_finding

EXPECTED = "expected"
"""What a conclusion calls the other side of a group that departs from an expected share."""
_DIGITS = 12


class Departure(NamedTuple):
    """A group whose share departs from the expected share.

    Attributes
    ----------
    part : GroupValue
    expected : float
    """

    part: GroupValue
    expected: float


def departure(finding: Finding) -> Departure | None:
    """Return the group of a finding that departs most from what was expected of it.

    Of two groups that depart alike, it is the one with fewer than expected. None where nothing is
    expected.
    """
    expected = expected_shares(finding)
    departures = [
        Departure(part, float(expected[part.group]))
        for part in finding.by_group
        if part.group in expected and not math.isnan(part.value)
    ]
    return max(departures, key=_size, default=None)


def expected_shares(finding: Finding) -> Mapping[str, float]:
    """Return the expected share of each group: as declared, as in the pool, or equal ones."""
    parameter = spec_of_finding(finding).expectation
    declared = finding.parameters.get(parameter) if parameter else None
    if isinstance(declared, Mapping):
        return declared
    if declared == "pool":
        total = sum(part.n for part in finding.by_group)
        return {part.group: part.n / total for part in finding.by_group if total}
    if declared == "uniform":
        return {part.group: 1 / len(finding.by_group) for part in finding.by_group}
    return {}


def for_group(finding: Finding) -> str:
    """Name the group that a ratio to an expected share is of, where a sentence names another."""
    leading, expected = departure(finding), expected_shares(finding)
    if leading is None or spec_of_finding(finding).unit != "log ratio":
        return ""
    groups = [
        part.group for part in finding.by_group
        if part.value > 0 and expected.get(part.group, 0) > 0
        and math.isclose(math.log(part.value / expected[part.group]), finding.value, abs_tol=1e-6)
    ]  # fmt: skip
    if not groups or leading.part.group in groups:
        return ""
    return f" for {named(groups[0])}"


class Added(NamedTuple):
    """The part of a difference that a model adds to the difference of the labels.

    Attributes
    ----------
    labels : float
        The difference of the labels, signed.
    value, low, high : float
        What is added in the direction of the model's difference, and its interval.
    """

    labels: float
    value: float
    low: float
    high: float


def added_to_labels(finding: Finding) -> Added | None:
    """Return what a model adds to the labels' difference; None where that isn't what counts."""
    parameters = finding.parameters
    if "added" not in parameters or parameters.get("required"):
        return None
    names = "labels", "added", "added_low", "added_high"
    return Added(*(float(parameters[name]) for name in names))


def _size(item: Departure) -> tuple[float, bool]:
    difference = item.part.value - item.expected
    return round(abs(difference), _DIGITS), difference < 0
