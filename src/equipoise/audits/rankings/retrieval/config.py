"""The configuration of an audit of retrieval."""

from typing import ClassVar, Literal

from pydantic import Field

from equipoise.audits.rankings import config as rankings
from equipoise.config.fields import Name, Some
from equipoise.metrics.rankings.measures import measured_by


class RankingConfig(rankings.RankingConfig):
    """Measures of each query's ranking; see `equipoise.audits.rankings.config.RankingConfig`."""

    kind: ClassVar[str] = "retrieval"
    measures: Some[Name] = Field(default_factory=lambda: measured_by("retrieval"))
    similarity: bool = True


class Config(rankings.RankingAudit):
    """The configuration of an audit of retrieval; see docs/audits/retrieval.md for every key."""

    audit: Literal["retrieval"]
    ranking: RankingConfig = RankingConfig()
