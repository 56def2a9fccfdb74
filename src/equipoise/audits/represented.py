"""Findings of shares of groups against a reference, and the rows of their table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    fact_of,
    parts,
    whole,
    without_verdict,
)
from equipoise.audits.group_sizes import Row
from equipoise.core import Estimate, Family, GroupValue, IntervalKind, Part
from equipoise.core.columns import INTEGER, NUMBER, TEXT
from equipoise.core.sentences import Sentence, named
from equipoise.core.wording import percent
from equipoise.metrics.labels.representation import method_of_group

REPRESENTATION = {
    "model": TEXT,
    "groups": TEXT,
    "group": TEXT,
    "n": INTEGER,
    "share": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "reference": NUMBER,
    "ratio": NUMBER,
    "ratio_low": NUMBER,
    "ratio_high": NUMBER,
    "reason": TEXT,
}
"""Columns of the table of groups' shares."""
SHARES = "representation"
"""The table of groups' shares."""
TO_ADD = {
    "model": TEXT,
    "groups": TEXT,
    "group": TEXT,
    "n": INTEGER,
    "reference": NUMBER,
    "add": INTEGER,
}
"""Columns of the table of images to add."""
ADDITIONS = "images_to_add"
"""The table of images to add to each group."""
# Decimals that are left of a product of a share, whose last ones are errors of rounding.
_DECIMALS = 6


def represented(
    estimate: Estimate, place: Place, *, described: str = ""
) -> list[UncorrectedFinding]:
    """Return the largest difference from a reference, then each group's share over its share there.

    `described` is why there is no verdict; "" where there is one.
    """
    leaves = [
        replace(
            draft.changed(
                group=draft.finding.subject,
                direction=_compare_shares(draft.finding.by_group),
                method=method_of_group(estimate.method),
                interval=IntervalKind.CONFIDENCE,
            ),
            harm="either",
        )
        for draft in parts(estimate, place)
    ]
    estimable = [draft for draft in leaves if not math.isnan(draft.finding.value)]
    widest = max(
        estimable, key=lambda draft: abs(draft.finding.by_group[0].value - _reference_share(draft))
    )
    gap = whole(
        estimate, place, Family.COMPOSITE, by_group=tuple(map(_ratio_to_reference, estimate.parts))
    ).changed(direction=Sentence(named(widest.finding.subject), ": ", widest.finding.direction))
    if described:
        return [without_verdict(draft, described) for draft in (gap, *leaves)]
    if len(estimable) == 2:
        # Both groups and their difference state one fact: that of the rarer than expected.
        rarer = min(estimable, key=lambda draft: draft.finding.value)
        fold = fact_of(rarer.finding)
        gap = replace(gap, fold=fold)
        leaves = [draft if draft is rarer else replace(draft, fold=fold) for draft in leaves]
    return [gap, *leaves]


def _reference_share(draft: UncorrectedFinding) -> float:
    return draft.finding.by_group[1].value


def _compare_shares(by_group: Sequence[GroupValue]) -> Sentence:
    share, other = by_group
    return Sentence(
        f"{percent(share.value)} of the images, {percent(other.value)} of the reference"
    )  # fmt: skip


def _ratio_to_reference(part: Part) -> GroupValue:
    """Return a group's share over that of the reference."""
    share = part.by_group[0]
    value, low, high = map(math.exp, (part.value, part.low, part.high))
    return GroupValue(share.group, share.levels, share.n, value, low, high, part.reason)


def representation_rows(drafts: Sequence[UncorrectedFinding]) -> Iterator[Row]:
    """Yield the share of each group in the data set and in the reference."""
    gap, *leaves = (draft.finding for draft in drafts)
    for leaf, ratio in zip(leaves, gap.by_group, strict=True):
        share, other = leaf.by_group
        yield {
            "model": leaf.model, "groups": leaf.groups, "group": share.group, "n": share.n,
            "share": share.value, "low": share.low, "high": share.high, "reference": other.value,
            "ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high,
            "reason": leaf.reason,
        }  # fmt: skip


def rows_to_add(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield how many images to add to each group, so that all have their share of the reference.

    No image is removed, so the group with the most images for its share sets the total.

    Parameters
    ----------
    rows : sequence of mapping
        Those of `representation_rows`, of one set of groups.
    """
    expected = [row for row in rows if row["reference"] > 0]
    total = max((row["n"] / row["reference"] for row in expected), default=0.0)
    for row in expected:
        lacking = math.ceil(round(total * row["reference"] - row["n"], _DECIMALS))
        names = ("model", "groups", "group", "n", "reference")
        yield {**{name: row[name] for name in names}, "add": max(lacking, 0)}
