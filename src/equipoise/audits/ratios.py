"""Ratios of rare errors, beside their differences in points."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from equipoise.audits.findings import UncorrectedFinding
from equipoise.core import Aggregate, Finding, Floats, GroupValue, Ratio
from equipoise.metrics.building import spread_level
from equipoise.metrics.spec import spec_of_finding
from equipoise.report.words import contrast, worst_first
from equipoise.stats import score_ratio
from equipoise.stats.intervals import wilson_size
from equipoise.stats.verdict import RARE, RARE_OF_ALL


def with_ratios(
    drafts: Iterable[UncorrectedFinding], classes: Sequence[str]
) -> Iterator[UncorrectedFinding]:
    """Add the ratio of errors to differences between groups that have few of them.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design.
    classes : sequence of str
        Of the target and the predictions. Of more than two nothing changes: some class would have
        a large ratio by chance.
    """
    for draft in drafts:
        ratio = ratio_of(draft.finding) if len(classes) == 2 else None
        yield draft if ratio is None else draft.changed(ratio=ratio)


def ratio_of(finding: Finding) -> Ratio | None:
    """Return the ratio of errors of the worst group and the group it is compared with.

    The two are picked for their distance, so the interval holds for all pairs of groups together
    (Bonferroni).

    Returns
    -------
    Ratio or None
        None where the metric isn't a rate of errors, errors aren't rare, or all groups have the
        same rate.
    """
    errors = spec_of_finding(finding).errors
    groups, pair = worst_first(finding), contrast(finding)
    if finding.aggregate is not Aggregate.DIFFERENCE or not errors or pair is None:
        return None
    rates = _rates(groups, errors)
    of_all = np.average(rates, weights=[group.n for group in groups])
    if not (of_all < RARE_OF_ALL and rates.min() < RARE):
        return None
    level = spread_level(finding.level, len(groups) * (len(groups) - 1) // 2)
    (rate, other_rate), (n, other_n) = (
        _rates(pair[:2], errors),
        _independent_rows(pair[:2], finding),
    )
    scored = score_ratio(rate * n, n, other_rate * other_n, other_n, level)
    value, low, high = (float(array) for array in scored.arrays)
    return Ratio(value if other_rate > 0.0 else np.inf, low, high)


def _rates(groups: Sequence[GroupValue], errors: str) -> Floats:
    """Return the share of errors of each group."""
    shares = np.array([group.value for group in groups])
    return shares if errors == "value" else 1.0 - shares


def _independent_rows(groups: Sequence[GroupValue], finding: Finding) -> Floats:
    """Return how many independent rows each group counts as."""
    n = np.array([group.n for group in groups], np.float64)
    if finding.unit == "row":
        return n
    width = np.array([group.high - group.low for group in groups])
    share = np.array([group.value for group in groups])
    return np.minimum(wilson_size(share, width, finding.level), n)
