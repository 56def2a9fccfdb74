"""The section that says what is asked about the quality of the sets."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from equipoise.audits.config_arrays import ArrayConfig, ItemsConfig
from equipoise.audits.config_fields import Label, Labels, Name, Section
from equipoise.audits.pictures.config import PicturesConfig
from equipoise.metrics.quality.confusable import MARGIN, THRESHOLD
from equipoise.metrics.quality.labels import GOOD


class PeopleConfig(ItemsConfig):
    """What people said of images: a table with a row per image that was looked at.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    id : str
        Column of the image's id.
    label : str
        Column of what was said.
    good : str
        The label without an error; all others are errors.
    discernible : list of str
        Labels of images that show their attribute, for the detector; `good` alone unless given.
    detected : str, optional
        Column that says whether the attribute was detected.
    yes : list of str
        Texts of that column that say so; all others say no.
    """

    label: Name
    good: Label = GOOD
    discernible: Labels = ()
    detected: Name | None = None
    yes: Labels = ("yes", "true", "True", "1")

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are needed."""
        return (self.label,) if self.detected is None else (self.label, self.detected)


class QualityConfig(Section):
    """What is asked about the quality of the sets.

    Attributes
    ----------
    reference : PicturesConfig, optional
        Images that those of the sets are compared with, in every model's features.
    labels : PeopleConfig, optional
        What people said of images.
    probabilities : ArrayConfig, optional
        A classifier's probabilities of the images, one column per class.
    pose, background : ArrayConfig, optional
        Vectors of the images that say how what they show is posed, and what is behind it.
    layout : bool
        Make both of the pictures: directions of edges inside, colours of the border.
    confusable : float
        Cosine from which two subjects' prompts are one to a model.
    margin : float
        How far above chance a subject's zero-shot accuracy has to be.
    """

    reference: PicturesConfig | None = None
    labels: PeopleConfig | None = None
    probabilities: ArrayConfig | None = None
    pose: ArrayConfig | None = None
    background: ArrayConfig | None = None
    layout: bool = False
    confusable: Annotated[float, Field(gt=-1, le=1)] = THRESHOLD
    margin: Annotated[float, Field(ge=0, lt=1)] = MARGIN

    @model_validator(mode="after")
    def _one_source(self) -> QualityConfig:
        given = [name for name in ("pose", "background") if getattr(self, name) is not None]
        if self.layout and given:
            raise ValueError(
                f"'layout' and {given[0]!r} are given; expected 'layout' to describe the pictures, "
                "or vectors of your own"
            )
        return self
