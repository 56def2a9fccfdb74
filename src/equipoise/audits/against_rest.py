"""Findings of each group against all others, so that a rare group hides no large difference."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from equipoise.audits.findings import UncorrectedFinding, direction
from equipoise.core import Aggregate, ComparedTo, Family, Finding, Floats, GroupValue, IntervalKind
from equipoise.core.records import changed
from equipoise.metrics.labels import Counts
from equipoise.metrics.labels.comparisons import OTHERS, AgainstRest, all_others
from equipoise.metrics.labels.rate import Rate
from equipoise.metrics.labels.rates import rate_named
from equipoise.metrics.spec import MetricSpec, spec_of_finding
from equipoise.stats.intervals import wilson

_NULL = "rows of the group and of all other groups exchange places"
_METHOD = "Newcombe, the group against all others"
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
    gaps_by_metric: dict[tuple[str, ComparedTo, bool], list[Gap]] = {}
    for draft in drafts:
        finding, spec = draft.finding, spec_of_finding(draft.finding)
        summary = spec.of_class and not finding.subject
        groups = [
            group_value
            for group_value in finding.by_group
            if not group_value.note and not math.isnan(group_value.value)
        ]
        tested = finding.family is not Family.DESCRIPTIVE and draft.fold is None
        gap = spec.rest_metric and finding.aggregate is Aggregate.DIFFERENCE
        if tested and gap and len(groups) > 2 and not summary:
            within = finding.parameters.get("null") == "class"
            gaps_by_metric.setdefault((finding.metric, finding.compared_to, within), []).append(
                (finding, groups)
            )
    for (metric, compared_to, within), gaps in gaps_by_metric.items():
        selected = gaps
        if counts is not None and sum(len(groups) for _, groups in gaps) > _MOST:
            n_predicted = counts.by_prediction(counts.observed)[0].sum(axis=1)
            rows = {"": 0.0, **dict(zip(counts.classes, n_predicted.tolist(), strict=True))}
            selected = sorted(gaps, key=lambda gap: -rows[gap[0].subject])
            selected = selected[: max(_FEW // counts.groups.usable.sum(), 1)]
        rate = rate_named(metric)
        if not within or (rate is not None and rate.within_one_class):
            for same_groups in _group_gaps(selected):
                yield from _compare_over_rows(same_groups)
        elif counts is not None and rate is not None and not compared_to:
            yield from _compare_within_classes(selected, counts, rate)


def leaf(draft: UncorrectedFinding, parent: MetricSpec, **fields: Any) -> UncorrectedFinding:
    """Return the draft of a group against all others with its group and its parent's threshold."""
    group = draft.finding.by_group[0].group
    fields = {"group": group, "family": Family.LEAF, **fields}
    return replace(draft.changed(**fields), harm="either", parent=parent)


def _group_gaps(gaps: Sequence[Gap]) -> list[list[Gap]]:
    """Return the gaps between the same groups together."""
    by_groups: dict[tuple[str, ...], list[Gap]] = {}
    for finding, groups in gaps:
        by_groups.setdefault(tuple(group_value.group for group_value in groups), []).append(
            (finding, groups)
        )
    return [*by_groups.values()]


def _compare_within_classes(
    gaps: Sequence[Gap], counts: Counts, rate: Rate
) -> Iterator[UncorrectedFinding]:
    """Yield the leaves of gaps between groups that are exchangeable within true classes."""
    names = counts.groups.names
    comparison = AgainstRest.within_classes(counts, rate, gaps[0][0].level)
    for finding, groups in gaps:
        row = counts.classes.index(finding.subject)
        for index, group in enumerate(groups):
            yield _leaf_finding(finding, groups, comparison, (row, names.index(group.group)), index)


def _compare_over_rows(gaps: Sequence[Gap]) -> Iterator[UncorrectedFinding]:
    """Yield the leaves of gaps between equally many groups that exchange any rows."""
    n, value, size, method_note = _independent_rows(gaps)
    rests = all_others(value * n) / all_others(n)
    comparison = AgainstRest.of(np.rint(value * size), size, gaps[0][0].level)
    comparison = replace(comparison, rest=replace(comparison.rest, value=rests))
    for row, (finding, groups) in enumerate(gaps):
        for place in range(len(groups)):
            yield _leaf_finding(finding, groups, comparison, (row, place), place, method_note)


class IndependentRows(NamedTuple):
    """Rows of every gap and group.

    Attributes
    ----------
    n, value, size : ndarray, shape (gaps, groups)
        Rows, shares, and the number of independent rows.
    method_note : str
        Addition to the method, where rows repeat by unit.
    """

    n: Floats
    value: Floats
    size: Floats
    method_note: str


def _independent_rows(gaps: Sequence[Gap]) -> IndependentRows:
    """Return the rows, shares and independent rows of every gap and group."""
    n = np.array([[group_value.n for group_value in groups] for _, groups in gaps], np.float64)
    value = np.array([[group_value.value for group_value in groups] for _, groups in gaps])
    if gaps[0][0].unit == "row":
        return IndependentRows(n, value, n, "")
    # How many rows count as one, by the width of an interval that knows of units.
    width = np.array(
        [[group_value.high - group_value.low for group_value in groups] for _, groups in gaps]
    )
    independent_width = np.subtract(*wilson(value * n, n, gaps[0][0].level))
    size = np.rint(n / np.fmax((width / independent_width) ** 2, 1.0))
    return IndependentRows(n, value, size, "; n of each group divided by its design effect")


def _leaf_finding(
    finding: Finding,
    groups: Sequence[GroupValue],
    comparison: AgainstRest,
    place: tuple[int, int],
    index: int,
    method_note: str = "",
) -> UncorrectedFinding:
    """Return the leaf finding of one group, with the numbers at a position of arrays."""
    group, rest_n = groups[index], sum(group_value.n for group_value in groups) - groups[index].n
    rest_value, rest_low, rest_high, low, high, chance_low, chance_high, p, mean = (
        float(array[place])
        for array in (
            *comparison.rest.arrays, comparison.difference.low, comparison.difference.high,
            comparison.chance_low, comparison.chance_high, comparison.p_value, comparison.mean,
        )
    )  # fmt: skip
    by_group = (group, GroupValue(OTHERS, (), rest_n, rest_value, rest_low, rest_high))
    value, parent = group.value - rest_value, spec_of_finding(finding)
    leaf = changed(
        finding, metric=parent.rest_metric, aggregate=Aggregate.AGAINST_REST, compared_to="",
        family=Family.LEAF, group=group.group, value=value, ci_low=low,
        ci_high=high, chance=mean, chance_low=chance_low, chance_high=chance_high,
        excess=value - mean, p_value=p, p_at_most=False, n=group.n + rest_n, by_group=by_group,
        interval=IntervalKind.CONFIDENCE,
        method=_METHOD + method_note, null_drawn=_NULL + comparison.null + method_note,
        direction=direction(
            finding.metric, finding.subject, by_group, finding.aggregate
        ), reason="",
    )  # fmt: skip
    return UncorrectedFinding(leaf, "either", parent=parent)
