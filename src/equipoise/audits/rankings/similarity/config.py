"""The configuration of an audit of similarity."""

from typing import Literal, Self

from pydantic import PositiveFloat, PositiveInt, model_validator

from equipoise.audits.rankings import config as rankings
from equipoise.audits.rankings.config import QueryAudit
from equipoise.config.fields import Models
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.rankings.similarity import normalized_similarity_mad, similarity_gap
from equipoise.metrics.registry import name_of


class MetricsConfig(MetricSwitches):
    """Which measures of similarity are taken."""

    kind = "similarity"
    functions = (similarity_gap, normalized_similarity_mad)

    @model_validator(mode="after")
    def _check_similarity_metrics(self) -> Self:
        if not self.measured:
            names = " or ".join(map(name_of, self.functions))
            raise ValueError(f"all metrics are off; expected {names} to be on")
        return self


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
    metrics: MetricsConfig = MetricsConfig()
    k: PositiveInt | None = None
