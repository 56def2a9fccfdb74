"""The configuration of an audit of retrieval."""

from typing import Literal

from equipoise.audits.rankings import config as rankings


class MetricsConfig(rankings.MetricsConfig):
    """Which metrics of rankings are measured."""

    kind = "retrieval"


class Config(rankings.RankingAudit):
    """The configuration of an audit of retrieval; see docs/audits/retrieval.md for every key."""

    audit: Literal["retrieval"]
    metrics: MetricsConfig = MetricsConfig()
