"""Hit rates: whether any true concept of an image is among a model's first few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from equipoise.audits.concepts.designs import Design
from equipoise.audits.concepts.drafting import AUDIT
from equipoise.audits.concepts.measuring import Sample, resampling_of
from equipoise.audits.findings import Draft, Place, parts, whole
from equipoise.core.finding import Family
from equipoise.metrics.concepts.disparity import concept_hit_rate

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.loading import ConceptData


def hits_of(config: Config, data: ConceptData, every: Sequence[Design]) -> Iterator[Draft]:
    """Yield the hit rate and its gap between groups of every baseline; none unless asked for."""
    if config.hit_rate is None:
        return
    for design in every:
        if design.version.changed:
            continue
        rows = Sample.of(data, design)
        estimate = concept_hit_rate(
            rows.scores,
            rows.labels,
            design.groups,
            k=config.hit_rate,
            units=None if rows.units is None else rows.units.values,
            resampling=resampling_of(config, len(config.models) * len(config.data.groups)),
            rng=config.resampling.seed,
        )
        place = Place(AUDIT, design.model, design.name, "default", config.resampling.level)
        rate, gap = parts(estimate, place)
        yield whole(estimate, place, Family.DESCRIPTIVE, by_group=rate.finding.by_group)
        yield Draft(replace(gap.finding, family=Family.COMPOSITE), "higher")
