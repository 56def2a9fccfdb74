"""The configuration of an audit of generation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from equipoise.audits.config_fields import Group, Label, Name, distinct
from equipoise.audits.config_sections import AuditConfig, among, group_name
from equipoise.audits.generation.config_filters import FiltersConfig
from equipoise.audits.generation.config_inputs import (
    CaptionsConfig,
    GeneratorConfig,
    ImagesConfig,
)
from equipoise.audits.running.config import RunConfig


class Config(AuditConfig):
    """The configuration of an audit of generation; see docs/audits/generation.md for every key.

    Attributes
    ----------
    captions : CaptionsConfig, optional
        Whose images `generator` makes.
    generator : GeneratorConfig, optional
    images : ImagesConfig, optional
        Images that were made before, in place of both.
    attributes : list of str
        Types of attributes that vary within sets: columns of `images`.
    groups : list of str or list of str
        Attributes to compare by; a list within the list: the intersections. Each attribute unless
        given.
    filters : FiltersConfig
    min_group_size : int
        Groups of fewer images are shown, and not compared.
    name : str, optional
        How findings call where the images are from; the generator's name, or "images", unless
        given.
    gallery : int
        Sets that the report shows of the kept ones, and of those rejected at each stage.
    blur : "all", optional
        Whether these pictures are blurred.
    write_sets : bool
        Whether the kept sets are written as a data set, in the store.
    """

    audit: Literal["generation"]
    captions: CaptionsConfig | None = None
    generator: GeneratorConfig | None = None
    images: ImagesConfig | None = None
    attributes: Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(distinct)] = ()
    groups: Annotated[tuple[Group, ...], Field(strict=False), AfterValidator(distinct)] = ()
    filters: FiltersConfig = FiltersConfig()
    min_group_size: Annotated[int, Field(ge=1)] = 30
    name: Label | None = None
    gallery: Annotated[int, Field(ge=0, le=100)] = 3
    blur: Literal["all"] | None = None
    write_sets: bool = True

    @model_validator(mode="after")
    def _one_source(self) -> Config:
        if self.images is None:
            for key in ("captions", "generator"):
                if getattr(self, key) is None:
                    raise ValueError(
                        f"{key}: required, and missing, where there are no 'images' made before"
                    )
            if self.attributes:
                raise ValueError("attributes: given, and captions name their own")
        elif self.captions is not None or self.generator is not None:
            raise ValueError("images: given beside captions or a generator; expected one source")
        elif not self.attributes:
            raise ValueError("attributes: required, and missing: which columns vary within sets")
        return self

    @model_validator(mode="after")
    def _models_can_look(self) -> Config:
        plain = self.images is not None and self.images.table is not None
        assert self.images is not None or not plain  # noqa: S101 - for the type checker
        if plain and self.images is not None and self.images.path is None and self.models:
            named = next(iter(self.models))
            raise ValueError(
                f"images.path: required, and missing: filters.{named}.model looks at the images"
            )
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Config:
        types = [*self.types]
        for index, group in enumerate(self.groups):
            for name in group:
                among(f"groups[{index}]", name, types)
        shown = self.filters.attributes
        if shown is not None:
            for name in shown.labels.columns if shown.labels is not None else ():
                among("filters.attributes.labels.columns", name, types)
            for name in shown.templates if isinstance(shown.templates, Mapping) else ():
                among("filters.attributes.templates", name, types)
        for index, rule in enumerate(self.gate):
            names = [group_name(one) for one in self.compared]
            among(f"gate[{index}].groups", group_name(rule.groups or ()) or None, names)
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """Types of attributes that vary within sets."""
        return self.captions.types if self.captions is not None else self.attributes

    @property
    def compared(self) -> tuple[tuple[str, ...], ...]:
        """Attributes to compare by."""
        return self.groups or tuple((name,) for name in self.types)

    @property
    def models(self) -> dict[str, RunConfig]:
        """The filters that run a model, by their name."""
        found = {
            "similarity": self.filters.similarity,
            "content": self.filters.content,
            "attributes": self.filters.attributes,
        }
        return {name: one for name, one in found.items() if one is not None and one.model}

    @property
    def called(self) -> str:
        """How findings call where the images are from."""
        if self.name is not None:
            return self.name
        return "images" if self.generator is None else self.generator.called
