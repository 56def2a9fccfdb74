"""The configuration of an audit of associations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from equipoise.audits.associations.config_inputs import ModelConfig, Selection, TableConfig
from equipoise.audits.associations.config_measures import MeasureConfig
from equipoise.audits.config_fields import Label, Name
from equipoise.audits.config_sections import AuditConfig, among, file_names, group_name


class Config(AuditConfig):
    """The configuration of an audit of associations; see docs/audits/associations.md.

    Attributes
    ----------
    data : mapping of str to TableConfig
        Tables of items, by name.
    models : mapping of str to ModelConfig
    sets : mapping of str to mapping of str to Selection
        Named sets: by table of items, ids or the values wanted by column.
    measure : list of MeasureConfig
        The questions.
    """

    audit: Literal["associations"]
    data: Annotated[Mapping[Name, TableConfig], Field(min_length=1)]
    models: Annotated[
        Mapping[Annotated[Label, Field(min_length=1)], ModelConfig], Field(min_length=1)
    ]
    sets: Annotated[
        Mapping[Name, Annotated[Mapping[Name, Selection], Field(min_length=1)]],
        Field(min_length=1),
    ]
    measure: Annotated[tuple[MeasureConfig, ...], Field(strict=False, min_length=1)]

    @model_validator(mode="after")
    def _tables_exist(self) -> Config:
        file_names(self.models)
        tables = [*self.data]
        for model, given in self.models.items():
            for name in given.embeddings:
                among(f"models.{model}.embeddings", name, tables)
            for index, pairs in enumerate(given.pairs):
                for name in pairs.between:
                    among(f"models.{model}.pairs[{index}].between", name, tables)
        for name, chosen in self.sets.items():
            for table in chosen:
                among(f"sets.{name}", table, tables)
        return self

    @model_validator(mode="after")
    def _questions_can_be_asked(self) -> Config:
        images = [name for name, table in self.data.items() if table.kind == "image"]
        for index, asked in enumerate(self.measure):
            among(f"measure[{index}].images", asked.images, images)
            among(f"measure[{index}].model", asked.model, [*self.models])
            if asked.label_column is not None and asked.model is None and len(self.models) > 1:
                raise ValueError(
                    f"measure[{index}]: 'label_column' holds the labels of one model; name it as "
                    f"'model'. Allowed: {', '.join(self.models)}"
                )
            for key, names in asked.set_names.items():
                for name in names:
                    among(f"measure[{index}].{key}", name, [*self.sets])
        _asked_once(self.measure)
        return self

    @model_validator(mode="after")
    def _gate_can_match(self) -> Config:
        groups = list(dict.fromkeys(asked.group_text for asked in self.measure))
        for index, rule in enumerate(self.gate):
            among(f"gate[{index}].model", rule.model, [*self.models])
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, groups)
        return self


def _asked_once(every: tuple[MeasureConfig, ...]) -> None:
    """Refuse questions whose findings could not be told apart."""
    for index, asked in enumerate(every):
        for before, other in enumerate(every[:index]):
            same = (asked.metric, asked.group_text, asked.version) == (
                other.metric, other.group_text, other.version,
            )  # fmt: skip
            if same and _meet(asked, other):
                raise ValueError(
                    f"measure[{index}] asks what measure[{before}] asks; leave it out, or give it "
                    "a 'version' of its own"
                )


def _meet(one: MeasureConfig, other: MeasureConfig) -> bool:
    """Whether two questions of one metric and groups share a subject."""
    if one.model and other.model and one.model != other.model:
        return False
    if one.modalities and other.modalities and not {*one.modalities} & {*other.modalities}:
        return False
    if one.metric in ("weat", "differential_association"):
        return one.target_names == other.target_names
    if one.metric in ("alignment", "correlation"):
        return one.of == other.of and _figures(one) == _figures(other)
    return not one.target_names or bool({*one.target_names} & {*other.target_names})


def _figures(asked: MeasureConfig) -> str:
    given = asked.outside or asked.hypothesis
    return "" if given is None else given.value
