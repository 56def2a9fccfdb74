"""From measured concepts to drafts of findings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from equipoise.audits.concepts.measuring import Run
from equipoise.audits.findings import Draft, Place, whole
from equipoise.audits.findings import parts as part_drafts
from equipoise.core.finding import Family, Finding, GroupValue
from equipoise.metrics.concepts.disparity import HALL_RULE
from equipoise.metrics.spec import spec_of

AUDIT = "concepts"
_OF_VERSIONS = (
    "a version of the baseline's comparison, which is tested; tables/choices.parquet says what "
    "becomes of it here"
)
_DIFFERENCE = "concept_difference"


def drafts_of(
    run: Run, effects: Mapping[str, str], *, primary: str, level: float
) -> Iterator[Draft]:
    """Yield the findings of one metric of one design.

    Parameters
    ----------
    run : Run
    effects : mapping of str to str
        By concept ("" for the mean), what becomes of it in other versions, in words.
    primary : str
        The metric whose pairs of groups need no metric in their names.
    level : float
    """
    place = Place(AUDIT, run.design.model, run.design.name, run.design.version.name, level)
    of_concepts = [*part_drafts(run.estimate, place)]
    yield _settled(run, _mean(run, place, of_concepts), effects.get("", ""))
    # The pairs of the mean come first, then every concept with its pairs behind it.
    concept = null = ""
    for draft in of_concepts:
        if draft.finding.metric == run.metric:
            concept = draft.finding.subject
            null = run.results.null_differences(run.results.names.index(concept))[1]
            yield _settled(run, _tested(draft, null), effects.get(concept, ""))
        elif draft.finding.metric == _DIFFERENCE and len(run.results.pairs) > 1:
            pair = _pair(run, draft, concept, primary)
            yield _settled(run, _tested(pair, null) if concept else pair, "", concept)


def _mean(run: Run, place: Place, of_concepts: list[Draft]) -> Draft:
    """Draft the finding about the mean over concepts, with the groups that differ most."""
    pairs = [one.finding for one in of_concepts if one.finding.metric == _DIFFERENCE]
    means = [one for one in pairs[: len(run.results.pairs)] if not math.isnan(one.value)]
    widest = max(means, key=lambda one: abs(one.value), default=None)
    by_group = widest.by_group if widest else ()
    return whole(run.estimate, place, Family.COMPOSITE, metric=run.metric, by_group=by_group)


def _tested(draft: Draft, null: str) -> Draft:
    """Say what a concept was tested against, which is not what their mean was tested against."""
    return replace(draft, finding=replace(draft.finding, null=null))


def _pair(run: Run, draft: Draft, concept: str, primary: str) -> Draft:
    """Say which metric a pair is about, where several have pairs of one name."""
    finding = draft.finding
    subject = finding.subject if run.metric == primary else f"{finding.subject} ({_name(run)})"
    family = Family.LEAF if concept else Family.COMPOSITE
    named = replace(finding, subject=subject, family=family)
    # Its sign says which group has the larger value: neither side is harmless.
    return replace(draft, finding=named, harm="either")


def _settled(run: Run, draft: Draft, effect: str, pair_of: str = "") -> Draft:
    """Give a draft its direction, and its family: only the baseline is tested."""
    finding = draft.finding
    known = [one for one in finding.by_group if not math.isnan(one.value)]
    why = finding.reason
    if not math.isnan(finding.value):
        why = why or _why_untested(run, finding, pair_of)
    tested = run.baseline and not run.results.hall
    if why and not math.isnan(finding.value):
        tested = False
    family = finding.family if tested else Family.DESCRIPTIVE
    told = effect if run.baseline else ""
    settled = replace(
        finding,
        direction=_direction(run, known),
        family=family,
        p_value=math.nan if family is Family.DESCRIPTIVE else finding.p_value,
        reason="; ".join(text for text in (why, told) if text),
    )
    return replace(draft, finding=settled)


def _why_untested(run: Run, finding: Finding, pair_of: str) -> str:
    if run.results.hall:
        return HALL_RULE
    if not run.baseline:
        same = run.same_as
        return f"the same numbers as in version {same}" if same else _OF_VERSIONS
    if math.isnan(finding.p_value):
        return "no null hypothesis was drawn: resampling.method is none"
    if pair_of and _groups(run, pair_of) == 2:
        return f"the same comparison as that of {pair_of}, which is tested"
    return ""


def _groups(run: Run, concept: str) -> int:
    """Return how many groups take part in a concept."""
    return int((~np.isnan(run.results.observed[run.results.names.index(concept)])).sum())


def _direction(run: Run, known: list[GroupValue]) -> str:
    """Say who is worse off, with the prevalence of the concept beside the metric."""
    if len(known) < 2:
        return ""
    worse, better = (max, min) if spec_of(run.metric).harm == "higher" else (min, max)
    last, first = worse(known, key=lambda one: one.value), better(known, key=lambda one: one.value)
    if last.value == first.value:
        return ""
    version = "" if run.baseline else f", in version “{run.design.version.name}”"
    return (
        f"worse for {last.group}: {_name(run)} {_shown(last)}, against {_shown(first)} for "
        f"{first.group}{version}"
    )


def _name(run: Run) -> str:
    return spec_of(run.metric).label


def _shown(one: GroupValue) -> str:
    return f"{one.value:.3f} ({one.note})" if one.note else f"{one.value:.3f}"
