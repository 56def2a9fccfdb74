"""The configuration of `equipoise counterfactuals`: captions or prompts, and a model."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from equipoise.audits.generation.config import CaptionsConfig, GeneratorConfig
from equipoise.config.fields import (
    ExtractionConfig,
    Section,
    Share,
    Table,
    given_keys,
    located,
    only_one,
)

_OF_SETS = ("candidates", "shared", "shared_self", "shared_places")


class PromptsConfig(Section):
    """Prompts that each get an image of their own.

    Attributes
    ----------
    table : path
        CSV, Parquet or JSON lines with `prompt_id` and `prompt`; other columns are kept.
    images : int
        Of each prompt.
    """

    table: Table
    images: Annotated[int, Field(ge=1, le=1_000_000)] = 1

    def read(self, base: Path) -> Any:
        """Return the prompts as a table of Arrow.

        Raises
        ------
        DataError
            When the table cannot be read.
        """
        import pyarrow as pa

        from equipoise.data.tables import open_table, read_table

        source = located(self.table, base)
        names = dict.fromkeys(["prompt_id", "prompt", *open_table(source).names])
        texts = read_table(source, texts=names, role="prompts").texts
        return pa.table(
            {name: column.to_arrow().cast(pa.string()) for name, column in texts.items()}
        )


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
        Folder of the evidence, relative to the configuration.
    part : int
        Images in one file. A stopped run makes its last file again.
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
    def _check_generation_making(self) -> Self:
        if only_one(self, "captions", "prompts") == "prompts":
            for key in given_keys(self.generator, _OF_SETS):
                raise ValueError(f"generator.{key} is of captions, and 'prompts' are given")
            if isinstance(self.generator.guidance, tuple):
                raise ValueError("generator.guidance: drawn for captions, and 'prompts' are given")
        return self

    def arguments(self, base: Path) -> dict[str, Any]:
        """Return the arguments of `plan` and `generate`: the request, the model and the options."""
        from equipoise.counterfactuals import (
            GenerationSettings,
            request_captions,
            request_prompts,
        )

        generator, prompts = self.generator, self.prompts
        if prompts is not None:
            request = request_prompts(prompts.read(base), prompts.images, generator.seed)
        else:
            assert self.captions is not None  # noqa: S101 - the schema sees to it
            request = request_captions(self.captions.sets(), **generator.draws)
        return {
            "request": request,
            "model": generator.located(base),
            "store": base / self.store,
            "settings": GenerationSettings(
                sampling=generator.sampling, part=self.part, max_failures=self.max_failures,
                options=generator.options(ExtractionConfig()).keeping_replies(base / self.store),
            ),
        }  # fmt: skip
