"""The configuration of an audit of similarity."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveFloat, PositiveInt, model_validator

from equipoise.audits.config_fields import (
    Models,
    Some,
)
from equipoise.audits.engines.rankings import config as rankings
from equipoise.audits.engines.rankings.config import QueryAudit

Measure = Literal["similarity_gap", "normalized_similarity_mad"]
MEASURES: tuple[Measure, ...] = ("similarity_gap", "normalized_similarity_mad")


class ModelConfig(rankings.ModelConfig):
    """One model: how to run it, or files of its outputs.

    Attributes
    ----------
    scale : float, optional
        Scale of the logits: logit = scale times score. A model that is run has its own. 1 where
        scores are logits.
    """

    scale: PositiveFloat | None = None


class Config(QueryAudit):
    """The configuration of an audit of similarity; see docs/audits/similarity.md for every key."""

    audit: Literal["similarity"]
    models: Models[ModelConfig]
    measures: Some[Measure] = MEASURES
    k: PositiveInt | None = None

    @model_validator(mode="after")
    def _queries_are_named(self) -> Config:
        for name, model in self.models.items():
            if self.queries is None and (model.model is not None or model.queries is not None):
                raise ValueError(
                    f"queries: required, and missing: the concepts of model {name!r} are texts, "
                    "which the table of queries names"
                )
        return self
