"""The filters that sets have to pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from equipoise.audits.config_arrays import ArrayConfig, ItemsConfig
from equipoise.audits.config_fields import Labels, Name, Section, Share
from equipoise.audits.running.config import RunConfig
from equipoise.counterfactuals.filters import HOWARD_2024
from equipoise.counterfactuals.filters.thresholds import Thresholds
from equipoise.data import ItemSource

Cosine = Annotated[float, Field(ge=-1, le=1, strict=False)]


def _least(value: object) -> object:
    """Take a number of images or a share of them; 1 could be meant as either."""
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 2
    if whole or (isinstance(value, float) and 0 < value <= 1):
        return value
    raise ValueError("expected a number of images from 2, or a share such as 0.75 (1.0: all)")


Least = Annotated[int | float, BeforeValidator(_least)]

PERSON = "a {} person"


class SimilarityConfig(RunConfig):
    """Every image like its caption, and like the others of its set.

    Attributes
    ----------
    images : ArrayConfig, optional
        Vectors of the images by id, in place of a dual encoder as `model`.
    captions : ArrayConfig, optional
        Vectors in the same space, by the caption itself.
    threshold : float
        What the cosine of an image and its caption must exceed.
    pairs : float, optional
        What the cosine of any two images of a set must exceed; null: not looked at.
    """

    images: ArrayConfig | None = None
    captions: ArrayConfig | None = None
    threshold: Cosine = 0.2
    pairs: Cosine | None = 0.2

    @model_validator(mode="after")
    def _one_reading(self) -> SimilarityConfig:
        self.excludes({"images": self.images, "captions": self.captions})
        if self.model is None and (self.images is None or self.captions is None):
            raise ValueError("expected 'model', or 'images' and 'captions': vectors in one space")
        return self


class ContentConfig(RunConfig):
    """No image that a classifier takes for unsafe.

    Attributes
    ----------
    scores : ArrayConfig, optional
        Probabilities by image and label, in place of a classifier as `model`.
    unsafe : list of str
        Labels that count as unsafe.
    threshold : float
        From which sum of their probabilities on an image is rejected.
    """

    scores: ArrayConfig | None = None
    unsafe: Annotated[Labels, Field(min_length=1)]
    threshold: Share = 0.5

    @model_validator(mode="after")
    def _one_reading(self) -> ContentConfig:
        self.excludes({"scores": self.scores})
        if self.model is None and self.scores is None:
            raise ValueError("expected 'model', a classifier, or 'scores', what one said before")
        return self


class LabelsConfig(ItemsConfig):
    """What people found that sets show.

    Attributes
    ----------
    table : path or data frame
        A row per set of images, or per image.
    id : str
        Column with the candidates' names, such as `doctor#3`, or ids of images: a set shows an
        attribute to people where all of its labelled images do.
    columns : mapping of str to str
        Type of attribute to the column that says whether it is shown.
    yes, no : list of str
        What the cells say.
    missing, encoding, delimiter
        As of other tables; a missing label is none.
    """

    columns: Annotated[Mapping[Name, Name], Field(min_length=1)]
    yes: Labels = ("yes", "true", "1")
    no: Labels = ("no", "false", "0")

    def asked(self, base: Path) -> ItemSource:
        """Return what to read, with paths relative to `base`."""
        return self.source(base, tuple(dict.fromkeys(self.columns.values())))


class AttributesConfig(RunConfig):
    """Enough images of a set that look like their own value of each attribute.

    Attributes
    ----------
    images : ArrayConfig, optional
        Vectors of the images by id. Those of the filter of similarity, or its model, unless given
        and where there is no `model`.
    texts : ArrayConfig, optional
        Vectors of the texts of all values, by the text itself.
    templates : str or mapping of str to str
        The text of a value, with "{}" where it goes: of all types of attributes, or of each. "a"
        and "an" before it follow its sound.
    thresholds : str or mapping
        Images of a set that must show their attribute: `howard_2024`, or for each type a whole
        number from 2, or a share (1.0: all); may differ by the attributes that vary together.
    labels : LabelsConfig, optional
        Labels of people, from which thresholds are learned that `thresholds` does not give.
    """

    images: ArrayConfig | None = None
    texts: ArrayConfig | None = None
    templates: Annotated[str, Field(min_length=1)] | Mapping[Name, str] = PERSON
    thresholds: Literal["howard_2024"] | Mapping[Name, Least | Mapping[Name, Least]] | None = None
    labels: LabelsConfig | None = None

    @model_validator(mode="after")
    def _one_reading(self) -> AttributesConfig:
        self.excludes({"images": self.images, "texts": self.texts})
        given = self.templates.values() if isinstance(self.templates, Mapping) else [self.templates]
        for one in given:
            if one.count("{}") != 1 or one.count("{") != 1:
                raise ValueError(f"templates: {one!r}; expected one '{{}}', where the value goes")
        if self.thresholds is None and self.labels is None:
            raise ValueError(
                "how many images must show their attribute is not said; expected 'thresholds', "
                "such as howard_2024, or 'labels' of people to learn them from"
            )
        return self

    @property
    def given(self) -> Thresholds:
        """The thresholds that are given; those of the source by its name."""
        if self.thresholds == "howard_2024":
            return HOWARD_2024
        return self.thresholds if isinstance(self.thresholds, Mapping) else {}

    def template(self, name: str) -> str:
        """Return the template of a type of attribute."""
        if isinstance(self.templates, Mapping):
            return self.templates.get(name, PERSON)
        return self.templates


class FiltersConfig(Section):
    """The filters, in their order. One that is not given is off.

    Attributes
    ----------
    similarity : SimilarityConfig, optional
    content : ContentConfig, optional
    attributes : AttributesConfig, optional
    best : int, optional
        How many candidates of a set of captions are kept at most: those most like their captions.
    """

    similarity: SimilarityConfig | None = None
    content: ContentConfig | None = None
    attributes: AttributesConfig | None = None
    best: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _something_to_compare_with(self) -> FiltersConfig:
        if self.best is not None and self.similarity is None:
            raise ValueError("best: it goes by the filter of similarity, which is not given")
        shown = self.attributes
        if shown is None or shown.model is not None:
            return self
        if shown.images is None and self.similarity is None:
            raise ValueError(
                "attributes: expected 'model', 'images' with 'texts', or a filter of similarity "
                "whose model looks at the images"
            )
        ran = shown.images is None and self.similarity and self.similarity.model is not None
        if shown.texts is None and not ran:
            raise ValueError("attributes.texts: missing; expected vectors of the values' texts")
        if shown.texts is not None and ran:
            raise ValueError(
                "attributes.texts: given, and the model of filters.similarity makes them; expected "
                "'images' beside them, or none"
            )
        return self
