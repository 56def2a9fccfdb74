"""The configuration of an audit of activations."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from equipoise.audits.config import AuditConfig
from equipoise.config.fields import (
    ArrayConfig,
    Group,
    Label,
    Labels,
    Models,
    Name,
    Names,
    RunConfig,
    Section,
    Share,
    Some,
    among,
    columns_of,
)
from equipoise.config.images import PicturesConfig
from equipoise.core import MIN_SIZE, Strings


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) and value != "all" else value


Blur = Annotated[Literal["all"] | Labels, BeforeValidator(_listed)]
"""What is blurred in pictures: "all" of them, or regions by name."""

Method = Literal["gradcam", "gradcam++", "hirescam", "layercam", "xgradcam"]


class RegionConfig(Section):
    """Columns of a box, in pixels of the image.

    Attributes
    ----------
    left, top, right, bottom : str
        An image without a box has empty cells.
    """

    left: Name
    top: Name
    right: Name
    bottom: Name

    @property
    def columns(self) -> tuple[str, str, str, str]:
        """The columns, in order."""
        return self.left, self.top, self.right, self.bottom


class DataConfig(Section):
    """The images, and the regions on them.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    groups : list of str or list of str
        Attributes to compare by; a list within the list: the intersections.
    regions : mapping of str to RegionConfig
        Boxes by name, such as "face" and "tool".
    target : str, optional
        Column of what a model is asked for in each image: a label, a text, an answer. Needed by
        models to run without a `target` of their own.
    unit : str, optional
        Column of the unit that images repeat within, such as the person shown.
    min_group_size : int
        Smaller groups are shown, and not compared.
    max_unmatched : float
        Largest share of images without a map, and the other way round.
    """

    images: PicturesConfig
    groups: Some[Group]
    regions: Annotated[Mapping[Name, RegionConfig], Field(min_length=1)]
    target: Name | None = None
    unit: Name | None = None
    min_group_size: PositiveInt = MIN_SIZE
    max_unmatched: Share = 0.01

    @property
    def columns(self) -> Strings:
        """Columns of the table that are needed."""
        boxes = [name for region in self.regions.values() for name in region.columns]
        return columns_of(self.groups, *boxes, self.target, self.unit)


class ModelConfig(RunConfig):
    """One model: how to run it, or the maps that were made of it.

    Attributes
    ----------
    target : str, optional
        What the model is asked for in every image, in place of `data.target`.
    question : str
        Of a model that answers questions.
    method : str
        How activations are weighed.
    layer : str, optional
        The layer that maps are made of; see docs/explain.md for the default.
    maps : ArrayConfig, optional
        One row of cells per image, row after row of the map.
    frames : ArrayConfig, optional
        Four numbers per image: left, top, right and bottom of what the map lies over, in the units
        of the boxes. Without it boxes are shares of the map, from 0 to 1.
    """

    of_run = ("target", "question", "method", "layer")
    of_files = ("maps", "frames")
    needed = ("maps",)
    target: Label | None = None
    question: str = ""
    method: Method = "gradcam"
    layer: Name | None = None
    maps: ArrayConfig | None = None
    frames: ArrayConfig | None = None


class QuestionsConfig(Section):
    """Questions to models about two people in every image.

    Attributes
    ----------
    prompts : list of str
        Texts, or questions to models that have a `target`: an answer.
    controls : list of str
        Prompts that say nothing about either person; what they show is taken away.
    persons : list of 2 str
        The two regions that are compared: shares on the first less those on the second.
    mirror : bool
        Whether maps are means with those of mirrored images, in which left and right cancel.
    occlusion : bool
        Whether each person is hidden in turn, and the model asked again.
    """

    prompts: Some[Label]
    controls: Labels = ()
    persons: Annotated[Names, Field(min_length=2, max_length=2)]
    mirror: bool = True
    occlusion: bool = True

    @property
    def all_prompts(self) -> Strings:
        """All prompts, controls last."""
        return tuple(dict.fromkeys((*self.prompts, *self.controls)))


class Config(AuditConfig):
    """The configuration of an audit of activations; see docs/audits/activations.md.

    Attributes
    ----------
    data : DataConfig
    models : mapping of str to ModelConfig
    questions : QuestionsConfig, optional
        Questions about two people in one image, in place of the comparison of groups.
    gallery : int
        Pictures of each group in the report.
    blur : "all" or list of str
        Regions that are blurred in these pictures; nothing unless given.
    """

    audit: Literal["activations"]
    data: DataConfig
    models: Models[ModelConfig]
    questions: QuestionsConfig | None = None
    gallery: Annotated[int, Field(ge=0, le=12)] = 4
    blur: Blur = ()

    @model_validator(mode="after")
    def _check_activations(self) -> Self:
        among("blur", () if self.blur == "all" else self.blur, self.data.regions)
        asks = self.questions is not None
        if self.questions is not None:
            among("questions.persons", self.questions.persons, self.data.regions)
        for name, model in self.models.items():
            if asks and model.model is None:
                raise ValueError(f"models.{name}.model: required, and missing: questions are asked")
            if model.model is not None and model.target is None and self.data.target is None:
                if asks:
                    continue
                raise ValueError(
                    f"models.{name}.target: required, and missing: the class to map, "
                    "as data.target names no column"
                )
        return self
