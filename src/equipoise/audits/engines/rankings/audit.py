"""The base of audits of rankings: groups, designs, measures, notes and plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from equipoise.audits import group_sizes
from equipoise.audits.audit import Audit, Measured
from equipoise.audits.config_rankings import RankingAudit
from equipoise.audits.engines.rankings.designs import (
    RankingDesign,
    check_designs,
    design_notes,
    ranking_designs,
)
from equipoise.audits.engines.rankings.measuring import measure_rankings
from equipoise.audits.engines.rankings.scores import RankingData
from equipoise.core.groups import Groups
from equipoise.core.wording import images

if TYPE_CHECKING:
    from equipoise.audits.group_sizes import Row
    from equipoise.stats.resampling import Resampling

ConfigT = TypeVar("ConfigT", bound=RankingAudit)
DataT = TypeVar("DataT", bound=RankingData)


class Rankings(Audit[ConfigT, DataT, RankingDesign]):
    """Audits of rankings; a kind adds how its data are loaded."""

    items = "images"

    def groups(self, config: ConfigT, data: DataT) -> list[Groups]:
        """Return the groups of all images."""
        columns, size = data.images.columns, config.data.min_group_size
        return [
            Groups.of({name: columns[name] for name in attributes}, min_size=size)
            for attributes in config.data.groups
        ]

    def designs(self, config: ConfigT, data: DataT) -> list[RankingDesign]:
        """Return every model with every choice of groups, and their marginals."""
        designs = ranking_designs(config, data)
        check_designs(designs, config)
        return designs

    def measure(
        self, config: ConfigT, data: DataT, design: RankingDesign, resampling: Resampling | None
    ) -> Measured:
        """Measure one design at every K."""
        return measure_rankings(design, resampling)

    def sizes(self, config: ConfigT, data: DataT) -> Iterator[Row]:
        """Return the sizes of the groups that the first model ranks, those of marginals too."""
        seen: set[str] = set()
        for design in ranking_designs(config, data):
            if design.name not in seen:
                seen.add(design.name)
                yield from group_sizes.sizes_of(design.groups)

    def details(
        self,
        config: ConfigT,
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
                {"model": name, "queries": len(each.queries), "ranked": len(each.used)}
                | each.counts
                for name, each in data.models.items()
            ],
            "rankings": [design.planned for design in designs],
        }

    def notes(
        self, config: ConfigT, data: DataT, designs: Sequence[RankingDesign]
    ) -> Iterable[str]:
        """Return the notes on images and queries that aren't used, and on small pools."""
        for name, scored in data.models.items():
            yield from scored.notes(name)
        for column in (config.data.subject, config.data.sets):
            if column and (count := data.images.counts["missing"][column]):
                many, single = f"have no {column}: they are", f"has no {column}: it is"
                yield f"{images(count, many, single)} in no pool."
        yield from design_notes(designs, config)
