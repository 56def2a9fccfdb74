"""The audit of retrieval: the groups of the images that queries rank first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.audit import audit_kind
from equipoise.audits.engines.rankings.audit import Rankings
from equipoise.audits.engines.rankings.scores import RankingData, load_scores, read_items
from equipoise.audits.retrieval.config import Config

if TYPE_CHECKING:
    from equipoise.audits.outputs import Models


@audit_kind("retrieval")
class Retrieval(Rankings[Config, RankingData]):
    """Audits of retrieval."""

    def load(self, config: Config, models: Models) -> RankingData:
        """Read the images and the queries, and read or compute every model's scores."""
        return load_scores(config, models, read_items(config, models), config.queries)
