"""The configuration of an audit of regression."""

from typing import Literal, Self

from pydantic import Field, model_validator

from equipoise.audits.config import AuditConfig, LabelledImagesConfig, check_row_numbers
from equipoise.config.fields import CsvConfig, Filters, Models, Name, Table
from equipoise.config.switches import MetricSwitches
from equipoise.metrics.numbers import NumberMetric


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


class MetricsConfig(MetricSwitches):
    """Options per metric, such as `share_within_tolerance: {tolerance: 5}`."""

    kind = "regression"
    forms = (NumberMetric,)


class Config(AuditConfig):
    """The configuration of an audit of regression; see docs/audits/regression.md for every key."""

    audit: Literal["regression"]
    data: DataConfig
    models: Models[ModelConfig]
    metrics: MetricsConfig = MetricsConfig()

    @model_validator(mode="after")
    def _check_regression(self) -> Self:
        check_row_numbers(self.data, {name: model.table for name, model in self.models.items()})
        return self
