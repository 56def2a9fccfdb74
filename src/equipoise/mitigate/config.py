"""The configuration of `equipoise mitigate`: one strict schema, the same in YAML and Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    model_validator,
)

from equipoise.data import TEMPLATES
from equipoise.mitigate.contrastive import Contrastive
from equipoise.mitigate.distillation import TextDistillation
from equipoise.mitigate.ensembling import PromptEnsemble
from equipoise.mitigate.matching import MatchedPrompts, problem_of
from equipoise.mitigate.projection import DirectionRemoval
from equipoise.mitigate.recipe import Recipe
from equipoise.mitigate.shrinkage import SetShrinkage


class Section(BaseModel):
    """A part of the configuration: frozen, strictly typed, without unknown keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, arbitrary_types_allowed=True
    )


def _path(value: object) -> object:
    if isinstance(value, Path) or (isinstance(value, str) and value and "\0" not in value):
        return Path(value)
    raise ValueError("expected the path of a file or folder")


def _table(value: object) -> object:
    frame = any(
        hasattr(value, n) for n in ("__arrow_c_stream__", "__narwhals_dataframe__", "columns")
    )
    return value if frame else _path(value)


def _distinct(values: tuple[str, ...]) -> tuple[str, ...]:
    if len({*values}) < len(values):
        raise ValueError("expected a list that names nothing twice")
    return values


def _name(value: str) -> str:
    if value in (".", "..") or any(c in value for c in "/\\:\0") or value.startswith("."):
        raise ValueError("expected a name that a folder can have, without slashes and colons")
    return value


Name = Annotated[str, Field(min_length=1)]
FolderName = Annotated[Name, AfterValidator(_name)]
FilePath = Annotated[Path, BeforeValidator(_path), PlainSerializer(Path.as_posix)]
Table = Annotated[
    Any,
    BeforeValidator(_table),
    PlainSerializer(lambda value: value.as_posix() if isinstance(value, Path) else "(data frame)"),
]
Names = Annotated[tuple[Name, ...], Field(strict=False, min_length=1), AfterValidator(_distinct)]
Rate = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=1)]
OpenShare = Annotated[float, Field(gt=0, lt=1)]
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class ImagesConfig(Section):
    """A table of images: where it is, its ids, and where the files lie."""

    table: Table
    id: Name = "image_id"
    path: Name = "path"
    root: FilePath | None = None


class SetsConfig(ImagesConfig):
    """Counterfactual sets: images that differ in attributes alone, with their captions."""

    subject: Name = "subject"
    set: Name = "set"
    caption: Name = "caption"
    attributes: Names


class PromptsConfig(Section):
    """Neutral prompts: which name a subject and no attribute."""

    table: Table
    prompt: Name = "prompt"
    subject: Name = "subject"


class PairsConfig(ImagesConfig):
    """Images with a caption each."""

    caption: Name = "caption"


class LabelsConfig(ImagesConfig):
    """Images with a class each."""

    label: Name = "label"
    templates: Literal[tuple(TEMPLATES)] | Names = "plain"  # type: ignore[valid-type]


class ContrastiveConfig(Section):
    """Counterfactual fine-tuning."""

    recipe: Literal["contrastive"]
    epochs: Count = 1
    batch: Annotated[int, Field(ge=2)] = 32
    learning_rate: Rate = 5e-6
    penalty: Annotated[float, Field(ge=0)] = 0.0
    mix: Annotated[float, Field(ge=0)] = 0.0
    towers: Literal["both", "texts", "images"] = "both"
    looks: Count = 4
    patience: Count = 4
    dtype: Dtype = "auto"

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return Contrastive(name, **_options(self))


class DistillationConfig(Section):
    """Text-tower distillation."""

    recipe: Literal["text_distillation"]
    steps: Count = 100
    learning_rate: Rate = 1e-5
    subjects: Count = 8
    kept: Count = 128
    look_every: Count = 10
    patience: Count = 4
    dtype: Dtype = "auto"

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return TextDistillation(name, **_options(self))


class EnsembleConfig(Section):
    """Prompt ensembling at query time."""

    recipe: Literal["prompt_ensemble"]

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return PromptEnsemble(name)


class RemovalConfig(Section):
    """Removal of group directions."""

    recipe: Literal["direction_removal"]
    directions: Count | None = None
    removed_from: Literal["texts", "images", "both"] = "both"

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return DirectionRemoval(name, **_options(self))


class ShrinkageConfig(Section):
    """Shrinkage within sets."""

    recipe: Literal["set_shrinkage"]
    strength: Rate | None = None
    allowed_loss: Annotated[float, Field(ge=0, lt=1)] = 0.01

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return SetShrinkage(name, **_options(self))


class MatchedConfig(Section):
    """Neutral prompts averaged with the captions that fit each image."""

    recipe: Literal["matched_prompts"]
    said: dict[Name, Names] | None = None
    directions: bool = True

    def made(self, name: str) -> Recipe:
        """Return the recipe."""
        return MatchedPrompts(name, **_options(self))


def _options(section: Section) -> dict[str, Any]:
    return section.model_dump(exclude={"recipe"})


RecipeConfig = Annotated[
    ContrastiveConfig
    | DistillationConfig
    | EnsembleConfig
    | MatchedConfig
    | RemovalConfig
    | ShrinkageConfig,
    Field(discriminator="recipe"),
]


class Config(Section):
    """What to mitigate, how, and what to measure.

    Attributes
    ----------
    model : str
        A dual encoder, as `load_model` takes it; a folder may be given relative to the file.
    floor : str, optional
        A model without the bias: how low numbers can be expected to fall.
    images : SetsConfig
    prompts : PromptsConfig
    recipes : mapping of str to RecipeConfig
        By the name that the model is to have.
    withheld : float or tuple of str
        Share of the subjects, or the subjects, that nothing is learned from.
    validation : float
        Share of the others on which losses are watched; 0: none.
    pairs : PairsConfig, optional
        To be mixed in, see `mix` of a recipe.
    zero_shot, retrieval : mapping of str to LabelsConfig and PairsConfig
        What the price is measured on.
    output : Path
        Folder that gets one folder for each recipe, and `report`.
    seed : int
    device, dtype : str
    revision : str, optional
    allow_pickle, trust_remote_code : bool
    """

    model: Name
    floor: Name | None = None
    images: SetsConfig
    prompts: PromptsConfig
    recipes: Annotated[dict[FolderName, RecipeConfig], Field(min_length=1)]
    withheld: OpenShare | Names = 0.2
    validation: Annotated[float, Field(ge=0, lt=1)] = 0.2
    pairs: PairsConfig | None = None
    zero_shot: dict[Name, LabelsConfig] = Field(default_factory=dict)
    retrieval: dict[Name, PairsConfig] = Field(default_factory=dict)
    output: FilePath
    seed: Annotated[int, Field(ge=0)] = 0
    device: Name = "auto"
    dtype: Dtype = "auto"
    revision: Name | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        mixing = [
            name
            for name, one in self.recipes.items()
            if isinstance(one, ContrastiveConfig) and one.mix
        ]
        if mixing and self.pairs is None:
            raise ValueError(f"recipes.{mixing[0]}.mix needs `pairs`, the images to mix in")
        for name, one in self.recipes.items():
            said = one.said if isinstance(one, MatchedConfig) else None
            if said is not None and (problem := problem_of(said, self.images.attributes)):
                raise ValueError(f"recipes.{name}.{problem}")
        if "report" in self.recipes:
            raise ValueError(
                "recipes.report: the report lies in a folder of this name; name it else"
            )
        return self
