"""The audit of retrieval in its three steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.audits.drawing import most_tests, tests_by_model
from equipoise.audits.group_sizes import odd_labels, planned
from equipoise.audits.kinds import (
    PERCEIVED,
    Measured,
    Progress,
    drafts_of,
    estimated_seconds,
    told,
)
from equipoise.audits.retrieval import loading
from equipoise.audits.retrieval.checking import checked, not_applied
from equipoise.audits.retrieval.designs import Design
from equipoise.audits.retrieval.loading import RetrievalData, notes_of
from equipoise.audits.retrieval.measuring import MeasuredDesign, measure_design, tests_of
from equipoise.audits.retrieval.tables import tables_of
from equipoise.core.wording import images as of_images
from equipoise.metrics.retrieval.chance import expected_max_skew

if TYPE_CHECKING:
    from equipoise.audits.config_rankings import RankingAudit

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
    told_of = tuple(dict.fromkeys(notes(measured, data, config)))
    return Measured(drafts_of(measured), tables_of(measured), told_of)


def measured_designs(
    config: RankingAudit, data: RetrievalData, progress: Progress | None
) -> list[MeasuredDesign]:
    """Measure every model with every choice of groups.

    Raises
    ------
    DataError, InputError
        See `checking.checked`.
    """
    every = checked(config, data)
    tests = _tests(every)
    return [
        measure_design(design, config, tests[design.model])
        for design in told(every, progress, "measuring")
    ]


def _tests(every: Sequence[Design]) -> Counter[str]:
    return tests_by_model((design.model, tests_of(design)) for design in every)


@dataclass(frozen=True)
class Plan:
    """What an audit of retrieval would do.

    Attributes
    ----------
    images : int
    models : list of dict
        Per model: queries, images that can be ranked, and those that cannot, by reason.
    groups : list of dict
        Per group, as ranked by the first model: images, and whether it is large enough; then
        images in no group, by reason.
    rankings : list of dict
        Per model and groups: groups, smallest pool, K, prefixes, and the MaxSkew@K that random
        order alone gives with groups of equal size.
    tests : int
        About how many there are to correct for, of the model with the most.
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
    """Say what the audit would do.

    Raises
    ------
    DataError, InputError
        Where the audit would refuse its groups, sets or K, see `checking.checked`.
    """
    every = checked(config, data)
    by_groups = {one.name: one for one in every if one.model == every[0].model}
    return Plan(
        images=len(data.images),
        models=[
            {"model": name, "queries": len(one.queries), "ranked": len(one.used), **one.counts}
            for name, one in data.models.items()
        ],
        groups=[
            row
            for one in by_groups.values()
            for row in planned(one.groups, "images", one.lacking, config.data.images)
        ],
        rankings=[_ranking(design) for design in every],
        tests=most_tests(_tests(every)),
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
    yield from not_applied([one.design for one in measured], config)
    for one in measured:
        yield from _of_design(one.design, config)


def _missing(data: RetrievalData) -> Iterator[str]:
    for name, count in data.images.counts["missing"].items():
        if count:
            asked = f"no {name}: where it is asked for"
            many, one = f"have {asked} they are", f"has {asked} it is"
            yield f"{of_images(count, many, one)} in no pool."


def _of_design(design: Design, config: RankingAudit) -> Iterator[str]:
    yield from odd_labels(design.groups, "images", config.data.images)
    wanted, given = design.ks[0] ** 2, config.ranking.prefixes
    where = f"{design.model}, {design.name}"
    where += f" ({design.version})" if design.version != "default" else ""
    if given is None and design.smallest_pool and design.prefixes < wanted:
        yield (
            f"{where}: the smallest pool has {design.smallest_pool} images, so NDKL and the curves "
            f"run over {design.prefixes} prefixes, not {wanted}."
        )
    yield from _small_pools(design, where, config)
    if not design.exchanges(design.within):
        yield f"{where}: no set holds images of two groups, so none are exchanged within sets."
    for name, n, usable in zip(
        design.groups.names, design.groups.counts.tolist(), design.groups.usable, strict=True
    ):
        if not usable:
            yield (
                f"{design.name}: {name} has {n} images that can be ranked, fewer than "
                f"{design.groups.min_size}, and is shown only."
            )


def _small_pools(design: Design, where: str, config: RankingAudit) -> Iterator[str]:
    """Yield how many pools are too small for the numbers that the configuration has."""
    sizes = design.pool_sizes
    for k in design.ks:
        few = sum(n <= k for n in sizes)
        if few:
            what = f"ranking.k, {k}" if config.ranking.k else f"groups, K = {k}"
            yield (
                f"{where}: {few} of {len(sizes)} pools have no more images with a group than "
                f"{what}: not estimable there, and counted."
            )
    prefixes = config.ranking.prefixes or 0
    few = sum(n < prefixes for n in sizes)
    if few:
        yield (
            f"{where}: {few} of {len(sizes)} pools have fewer images with a group than "
            f"ranking.prefixes, {prefixes}: NDKL is not estimable there, and counted."
        )
