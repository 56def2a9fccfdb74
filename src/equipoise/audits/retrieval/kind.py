"""The audit of retrieval in its three steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.group_sizes import check_two, planned
from equipoise.audits.kinds import (
    PERCEIVED,
    Measured,
    Progress,
    drafts_of,
    estimated_seconds,
    told,
)
from equipoise.audits.retrieval import loading
from equipoise.audits.retrieval.designs import Design, designs
from equipoise.audits.retrieval.loading import RetrievalData, notes_of
from equipoise.audits.retrieval.measuring import MeasuredDesign, measure_design, tests_of
from equipoise.audits.retrieval.tables import tables_of
from equipoise.core.wording import images as of_images
from equipoise.metrics.retrieval.chance import expected_max_skew

if TYPE_CHECKING:
    from equipoise.audits.retrieval.config import RankingAudit

Row = dict[str, Any]

# Seconds for a permutation of one item among the first, all measures together, and for a design
# whatever its size: rough guides, from the example.
_SECONDS_PER_ITEM, _SECONDS_PER_DESIGN = 6e-8, 0.4


def load(config: RankingAudit, *, base: Path) -> RetrievalData:
    """Read the images, the queries and every model's scores, see `loading.load`."""
    return loading.load(config, base=base)


def measure(config: RankingAudit, data: RetrievalData, progress: Progress | None) -> Measured:
    """Measure the rankings of every model on every choice of groups.

    Raises
    ------
    DataError
        When no choice of groups leaves two to compare.
    """
    measured = measured_designs(config, data, progress)
    told_of = tuple(notes(measured, data, config))
    return Measured(drafts_of(measured), tables_of(measured), told_of)


def measured_designs(
    config: RankingAudit, data: RetrievalData, progress: Progress | None
) -> list[MeasuredDesign]:
    """Measure every model with every choice of groups.

    Raises
    ------
    DataError
        When a choice of groups leaves fewer than two to compare.
    """
    every = [*designs(config, data)]
    _check(every, data)
    tests = sum(tests_of(design) for design in every)
    return [measure_design(design, config, tests) for design in told(every, progress, "measuring")]


@dataclass(frozen=True)
class Plan:
    """What an audit of retrieval would do.

    Attributes
    ----------
    images : int
    models : list of dict
        Per model: queries, images that can be ranked, and those that cannot, by reason.
    groups : list of dict
        Per group, as ranked by the first model: images, and whether it is large enough.
    rankings : list of dict
        Per model and groups: groups, smallest pool, K, prefixes, and the MaxSkew@K that random
        order alone gives with groups of equal size.
    tests : int
    seconds : float
        A rough guide.
    """

    images: int
    models: list[Row]
    groups: list[Row]
    rankings: list[Row]
    tests: int
    seconds: float


def plan(config: RankingAudit, data: RetrievalData) -> Plan:
    """Say what the audit would do."""
    every = [*designs(config, data)]
    return Plan(
        images=len(data.images),
        models=[
            {"model": name, "queries": len(one.queries), "ranked": len(one.used), **one.counts}
            for name, one in data.models.items()
        ],
        groups=[
            row
            for one in every
            if one.model == every[0].model
            for row in planned(one.groups, "images")
        ],
        rankings=[_ranking(design) for design in every],
        tests=sum(tests_of(design) for design in every),
        seconds=estimated_seconds(sum(_seconds(design, config) for design in every)),
    )


def _ranking(design: Design) -> Row:
    groups = int((design.groups.counts > 0).sum())
    pool, k = design.smallest_pool, design.ks[0]
    each = pool // groups if groups else 0
    known = groups > 1 and each > 0 and k < each * groups
    return {
        "model": design.model,
        "groups": design.name,
        "version": design.version,
        "number_of_groups": groups,
        "smallest_pool": pool,
        "k": [*design.ks],
        "prefixes": design.prefixes,
        "chance_max_skew": expected_max_skew([each] * groups, k) if known else None,
    }


def _seconds(design: Design, config: RankingAudit) -> float:
    draws = config.resampling.permutations or config.resampling.replicates
    items = len(design.scored.queries) * design.prefixes
    return _SECONDS_PER_DESIGN + 2 * draws * items * len(design.ks) * _SECONDS_PER_ITEM


def _check(every: Sequence[Design], data: RetrievalData) -> None:
    for design in every:
        which = f"groups {design.name}: fewer than two"
        check_two(design.groups, which, "images that can be ranked", file=data.images.name)


def notes(
    measured: Sequence[MeasuredDesign], data: RetrievalData, config: RankingAudit
) -> Iterator[str]:
    """Yield what a reader must know of the data and the rankings."""
    yield PERCEIVED
    yield (
        "A trained model is never exchangeable: with images enough any preference has a small p. "
        "Read the excess over chance."
    )
    yield from notes_of(data.models)
    yield from _missing(data)
    for one in measured:
        yield from _of_design(one.design, config)


def _missing(data: RetrievalData) -> Iterator[str]:
    for name, count in data.images.counts["missing"].items():
        if count:
            asked = f"no {name}: where it is asked for"
            many, one = f"have {asked} they are", f"has {asked} it is"
            yield f"{of_images(count, many, one)} in no pool."


def _of_design(design: Design, config: RankingAudit) -> Iterator[str]:
    wanted = design.ks[0] ** 2
    if config.ranking.prefixes is None and design.prefixes < wanted:
        where = f"{design.model}, {design.name}"
        where += f" ({design.version})" if design.version != "default" else ""
        yield (
            f"{where}: the smallest pool has {design.smallest_pool} images, so NDKL and the curves "
            f"run over {design.prefixes} prefixes, not {wanted}."
        )
    least = max(*design.ks, design.prefixes + 1)
    few = sum(n < least for n in design.pool_sizes)
    if few:
        yield (
            f"{design.model}, {design.name}: {few} of {len(design.pool_sizes)} pools have fewer "
            f"than {least} images with a group: not estimable for some measures, and counted there."
        )
    for name, n, usable in zip(
        design.groups.names, design.groups.counts.tolist(), design.groups.usable, strict=True
    ):
        if not usable:
            yield (
                f"{design.name}: {name} has {n} images that can be ranked, fewer than "
                f"{design.groups.min_size}, and is shown only."
            )
