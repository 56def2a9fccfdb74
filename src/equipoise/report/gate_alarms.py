"""How often chance breaches rules on extremes of groups that are alike."""

import math

import numpy as np

from equipoise.core import Aggregate, Finding, Floats, GroupValue
from equipoise.metrics.spec import spec_for
from equipoise.report.gate_rules import GateRule
from equipoise.report.words import has_shares
from equipoise.stats.alarms import lowest_below, range_above
from equipoise.stats.intervals import wilson_size


def alarm_rate(rule: GateRule, finding: Finding) -> float:
    """Return how often a rule would be breached if all groups had the share of all rows.

    Parameters
    ----------
    rule : GateRule
        On the value of a finding.
    finding : Finding
        With the shares of its groups.

    Returns
    -------
    float
        NaN for numbers that are no extreme of groups' shares, for rules on intervals, and where the
        groups would breach the rule by their common share.
    """
    parts = [part for part in finding.by_group if not part.note and not math.isnan(part.value)]
    if rule.on != "value" or len(parts) < 2 or not has_shares(finding):
        return math.nan
    sizes = np.array([_independent_rows(part, finding) for part in parts])
    share = float(np.average([part.value for part in parts], weights=[part.n for part in parts]))
    if finding.aggregate is Aggregate.WORST_GROUP:
        lower = spec_for(finding.metric).harm == "lower"
        return _alarms_of_worst(rule, sizes, share, lower=lower)
    if finding.aggregate is not Aggregate.DIFFERENCE or rule.max is None or rule.max < 0.0:
        return math.nan
    if finding.compared_to:
        return lowest_below(share - rule.max, sizes, share)
    return range_above(rule.max, sizes, share)


def _alarms_of_worst(rule: GateRule, sizes: Floats, share: float, *, lower: bool) -> float:
    """Return how often the worst group breaks a bound that all rows keep."""
    if lower and rule.min is not None and share >= rule.min:
        return lowest_below(rule.min, sizes, share)
    if not lower and rule.max is not None and share <= rule.max:
        return lowest_below(1.0 - rule.max, sizes, 1.0 - share)
    return math.nan


def _independent_rows(part: GroupValue, finding: Finding) -> float:
    """Return how many independent rows a group's rows count as, by the width of its interval."""
    width = part.high - part.low
    if finding.unit in ("row", "image") or not 0.0 < width < 1.0:
        return float(part.n)
    return min(float(wilson_size(part.value, width, finding.level)), float(part.n))
