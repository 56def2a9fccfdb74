"""The configuration of `equipoise counterfactuals`: what is asked for, of which model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from equipoise.audits.config import read_values, validated
from equipoise.audits.config_fields import Label, Name, Section, Share, Table, located
from equipoise.audits.generation.config import CaptionsConfig, GeneratorConfig
from equipoise.core.errors import InputError
from equipoise.counterfactuals import prompt_table

_OF_SETS = ("candidates", "shared", "shared_self")


class PromptsConfig(Section):
    """Prompts whose images are made one by one.

    Attributes
    ----------
    table : path, optional
        CSV, Parquet or JSON lines with `prompt_id` and `prompt`; other columns are kept.
    template : str, optional
        In place of a table: a text with names in braces, such as "A photo of a {class}
        {background}".
    values : mapping of str to list of str
        What stands for each name, in every combination.
    images : int
        Of each prompt.
    """

    table: Table | None = None
    template: Name | None = None
    values: Mapping[Name, Annotated[tuple[Label, ...], Field(strict=False)]] = Field(
        default_factory=dict
    )
    images: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    @model_validator(mode="after")
    def _one_source(self) -> PromptsConfig:
        if (self.table is None) == (self.template is None):
            given = "neither is" if self.table is None else "both are"
            raise ValueError(
                f"'table' or 'template': {given} given; expected a table of prompts, or a template "
                "and its 'values'"
            )
        if self.table is not None and self.values:
            raise ValueError("'values' are of a 'template', and a table is given")
        if self.template is not None:
            try:
                prompt_table(self.template, self.values)
            except InputError as error:
                raise ValueError(str(error)) from None
        return self

    def read(self, base: Path) -> Any:
        """Return the prompts as a table of Arrow.

        Raises
        ------
        DataError
            When the table cannot be read.
        """
        if self.template is not None:
            return prompt_table(self.template, self.values)
        from equipoise.counterfactuals.generating.requests import read_prompts

        return read_prompts(located(self.table, base))


class MakingConfig(Section):
    """What images are made, by what, and where they are kept.

    Attributes
    ----------
    captions : CaptionsConfig, optional
        Captions in sets, whose images are made with shared attention.
    prompts : PromptsConfig, optional
        In place of captions: prompts, each for itself.
    generator : GeneratorConfig
        The model, and how it makes images.
    store : path
        Folder of the evidence; a relative one lies beside the configuration.
    part : int
        Images in one file: what is made again when a run is stopped.
    max_failures : float
        Largest share of images on which the model may fail.
    """

    captions: CaptionsConfig | None = None
    prompts: PromptsConfig | None = None
    generator: GeneratorConfig
    store: Annotated[Path, Field(strict=False)] = Path("evidence")
    part: Annotated[int, Field(ge=1, le=1_000_000)] = 64
    max_failures: Share = 0.05

    @model_validator(mode="after")
    def _one_kind(self) -> MakingConfig:
        if (self.captions is None) == (self.prompts is None):
            given = "neither is" if self.captions is None else "both are"
            raise ValueError(
                f"'captions' or 'prompts': {given} given; expected captions in sets, or prompts"
            )
        if self.prompts is not None:
            fields = GeneratorConfig.model_fields
            for key in _OF_SETS:
                if getattr(self.generator, key) != fields[key].get_default():
                    raise ValueError(
                        f"generator.{key} is about sets of captions, and 'prompts' are given"
                        f"{'; expected prompts.images' if key == 'candidates' else ''}"
                    )
        return self


def load_making(path: Path) -> MakingConfig:
    """Read and check a configuration.

    Raises
    ------
    ConfigError
        When it cannot be read, is not YAML, or has a key or value that is not allowed.
    """
    new = "equipoise counterfactuals new"
    values, source, node = read_values(path, new=new)
    return validated(values, MakingConfig, source, node, fix=f"start from '{new}'")
