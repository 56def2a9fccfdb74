"""The configuration of an audit of similarity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from equipoise.audits import config_rankings as retrieval
from equipoise.audits.config_arrays import located
from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    Group,
    Label,
    Labels,
    Name,
    Section,
    Table,
    distinct,
)
from equipoise.audits.config_rankings import QueriesConfig
from equipoise.audits.config_sections import AuditConfig, among, file_names, group_name
from equipoise.data import ItemSource

Measure = Literal["similarity_gap", "normalized_similarity_mad"]
MEASURES: tuple[Measure, ...] = ("similarity_gap", "normalized_similarity_mad")


class DataConfig(retrieval.DataConfig):
    """The images that are compared.

    Attributes
    ----------
    subject : str, optional
        Column of what an image shows: each concept is compared over the images of its own
        subject. Without it over all images.
    unit : str, optional
        Column of the unit that images repeat within, such as the person shown; of sets, a unit
        that holds whole ones.
    """

    unit: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        own = () if self.unit is None else (self.unit,)
        return tuple(dict.fromkeys([*super().columns, *own]))


class ModelConfig(retrieval.ModelConfig):
    """One model: how to run it, or what it said before.

    Attributes
    ----------
    scale : float, optional
        What makes a logit of a score: the model's own where it is run and has one. 1 where
        scores are logits.
    """

    scale: Annotated[float, Field(gt=0)] | None = None


class HypothesisConfig(Section):
    """What was expected of each concept, declared before.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines, a row per concept.
    concept : str
        Column with the concepts' names.
    favours : str, optional
        Column with the group that a concept is expected to favour.
    value : str, optional
        Column of numbers: with `favours` how strongly, otherwise how far towards `first`.
    first : str, optional
        The group that larger numbers of `value` speak for.
    statistic : str
        Of `value`: `rank` or `mean` (its sign).
    groups : str or list of str, optional
        Entry of `data.groups`; not needed where there is one.
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
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _says_what_is_expected(self) -> HypothesisConfig:
        if self.favours is None and self.value is None:
            raise ValueError("neither 'favours' nor 'value' is given; expected one, or both")
        if self.favours is None and self.first is None:
            raise ValueError("'first' is required with 'value' alone: the group that it speaks for")
        if self.favours is not None and self.first is not None:
            raise ValueError("'first' is for 'value' alone: 'favours' names the groups")
        return self

    def source(self, base: Path) -> ItemSource:
        """Return what to read, with paths relative to `base`."""
        return ItemSource(
            table=located(self.table, base),
            id=self.concept,
            columns=tuple(one for one in (self.favours, self.value) if one is not None),
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )


class Config(AuditConfig):
    """The configuration of an audit of similarity; see docs/audits/similarity.md for every key."""

    audit: Literal["similarity"]
    data: DataConfig
    queries: QueriesConfig | None = None
    models: Annotated[Mapping[Label, ModelConfig], Field(min_length=1)]
    measures: Annotated[
        tuple[Measure, ...], Field(strict=False, min_length=1), AfterValidator(distinct)
    ] = MEASURES
    hypotheses: Annotated[tuple[HypothesisConfig, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _queries_are_named(self) -> Config:
        file_names(self.models)
        asked = [n for n, m in self.models.items() if m.model is not None or m.queries is not None]
        if asked and self.queries is None:
            raise ValueError(
                f"queries: required, and missing: the concepts of model {asked[0]!r} are texts, "
                "which the table of queries names"
            )
        return self

    @model_validator(mode="after")
    def _hypotheses_and_gate_name_groups(self) -> Config:
        names = [group_name(group) for group in self.data.groups]
        for index, one in enumerate(self.hypotheses):
            key = f"hypotheses[{index}].groups"
            if one.groups is None and len(names) > 1:
                raise ValueError(f"{key}: required where data.groups has several entries: {names}")
            among(key, group_name(one.groups or ()) or None, names)
        for index, rule in enumerate(self.gate):
            among(f"gate[{index}].model", rule.model, [*self.models])
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, names)
        return self

    def expected(self, groups: str) -> Iterator[int]:
        """Yield the places of the hypotheses about a choice of groups."""
        for index, one in enumerate(self.hypotheses):
            if one.groups is None or group_name(one.groups) == groups:
                yield index
