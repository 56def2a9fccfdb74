"""Preferences for groups, systematic and declared, and which findings lead beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from equipoise.audits.engines.rankings.designs import ScoreDesign
from equipoise.audits.engines.rankings.hypotheses import Effects
from equipoise.audits.findings import Fact, Place, UncorrectedFinding, parts, whole
from equipoise.core import TESTED, Aggregate, Estimate, Family, Part
from equipoise.metrics.spec import spec_of, spec_of_finding
from equipoise.stats import Resampling

_METRIC, _STRENGTH = "systematic_preference", "preference_strength"


def with_preferences(
    design: ScoreDesign,
    estimate: Estimate,
    others: Iterable[UncorrectedFinding],
    resampling: Resampling | None,
    *,
    effects: Iterable[Part] | None = None,
    unit: str = "share",
    gap: str = _METRIC,
) -> tuple[tuple[UncorrectedFinding, ...], list[dict[str, Any]]]:
    """Add declared and systematic preferences to other findings, and say which of all may lead.

    Parameters
    ----------
    design : ScoreDesign
    estimate : Estimate
        The systematic preference.
    others : iterable of UncorrectedFinding
    resampling : Resampling or None
    effects : iterable of Part, optional
        What declarations are compared with, by subject and group: what each subject prefers, unless
        given.
    unit : str
        Of the effects.
    gap : str
        Metric whose threshold the gap of declared groups has, unless it is set.

    Returns
    -------
    tuple of UncorrectedFinding, list of dict
        All findings, and a row for each hypothesis and subject.
    """
    config = design.config
    place = design.at()
    if effects is None:
        effects = (one for one in estimate.parts if one.metric == _STRENGTH and one.subject)
    known = {one.subject: {own.group: own.value for own in one.by_group} for one in effects}
    declared: list[UncorrectedFinding] = []
    rows: list[dict[str, Any]] = []
    for hypothesis in design.hypotheses if known else ():
        found, own = hypothesis.compare(known, place, resampling, config.resampling.seed)
        declared += found
        rows += [{**vars(place), "unit": unit, **row} for row in own]
    if config.testing.threshold(spec_of("favourite_gap")) is None:
        declared = [
            replace(one, parent=spec_of(gap)) if one.finding.metric == "favourite_gap" else one
            for one in declared
        ]
    systematic = _findings(estimate, place, known, unit)
    return (*_leading(design, declared, systematic, others),), rows


def _findings(
    estimate: Estimate, place: Place, effects: Effects, unit: str
) -> Iterator[UncorrectedFinding]:
    """Yield the largest preference, that of each group, and how strong single queries' are."""
    found = {(one.finding.metric, one.finding.subject): one for one in parts(estimate, place)}
    every = [one for (metric, _), one in found.items() if metric == _METRIC]
    strength = found[_STRENGTH, ""]
    shown = strength.finding
    by_query = (
        f"For single queries, shares are {100 * shown.value:.1f} points off on average "
        f"({100 * shown.chance:.1f} by chance), whichever group a query favours."
    )

    def beside(group: str) -> str:
        known = [one[group] for one in effects.values() if not math.isnan(one[group])]
        if unit == "share" or not known:
            return by_query
        mean = fmean(known)
        return (
            f"Its mean {unit} is {abs(mean):.3f} {'above' if mean > 0 else 'below'} the average of "
            f"the groups. {by_query}"
        )

    # Of two groups, one's preference is the other's, turned round: the one ranked last is tested.
    ranked = sorted(every, key=lambda one: one.finding.value)
    least = ranked[0].finding.subject if len(every) == 2 else ""
    fold = Fact(_METRIC, Aggregate.VALUE, least) if least else None
    first = whole(
        estimate, place, Family.COMPOSITE, by_group=every[0].finding.by_group if every else ()
    )
    ends = max(ranked, key=lambda one: abs(one.finding.value), default=None)
    if ends is not None:
        first = first.changed(direction=_direction(ends), beside=beside(ends.finding.subject))
    yield replace(first, fold=fold)
    for one in every:
        group = one.finding.subject
        changed = one.changed(group=group, direction=_direction(one), beside=beside(group))
        yield replace(changed, harm="either", fold=None if group == least else fold)
    yield strength.changed(family=Family.QUERY, leads=False, direction="")


def _direction(draft: UncorrectedFinding) -> str:
    finding = draft.finding
    side = "over" if finding.value > 0 else "under"
    return f"“{finding.subject}” is {side}-represented" if finding.value else ""


def _leading(
    design: ScoreDesign,
    declared: Sequence[UncorrectedFinding],
    systematic: Iterable[UncorrectedFinding],
    others: Iterable[UncorrectedFinding],
) -> Iterator[UncorrectedFinding]:
    """Yield findings: declared preferences lead where they are tested, else systematic ones.

    Where neither can be tested, as with a few queries, all others may lead.
    """
    threshold = design.config.testing.threshold
    # One favourite of all concepts tells nothing new, which its reason says.
    aligned = any(
        threshold(one.parent or spec_of_finding(one.finding)) is not None
        and not math.isnan(one.finding.p_value)
        and not one.finding.reason
        for one in declared
    )
    named = any(one.finding.metric == "favourite_gap" for one in declared)
    for one in declared:
        # A rank correlation has no scale: it stands beside the gap of declared groups.
        yield one.changed(leads=not (named and one.finding.metric == "alignment"))
    known = aligned
    for one in systematic:
        known = known or not math.isnan(one.finding.p_value)
        yield one.changed(leads=one.finding.leads and not aligned)
    for one in others:
        by_query = known and one.finding.family in TESTED
        yield one.changed(family=Family.QUERY, leads=False) if by_query else one
