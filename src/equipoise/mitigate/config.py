"""The configuration of `equipoise mitigate`: one strict schema, the same in YAML and Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    field_validator,
    model_validator,
)

from equipoise.audits.config import Mapped
from equipoise.audits.config_groups import GroupSourceConfig
from equipoise.audits.rankings.config import Prefixes
from equipoise.config.fields import (
    FilePath,
    Guidance,
    Level,
    LoadConfig,
    Name,
    Section,
    Table,
    TableConfig,
    only_one,
)
from equipoise.config.images import PicturesConfig
from equipoise.data import TEMPLATES
from equipoise.mitigate.closed_form import MatchedPrompts, PromptEnsemble
from equipoise.mitigate.prompting import BalancedPrompts, LearnedPrompt
from equipoise.mitigate.recipe import Names
from equipoise.mitigate.subspace import SubspaceProjection
from equipoise.mitigate.trained import Contrastive
from equipoise.studies.names import StudyName

WITHHELD = "withheld.txt"
"""File of the output with a withheld subject in each line, as `where` of an audit reads it."""

REPORT = "report"
"""Folder of the output that is the run."""

IMAGES = "images"
"""Folder of the output that keeps generated images."""


def _folder(value: str) -> str:
    if value.startswith(".") or any(character in value for character in "/\\:\0"):
        raise ValueError("expected a name that a folder can have, without slashes and colons")
    if value in (REPORT, IMAGES, WITHHELD):
        raise ValueError("a folder of this name has other content; choose another")
    return value


FolderName = Annotated[Name, AfterValidator(_folder)]
AnyRecipe = Annotated[
    Contrastive
    | PromptEnsemble
    | MatchedPrompts
    | SubspaceProjection
    | BalancedPrompts
    | LearnedPrompt,
    Field(discriminator="recipe"),
]


class ImagesConfig(PicturesConfig):
    """Images as in an audit; a table has the columns `image_id` and `path`."""

    def located(self) -> PicturesConfig:
        """Return the section with the columns and the folder of a table."""
        if self.table is None:
            return self
        file = self.table.file if isinstance(self.table, TableConfig) else self.table
        table_folder = file.parent if isinstance(file, Path) else Path()
        columns = {"id": self.id or "image_id", "path": self.path or "path"}
        return self.model_copy(update={"root": self.root or table_folder, **columns})


class SetsConfig(ImagesConfig):
    """Counterfactual sets: images that differ in attributes alone, with captions."""

    subject: Name = "subject"
    set: Name = "set"
    caption: Name = "caption"
    attributes: Names


class PromptsConfig(Section):
    """Neutral prompts, which name a subject and no attribute: a table, or prefixes."""

    table: Table | None = None
    prefixes: Prefixes = "howard_2024"
    prompt: Name = "prompt"
    subject: Name = "subject"


class PairsConfig(ImagesConfig):
    """Images with a caption each, or a data set with captions.

    `neutral_caption` is the column of the captions without the attribute that they name.
    """

    caption: Name = "caption"
    neutral_caption: Name | None = None


class LabelsConfig(ImagesConfig):
    """Images with a class each; `names` maps classes to their names in prompts."""

    label: Name = "label"
    names: Mapped | None = None
    templates: Literal[tuple(TEMPLATES)] | Names = "plain"  # type: ignore[valid-type]


class GenerationConfig(Section):
    """Settings of image generation, and the models that read the images.

    Attributes
    ----------
    probe : str
        A dual encoder, which tells subjects and values of attributes from images.
    teacher : str, optional
        A dual encoder of `hf:` or `open_clip:` by which recipes learn; the probe unless given.
    images : int
        Of each prompt.
    steps, guidance, negative_prompt
        As of `Sampling`.
    """

    probe: Name
    teacher: Name | None = None
    images: PositiveInt = 20
    steps: PositiveInt = 50
    guidance: Guidance = 7.5
    negative_prompt: str | None = None


class Config(LoadConfig):
    """Data, recipes and measures of a mitigation.

    Attributes
    ----------
    study : str, optional
        Published study whose tables the report shows beside the changes.
    model : str, optional
        A dual encoder, as `load_model` takes it, or with `generation` a model that makes images; a
        folder may be given relative to the file.
    models : mapping of str to str
        In place of `model`: models by the folder of `output` that gets what each becomes. All learn
        from the same subjects.
    generation : GenerationConfig, optional
    floor : str, optional
        A model without the bias: how low numbers can be expected to fall.
    images : SetsConfig
    prompts : PromptsConfig
    recipes : mapping of str to Recipe
        By the name of the model to write.
    withheld : float or tuple of str
        Share of the subjects, or the subjects, to withhold.
    validation : float
        Share of the others on which losses are watched; 0: none.
    zero_shot, retrieval : mapping of str to LabelsConfig and PairsConfig
        Data sets for the price.
    group_sources : mapping of str to GroupSourceConfig
        Where attributes of `images` are from. Changes of disparities between the values that a
        model predicted have no verdict.
    output : Path
        Folder that gets one folder for each recipe, and `report`.
    seed : int
    """

    study: StudyName | None = None
    model: Name | None = None
    models: Mapping[FolderName, Name] = {}
    generation: GenerationConfig | None = None
    floor: Name | None = None
    images: SetsConfig
    prompts: PromptsConfig = PromptsConfig()
    recipes: Annotated[dict[FolderName, AnyRecipe], Field(min_length=1)]
    withheld: Level | Names = 0.2
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.2
    zero_shot: dict[Name, LabelsConfig] = Field(default_factory=dict)
    retrieval: dict[Name, PairsConfig] = Field(default_factory=dict)
    group_sources: dict[Name, GroupSourceConfig] = Field(default_factory=dict)
    output: FilePath
    seed: NonNegativeInt = 0

    @field_validator("recipes")
    @classmethod
    def _named(cls, recipes: dict[str, AnyRecipe]) -> dict[str, AnyRecipe]:
        """Give each recipe the name of its folder."""
        for name, recipe in recipes.items():
            if "name" in recipe.model_fields_set and recipe.name != name:
                raise ValueError(f"{name}.name: {recipe.name!r}; expected no other name")
        return {name: recipe.model_copy(update={"name": name}) for name, recipe in recipes.items()}

    @model_validator(mode="after")
    def _check_mitigation(self) -> Self:
        only_one(self, "model", "models")
        if self.generation and (self.zero_shot or self.retrieval):
            raise ValueError("zero_shot, retrieval: neither goes with 'generation'")
        for name in self.group_sources:
            if name not in self.images.attributes:
                raise ValueError(
                    f"group_sources.{name}: no attribute of the images; expected one of "
                    f"{', '.join(self.images.attributes)}"
                )
        for name, recipe in self.recipes.items():
            if recipe.makes_images != bool(self.generation):
                models = "models with" if recipe.makes_images else "dual encoders, without"
                raise ValueError(f"recipes.{name}: {recipe.recipe} is for {models} 'generation'")
            if isinstance(recipe, MatchedPrompts | SubspaceProjection) and (
                problem := recipe.problem(self.images.attributes)
            ):
                raise ValueError(f"recipes.{name}.{problem}")
        return self

    def by_model(self) -> "Mapping[str, Config]":
        """Return the configuration of each model by its folder, "" of a single one."""
        if self.model is not None:
            return {"": self}
        return {
            name: self.model_copy(
                update={"model": model, "models": {}, "output": self.output / name}
            )
            for name, model in self.models.items()
        }

    def report(self, base: Path) -> Path:
        """Return the folder of the run; `base` is that of relative paths."""
        return base / self.output / REPORT
