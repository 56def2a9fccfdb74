"""The configuration of `equipoise neurons`: one strict schema, the same in YAML and Python."""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from equipoise.audits.config_fields import FilePath, LoadConfig, Name, Section, Some, Table
from equipoise.audits.studies import StudyName
from equipoise.data import TEMPLATES
from equipoise.mitigate.config import ImagesConfig
from equipoise.mitigate.recipe import Names
from equipoise.models.edits import Mode

Kind = Literal["units", "heads", "features", "texts"]


class GroupedImages(ImagesConfig):
    """Images with their groups."""

    group: Name
    within: Name | None = None
    unit: Name | None = None
    caption: Name | None = None
    label: Name | None = None
    templates: Literal[tuple(TEMPLATES)] | Names = "plain"  # type: ignore[valid-type]


class GroupedTexts(Section):
    """Texts with their groups."""

    table: Table
    text: Name = "text"
    group: Name
    within: Name | None = None
    layers: Names | None = None


class Dictionary(Section):
    """The file of a sparse autoencoder, and the layer it was trained on."""

    file: FilePath
    layer: Name


class Config(LoadConfig):
    """Data, components and edits of a study.

    Attributes
    ----------
    study : str, optional
        Published study that this is part of.
    model : str
        As `load_model` takes it; it runs on torch.
    images : GroupedImages
    concepts : mapping of str to list of str
        Texts of each concept; see `Trial`.
    kinds : list of str
        Components to look for: `units`, `heads`, `features`, and `texts`: units of the text tower.
    texts : GroupedTexts, optional
        That units of the text tower are looked for in.
    dictionary : Dictionary, optional
    layers : list of str, optional
        That units are looked for in.
    text : str
        That a matching model holds against each image.
    counts : list of int
        Numbers of components to change.
    mode, alpha
        See `choose_units`.
    random, replicates
        See `sweep_units`.
    k : int
        Images that are retrieved for a concept.
    shown, seeds, steps : int
        Components of a kind whose images are shown, images made for each, and steps that it takes.
    output : Path
        Folder that gets `report` and the edits.
    seed : int
    """

    study: StudyName | None = None
    model: Name
    images: GroupedImages
    concepts: Annotated[dict[Name, Names], Field(min_length=2)]
    kinds: Some[Kind] = ("units",)
    texts: GroupedTexts | None = None
    dictionary: Dictionary | None = None
    layers: Names | None = None
    text: str = ""
    counts: Some[PositiveInt] = (1, 2, 4, 8, 16, 32)
    mode: Mode = "clamp"
    alpha: Annotated[float, Field(gt=0, le=1)] = 0.05
    random: NonNegativeInt = 100
    replicates: Annotated[int, Field(ge=100)] = 1000
    k: PositiveInt = 100
    shown: NonNegativeInt = 4
    seeds: PositiveInt = 3
    steps: PositiveInt = 64
    output: FilePath
    seed: NonNegativeInt = 0

    @model_validator(mode="after")
    def _check_neurons(self) -> Self:
        for kind, name in (("texts", "texts"), ("features", "dictionary")):
            if (kind in self.kinds) != (getattr(self, name) is not None):
                raise ValueError(f"'{name}' goes with {kind!r} in 'kinds'; expected both or none")
        return self
