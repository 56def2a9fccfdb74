"""Intersections and their attributes, by the values of their groups."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from equipoise.core import Finding, GroupValue
from equipoise.report.words import compared_groups
from equipoise.stats.additivity import departures

_ALPHA, _SHARE_LEFT, _CLOSE = 0.05, 0.7, 0.005
_Z = NormalDist().inv_cdf(1 - _ALPHA / 2)

Grids = Mapping[Hashable, Finding]
"""Findings that have the value of every intersection, by what they are about."""


def grids_of(findings: Sequence[Finding]) -> Grids:
    """Return the findings that have values of all groups of intersections."""
    return {
        _place(finding): finding
        for finding in findings
        if "×" in finding.groups and finding.by_group and not finding.group
        and all(len(part.levels) > 1 for part in finding.by_group)
    }  # fmt: skip


def _place(finding: Finding) -> Hashable:
    return (
        finding.model, finding.groups, finding.metric, finding.subject, finding.version,
        finding.change_from, finding.within,
    )  # fmt: skip


def beyond_attributes(finding: Finding, grids: Grids) -> bool | None:
    """Whether the group that a finding names departs from what its attributes add up to.

    None where that is unknown, as no finding has the values of all its groups.
    """
    grid, groups = grids.get(_place(finding)), compared_groups(finding)
    if grid is None or groups is None:
        return None
    parts = [part for part in grid.by_group if math.isfinite(part.value) and not part.note]
    names = [part.group for part in parts]
    spread = np.array([(part.high - part.low) / (2 * _Z) for part in parts])
    if groups[0].group not in names or not np.isfinite(spread).all():
        return None
    values = np.array([part.value for part in parts])
    sizes = np.array([float(part.n) for part in parts])
    levels = [part.levels for part in parts]
    place = names.index(groups[0].group)
    side = np.sign(groups[0].value - groups[1].value)
    scores = side * departures(levels, values, spread**2, sizes)
    return bool(scores[place] >= NormalDist().inv_cdf(1 - _ALPHA / len(parts)))


def explains_attribute(finding: Finding, main: Finding, grids: Grids) -> bool:
    """Whether the group of an intersection makes the difference between groups of an attribute.

    The attribute's values are counted again with the group at the level of all others.
    """
    grid, groups = grids.get(_place(replace(main, groups=finding.groups))), compared_groups(finding)
    if grid is None or groups is None:
        return False
    place = finding.attributes.index(main.groups)
    parts = [part for part in grid.by_group if math.isfinite(part.value)]
    counted = _by_level(parts, place)
    main_values = {
        (part.levels or (part.group,))[0]: part.value
        for part in main.by_group
        if math.isfinite(part.value)
    }
    if not all(
        abs(counted.get(level, math.nan) - value) <= _CLOSE for level, value in main_values.items()
    ):
        return False
    others_mean = _mean([part for part in parts if part.group != groups[0].group])
    levelled = [
        replace(part, value=others_mean) if part.group == groups[0].group else part
        for part in parts
    ]
    values = [value for level, value in _by_level(levelled, place).items() if level in main_values]
    before, after = max(main_values.values()) - min(main_values.values()), max(values) - min(values)
    small = after < main.threshold or after < main.chance_high
    return after < _SHARE_LEFT * before and small


def _by_level(parts: Sequence[GroupValue], place: int) -> dict[str, float]:
    """Return the mean value of groups by their level in an attribute."""
    names = dict.fromkeys(part.levels[place] for part in parts)
    return {name: _mean([part for part in parts if part.levels[place] == name]) for name in names}


def _mean(parts: Sequence[GroupValue]) -> float:
    rows = sum(part.n for part in parts)
    return sum(part.value * part.n for part in parts) / rows if rows else math.nan
