"""The configuration of an audit of text-to-image models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from equipoise.audits.config_arrays import ArrayConfig
from equipoise.audits.config_fields import Label, Labels, Section
from equipoise.audits.config_sections import AuditConfig, among, file_names
from equipoise.audits.running.config import RunConfig
from equipoise.audits.text_to_image.config_generators import GeneratorConfig
from equipoise.audits.text_to_image.config_prompts import PromptsConfig
from equipoise.audits.text_to_image.config_shares import SharesConfig


class ModelConfig(RunConfig):
    """A model that looks at the images: how to run it, or the vectors that it gave.

    Attributes
    ----------
    images : mapping of str to ArrayConfig
        By generator, the vectors of its images.
    texts : ArrayConfig, optional
        The vectors of texts: every prompt, and those of classes; ids are the texts themselves.
    labelled : mapping of str to ArrayConfig
        By entry of `shares` (its `of`), the vectors of the labelled images.
    scale : float, optional
        What makes a logit of a cosine, for probabilities of classes: the model's own where it is
        run, 100 unless given.
    """

    images: Mapping[Label, ArrayConfig] = Field(default_factory=dict)
    texts: ArrayConfig | None = None
    labelled: Mapping[Label, ArrayConfig] = Field(default_factory=dict)
    scale: Annotated[float, Field(gt=0, strict=False)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> ModelConfig:
        self.excludes({"images": self.images, "texts": self.texts, "labelled": self.labelled})
        if self.model is None and not (self.images and self.texts is not None):
            lacks = "texts" if self.images else "images"
            raise ValueError(
                f"{lacks!r} is missing. To do: name the vectors of images and of texts, or under "
                "'model' what to run"
            )
        return self


class AssociationsConfig(Section):
    """What is measured in the space of the encoders.

    Attributes
    ----------
    pairs : list of two str each
        Sets of attributes that targets lean between; the first two unless given. The others are
        the further groups of xMCAS.
    encoders : list of str
        Entries of `models`; all that embed images and texts unless given.
    clusters : str
        What is resampled: `seed`, images of one noise together; or `prompt`, for inference over
        prompts, of which each set of attributes then needs ten.
    offset : float
        k of xMCAS.
    span : float
        Share of the targets in each local fit of amplification on diffusion bias.
    """

    pairs: Annotated[
        tuple[Annotated[tuple[Label, Label], Field(strict=False)], ...], Field(strict=False)
    ] = ()
    encoders: Labels = ()
    clusters: Literal["seed", "prompt"] = "seed"
    offset: float = 0.0
    span: Annotated[float, Field(gt=0, le=1)] = 2.0 / 3.0


class Config(AuditConfig):
    """The configuration of an audit of text-to-image models; see docs/audits/text_to_image.md.

    Attributes
    ----------
    prompts : PromptsConfig
    generators : mapping of str to GeneratorConfig
        Side by side.
    models : mapping of str to ModelConfig
        Those that look at the images.
    associations : AssociationsConfig, optional
        Null to measure none.
    shares : list of SharesConfig
    """

    audit: Literal["text_to_image"]
    prompts: PromptsConfig
    generators: Annotated[
        Mapping[Annotated[Label, Field(min_length=1)], GeneratorConfig], Field(min_length=1)
    ]
    models: Mapping[Annotated[Label, Field(min_length=1)], ModelConfig] = Field(
        default_factory=dict
    )
    associations: AssociationsConfig | None = AssociationsConfig()
    shares: Annotated[tuple[SharesConfig, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _something_is_measured(self) -> Config:
        file_names(self.generators)
        if self.pairs and not self.models:
            raise ValueError("models: required, and missing: what embeds the images and prompts")
        if not self.pairs and not self.shares:
            raise ValueError(
                "nothing to measure: expected two sets of prompts.attributes, or an entry of shares"
            )
        for index, pair in enumerate(self.pairs):
            for name in pair:
                among(f"associations.pairs[{index}]", name, [*self.prompts.attribute_texts])
            if pair[0] == pair[1]:
                raise ValueError(f"associations.pairs[{index}]: {pair[0]!r} is there twice")
        for name in self.associations.encoders if self.associations else ():
            among("associations.encoders", name, [*self.models])
        return self

    @model_validator(mode="after")
    def _shares_can_be_asked(self) -> Config:
        seen: set[str] = set()
        for index, one in enumerate(self.shares):
            among(f"shares[{index}].model", one.model, [*self.models])
            for name in one.said:
                among(f"shares[{index}].said", name, [*self.generators])
            if one.of in seen:
                raise ValueError(f"shares[{index}].of: {one.of!r} is there twice")
            seen.add(one.of)
        for name, model in self.models.items():
            for generator in model.images:
                among(f"models.{name}.images", generator, [*self.generators])
            for of in model.labelled:
                among(f"models.{name}.labelled", of, [*seen])
        return self

    @model_validator(mode="after")
    def _prompts_are_many_enough(self) -> Config:
        if self.associations is None or self.associations.clusters != "prompt":
            return self
        for name, texts in self.prompts.attribute_texts.items():
            if len(texts) < 10:
                raise ValueError(
                    f"associations.clusters: prompt needs ten prompts of each set of attributes, "
                    f"and {name!r} has {len(texts)}"
                )
        return self

    @property
    def model_names(self) -> tuple[str, ...]:
        """Names of the generators."""
        return (*self.generators,)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the pairs and of the shares, for the gate."""
        return (*(" against ".join(pair) for pair in self.pairs), *(s.of for s in self.shares))

    @property
    def attributes_section(self) -> None:
        """Groups are named by prompts: no section has them."""
        return

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Sets of attributes that targets lean between."""
        names = (*self.prompts.attribute_texts,)
        if self.associations is None or len(names) < 2:
            return ()
        return self.associations.pairs or ((names[0], names[1]),)

    @property
    def encoders(self) -> tuple[str, ...]:
        """Models whose space associations are measured in."""
        if not self.pairs or self.associations is None:
            return ()
        answers = {one.model for one in self.shares if one.question is not None}
        return self.associations.encoders or tuple(n for n in self.models if n not in answers)
