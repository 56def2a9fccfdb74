"""Findings of each group against all others, so that a rare group hides no large difference."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from equipoise.audits.findings import UncorrectedFinding, direction
from equipoise.core.finding import Family, Finding, GroupValue
from equipoise.metrics.counts.against_rest import AgainstRest
from equipoise.metrics.spec import AGAINST_REST, spec_of
from equipoise.stats.intervals import wilson

OTHERS = "all other groups"
_NULL = "rows exchange their groups with those of all other groups; exact (hypergeometric)"
_METHOD = "Newcombe, the group against all others"


def against_rest(drafts: Sequence[UncorrectedFinding]) -> Iterator[UncorrectedFinding]:
    """Yield a leaf finding for every group of gaps between three groups or more.

    Groups below the minimum size take no part. Where rows repeat by unit, each group counts as
    many independent rows as would give its interval the same width.

    Parameters
    ----------
    drafts : sequence of UncorrectedFinding
        Gaps of shares; others, folds and those without a test yield nothing.
    """
    by_size: dict[int, list[tuple[Finding, list[GroupValue]]]] = {}
    for draft in drafts:
        finding, spec = draft.finding, spec_of(draft.finding.metric)
        summary = spec.of_class and not finding.subject
        groups = [one for one in finding.by_group if not one.note and not math.isnan(one.value)]
        tested = finding.family is not Family.DESCRIPTIVE and draft.fold is None
        if tested and spec.rest and len(groups) > 2 and not (summary or _within(finding)):
            by_size.setdefault(len(groups), []).append((finding, groups))
    for some in by_size.values():
        yield from _leaves(some)


def _within(finding: Finding) -> bool:
    """Whether groups were exchanged within classes, which a pooled rest doesn't condition on."""
    return bool(json.loads(finding.parameters).get("null") == "class")


def _leaves(gaps: Sequence[tuple[Finding, list[GroupValue]]]) -> Iterator[UncorrectedFinding]:
    """Yield the leaves of gaps between equally many groups."""
    n = np.array([[one.n for one in groups] for _, groups in gaps], np.float64)
    value = np.array([[one.value for one in groups] for _, groups in gaps])
    width = np.array([[one.high - one.low for one in groups] for _, groups in gaps])
    level = gaps[0][0].level
    design, how = np.ones_like(n), ""
    if gaps[0][0].unit != "row":
        # How many rows count as one, by the width of an interval that knows of units.
        how = "; n of each group divided by its design effect"
        alone = np.subtract(*wilson(value * n, n, level))
        design = np.fmax((width / alone) ** 2, 1.0)
    size = np.rint(n / design)
    found = AgainstRest.of(np.rint(value * size), size, level)
    for row, (finding, groups) in enumerate(gaps):
        metric = spec_of(finding.metric).rest + AGAINST_REST
        for place, group in enumerate(groups):
            others = [one for one in groups if one is not group]
            rest_n = sum(one.n for one in others)
            rest = sum(one.value * one.n for one in others) / rest_n
            rest_low, rest_high, low, high, band, p = (
                float(one[row, place])
                for one in (
                    found.rest.low, found.rest.high, found.difference.low, found.difference.high,
                    found.chance, found.p_value,
                )
            )  # fmt: skip
            by_group = (group, GroupValue(OTHERS, (), rest_n, rest, rest_low, rest_high))
            leaf = replace(
                finding, metric=metric, family=Family.LEAF, group=group.group,
                value=group.value - rest, ci_low=low, ci_high=high, chance=0.0,
                chance_low=-band, chance_high=band, excess=group.value - rest, p_value=p,
                n=group.n + rest_n, by_group=by_group, method=_METHOD + how, null=_NULL + how,
                direction=direction(finding.metric, finding.subject, by_group), reason="",
            )  # fmt: skip
            yield UncorrectedFinding(leaf, "either", parent=finding.metric)
