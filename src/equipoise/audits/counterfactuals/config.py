"""The configuration of an audit of counterfactual sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, PlainSerializer, PlainValidator, model_validator

from equipoise.audits.config_fields import (
    ArrayConfig,
    ItemsConfig,
    Label,
    Labels,
    Models,
    Name,
    Section,
    Some,
    distinct,
)
from equipoise.audits.config_images import PicturesConfig
from equipoise.audits.engines.rankings import config as rankings
from equipoise.audits.engines.rankings.config import RankingAudit
from equipoise.data.lexicons import lexicon
from equipoise.metrics.rankings.measures import RankingMeasure
from equipoise.metrics.values.labels import GOOD
from equipoise.metrics.vectors.quality import MARGIN, THRESHOLD

MEASURES: tuple[RankingMeasure, ...] = ("max_skew", "min_skew", "skew_at_k", "ndkl", "bias_at_k")
_ALWAYS = ("max_skew", "ndkl")


def _prefixes(value: object) -> str | tuple[str, ...]:
    """Take the name of the list of prefixes, or prefixes."""
    if value == "howard_2024":
        return "howard_2024"
    texts = value if isinstance(value, list | tuple) else ()
    fits = (isinstance(each, str) and each.strip() and each.count("{}") < 2 for each in texts)
    if not texts or not all(fits):
        raise ValueError(
            "expected howard_2024, or a list of texts such as 'A photo of a', with '{}' at most "
            "once, where the subject goes"
        )
    return distinct(tuple(texts))


Prefixes = Annotated[
    str | tuple[str, ...],
    PlainValidator(_prefixes),
    PlainSerializer(lambda value: value if isinstance(value, str) else [*value]),
]
"""Name of the list of prefixes, or prefixes."""


class DataConfig(rankings.DataConfig):
    """The counterfactual sets.

    Attributes
    ----------
    images : PicturesConfig
        What the images are: a table, a folder, or a data set in its own format.
    groups : list of str or list of str
        Attributes that vary within the sets: a list within the list, their intersections.
    subject : str
        Column of what an image shows besides: each prompt ranks the images of its own subject.
    sets : str
        Column of the counterfactual set.
    """

    subject: Name = "subject"
    sets: Name = "set"


class ModelConfig(rankings.ModelConfig):
    """One model: how to run it, or what it said before.

    Attributes
    ----------
    reference : ArrayConfig, optional
        Its embeddings of the images of `quality.reference`, where it is not run.
    """

    reference: ArrayConfig | None = None

    @model_validator(mode="after")
    def _reference_is_of_files(self) -> ModelConfig:
        self.excludes("reference")
        return self


class ProtocolConfig(rankings.RankingConfig):
    """What is measured of each subject's ranking, see `RankingConfig`.

    Attributes
    ----------
    measures : list of str
        MaxSkew and NDKL among them.
    """

    measures: Some[RankingMeasure] = MEASURES
    similarity: bool = False

    @model_validator(mode="after")
    def _with_chance(self) -> ProtocolConfig:
        missing = [name for name in _ALWAYS if name not in self.measures]
        if missing:
            raise ValueError(
                f"measures: {missing[0]} is missing; {' and '.join(_ALWAYS)} stand beside their "
                "chance levels in every report of counterfactual sets"
            )
        return self


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
    confusable: Annotated[float, Field(gt=-1, le=1)] = THRESHOLD
    margin: Annotated[float, Field(ge=0, lt=1)] = MARGIN


class Config(RankingAudit):
    """The configuration of an audit of counterfactual sets; docs/audits/counterfactuals.md.

    Attributes
    ----------
    prefixes : str or list of str
        What neutral prompts of the images' subjects begin with, where there is no table of
        `queries`.
    quality : QualityConfig, optional
        What is asked about the quality of the sets.
    """

    audit: Literal["counterfactuals"]
    data: DataConfig
    models: Models[ModelConfig]
    quality: QualityConfig | None = None
    prefixes: Prefixes = "howard_2024"
    ranking: ProtocolConfig = ProtocolConfig()

    @property
    def openings(self) -> Sequence[str]:
        """The prefixes themselves."""
        if isinstance(self.prefixes, str):
            found: Sequence[str] = lexicon(self.prefixes).content["prefixes"]
            return found
        return self.prefixes

    @model_validator(mode="after")
    def _references_go_together(self) -> Config:
        asked = self.quality is not None and self.quality.reference is not None
        for name, model in self.models.items():
            if model.reference is not None and not asked:
                raise ValueError(
                    f"models.{name}.reference: the images it embeds are not named; expected "
                    "'quality.reference'"
                )
            if asked and model.model is None and model.images and model.reference is None:
                raise ValueError(
                    f"models.{name}.reference: required, and missing: the embeddings of the images "
                    "of 'quality.reference'"
                )
        return self

    @model_validator(mode="after")
    def _prompts_are_named(self) -> Config:
        if self.queries is not None:
            if self.prefixes != "howard_2024":
                raise ValueError(
                    "'queries' and 'prefixes' are given; expected 'queries' for prompts of your "
                    "own, or 'prefixes' to make them of the images' subjects"
                )
            return self
        for name, model in self.models.items():
            if model.queries is not None:
                raise ValueError(
                    f"queries: required, and missing: model {name!r} has embeddings of prompts, "
                    "which the table of queries names"
                )
        return self
