"""The sections `choices` and `versions`: how disparities are measured, and how else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, PlainSerializer, model_validator

from equipoise.audits.config_fields import Label, Labels, Name, Section
from equipoise.metrics.concepts.cells import Metric

Terms = Mapping[Annotated[Label, Field(min_length=1)], Labels]
"""Group to the values of a column that count as it; empty: the values themselves."""


class RowsConfig(Section):
    """Which rows take part, by one column.

    Attributes
    ----------
    min, max : float, optional
        Bounds of a number, both allowed values themselves.
    values : list of str
        The texts allowed; any unless given.
    """

    min: float | None = None
    max: float | None = None
    values: Labels = ()

    @model_validator(mode="after")
    def _bounded(self) -> RowsConfig:
        if self.values and (self.min is not None or self.max is not None):
            raise ValueError("'values' goes without 'min' and 'max'; expected one of the two")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"'min' {self.min} is above 'max' {self.max}")
        return self


class ChoicesConfig(Section):
    """How disparities are measured; of a version, what differs.

    Attributes
    ----------
    metric : str, optional
        The metric that stands for the version; the first of `metrics` unless given.
    prevalence : str
        `weighted`, `hall` or `observed`.
    ratio : float
        Negatives per positive under the first two.
    min_positives : int
        A group with fewer positives leaves the concept.
    validation : float
        Share of rows that thresholds are tuned on.
    incomplete : str
        What leaves when a group has too few positives: the `group`, or the `concept`.
    unlabelled : str
        Images without any of the concepts: `keep` or `leave out`.
    terms : mapping
        Attribute to (group to the values that count as it).
    columns : mapping
        Attribute to another column to read it from.
    where : mapping
        Column to the rows that take part.
    map : str, optional
        Name of other mappings (`maps`) of labels and models.
    """

    metric: Metric | None = None
    prevalence: Literal["weighted", "hall", "observed"] = "weighted"
    ratio: Annotated[float, Field(gt=0)] = 5.0
    min_positives: Annotated[int, Field(ge=1)] = 50
    validation: Annotated[float, Field(gt=0, lt=1)] = 0.2
    incomplete: Literal["group", "concept"] = "group"
    unlabelled: Literal["keep", "leave out"] = "keep"
    terms: Mapping[Name, Terms] = Field(default_factory=dict)
    columns: Mapping[Name, Name] = Field(default_factory=dict)
    where: Mapping[Name, RowsConfig] = Field(default_factory=dict)
    map: Name | None = None

    @model_validator(mode="after")
    def _one_group_a_value(self) -> ChoicesConfig:
        for attribute, terms in self.terms.items():
            values = [value for listed in terms.values() for value in listed]
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(
                    f"terms.{attribute}: {', '.join(map(repr, twice))} counts as more than one "
                    "group; expected each value once"
                )
        return self


def _as_given(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_unset=True)


Changes = Annotated[ChoicesConfig, PlainSerializer(_as_given)]
"""What a version changes: the keys it names."""
