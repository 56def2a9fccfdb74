"""Findings of each group against all others, so that a rare group hides no large difference."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from equipoise.audits.findings import UncorrectedFinding, direction
from equipoise.core import Aggregate, ComparedTo, Family, Finding, Floats, GroupValue, IntervalKind
from equipoise.metrics.counts import Counts
from equipoise.metrics.counts.comparisons import OTHERS, AgainstRest, all_others
from equipoise.metrics.counts.rates import RATES
from equipoise.metrics.spec import MetricSpec, spec_of_finding
from equipoise.stats.intervals import wilson

_NULL = "rows exchange their groups with those of all other groups"
_METHOD = "Newcombe, the group against all others"
_RATES = {rate.name: rate for rate in RATES}
# Leaves of a metric beyond which only some are made, and how many then.
_MOST, _FEW = 300, 60
Gap = tuple[Finding, list[GroupValue]]


def against_rest(
    drafts: Sequence[UncorrectedFinding], counts: Counts | None = None
) -> Iterator[UncorrectedFinding]:
    """Yield a leaf finding for every group of gaps between three groups or more.

    Groups below the minimum size take no part. Where rows repeat by unit, each group counts as
    many independent rows as would give its interval the same width. Of very many classes and
    groups, the most frequent labels are compared.

    Parameters
    ----------
    drafts : sequence of UncorrectedFinding
        Gaps of shares; others, folds and those without a test yield nothing.
    counts : Counts, optional
        Of the labels; without them, gaps conditional on the true class yield nothing.
    """
    every: dict[tuple[str, ComparedTo, bool], list[Gap]] = {}
    for draft in drafts:
        finding, spec = draft.finding, spec_of_finding(draft.finding)
        summary = spec.of_class and not finding.subject
        groups = [one for one in finding.by_group if not one.note and not math.isnan(one.value)]
        tested = finding.family is not Family.DESCRIPTIVE and draft.fold is None
        gap = spec.rest and finding.aggregate is Aggregate.DIFFERENCE
        if tested and gap and len(groups) > 2 and not summary:
            within = finding.parameters.get("null") == "class"
            every.setdefault((finding.metric, finding.compared_to, within), []).append(
                (finding, groups)
            )
    for (metric, compared_to, within), gaps in every.items():
        few = gaps
        if counts is not None and sum(len(groups) for _, groups in gaps) > _MOST:
            said = counts.by_prediction(counts.observed)[0].sum(axis=1)
            rows = {"": 0.0, **dict(zip(counts.classes, said.tolist(), strict=True))}
            few = sorted(gaps, key=lambda gap: -rows[gap[0].subject])
            few = few[: max(_FEW // counts.groups.usable.sum(), 1)]
        if not within or metric == "true_positive_rate":
            for some in _by_groups(few):
                yield from _over_rows(some)
        elif counts is not None and metric in _RATES and not compared_to:
            yield from _within(few, counts)


def leaf(draft: UncorrectedFinding, parent: MetricSpec, **fields: Any) -> UncorrectedFinding:
    """Return the draft of a group against all others with its group and its parent's threshold."""
    group = draft.finding.by_group[0].group
    fields = {"group": group, "family": Family.LEAF, **fields}
    return replace(draft.changed(**fields), harm="either", parent=parent)


def _by_groups(gaps: Sequence[Gap]) -> list[list[Gap]]:
    """Return the gaps between the same groups together."""
    by_groups: dict[tuple[str, ...], list[Gap]] = {}
    for finding, groups in gaps:
        by_groups.setdefault(tuple(one.group for one in groups), []).append((finding, groups))
    return [*by_groups.values()]


def _within(gaps: Sequence[Gap], counts: Counts) -> Iterator[UncorrectedFinding]:
    """Yield the leaves of gaps between groups that are exchangeable within true classes."""
    rate, names = _RATES[gaps[0][0].metric], counts.groups.names
    found = AgainstRest.within_classes(counts, rate, gaps[0][0].level)
    for finding, groups in gaps:
        row = counts.classes.index(finding.subject)
        for index, group in enumerate(groups):
            yield _leaf(finding, groups, found, (row, names.index(group.group)), index)


def _over_rows(gaps: Sequence[Gap]) -> Iterator[UncorrectedFinding]:
    """Yield the leaves of gaps between equally many groups that exchange any rows."""
    n, value, size, how = _independent(gaps)
    rests = all_others(value * n) / all_others(n)
    found = AgainstRest.of(np.rint(value * size), size, gaps[0][0].level)
    found = replace(found, rest=replace(found.rest, value=rests))
    for row, (finding, groups) in enumerate(gaps):
        for place in range(len(groups)):
            yield _leaf(finding, groups, found, (row, place), place, how)


def _independent(gaps: Sequence[Gap]) -> tuple[Floats, Floats, Floats, str]:
    """Return rows, shares and independent rows of every gap and group, and how they are known."""
    n = np.array([[one.n for one in groups] for _, groups in gaps], np.float64)
    value = np.array([[one.value for one in groups] for _, groups in gaps])
    if gaps[0][0].unit == "row":
        return n, value, n, ""
    # How many rows count as one, by the width of an interval that knows of units.
    width = np.array([[one.high - one.low for one in groups] for _, groups in gaps])
    alone = np.subtract(*wilson(value * n, n, gaps[0][0].level))
    size = np.rint(n / np.fmax((width / alone) ** 2, 1.0))
    return n, value, size, "; n of each group divided by its design effect"


def _leaf(
    finding: Finding,
    groups: Sequence[GroupValue],
    found: AgainstRest,
    place: tuple[int, int],
    index: int,
    how: str = "",
) -> UncorrectedFinding:
    """Return the leaf of one of the groups, whose numbers stand at a place of arrays."""
    group, rest_n = groups[index], sum(one.n for one in groups) - groups[index].n
    rest, rest_low, rest_high, low, high, band, p, mean = (
        float(one[place])
        for one in (
            *found.rest.arrays, found.difference.low, found.difference.high, found.chance,
            found.p_value, found.mean,
        )
    )  # fmt: skip
    by_group = (group, GroupValue(OTHERS, (), rest_n, rest, rest_low, rest_high))
    value, parent = group.value - rest, spec_of_finding(finding)
    leaf = replace(
        finding, metric=parent.rest, aggregate=Aggregate.AGAINST_REST, compared_to="",
        family=Family.LEAF, group=group.group, value=value, ci_low=low,
        ci_high=high, chance=mean, chance_low=mean - band, chance_high=mean + band,
        excess=value - mean, p_value=p, n=group.n + rest_n, by_group=by_group,
        interval=IntervalKind.CONFIDENCE,
        method=_METHOD + how, null_drawn=_NULL + found.null + how,
        direction=direction(
            finding.metric, finding.subject, by_group, finding.aggregate
        ), reason="",
    )  # fmt: skip
    return UncorrectedFinding(leaf, "either", parent=parent)
