"""The configuration of an audit of retrieval."""

from typing import Literal

from equipoise.audits.rankings.config import RankingAudit


class Config(RankingAudit):
    """The configuration of an audit of retrieval; see docs/audits/retrieval.md for every key."""

    audit: Literal["retrieval"]
