"""The configuration of an audit of similarity."""

from typing import Literal, get_args

from pydantic import PositiveFloat, PositiveInt

from equipoise.audits.rankings import config as rankings
from equipoise.audits.rankings.config import QueryAudit
from equipoise.config.fields import (
    Models,
    Some,
)

Measure = Literal["similarity_gap", "normalized_similarity_mad"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


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
