"""The configuration of an audit of similarity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, model_validator

from equipoise.audits.config import group_name
from equipoise.audits.config_fields import (
    CsvConfig,
    Group,
    Label,
    Models,
    Name,
    Some,
    Table,
    among,
    located,
)
from equipoise.audits.engines.rankings import config as rankings
from equipoise.audits.engines.rankings.config import QueryAudit
from equipoise.data import ItemSource

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


class HypothesisConfig(CsvConfig):
    """Preferences that are declared before the audit, a group or a number for each concept.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, a row per concept.
    concept : str
        Column of the concepts' names.
    favours : str, optional
        Column of the group that a concept favours.
    value : str, optional
        Column of numbers: with `favours` how strongly, alone how far towards `first`.
    first : str, optional
        The group that larger numbers of `value` favour.
    statistic : str
        Of `value`: `rank` (correlation) or `mean` (by sign).
    groups : str or list of str, optional
        Entry of `data.groups`; the only entry unless given.
    missing : list of str
        Cell texts that mean "missing".
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    concept: Name
    favours: Name | None = None
    value: Name | None = None
    first: Label | None = None
    statistic: Literal["rank", "mean"] = "rank"
    groups: Group | None = None

    @model_validator(mode="after")
    def _has_columns(self) -> HypothesisConfig:
        if self.favours is None and self.value is None:
            raise ValueError("neither 'favours' nor 'value' is given; expected one, or both")
        if self.favours is None and self.first is None:
            raise ValueError("'first' is required with 'value' alone: the group that it speaks for")
        if self.favours is not None and self.first is not None:
            raise ValueError("'first' is for 'value' alone: 'favours' names the groups")
        return self

    def source(self, base: Path) -> ItemSource:
        """Return what to read, with paths relative to `base`."""
        columns = tuple(filter(None, (self.favours, self.value)))
        return ItemSource(located(self.table, base), self.concept, columns, **self.csv)


class Config(QueryAudit):
    """The configuration of an audit of similarity; see docs/audits/similarity.md for every key."""

    audit: Literal["similarity"]
    models: Models[ModelConfig]
    measures: Some[Measure] = MEASURES
    hypotheses: Annotated[tuple[HypothesisConfig, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _queries_are_named(self) -> Config:
        for name, model in self.models.items():
            if self.queries is None and (model.model is not None or model.queries is not None):
                raise ValueError(
                    f"queries: required, and missing: the concepts of model {name!r} are texts, "
                    "which the table of queries names"
                )
        return self

    @model_validator(mode="after")
    def _hypotheses_name_groups(self) -> Config:
        names = [*self.group_names]
        for index, each in enumerate(self.hypotheses):
            key = f"hypotheses[{index}].groups"
            if each.groups is None and len(names) > 1:
                raise ValueError(f"{key}: required where data.groups has several entries: {names}")
            among(key, group_name(each.groups or ()) or None, names)
        return self
