"""Sizes of conclusions, corrected for the selection of their group and for their verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from scipy import special

from equipoise.core import Aggregate, Finding, Floats, GroupValue, Verdict
from equipoise.core.finding import REAL
from equipoise.metrics.spec import chance_spread, corrected_with, spec_of, spec_of_finding
from equipoise.report.words import harm, has_shares, is_comparison, worse_side, worst_first
from equipoise.stats import (
    Selection,
    leading_gap,
    share_errors,
    simultaneous_normal,
    simultaneous_shares,
)
from equipoise.stats.intervals import Pair, wilson
from equipoise.stats.selection import LeadingGap, Side

_HALVINGS, _LARGEST_SHIFT = 30, 0.1


@dataclass(frozen=True)
class SelectedSize:
    """Size of a finding's leading group and gap, as the fields of a conclusion.

    Attributes
    ----------
    compared : int
        Groups that were compared; 0 where that is unknown, and all numbers are NaN.
    group_low, group_high, group_corrected : float
    corrected, corrected_low, corrected_high : float
        NaN where the finding's value isn't a gap of its groups.
    """

    compared: int = 0
    group_low: float = math.nan
    group_high: float = math.nan
    group_corrected: float = math.nan
    corrected: float = math.nan
    corrected_low: float = math.nan
    corrected_high: float = math.nan


def size_after_selection(
    findings: Sequence[Finding], lead: int, members: Collection[int], alpha: float
) -> SelectedSize:
    """Return the size of a leading group and its gap, corrected for what was picked.

    Parameters
    ----------
    findings : sequence of Finding
        All of a run.
    lead : int
        Place of the finding that states a conclusion.
    members : collection of int
        Places of the findings that say the same.
    alpha : float
        Rate of false discoveries that verdicts accept.
    """
    finding = findings[lead]
    if is_comparison(finding) or finding.change_from:
        return SelectedSize()
    against_rest = finding.aggregate is Aggregate.AGAINST_REST
    parts = _groups_compared(findings, finding) if against_rest else worst_first(finding)
    names = [part.group for part in parts]
    index = names.index(finding.group) if against_rest and names else 0
    if len(parts) < 2 or (estimates := _estimates(finding, parts)) is None:
        return SelectedSize()
    values, errors, ends = estimates
    lowest = finding.value < 0 if against_rest else worse_side(finding) == "lower"
    side: Side = "lowest" if lowest else "highest"
    n = np.array([part.n for part in parts], np.float64)
    from_all = finding.compared_to == "overall"
    # A distance from all rows is a share of the distance from the others.
    scale = float(1.0 - n[index] / n.sum()) if from_all else 1.0
    cutoff = 0.0
    if finding.verdict in REAL:
        smallest = _smallest(findings, lead, members, alpha) / scale
        cutoff = max(smallest, _smallest_of_subjects(findings, finding))
    margins = _margins(findings, finding, names, side) if against_rest else None
    gap = leading_gap(
        values, errors, weights=n, reference="others" if against_rest or from_all else "opposite",
        side=side, selection=Selection(index, margins, cutoff), ends=ends, level=finding.level,
    )  # fmt: skip
    return _fields(finding, gap, len(parts), scale)


def _fields(finding: Finding, gap: LeadingGap, compared: int, scale: float) -> SelectedSize:
    """Return the numbers of a gap, with the sign of a finding's value."""
    group = gap.group
    size = SelectedSize(compared, group.low, group.high)
    sign = math.copysign(scale, finding.value) * math.copysign(1.0, gap.value)
    # All others may be pooled by other rows than the groups have.
    shift = finding.value - sign * gap.value
    if abs(shift) > _LARGEST_SHIFT * abs(finding.value):
        return size
    least, most = spec_of_finding(finding).range
    ends = sign * gap.low + shift, sign * gap.high + shift
    low, high = sorted(min(max(end, least), most) for end in ends)
    closer = max if finding.value > 0 else min
    return replace(
        size, group_corrected=group.corrected, corrected=closer(sign * gap.corrected + shift, 0.0),
        corrected_low=low, corrected_high=high,
    )  # fmt: skip


def _groups_compared(findings: Sequence[Finding], leaf: Finding) -> list[GroupValue]:
    """Return the groups among which one was compared with all others; none if that is unknown."""
    (group, *_) = leaf.by_group or (None,)
    if group is None:
        return []
    for finding in findings:
        if (
            finding.aggregate is Aggregate.DIFFERENCE
            and _place(finding) == _place(leaf)
            and spec_of_finding(finding).rest_metric == leaf.metric
            and group in (parts := worst_first(finding))
        ):
            return parts
    return []


def _place(finding: Finding) -> tuple[str, ...]:
    return (
        finding.model, finding.groups, finding.subject, finding.version, finding.within,
        finding.within_value,
    )  # fmt: skip


def _margins(
    findings: Sequence[Finding], leaf: Finding, names: Sequence[str], side: Side
) -> Floats:
    """Return how far each group's value is from the end of its interval that was ordered.

    Groups without a comparison of their own didn't compete.
    """
    margins = dict.fromkeys(names, math.inf)
    for finding in findings:
        same = (finding.metric, finding.aggregate) == (leaf.metric, leaf.aggregate)
        if same and _place(finding) == _place(leaf) and finding.group in margins:
            end = finding.ci_high if side == "lowest" else finding.ci_low
            margins[finding.group] = math.inf if math.isnan(end) else abs(end - finding.value)
    return np.array([margins[name] for name in names])


def _estimates(finding: Finding, parts: Sequence[GroupValue]) -> tuple[Floats, Floats, Pair] | None:
    """Return values of groups, their standard errors, and their simultaneous ends.

    Shares of the groups' own rows count as many rows as give their interval its width. None where
    another number lacks an interval: shares of one whole, such as the top K, have other rows.
    """
    columns = [(part.value, part.n, part.low, part.high) for part in parts]
    values, n, low, high = np.array(columns, np.float64).T
    width = np.where(high > low, high - low, np.nan)
    spec = spec_of_finding(finding)
    if has_shares(finding) and not (spec.of_whole and np.isnan(width).any()):
        alone = np.subtract(*wilson(values * n, n, finding.level))
        rows = np.where(np.isnan(width), n, n * (alone / width) ** 2)
        ends = simultaneous_shares(values * rows, rows, finding.level)
        return values, share_errors(values * rows, rows), ends
    if np.isnan(width).any():
        return None
    errors = width / (2 * NormalDist().inv_cdf(0.5 + finding.level / 2))
    ends = simultaneous_normal(values, errors, finding.level)
    bounds = spec_of(spec.group_metric or finding.metric).bounds
    if bounds is not None and bounds[0] <= values.min() and values.max() <= bounds[1]:
        ends = np.clip(ends[0], *bounds), np.clip(ends[1], *bounds)
    return values, errors, ends


def _smallest(
    findings: Sequence[Finding], lead: int, members: Collection[int], alpha: float
) -> float:
    """Return the smallest size at which a finding would have its verdict.

    The findings that say the same become smaller with it.
    """
    finding = findings[lead]
    if math.isnan(finding.chance_high) or math.isnan(finding.p_value):
        return 0.0
    side = 1.0 if finding.value >= finding.chance else -1.0
    spread = chance_spread(finding, harm(finding))
    tails = 2.0 if harm(finding) == "either" else 1.0
    excess = -spread * float(special.ndtri(_largest_p(findings, lead, members, alpha) / tails))
    if finding.verdict is Verdict.DISPARITY and finding.threshold > 0:
        excess = max(excess, finding.threshold)
    return max(side * finding.chance + excess, 0.0)


def _smallest_of_subjects(findings: Sequence[Finding], finding: Finding) -> float:
    """Return the smallest gap at which a subject stands out from the group's other subjects.

    Its score is the highest of all, and above that of all subjects pooled. 0 where the observed gap
    is smaller, so the subject was picked for another reason.
    """
    observed = _scored_gap(finding, finding)
    if not finding.subject or observed is None:
        return 0.0
    gaps = [
        scored
        for other in findings
        if other.metric == finding.metric
        and other.subject not in ("", finding.subject)
        and (other.aggregate, other.compared_to, other.group)
        == (finding.aggregate, finding.compared_to, finding.group)
        and _place(other)[:2] + _place(other)[3:] == _place(finding)[:2] + _place(finding)[3:]
        and (scored := _scored_gap(other, finding)) is not None
    ]
    if not gaps:
        return 0.0
    (gap, error), (others, errors) = observed, np.array(gaps).T
    # Gaps count by their precision when subjects are pooled.
    all_precision = math.sqrt(error**-2 + float((errors**-2).sum()))
    pooled = float((others / errors**2).sum()) / (all_precision - 1.0 / error)
    needed = max(pooled, float((others / errors).max())) * error
    return needed if needed <= gap else 0.0


def _scored_gap(finding: Finding, leading: Finding) -> tuple[float, float] | None:
    """Return the gap of the groups that lead another finding, towards its harm, and its error."""
    sign = math.copysign(1.0, leading.value)
    pair = [part.group for part in leading.by_group]
    if leading.aggregate is not Aggregate.AGAINST_REST:
        ordered = worst_first(leading)
        pair = [ordered[0].group, ordered[-1].group]
        sign = -1.0 if worse_side(leading) == "lower" else 1.0
    parts = {part.group: part for part in finding.by_group}
    if len(pair) != 2 or not {*pair} <= {*parts} or not has_shares(finding):
        return None
    values, n = np.array([(parts[name].value, parts[name].n) for name in pair], np.float64).T
    if np.isnan(values).any() or not n.all():
        return None
    error = float(np.linalg.norm(share_errors(values * n, n)))
    return sign * float(values[0] - values[1]), error


def _largest_p(
    findings: Sequence[Finding], lead: int, members: Collection[int], alpha: float
) -> float:
    """Return the p-value at which a finding would still be significant.

    Normal scores of the findings that say the same fall with it, others stay. The number of tests
    follows from the least significant p-value and its correction.
    """
    finding = findings[lead]
    model = corrected_with(finding)
    tests = [
        place
        for place, other in enumerate(findings)
        if other.family is finding.family
        and not math.isnan(other.q_value)
        and corrected_with(other) == model
    ]
    p = np.array([findings[place].p_value for place in tests])
    q = np.array([findings[place].q_value for place in tests])
    falling = np.array([place in members or place == lead for place in tests])
    significant = (q <= alpha) & (p > 0)
    scores = -special.ndtri(np.clip(p, 1e-300, 1.0))
    score = float(-special.ndtri(max(finding.p_value, 1e-300)))
    if not significant.any() or lead not in tests:
        return finding.p_value
    last = np.flatnonzero(significant)[np.argmax(p[significant])]
    n_tests = q[last] / p[last] * (p <= p[last]).sum()
    limits = alpha * np.arange(1, len(p) + 1) / n_tests * (1 + 1e-9)

    def is_significant(fall: float) -> bool:
        fallen = np.sort(np.where(falling, special.ndtr(fall - scores), p))
        passing = np.flatnonzero(fallen <= limits)
        return bool(len(passing)) and float(special.ndtr(fall - score)) <= limits[passing[-1]]

    low, high = 0.0, max(score, 0.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_significant(middle) else (low, middle)
    return float(special.ndtr(low - score))
