"""Where counterfactual sets come from: captions and a model, or images that were made before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from equipoise.audits.config_arrays import located
from equipoise.audits.config_fields import (
    Delimiter,
    Encoding,
    FilePath,
    Label,
    Labels,
    Name,
    Section,
    Share,
    Table,
    distinct,
)
from equipoise.audits.config_generators import Generator, Guidance, Seed, Steps
from equipoise.audits.running.config import Device, Dtype
from equipoise.core.errors import InputError
from equipoise.counterfactuals import CaptionSets, caption_sets, howard_2024
from equipoise.counterfactuals.captions import ATTRIBUTES_FIRST
from equipoise.data import ItemSource
from equipoise.models.generators import Sampling

_OWN = ("attributes", "prefixes", "combinations", "template")


Words = Annotated[tuple[Label, ...], Field(strict=False, min_length=1), AfterValidator(distinct)]


class CaptionsConfig(Section):
    """Captions in sets: one prefix and subject, every combination of some attributes.

    Attributes
    ----------
    source : str, optional
        `howard_2024`: those of SocialCounterfactuals, of the `subjects` given or its own.
    subjects : list of str
        Such as occupations.
    attributes : mapping of str to list of str
        Type of attribute to its values.
    prefixes : list of str
        What captions start with.
    combinations : list of lists of str, optional
        Types that vary together; all at once unless given.
    template : str
        Where prefix, attributes and subject stand.
    """

    source: Literal["howard_2024"] | None = None
    subjects: Words | None = None
    attributes: Mapping[Name, Words] = Field(default_factory=dict)
    prefixes: Words = ("A photo of a",)
    combinations: Annotated[
        tuple[Annotated[tuple[Name, ...], Field(strict=False)], ...], Field(strict=False)
    ] | None = None  # fmt: skip
    template: Annotated[str, Field(min_length=1)] = ATTRIBUTES_FIRST

    @model_validator(mode="after")
    def _can_be_made(self) -> CaptionsConfig:
        fields = type(self).model_fields
        if self.source is not None:
            for key in _OWN:
                if getattr(self, key) != fields[key].get_default(call_default_factory=True):
                    raise ValueError(f"{key!r} is given, and {self.source} has its own")
            return self
        for key in ("subjects", "attributes"):
            if not getattr(self, key):
                raise ValueError(f"{key!r} is missing; expected it, or a 'source'")
        self.sets()
        return self

    def sets(self) -> CaptionSets:
        """Return the captions.

        Raises
        ------
        ValueError
            When words repeat, or a combination names no type of attribute.
        """
        try:
            if self.source is not None:
                return howard_2024(self.subjects)
            return caption_sets(
                self.subjects or (),
                self.attributes,
                prefixes=self.prefixes,
                combinations=self.combinations,
                template=self.template,
            )
        except InputError as error:
            raise ValueError(str(error)) from None

    @property
    def types(self) -> tuple[str, ...]:
        """Types of attributes."""
        return ("physical", "race", "gender") if self.source is not None else (*self.attributes,)


class GeneratorConfig(Section):
    """The model that makes the images of captions.

    Attributes
    ----------
    model : str or model
        `diffusers:` and a hub id or folder, or `python:` and module:factory.
    candidates : int
        Sets of images of each set of captions.
    shared : list of two numbers
        From which the share of the steps with shared maps of texts is drawn for each candidate.
    shared_self : number, or list of two, optional
        The same for maps of images to themselves; none unless given.
    seed : int
        Of everything that is drawn.
    steps, guidance, negative_prompt, height, width
        How the model makes an image.
    revision, device, dtype, allow_pickle, trust_remote_code
        How it is loaded; device and dtype are those of `extraction` unless given.
    """

    model: Generator
    candidates: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    shared: Annotated[tuple[Share, Share], Field(strict=False)] = (0.1, 0.9)
    shared_self: Share | Annotated[tuple[Share, Share], Field(strict=False)] | None = None
    seed: Seed = 0
    steps: Steps = 50
    guidance: Guidance = 7.5
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False

    @model_validator(mode="after")
    def _can_draw(self) -> GeneratorConfig:
        for key in ("shared", "shared_self"):
            ends = getattr(self, key)
            if isinstance(ends, tuple) and ends[0] > ends[1]:
                raise ValueError(f"{key}: {[*ends]}; expected the lower share first")
        try:
            _ = self.sampling
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def sampling(self) -> Sampling:
        """How images are drawn."""
        return Sampling(self.steps, self.guidance, self.negative_prompt, self.height, self.width)

    @property
    def called(self) -> str:
        """How findings call the model."""
        return self.model if isinstance(self.model, str) else str(self.model.info.name)


class ImagesConfig(Section):
    """Images of sets that were made before: in a store of ours, or elsewhere.

    Attributes
    ----------
    generations : path, optional
        A folder that `equipoise counterfactuals` or an audit wrote.
    table : path or data frame, optional
        CSV, Parquet or JSON lines: a row for each image that was asked for.
    id, set, caption : str
        Columns that name the image and its set, and hold its caption.
    candidate : str, optional
        Column that numbers sets of images of the same captions.
    state, reason : str, optional
        Columns of what became of an image: "image" where there is one, such as "refused", and
        why. Every row has one without it.
    combination : str, optional
        Column of the attributes that vary in the set, joined by "-"; those with a value unless
        given.
    subject : str, optional
        Column of what sets show, to count which subjects lose theirs.
    path : str, optional
        Column of the image's file; needed where a model is to look at the images, and for the
        data set of kept ones.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    missing, encoding, delimiter
        As of other tables.
    """

    generations: FilePath | None = None
    table: Table | None = None
    id: Name = "image_id"
    set: Name = "set"
    caption: Name = "caption"
    candidate: Name | None = None
    state: Name | None = None
    reason: Name | None = None
    combination: Name | None = None
    subject: Name | None = None
    path: Name | None = None
    root: FilePath | None = None
    missing: Labels = ("",)
    encoding: Encoding = "utf-8"
    delimiter: Delimiter = ","

    @model_validator(mode="after")
    def _one_place(self) -> ImagesConfig:
        if (self.generations is None) == (self.table is None):
            given = "neither is" if self.table is None else "both are"
            raise ValueError(
                f"'generations' or 'table': {given} given; expected the folder of images that were "
                "made here, or a table of images made elsewhere"
            )
        return self

    @property
    def named(self) -> dict[str, str]:
        """Columns by what they are called here."""
        found = {
            "set": self.set, "caption": self.caption, "candidate": self.candidate,
            "state": self.state, "reason": self.reason, "attributes": self.combination,
            "subject": self.subject, "path": self.path,
        }  # fmt: skip
        return {name: column for name, column in found.items() if column is not None}

    def source(self, base: Path, attributes: tuple[str, ...]) -> ItemSource:
        """Return what to read of the table, with paths relative to `base`."""
        return ItemSource(
            table=located(self.table, base),
            id=self.id,
            columns=tuple(dict.fromkeys([*self.named.values(), *attributes])),
            missing=self.missing,
            encoding=self.encoding,
            delimiter=self.delimiter,
        )
