"""Preferences for groups, systematic and declared, and which findings lead beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole
from equipoise.audits.notes import Note
from equipoise.audits.rankings.designs import ScoreDesign
from equipoise.audits.rankings.hypotheses import Compared, Effects
from equipoise.core import TESTED, Aggregate, Estimate, Fact, Family, Finding, Part
from equipoise.core.sentences import Sentence, quoted
from equipoise.metrics.spec import spec_of, spec_of_finding
from equipoise.stats import Resampling

# Noise in likeness takes less off the number of independent queries.
_LEAST_INDEPENDENT = 0.75


def with_preferences(
    design: ScoreDesign,
    estimate: Estimate,
    other_findings: Iterable[UncorrectedFinding],
    resampling: Resampling | None,
    *,
    effects: Iterable[Part] | None = None,
    unit: str = "share",
    gap: str = "",
) -> tuple[tuple[UncorrectedFinding, ...], list[dict[str, Any]]]:
    """Add declared and systematic preferences to other findings, and say which of all may lead.

    Parameters
    ----------
    design : ScoreDesign
    estimate : Estimate
        The systematic preference.
    other_findings : iterable of UncorrectedFinding
    resampling : Resampling or None
    effects : iterable of Part, optional
        What declarations are compared with, by subject and group: what each subject prefers, unless
        given.
    unit : str
        Of the effects.
    gap : str
        Metric whose threshold the gap of declared groups has, unless it is set; by default the
        systematic preference.

    Returns
    -------
    tuple of UncorrectedFinding, list of dict
        All findings, and a row for each hypothesis and subject.
    """
    config = design.config
    place = design.at()
    if effects is None:
        effects = (
            part for part in estimate.parts if part.metric != estimate.metric and part.subject
        )
    effects_by_subject = {
        part.subject: {group_value.group: group_value.value for group_value in part.by_group}
        for part in effects
    }
    threshold, seed = config.testing.threshold, config.resampling.seed
    declared: list[Compared] = []
    rows: list[dict[str, Any]] = []
    for hypothesis in design.hypotheses if effects_by_subject else ():
        compared = hypothesis.compare(effects_by_subject, place, resampling, seed)
        gap_draft = compared.gap
        if gap_draft is not None and threshold(spec_of_finding(gap_draft.finding)) is None:
            scaled = replace(gap_draft, parent=spec_of(gap or estimate.metric))
            compared = replace(compared, gap=scaled)
        declared.append(compared)
        rows += [{**vars(place), "unit": unit, **row} for row in compared.rows]
    systematic = _findings(estimate, place, effects_by_subject, unit)
    return (*_leading(design, declared, systematic, other_findings),), rows


def alike_notes(design: ScoreDesign, estimate: Estimate) -> Iterator[Note]:
    """Yield a note where queries rank images alike, from the systematic preference."""
    subjects, effective = estimate.params["subjects"], estimate.params["effective_subjects"]
    clustered = estimate.params["independent_subjects"] < subjects
    if clustered or effective < _LEAST_INDEPENDENT * subjects:
        text = (
            f"Some of the {subjects} queries or subjects rank images alike. They are resampled "
            f"together, or raise the variance, and count as {effective:.1f} independent queries."
        )
        yield Note(design.place, text)


def _findings(
    estimate: Estimate, place: Place, effects: Effects, unit: str
) -> Iterator[UncorrectedFinding]:
    """Yield the largest preference, that of each group, and how strong single queries' are."""
    drafts_by_fact = {
        (draft.finding.metric, draft.finding.subject): draft for draft in parts(estimate, place)
    }
    group_drafts = [
        draft for (metric, _), draft in drafts_by_fact.items() if metric == estimate.metric
    ]
    # The systematic preference is of each group; beside it stands that of single queries.
    (strength,) = (
        draft
        for (metric, subject), draft in drafts_by_fact.items()
        if metric != estimate.metric and not subject
    )
    strength_finding = strength.finding
    by_query = (
        f"For single queries, shares are {100 * strength_finding.value:.1f} points off on average "
        f"({100 * strength_finding.chance:.1f} by chance), whichever group a query favours."
    )

    def beside(group: str) -> str:
        group_effects = [
            subject_effects[group]
            for subject_effects in effects.values()
            if not math.isnan(subject_effects[group])
        ]
        if unit == "share" or not group_effects:
            return by_query
        mean = fmean(group_effects)
        return (
            f"Its mean {unit} is {abs(mean):.3f} {'above' if mean > 0 else 'below'} the average of "
            f"the groups. {by_query}"
        )

    # Of two groups, one's preference is the other's, turned round: the one ranked last is tested.
    ranked = sorted(group_drafts, key=lambda draft: draft.finding.value)
    lowest_group = ranked[0].finding.subject if len(group_drafts) == 2 else ""
    fold = Fact(estimate.metric, Aggregate.VALUE, lowest_group) if lowest_group else None
    overall = whole(
        estimate,
        place,
        Family.COMPOSITE,
        by_group=group_drafts[0].finding.by_group if group_drafts else (),
    )
    strongest = max(ranked, key=lambda draft: abs(draft.finding.value), default=None)
    if strongest is not None:
        overall = overall.changed(
            direction=_direction(strongest), beside=beside(strongest.finding.subject)
        )
    yield replace(overall, fold=fold)
    for draft in group_drafts:
        group = draft.finding.subject
        changed = draft.changed(group=group, direction=_direction(draft), beside=beside(group))
        yield replace(changed, harm="either", fold=None if group == lowest_group else fold)
    yield strength.changed(family=Family.QUERY, leads=False, direction=Sentence())


def _direction(draft: UncorrectedFinding) -> Sentence:
    finding = draft.finding
    if not finding.value:
        return Sentence()
    side = "over" if finding.value > 0 else "under"
    return Sentence(quoted(finding.subject), f" is {side}-represented")


def _leading(
    design: ScoreDesign,
    declared: Sequence[Compared],
    systematic: Iterable[UncorrectedFinding],
    other_findings: Iterable[UncorrectedFinding],
) -> Iterator[UncorrectedFinding]:
    """Yield findings: declared preferences lead where they are tested, else systematic ones.

    Where neither can be tested, as with a few queries, all others may lead. Without a declared
    preference, single queries may lead where they cancel out over all queries: any trained model
    prefers some group for some query, so a hypothesis that finds nothing is the answer.
    """
    threshold = design.config.testing.threshold
    # One favourite of all concepts tells nothing new, which its reason says.
    aligned = any(
        threshold(draft.parent or spec_of_finding(draft.finding)) is not None
        and not math.isnan(draft.finding.p_value)
        and not draft.finding.reason
        for compared in declared
        for draft in compared.findings
    )
    has_gap = any(compared.gap is not None for compared in declared)
    for compared in declared:
        for draft in compared.findings:
            # A rank correlation has no scale: it stands beside the gap of declared groups.
            yield draft.changed(leads=draft is compared.gap or not has_gap)
    tested_preference = aligned
    for draft in systematic:
        tested_preference = tested_preference or not math.isnan(draft.finding.p_value)
        yield draft.changed(leads=draft.finding.leads and not aligned)
    for draft in other_findings:
        is_query_finding = tested_preference and draft.finding.family in TESTED
        if is_query_finding:
            leads = not aligned and _is_whole_query(draft.finding)
            yield draft.changed(family=Family.QUERY, leads=leads)
        else:
            yield draft


def _is_whole_query(finding: Finding) -> bool:
    """Whether a finding is of a single query, one attribute and the main version."""
    whole = finding.subject != "" and not finding.part_of and finding.version == "default"
    return whole and "×" not in finding.groups
