"""The configuration of an audit of concepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from equipoise.audits.concepts.config_choices import Changes, ChoicesConfig
from equipoise.audits.concepts.config_inputs import Concept, DataConfig, ModelConfig
from equipoise.audits.concepts.versions import Version, versions_of
from equipoise.audits.config_fields import Label, distinct
from equipoise.audits.config_sections import (
    AuditConfig,
    ResamplingConfig,
    among,
    file_names,
    group_name,
)
from equipoise.metrics.concepts.cells import Metric

Replicates = Annotated[int, Field(ge=10, le=1_000_000)]
_WORSE_WHEN_HIGHER = "false_positive_rate"


class ConceptsResamplingConfig(ResamplingConfig):
    """As everywhere, with the number of replicates of the published protocol."""

    replicates: Replicates = 250


class Config(AuditConfig):
    """The configuration of an audit of concepts; see docs/audits/concepts.md for every key."""

    audit: Literal["concepts"]
    data: DataConfig
    models: Annotated[
        Mapping[Annotated[Label, Field(min_length=1)], ModelConfig], Field(min_length=1)
    ]
    concepts: Annotated[tuple[Concept, ...], Field(strict=False), AfterValidator(distinct)] = ()
    metrics: Annotated[
        tuple[Metric, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ] = ("average_precision", "auroc")
    hit_rate: Annotated[int, Field(ge=1)] | None = None
    choices: ChoicesConfig = ChoicesConfig()
    versions: Mapping[Annotated[Label, Field(min_length=1)], Changes] = Field(default_factory=dict)
    cross: bool | Annotated[tuple[Label, ...], Field(strict=False), AfterValidator(distinct)] = (
        False
    )
    resampling: ConceptsResamplingConfig = ConceptsResamplingConfig()

    @property
    def every_version(self) -> tuple[Version, ...]:
        """The baseline, the versions as declared, and their combinations."""
        return versions_of(self.choices, self.versions, self.cross)

    @property
    def primary(self) -> Metric:
        """The metric of the baseline."""
        return self.choices.metric or self.metrics[0]

    @model_validator(mode="after")
    def _models_can_be_files(self) -> Config:
        file_names(self.models)
        return self

    @model_validator(mode="after")
    def _gate_can_match(self) -> Config:
        groups = [group_name(group) for group in self.data.groups]
        measured = [*dict.fromkeys((self.primary, *self.metrics, "concept_difference"))]
        for index, rule in enumerate(self.gate):
            among(f"gate[{index}].metric", rule.metric, measured)
            among(f"gate[{index}].model", rule.model, [*self.models])
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, groups)
        return self

    @model_validator(mode="after")
    def _choices_fit(self) -> Config:
        attributes = [*dict.fromkeys(name for group in self.data.groups for name in group)]
        maps = [
            *dict.fromkeys(
                name for one in (self.data.labels, *self.models.values()) for name in one.maps
            )
        ]
        places = {"choices": self.choices, **{f"versions.{k}": v for k, v in self.versions.items()}}
        for place, choices in places.items():
            for key in ("terms", "columns"):
                for attribute in getattr(choices, key):
                    among(f"{place}.{key}", attribute, attributes)
            if choices.map is not None and not maps:
                raise ValueError(
                    f"{place}.map: given {choices.map!r}, and neither labels nor a model has "
                    "'maps'; expected a mapping of that name there"
                )
            among(f"{place}.map", choices.map, maps)
        return self

    @model_validator(mode="after")
    def _versions_fit(self) -> Config:
        for version in self.every_version:
            choices, metric = version.choices, version.choices.metric or self.primary
            if choices.prevalence == "hall" and choices.ratio != int(choices.ratio):
                raise ValueError(
                    f"{version.place}: ratio {choices.ratio} under prevalence 'hall'; expected a "
                    "whole number of negatives to draw for each positive"
                )
            if (metric == _WORSE_WHEN_HIGHER) != (self.primary == _WORSE_WHEN_HIGHER):
                raise ValueError(
                    f"{version.place}: metric {metric!r} beside {self.primary!r} in the baseline; "
                    "of false_positive_rate higher is worse, of the others lower, so that "
                    "directions cannot be compared. To do: list it under 'metrics'"
                )
        return self
