"""The base of audits of rankings: groups, designs, measures, notes and plan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Design, Measured
from equipoise.audits.config import resampling_of
from equipoise.audits.engines.rankings.config import QueryAudit, RankingAudit
from equipoise.audits.engines.rankings.designs import (
    RankingDesign,
    check_designs,
    design_notes,
    ranking_designs,
)
from equipoise.audits.engines.rankings.scores import RankingData
from equipoise.audits.findings import Place, UncorrectedFinding, parts, whole, without_verdict
from equipoise.core.estimate import Estimate
from equipoise.core.finding import Family
from equipoise.core.groups import Groups
from equipoise.metrics.rankings.measures import (
    query_distribution,
    retrieval_curves,
    retrieval_measures,
)
from equipoise.metrics.values.similarity import normalized_similarity_mad
from equipoise.stats.resampling import Resampling

if TYPE_CHECKING:
    from equipoise.audits.group_sizes import Row
    from equipoise.stats.resampling import Resampling


POOL_ORDER = "null: pool order"
_VERSIONS = {
    "_pool_order": POOL_ORDER,
    "_uniform": "uniform target",
    "_pool": "pool's shares as target",
}
_NEVER_EXCHANGEABLE = (
    "A trained model is never exchangeable: with images enough any preference has a small p. Read "
    "the excess over chance."
)
_QUERIES = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "groups", "version", "metric")),
        ("queries", pa.int64()),
        ("not_estimable", pa.int64()),
        *((name, pa.float64()) for name in ("mean", "sd", "lowest", "first_quartile", "median")),
        ("third_quartile", pa.float64()),
        ("highest", pa.float64()),
        ("lowest_queries", pa.list_(pa.string())),
        ("highest_queries", pa.list_(pa.string())),
    ]
)


def measure_rankings(design: RankingDesign, resampling: Resampling | None) -> Measured:
    """Measure one design at every K, its normalised similarities and its curves."""
    findings: list[UncorrectedFinding] = []
    spreads: list[dict[str, Any]] = []
    at = {"model": design.model, "groups": design.name}
    for k in design.ks:
        version = design.version_at(k)
        for estimate in _measures(design, k, resampling).values():
            findings += _findings(estimate, _place(design, version), design)
            if _several(estimate) and estimate.metric != "skew_at_k":
                spread = query_distribution(estimate)
                spreads.append({**at, "version": version, "metric": estimate.metric, **spread})
    if design.config.ranking.similarity:
        estimate = normalized_similarity_mad(
            design.scored.scores, design.groups, **_common(design, resampling)
        )
        findings += _findings(estimate, _place(design, design.version), design)
    tables = {"query_distributions": pa.Table.from_pylist(spreads, _QUERIES)} if spreads else {}
    if design.config.ranking.curves and design.has_curves:
        tables["curves"] = _curves(design)
    return Measured(tuple(findings), tables, (_NEVER_EXCHANGEABLE,))


def _place(design: RankingDesign, version: str) -> Place:
    config = design.config
    return Place(config.audit, design.model, design.name, version, config.resampling.level)


def _common(design: RankingDesign, resampling: Resampling | None) -> dict[str, Any]:
    seed = design.config.resampling.seed
    return {**design.pools, "resampling": resampling, "rng": seed}


def _measures(
    design: RankingDesign, k: int, resampling: Resampling | None
) -> Mapping[str, Estimate]:
    opposed = design.opposed
    every = design.config.ranking.measures
    measures = [name for name in every if name != "bias_at_k" or opposed]
    if not measures:
        return {}
    first, second = opposed or (None, None)
    return retrieval_measures(
        design.scored.scores, design.groups, k=k, measures=measures, prefixes=design.prefixes,
        desired=design.desired, first=first, second=second, **_common(design, resampling),
    )  # fmt: skip


def _curves(design: RankingDesign) -> pa.Table:
    """Return the measures at every K."""
    table = retrieval_curves(
        design.scored.scores, design.groups, k=design.prefixes, desired=design.desired,
        **_common(design, resampling_of(design.config, 1)),
    )  # fmt: skip
    names = {"model": design.model, "groups": design.name, "version": design.version}
    for position, (name, value) in enumerate(names.items()):
        table = table.add_column(position, name, pa.array([value] * len(table), pa.string()))
    return table


def _several(estimate: Estimate) -> bool:
    own = [part for part in estimate.parts if part.metric == estimate.metric]
    return len(own) > 1 and any(not math.isnan(part.value) for part in own)


def _findings(
    estimate: Estimate, place: Place, design: RankingDesign
) -> Iterator[UncorrectedFinding]:
    for finding in _of_estimate(estimate, place):
        if _repeats(finding, design):
            why = "of two groups' shares one follows from the other: max_skew is tested"
            yield without_verdict(finding, why)
        else:
            yield finding


def _repeats(finding: UncorrectedFinding, design: RankingDesign) -> bool:
    """Return whether of two groups' shares one is tested already: the other follows from it."""
    usable = [n for n, ok in zip(design.groups.names, design.groups.usable, strict=True) if ok]
    measured = design.config.ranking.measures
    metric, subject = finding.finding.metric, finding.finding.subject
    if len(usable) != 2 or "max_skew" not in measured:
        return False
    if metric == "skew_at_k":
        return "bias_at_k" in measured or subject != usable[0]
    # The mean of Bias@K over queries has a sign, which that of MaxSkew@K has not.
    return metric in ("min_skew", "retrieval_mad") or (metric == "bias_at_k" and bool(subject))


def _of_estimate(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the mean over queries, each query, and other targets and nulls beside."""
    if estimate.metric == "skew_at_k":
        # As a whole this is MaxSkew@K again; its own findings are the groups' mean skews.
        yield from _group_skews(estimate, place)
        return
    base, several = estimate.metric, _several(estimate)
    first = next((part for part in estimate.parts if part.metric == base), None)
    yield tested(
        whole(
            estimate, place, Family.COMPOSITE,
            by_group=() if first is None or several else first.by_group,
            shows="" if first is None else first.shows,
        )
    )  # fmt: skip
    for finding in parts(estimate, place):
        metric = finding.finding.metric
        if metric == base and several:
            yield tested(finding)
        elif metric != base and not finding.finding.subject:
            yield beside(finding, base)


def _group_skews(estimate: Estimate, place: Place) -> Iterator[UncorrectedFinding]:
    """Yield the mean skew of each group, and whether chance alone would make it as large.

    The mean of log shares lies below 0 where shares vary, so its own sign is no direction.
    """
    k, shares = estimate.params["k"], estimate.params["desired"]
    for each in parts(estimate, place):
        finding = each.finding
        if finding.metric != "group_skew":
            continue
        text, reason = "", finding.reason
        if math.isfinite(finding.excess) and finding.excess != 0:
            rarer = "rarer" if finding.excess < 0 else "more frequent"
            text = f"{finding.subject} is {rarer} among the first {k} than chance gives"
        if not isinstance(shares, str) and not shares[finding.subject] > 0:
            reason = "its desired share is 0, and no share can be held against nothing"
        finding = replace(finding, metric="skew_at_k", direction=text, reason=reason)
        yield tested(UncorrectedFinding(finding, "either"))


def tested(draft: UncorrectedFinding) -> UncorrectedFinding:
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


def beside(draft: UncorrectedFinding, base: str) -> UncorrectedFinding:
    """Describe the other target, or the other null, beside the measure."""
    finding = draft.finding
    suffix = finding.metric.removeprefix(base)
    name = _VERSIONS.get(suffix, suffix)
    described = replace(
        finding,
        metric=base,
        version=name if finding.version == "default" else f"{finding.version}, {name}",
        family=Family.DESCRIPTIVE,
        reason=finding.reason or "stands beside the measure, whose own target is tested",
    )
    return replace(draft, finding=described)


ConfigT = TypeVar("ConfigT", bound=QueryAudit)
RankingT = TypeVar("RankingT", bound=RankingAudit)
DataT = TypeVar("DataT", bound=RankingData)
DesignT = TypeVar("DesignT", bound=Design)


class ByQuery(Audit[ConfigT, DataT, DesignT]):
    """Audits of images by query; a kind adds how its data are loaded and measured."""

    items = "images"

    def groups(self, config: ConfigT, data: DataT) -> list[Groups]:
        """Return the groups of all images."""
        columns, size = data.images.columns, config.data.min_group_size
        return [
            Groups.of({name: columns[name] for name in attributes}, min_size=size)
            for attributes in config.data.groups
        ]

    def sizes(self, config: ConfigT, data: DataT) -> Iterator[Row]:
        """Return the sizes of the groups that the first model compares, of marginals, too."""
        by_name = {each.groups.name: each for each in reversed(self.designs(config, data))}
        for name in reversed(by_name):
            yield from group_sizes.sizes_of(by_name[name].groups)

    def notes(self, config: ConfigT, data: DataT, designs: Sequence[DesignT]) -> Iterable[str]:
        """Return the notes on images and queries that aren't used."""
        for name, scored in data.models.items():
            yield from scored.notes(name)
        attributes = {name for group in config.data.groups for name in group}
        for column in config.data.columns:
            missing = data.images.counts["missing"][column]
            if column not in attributes and missing:
                yield f"Images without {column} ({missing}) are not compared."


class Rankings(ByQuery[RankingT, DataT, RankingDesign]):
    """Audits of rankings; a kind adds how its data are loaded."""

    def designs(self, config: RankingT, data: DataT) -> list[RankingDesign]:
        """Return every model with every choice of groups, and their marginals."""
        designs = ranking_designs(config, data)
        check_designs(designs, config)
        return designs

    def measure(
        self, config: RankingT, data: DataT, design: RankingDesign, resampling: Resampling | None
    ) -> Measured:
        """Measure one design at every K."""
        return measure_rankings(design, resampling)

    def details(
        self,
        config: RankingT,
        data: DataT,
        designs: Sequence[RankingDesign],
        tests: Mapping[str, int],
    ) -> Mapping[str, Any]:
        """Return images, each model's queries and ranked images, and each design.

        Per design: groups, smallest pool, K, prefixes, and the MaxSkew@K that random order alone
        gives with groups of equal size.
        """
        return {
            "images": len(data.images),
            "models": [
                {
                    "model": name, "queries": len(each.queries), "ranked": len(each.used),
                    **each.counts,
                }
                for name, each in data.models.items()
            ],
            "rankings": [design.planned for design in designs],
        }  # fmt: skip

    def notes(
        self, config: RankingT, data: DataT, designs: Sequence[RankingDesign]
    ) -> Iterable[str]:
        """Return the notes on images and queries that aren't used, and on small pools."""
        yield from super().notes(config, data, designs)
        yield from design_notes(designs, config)
