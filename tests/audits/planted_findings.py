"""Findings with chosen numbers, for what reads them."""

from equipoise.core import GroupValue
from report.synthetic import finding


def effect(subject, value, half=0.05, **changes):
    """Return a finding of an effect size with an interval of this half width."""
    ends = {"value": value, "ci_low": value - half, "ci_high": value + half}
    plain = {"metric": "cramers_v", "model": "m", "groups": "colour"}
    return finding(subject=subject, **plain | ends | changes)


def level(group, value):
    """Return the number of one group."""
    return GroupValue(group, (group,), 100, value, value - 0.05, value + 0.05)
