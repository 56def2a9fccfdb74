"""What is measured of one model's similarities and one choice of groups."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole, without_verdict
from equipoise.audits.similarity.designs import Design
from equipoise.audits.similarity.expecting import Declared, declared
from equipoise.audits.similarity.wording import leaning
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family, GroupValue
from equipoise.core.parts import Part
from equipoise.metrics.retrieval.similarity import normalized_similarity_mad
from equipoise.metrics.similarity.gap import similarity_gap

if TYPE_CHECKING:
    from equipoise.audits.similarity.config import Config

AUDIT = "similarity"
_ORDER = "_pool_order"


@dataclass(frozen=True, eq=False)
class MeasuredDesign:
    """What one design gave.

    Attributes
    ----------
    design : Design
    drafts : tuple of Draft
    gap : Estimate
    normalised : Estimate or None
    declared : tuple of Declared
    """

    design: Design
    drafts: tuple[Draft, ...]
    gap: Estimate
    normalised: Estimate | None
    declared: tuple[Declared, ...]


def tests_of(design: Design) -> int:
    """Return about how many tests a design makes."""
    each = design.concepts + (design.concepts > 1)
    judged = compared(design) > 2 and design.scale is None
    measured = len(design.config.measures) if judged else 1
    return measured * each + 2 * sum(1 for _ in design.config.expected(design.name))


def compared(design: Design) -> int:
    """Return how many groups are compared."""
    return int(design.groups.usable.sum())


def measure_design(design: Design, config: Config, tests: int) -> MeasuredDesign:
    """Measure one design: gaps, normalised similarities, and what was declared of them."""
    place = Place(AUDIT, design.model, design.name, "default", config.resampling.level)
    common = {
        **design.pools,
        "resampling": resampling_of(config, tests),
        "rng": config.resampling.seed,
    }
    wanted = "similarity_gap" in config.measures
    how = common if wanted else {**common, "resampling": None}
    gap = similarity_gap(design.scored.scores, design.groups, scale=design.scale, **how)
    drafts = [*_of_gap(gap, place, design)] if wanted else []
    normalised = None
    if "normalized_similarity_mad" in config.measures:
        normalised = normalized_similarity_mad(design.scored.scores, design.groups, **common)
        drafts += _of_mad(normalised, place, design, gap.metric if wanted else "")
    found = tuple(declared(design, gap, common["resampling"], place))
    drafts += [draft for one in found for draft in one.drafts]
    return MeasuredDesign(design, tuple(drafts), gap, normalised, found)


def by_concept(estimate: Estimate) -> list[Part]:
    """Return the parts of the estimate's own metric: one per concept."""
    return [one for one in estimate.parts if one.metric == estimate.metric]


def averages(estimate: Estimate) -> tuple[GroupValue, ...]:
    """Return the groups' effects: of the only concept, or on average over several."""
    own = by_concept(estimate)
    if len(own) == 1:
        return own[0].by_group
    return tuple(group for part in _on_average(estimate) for group in part.by_group)


def _on_average(estimate: Estimate) -> list[Part]:
    return [p for p in estimate.parts if p.metric == "group_effect" and not p.subject]


def _of_gap(gap: Estimate, place: Place, design: Design) -> Iterator[Draft]:
    several, every = len(by_concept(gap)) > 1, parts(gap, place)
    first = whole(gap, place, Family.COMPOSITE, by_group=averages(gap))
    for draft in (first, *(one for one in every if one.finding.metric == gap.metric and several)):
        average = _on_average(gap) if several and not draft.finding.subject else []
        told = _tested(_leaning(draft, average, logits=design.scale is not None))
        yield told
        if design.scale is not None:
            yield _unscaled(told, design.scale)
    for draft in every:
        if draft.finding.metric.endswith(_ORDER):
            yield _beside(draft, gap.metric)


def _leaning(draft: Draft, average: Sequence[Part], *, logits: bool) -> Draft:
    """Say who is favoured; without a chance level any difference counts."""
    finding = draft.finding
    beyond = not finding.excess <= 0
    if average:
        # Concepts that favour different groups cancel: their mean gap says nothing of the mean.
        beyond = any(not p.chance_low <= p.value <= p.chance_high for p in average)
    text = leaning(finding.by_group, beyond_chance=beyond, average=bool(average), logits=logits)
    return replace(draft, finding=replace(finding, direction=text))


def _of_mad(mad: Estimate, place: Place, design: Design, tested: str) -> Iterator[Draft]:
    """Yield spreads of normalised similarities, without a verdict where the gap's says the same.

    Logits decide where they are known: the spread, free of scale, is large for any preference,
    however small, and would put a model's smallest ones above what matters.
    """
    own = by_concept(mad)
    alone = own[0].by_group if len(own) == 1 else ()
    shows = "normalised similarity"
    first = whole(mad, place, Family.COMPOSITE, by_group=alone, shows=shows)
    for draft in (first, *(parts(mad, place) if len(own) > 1 else ())):
        if tested and compared(design) == 2:
            why = f"of two groups it is their gap in standard deviations: {tested} is tested"
            yield without_verdict(draft, why)
        elif tested and design.scale is not None:
            yield without_verdict(draft, f"has no scale, sees any preference: {tested} is tested")
        else:
            yield _tested(draft)


def _tested(draft: Draft) -> Draft:
    """Describe a number that nothing was exchanged for."""
    finding = draft.finding
    if not math.isnan(finding.value) and math.isnan(finding.p_value):
        return without_verdict(draft, finding.reason or "there is nothing to exchange")
    return draft


def _beside(draft: Draft, metric: str) -> Draft:
    """Describe the gap of plain means against the other null."""
    described = replace(
        draft.finding,
        metric=metric,
        version="null: pool order",
        family=Family.DESCRIPTIVE,
        reason=draft.finding.reason or "stands beside the gap within sets, which is tested",
    )
    return replace(draft, finding=described)


def _unscaled(draft: Draft, scale: float) -> Draft:
    """Describe a gap in logits as one in the model's own similarities."""
    finding = draft.finding
    numbers: dict[str, Any] = {
        name: getattr(finding, name) / scale
        for name in ("value", "ci_low", "ci_high", "chance", "chance_low", "chance_high", "excess")
    }
    described = replace(
        finding,
        **numbers,
        metric="similarity_gap",
        by_group=tuple(
            replace(one, value=one.value / scale, low=one.low / scale, high=one.high / scale)
            for one in finding.by_group
        ),
        direction=finding.direction.partition(":")[0],
        parameters=json.dumps(json.loads(finding.parameters) | {"scale": None}, sort_keys=True),
    )
    return without_verdict(
        replace(draft, finding=described), "the same in cosines: logit_gap is tested"
    )
