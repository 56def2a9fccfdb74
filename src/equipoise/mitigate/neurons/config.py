"""The configuration of `equipoise neurons`: one strict schema, the same in YAML and Python."""

from itertools import chain
from typing import Annotated, Literal, Self, get_args

from pydantic import AfterValidator, Field, NonNegativeInt, PositiveInt, model_validator

from equipoise.config.fields import (
    FilePath,
    LoadConfig,
    Name,
    OneOrMore,
    Section,
    Some,
    Table,
    TextsConfig,
    among,
)
from equipoise.data import TEMPLATES
from equipoise.mitigate.config import ImagesConfig, PairsConfig
from equipoise.mitigate.neurons.choosing import Rank
from equipoise.mitigate.recipe import Names
from equipoise.mitigate.subspace import Centre
from equipoise.models.edits import Mode
from equipoise.studies.names import StudyName

Part = Literal["units", "heads", "features", "texts", "subspace", "text_subspace"]
_PLUS = "+"


def parts_of(kind: str) -> list[Part]:
    """Return the kinds that are changed together: "units+texts" is both towers."""
    return kind.split(_PLUS)  # type: ignore[return-value]


def _kind(kind: str) -> str:
    among("kinds", kind.split(_PLUS), get_args(Part))
    return kind


Kind = Annotated[str, AfterValidator(_kind)]
"""A kind of component, or several that are changed together, joined by "+"."""


class GroupedImages(ImagesConfig):
    """Images with their groups."""

    group: Name
    within: Name | None = None
    unit: Name | None = None
    pair: Name | None = None
    caption: Name | None = None
    neutral_caption: Name | None = None
    label: Name | None = None
    templates: Literal[tuple(TEMPLATES)] | Names = "plain"  # type: ignore[valid-type]


class GroupedTexts(Section):
    """Texts with their groups."""

    table: Table
    text: Name = "text"
    group: Name
    within: Name | None = None
    pair: Name | None = None
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
    words : TextsConfig, optional
        Further concepts: a table of texts.
    retrieval : PairsConfig, optional
        Other images, with captions, on which recall is measured.
    kinds : list of str
        Components to look for: `units`, `heads`, `features`, `texts` (units of the text tower),
        `subspace` and `text_subspace` (directions of a layer). "units+texts" changes both at once.
    texts : GroupedTexts, optional
        That units of the text tower are looked for in.
    dictionary : Dictionary, optional
    layers : list of str, optional
        That units are looked for in.
    text : str
        That a matching model holds against each image.
    rank : "auroc" or "relevance"
        See `find_units`.
    centre : "pair" or "group"
        See `find_subspace`.
    counts : list of int
        Numbers of components to change; 0 is the model as it is.
    mode : str or list of str
    alpha
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
    words: TextsConfig | None = None
    retrieval: PairsConfig | None = None
    kinds: Some[Kind] = ("units",)
    texts: GroupedTexts | None = None
    dictionary: Dictionary | None = None
    layers: Names | None = None
    text: str = ""
    rank: Rank = "auroc"
    centre: Centre = "pair"
    counts: Some[NonNegativeInt] = (1, 2, 4, 8, 16, 32)
    mode: OneOrMore[Mode] = ("clamp",)
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
        parts = {*chain.from_iterable(map(parts_of, self.kinds))}
        for kinds, name in ((("texts", "text_subspace"), "texts"), (("features",), "dictionary")):
            if bool(parts & {*kinds}) != (getattr(self, name) is not None):
                listed = " or ".join(map(repr, kinds))
                raise ValueError(f"'{name}' goes with {listed} in 'kinds'; expected both or none")
        if not any(self.counts):
            raise ValueError("counts: expected a number above 0")
        for part, section, layers in (
            ("subspace", self.images, self.layers),
            ("text_subspace", self.texts, None if self.texts is None else self.texts.layers),
        ):
            if part not in parts:
                continue
            if layers is None or len(layers) != 1:
                raise ValueError(f"layers: {part!r} needs one layer, whose outputs are vectors")
            if self.centre == "pair" and section is not None and section.pair is None:
                raise ValueError(
                    f"pair: {part!r} needs a column that identifies pairs, or 'centre: group'"
                )
        if self.images.neutral_caption is not None and self.images.caption is None:
            raise ValueError("images.neutral_caption: expected 'images.caption', too")
        if self.retrieval is not None and self.images.caption is not None:
            raise ValueError("retrieval: recall is of one data set; expected no 'images.caption'")
        return self
