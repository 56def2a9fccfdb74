"""Parity against the labels: what predictions add to the difference that the labels have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from equipoise.audits.findings import UncorrectedFinding
from equipoise.core.arrays import Floats
from equipoise.metrics.building import folded
from equipoise.metrics.counts import Counts
from equipoise.metrics.counts.against_rest import AgainstRest, all_others
from equipoise.metrics.counts.rates import Cells
from equipoise.stats.intervals import normal

_PARITY = ("demographic_parity", "selection_rate", "selection_rate_against_rest")


@dataclass(frozen=True, eq=False)
class Added:
    """Differences of each group to all others, arrays (classes, groups); NaN where too small.

    Attributes
    ----------
    labels : ndarray
        L, in the true labels.
    value, low, high : ndarray
        |P| - |L| where the differences of predictions P and labels L have one sign, else |P|,
        with its interval, which is paired over rows.
    """

    labels: Floats
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, counts: Counts, level: float) -> Added:
        """Compare predictions and labels of the same rows, counted once each."""
        cells = Cells.of(counts, counts.observed)
        kept = counts.groups.usable
        n, both, truth, said = (
            np.where(kept, cells[name][0], 0.0) for name in ("total", "both", "truth", "prediction")
        )
        found = AgainstRest.of(said, n, level)
        labels = AgainstRest.of(truth, n, level).difference.value
        predicted = found.difference.value
        own = _spread(said - both, truth - both, n)
        rest = _spread(*(all_others(one) for one in (said - both, truth - both, n)))
        half = normal(level) * np.sqrt(own + rest)
        agree = predicted * labels >= 0.0
        paired = np.abs(predicted) - np.abs(labels)
        alone = [
            folded(*ends)
            for ends in zip(found.difference.low.flat, found.difference.high.flat, strict=True)
        ]
        low, high = (np.reshape(end, n.shape) for end in zip(*alone, strict=True))
        return cls(
            labels,
            np.where(agree, paired, np.abs(predicted)),
            np.where(agree, paired - half, low),
            np.where(agree, paired + half, high),
        )


def _spread(wrong: Floats, missed: Floats, n: Floats) -> Floats:
    """Variance of the mean of prediction minus label, with half a row for each kind of error."""
    wrong, missed, n = wrong + 0.5, missed + 0.5, n + 1.0
    return np.asarray(((wrong + missed) / n - ((wrong - missed) / n) ** 2) / n)


def beside_labels(
    drafts: Iterable[UncorrectedFinding],
    counts: Counts,
    *,
    threshold: float,
    level: float,
    required: bool,
) -> Iterator[UncorrectedFinding]:
    """Put the labels' own difference beside findings of parity, and say whether they may lead.

    Parameters
    ----------
    drafts : iterable of UncorrectedFinding
        Of one design; other findings are returned as they are.
    counts : Counts
    threshold : float
        The smallest added difference that matters.
    level : float
        Confidence level.
    required : bool
        Parity is demanded whatever the labels say: every finding may lead.
    """
    added = Added.of(counts, level)
    leads = (added.low > 0.0) & (added.value >= threshold)
    every = [*range(len(counts.classes))], [*range(len(counts.groups))]
    for draft in drafts:
        finding = draft.finding
        if finding.metric not in _PARITY:
            yield draft
            continue
        classes = [counts.classes.index(finding.subject)] if finding.subject else every[0]
        groups = [counts.groups.names.index(finding.group)] if finding.group else every[1]
        own = np.ix_(classes, groups)
        if np.isnan(added.value[own]).all():
            yield draft
            continue
        row, column = np.unravel_index(np.nanargmax(added.value[own]), (len(classes), len(groups)))
        place = classes[row], groups[column]
        labels, value, low, high = (
            float(one[place]) for one in (added.labels, added.value, added.low, added.high)
        )
        known = {"labels": labels, "added": value, "added_low": low, "added_high": high}
        group = counts.groups.names[place[1]]
        shown = replace(
            finding,
            parameters=json.dumps(json.loads(finding.parameters) | known, sort_keys=True),
            leads=required or bool(leads[own].any()),
            beside=(
                f"In the labels, {group} and all other groups are {100 * abs(labels):.1f} points "
                f"apart; the model adds {100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]."
            ),
        )
        yield replace(draft, finding=shown)
