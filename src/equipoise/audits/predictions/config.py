"""The configuration of an audit of predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from equipoise.audits.config_fields import Label
from equipoise.audits.config_sections import AuditConfig, among, file_names, group_name
from equipoise.audits.predictions.config_inputs import DataConfig, ModelConfig
from equipoise.audits.predictions.config_metrics import MetricsConfig


class Config(AuditConfig):
    """The configuration of an audit of predictions; see docs/config.md for every key."""

    audit: Literal["predictions"]
    data: DataConfig
    models: Annotated[
        Mapping[Annotated[Label, Field(min_length=1)], ModelConfig], Field(min_length=1)
    ]
    metrics: MetricsConfig = MetricsConfig()

    @model_validator(mode="after")
    def _models_can_be_files(self) -> Config:
        file_names(self.models)
        return self

    @model_validator(mode="after")
    def _gate_can_match(self) -> Config:
        groups = [group_name(group) for group in self.data.groups]
        for index, rule in enumerate(self.gate):
            among(f"gate[{index}].model", rule.model, [*self.models])
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, groups)
        return self
