"""The configuration of an audit of retrieval."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from equipoise.audits.engines.rankings.config import RankingAudit


class Config(RankingAudit):
    """The configuration of an audit of retrieval; see docs/audits/retrieval.md for every key."""

    audit: Literal["retrieval"]

    @model_validator(mode="after")
    def _queries_are_named(self) -> Config:
        for name, model in self.models.items():
            if self.queries is None and model.scores is None:
                what = "is to embed" if model.model is not None else "has embeddings of"
                raise ValueError(
                    f"queries: required, and missing: model {name!r} {what} queries, which the "
                    "table of queries names"
                )
        return self
