"""The audit of answers: every metric that the input allows, on every design."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from equipoise.audits.answers.designs import NONE_GIVEN, RARER, AnswersDesign
from equipoise.audits.findings import (
    Place,
    UncorrectedFinding,
    direction,
    parts,
    whole,
    without_verdict,
)
from equipoise.core.finding import Family
from equipoise.core.parts import Part
from equipoise.core.wording import shortened
from equipoise.metrics.counts import count
from equipoise.metrics.counts.accuracy import Accuracy
from equipoise.metrics.counts.effect_sizes import EffectSizes
from equipoise.metrics.counts.parity import DemographicParity
from equipoise.metrics.measure import measure
from equipoise.metrics.vectors.predicted_labels import ASIDE, label_concentration, spread

if TYPE_CHECKING:
    from equipoise.audits.answers.config import Config
    from equipoise.stats.resampling import Resampling

AUDIT = "answers"

_RATES = {"unknown": "unknown_rate", "refused": "refused_rate", "missing": "empty_rate"}
_RAW = "raw texts, shown beside their normalised form, which is tested"
_POOLED = "many different answers together"


def measure_design(
    one: AnswersDesign, config: Config, resampling: Resampling | None
) -> list[UncorrectedFinding]:
    """Measure one design with everything that the configuration asks for.

    Parameters
    ----------
    one : AnswersDesign
    config : Config
    resampling : Resampling or None
    """
    place = one.place(AUDIT, config.resampling.level, one.shown)
    found = [] if one.silent else [*_said(one, config, place, resampling)]
    if not one.leads:
        return [without_verdict(draft, _RAW) for draft in found if not draft.finding.subject]
    asked = replace(place, version=one.question or "default")
    return [*_unanswered(one, config, asked, resampling), *found]


def _said(
    one: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Measure the answers of the rows that have one."""
    gaps = [*_gaps(one, config, place, resampling)]
    found = [*_distribution(one, config, place, resampling, gaps), *gaps]
    found += _concentration(one, config, place, resampling)
    found += _right(one, config, place, resampling)
    yield from map(_spread_aside, found)


def _spread_aside(draft: UncorrectedFinding) -> UncorrectedFinding:
    """Call ends that leave out their own value what they are: no interval."""
    finding = draft.finding
    if math.isnan(finding.ci_low) or finding.ci_low <= finding.value <= finding.ci_high:
        return draft
    return replace(draft, finding=replace(finding, method=spread(finding.method, ASIDE)))


def _unanswered(
    one: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """Whether one group is left without an answer more often than another, and in which way."""
    if config.metrics.unanswered_rate is None:
        return
    states = one.state
    kinds = [state for state in NONE_GIVEN if (states == state).any()]
    if not kinds:
        return
    answered = np.where(states == "answered", "answered", "unanswered")
    yield _rate(one, config, place, resampling, answered, "unanswered", "unanswered_rate")
    for state in kinds:
        draft = _rate(one, config, place, resampling, states, state, _RATES[state])
        same = "the same rows as unanswered_rate, which is tested"
        yield draft if len(kinds) > 1 else without_verdict(draft, same)


def _rate(
    one: AnswersDesign,
    config: Config,
    place: Place,
    resampling: Resampling | None,
    states: np.ndarray[tuple[int], np.dtype[np.object_]],
    state: str,
    metric: str,
) -> UncorrectedFinding:
    labels = np.where(states == state, state, "other")
    counts = count(labels, labels, one.groups, units=one.units)
    estimate = measure(counts, [DemographicParity()], resampling, config.resampling.seed)[0]
    draft = next(
        draft for draft in parts(estimate, place, metric=metric) if draft.finding.subject == state
    )
    about = direction(metric, "", draft.finding.by_group)
    finding = replace(draft.finding, subject="", family=Family.COMPOSITE, direction=about)
    return replace(draft, finding=finding)


def _gaps(
    one: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """How often each answer is given to each group."""
    options = config.metrics.answer_gap
    if options is None:
        return
    counts = one.pooled(options)
    estimate = measure(counts, [DemographicParity()], resampling, config.resampling.seed)[0]
    own = [part for part in estimate.parts if part.subject != RARER]
    if not own:
        return
    widest = max(own, key=_size)
    yield whole(
        estimate,
        place,
        Family.COMPOSITE,
        metric="answer_gap",
        by_group=widest.by_group,
        about=f"“{shortened(widest.subject)}”",
        shows="share of answers",
    )
    for draft in parts(estimate, place, metric="answer_gap"):
        named = _told(draft)
        if draft.finding.subject == RARER:
            yield without_verdict(named, _POOLED)
        elif len(own) == 2 and len(counts.classes) == 2 and draft.finding.subject == own[1].subject:
            yield without_verdict(
                named, f"the same gap as of {shortened(own[0].subject)}, which is tested"
            )
        else:
            yield named


def _size(part: Part) -> float:
    return -1.0 if np.isnan(part.value) else part.value


def _told(draft: UncorrectedFinding) -> UncorrectedFinding:
    finding = draft.finding
    subject = f"“{shortened(finding.subject)}”"
    about = direction("share of answers", subject, finding.by_group)
    return replace(draft, finding=replace(finding, direction=about))


def _distribution(
    one: AnswersDesign,
    config: Config,
    place: Place,
    resampling: Resampling | None,
    gaps: list[UncorrectedFinding],
) -> Iterator[UncorrectedFinding]:
    """How strongly the answer depends on the group, all answers together."""
    options = config.metrics.cramers_v
    if options is None:
        return
    effect = EffectSizes("cramers_v", options.min_expected, False, "independence")
    estimate = measure(one.by_answer, [effect], resampling, config.resampling.seed)[0]
    draft = whole(estimate, place, Family.COMPOSITE, metric="cramers_v")
    about = gaps[0].finding.direction if gaps else ""
    dropped = [excluded for part in estimate.parts for excluded in part.excluded]
    excluded = (*draft.finding.excluded, *dropped)
    yield replace(draft, finding=replace(draft.finding, direction=about, excluded=excluded))


def _concentration(
    one: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """How far the answers of each group pile up on a few."""
    options = config.metrics.label_concentration
    if options is None or int((one.answers.counts > 0).sum()) <= options.k:
        return
    units = one.units
    estimate = label_concentration(
        one.answers.values,
        one.groups,
        k=options.k,
        units=None if units is None else units.values,
        resampling=resampling,
        rng=config.resampling.seed,
    )
    share, skewness, *_ = estimate.parts
    yield whole(
        estimate,
        place,
        Family.COMPOSITE,
        by_group=share.by_group,
        shows=f"share of the {options.k} most frequent answers",
    )
    for draft in parts(estimate, place):
        if one.leads and draft.finding.metric == skewness.metric:
            yield without_verdict(draft, "a shape of counts, without a chance level")


def _right(
    one: AnswersDesign, config: Config, place: Place, resampling: Resampling | None
) -> Iterator[UncorrectedFinding]:
    """How often answers are the true one, where that is known."""
    if config.metrics.accuracy is None or config.data.target is None:
        return
    seed = config.resampling.seed
    everything = measure(one.overall, [Accuracy("accuracy", None)], resampling, seed)[0]
    by_group = measure(one.counts, [Accuracy("accuracy_gap", "rows")], resampling, seed)[0]
    rates = by_group.parts[0].by_group
    yield whole(everything, place, Family.DESCRIPTIVE, by_group=rates)
    yield whole(by_group, place, Family.COMPOSITE, by_group=rates)
