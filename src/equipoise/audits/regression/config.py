"""The configuration of an audit of regression."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from equipoise.audits.config import AuditConfig, LabelledImagesConfig, check_row_numbers
from equipoise.config.fields import CsvConfig, Filters, Models, Name, Table, among
from equipoise.core import Facts
from equipoise.metrics.numbers import NumberMetric
from equipoise.metrics.registry import metrics_of


class DataConfig(LabelledImagesConfig):
    """The images with their true numbers and groups.

    Attributes
    ----------
    target : str
        Column of the true number, such as the age.
    """

    target: Name
    map: None = None


class ModelConfig(CsvConfig):
    """One model: a table of its predicted numbers.

    Attributes
    ----------
    table : path or data frame
        One row per image.
    prediction : str
        Column of the predicted number; an empty cell is no answer.
    id : str, optional
        Column that names the image; `data.id` unless given.
    where : mapping
        Column to the rows of the table that are the model's; all unless given.
    encoding, delimiter : str
        Of a CSV.
    """

    table: Table
    prediction: Name
    id: Name | None = None
    where: Filters = Field(default_factory=dict)


class Config(AuditConfig):
    """The config of an audit of regression.

    Attributes
    ----------
    metrics : mapping
        Options per metric, such as `share_within_tolerance: {tolerance: 5}`; `false` switches a
        metric off, and all others are on.
    """

    audit: Literal["regression"]
    data: DataConfig
    models: Models[ModelConfig]
    metrics: Mapping[Name, Mapping[Name, float] | bool] = {}

    @field_validator("metrics")
    @classmethod
    def _check_metrics(
        cls, value: Mapping[str, Mapping[str, float] | bool]
    ) -> Mapping[str, Mapping[str, float] | bool]:
        metrics = metrics_of(NumberMetric, "regression")
        for name, options in value.items():
            among("metrics", name, metrics)
            for option in options if isinstance(options, Mapping) else ():
                among(f"metrics.{name}", option, metrics[name].options)
        return value

    @model_validator(mode="after")
    def _check_regression(self) -> Self:
        check_row_numbers(self.data, {name: model.table for name, model in self.models.items()})
        return self

    def options(self, metric: str) -> Facts | None:
        """Return the options of a metric, None if it is switched off."""
        options = self.metrics.get(metric, True)
        if isinstance(options, Mapping):
            return options
        return {} if options else None
