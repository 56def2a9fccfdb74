"""What is measured of one model's rankings and one choice of groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from equipoise.audits.drawing import resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole, without_verdict
from equipoise.audits.retrieval.designs import Design
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.metrics.retrieval.curves import (
    QueryDistribution,
    query_distribution,
    retrieval_curves,
)
from equipoise.metrics.retrieval.similarity import normalized_similarity_mad
from equipoise.metrics.retrieval.together import retrieval_measures

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit

_UNIFORM, _POOL, _ORDER = "_uniform", "_pool", "_pool_order"
_VERSIONS = {
    _ORDER: "null: pool order",
    _UNIFORM: "uniform target",
    _POOL: "pool's shares as target",
}


@dataclass(frozen=True, eq=False)
class MeasuredDesign:
    """What one design gave.

    Attributes
    ----------
    design : Design
    drafts : tuple of Draft
    distributions : tuple of (version, metric, QueryDistribution)
    curves : pyarrow.Table or None
        As `retrieval_curves` gives them.
    """

    design: Design
    drafts: tuple[Draft, ...]
    distributions: tuple[tuple[str, str, QueryDistribution], ...]
    curves: pa.Table | None


def tests_of(design: Design) -> int:
    """Return about how many tests a design makes."""
    pools = len(design.scored.queries)
    wanted = len(design.config.ranking.measures) + design.config.ranking.similarity
    return len(design.ks) * wanted * (pools + 1) + len(design.groups.names)


def measure_design(design: Design, config: RankingAudit, tests: int) -> MeasuredDesign:
    """Measure one design at every K, and its curves."""
    drafts: list[Draft] = []
    distributions: list[tuple[str, str, QueryDistribution]] = []
    for k in design.ks:
        version = _version(design, k)
        place = Place(config.audit, design.model, design.name, version, config.resampling.level)
        for estimate in _measured(design, config, k, tests).values():
            for draft in _drafts(estimate, place):
                drafts.append(_follows(draft) if _repeats(draft, design) else draft)
            if _several(estimate) and estimate.metric != "skew_at_k":
                distributions.append((version, estimate.metric, query_distribution(estimate)))
    if config.ranking.similarity:
        place = Place(
            config.audit, design.model, design.name, design.version, config.resampling.level
        )
        drafts += _drafts(_similarity(design, config, tests), place)
    return MeasuredDesign(design, tuple(drafts), tuple(distributions), _curves(design, config))


def _version(design: Design, k: int) -> str:
    if len(design.ks) == 1:
        return design.version
    return f"K = {k}" if design.version == "default" else f"{design.version}, K = {k}"


def _common(design: Design, config: RankingAudit, tests: int) -> dict[str, Any]:
    return {
        **design.pools,
        "resampling": resampling_of(config, tests),
        "rng": config.resampling.seed,
    }


def _measured(design: Design, config: RankingAudit, k: int, tests: int) -> Mapping[str, Estimate]:
    opposed = design.opposed
    measures = [m for m in config.ranking.measures if m != "bias_at_k" or opposed]
    if not measures:
        return {}
    return retrieval_measures(
        design.scored.scores,
        design.groups,
        k=k,
        measures=measures,
        prefixes=design.prefixes,
        desired=design.desired,
        first=opposed[0] if opposed else None,
        second=opposed[1] if opposed else None,
        **_common(design, config, tests),
    )


def _similarity(design: Design, config: RankingAudit, tests: int) -> Estimate:
    return normalized_similarity_mad(
        design.scored.scores, design.groups, **_common(design, config, tests)
    )


def _curves(design: Design, config: RankingAudit) -> pa.Table | None:
    """Measure every K; None where no pool has more images than the last."""
    if not config.ranking.curves or not design.has_curves:
        return None
    return retrieval_curves(
        design.scored.scores,
        design.groups,
        k=design.prefixes,
        desired=design.desired,
        **_common(design, config, 1),
    )


def _repeats(draft: Draft, design: Design) -> bool:
    """Whether of two groups' shares one is tested already: the other follows from it."""
    usable = [n for n, ok in zip(design.groups.names, design.groups.usable, strict=True) if ok]
    measured, metric = design.config.ranking.measures, draft.finding.metric
    if len(usable) != 2 or "max_skew" not in measured:
        return False
    if metric == "skew_at_k":
        return "bias_at_k" in measured or draft.finding.subject != usable[0]
    # The mean of Bias@K over queries has a sign, which that of MaxSkew@K has not.
    one_query = metric == "bias_at_k" and bool(draft.finding.subject)
    return metric in ("min_skew", "retrieval_mad") or one_query


def _follows(draft: Draft) -> Draft:
    why = "of two groups' shares one follows from the other: max_skew is tested"
    return without_verdict(draft, why)


def _several(estimate: Estimate) -> bool:
    own = [one for one in estimate.parts if one.metric == estimate.metric]
    return len(own) > 1 and any(not math.isnan(one.value) for one in own)


def _drafts(estimate: Estimate, place: Place) -> Iterator[Draft]:
    """Yield the findings of a measure: the mean over queries, each query, what stands beside."""
    several = _several(estimate)
    one = next((p for p in estimate.parts if p.metric == estimate.metric), None)
    if estimate.metric == "skew_at_k":
        # As a whole this is MaxSkew@K again; its own findings are the groups' mean skews.
        yield from _group_skews(estimate, place)
        return
    by_group = () if one is None or several else one.by_group
    whole_one = whole(estimate, place, Family.COMPOSITE, by_group=by_group, shows=_shows(one))
    yield _tested(whole_one)
    base = estimate.metric
    for draft in parts(estimate, place):
        metric = draft.finding.metric
        if metric == base and several:
            yield _tested(draft)
        elif metric != base and not draft.finding.subject:
            yield _beside(draft, base)


def _shows(part: Any) -> str:
    return "" if part is None else str(part.shows)


def _group_skews(estimate: Estimate, place: Place) -> Iterator[Draft]:
    for draft in parts(estimate, place):
        if draft.finding.metric == "group_skew":
            either = replace(_unwanted(draft, estimate), harm="either")
            yield _tested(_mean_shares(either, estimate))


def _unwanted(draft: Draft, estimate: Estimate) -> Draft:
    """Say of a group that nobody wants why it has no skew."""
    shares = estimate.params["desired"]
    if isinstance(shares, str) or shares[draft.finding.subject] > 0:
        return draft
    why = "its desired share is 0, and no share can be held against nothing"
    return replace(draft, finding=replace(draft.finding, reason=why))


def _mean_shares(draft: Draft, estimate: Estimate) -> Draft:
    """Name the finding after its card, and say which way the group leans beyond chance.

    The mean of log shares lies below 0 where shares vary, so its own sign is no direction.
    """
    k, excess, text = estimate.params["k"], draft.finding.excess, ""
    if math.isfinite(excess) and excess != 0:
        rarer = "rarer" if excess < 0 else "more frequent"
        text = f"{draft.finding.subject} is {rarer} among the first {k} than chance gives"
    return replace(draft, finding=replace(draft.finding, metric="skew_at_k", direction=text))


def _tested(draft: Draft) -> Draft:
    """Take the test from numbers that chance alone makes infinite."""
    finding = draft.finding
    if finding.metric == "ndkl" and (math.isinf(finding.value) or math.isinf(finding.chance)):
        why = "a group whose desired share is 0 is among the first, which alone makes NDKL infinite"
    elif math.isinf(finding.chance):
        why = "by chance alone a group is often absent among the first, whose skew is −∞"
    elif not math.isnan(finding.value) and math.isnan(finding.p_value):
        why = finding.reason or "there is nothing to exchange"
    else:
        return draft
    return without_verdict(draft, why)


def _beside(draft: Draft, base: str) -> Draft:
    """Describe the other target distribution, or the other null, beside the measure."""
    suffix = draft.finding.metric.removeprefix(base)
    name = _VERSIONS.get(suffix, suffix)
    version = draft.finding.version
    described = replace(
        draft.finding,
        metric=base,
        version=name if version == "default" else f"{version}, {name}",
        family=Family.DESCRIPTIVE,
        reason=draft.finding.reason or "stands beside the measure, whose own target is tested",
    )
    return replace(draft, finding=described)
