"""Where the images of an audit of text-to-image models come from: a model, or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from equipoise.audits.config_arrays import ItemsConfig
from equipoise.audits.config_fields import FilePath, Labels, Name, Section, distinct
from equipoise.audits.config_generators import Guidance, OptionalGenerator, Seed, Steps
from equipoise.audits.running.config import Device, Dtype
from equipoise.data import ItemSource
from equipoise.models.generators import Sampling


def _guidances(value: object) -> object:
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else value


class MadeConfig(ItemsConfig):
    """Images that were made elsewhere: one row for each that was asked for.

    Attributes
    ----------
    table : path or data frame
        CSV, Parquet or JSON lines.
    id, prompt : str
        Columns that name the image, and hold its prompt word for word.
    path : str, optional
        Column of the image's file; needed where a model is to look at the images.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    state : str, optional
        Column of what became of it; every row has an image without it.
    made : list of str
        States of images that are there.
    refused : list of str
        States of images that the model refused to make or show; others failed.
    seed : str, optional
        Column of the noise: images of one seed are resampled together.
    guidance : str, optional
        Column of the strength of guidance: each value is audited by itself.
    missing, encoding, delimiter
        As of other tables.
    """

    id: Name = "image_id"
    prompt: Name = "prompt"
    path: Name | None = None
    root: FilePath | None = None
    state: Name | None = None
    made: Labels = ("image",)
    refused: Labels = ("refused",)
    seed: Name | None = None
    guidance: Name | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed beside the id."""
        found = (self.prompt, self.path, self.state, self.seed, self.guidance)
        return tuple(dict.fromkeys(one for one in found if one is not None))

    @property
    def plain(self) -> ItemSource:
        """The table, of which every path is relative to where it is read."""
        return self.source(Path(), self.columns)


class GeneratorConfig(Section):
    """One model that makes images, or images that it made elsewhere.

    Attributes
    ----------
    model : str or model, optional
        `diffusers:` and a hub id or folder, or `python:` and module:factory.
    revision, device, dtype, allow_pickle, trust_remote_code
        As of models that are run; those of `extraction` unless given.
    steps : int
        Denoising steps.
    guidance : float or list of float
        Strength of guidance; of several, each is audited by itself, and their curve is shown.
    negative_prompt : str, optional
        What guidance leads away from.
    height, width : int, optional
        Of the images; the model's own unless given.
    seed : int
        Of the noise.
    images : mapping, optional
        Images made elsewhere, in place of `model`.
    """

    model: OptionalGenerator = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    steps: Steps = 50
    guidance: Annotated[
        tuple[Guidance, ...],
        Field(strict=False, min_length=1),
        BeforeValidator(_guidances),
        AfterValidator(distinct),
    ] = (7.5,)
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None
    seed: Seed = 0
    images: MadeConfig | None = None

    @model_validator(mode="after")
    def _one_source(self) -> GeneratorConfig:
        if (self.model is None) == (self.images is None):
            given = "neither is" if self.model is None else "both are"
            raise ValueError(
                f"'model' or 'images': {given} given; expected 'model' to make images, or 'images' "
                "that were made before"
            )
        if self.model is None:
            own = {*type(self).model_fields} - {"model", "images"}
            about = [
                one
                for one in type(self).model_fields
                if one in own and getattr(self, one) != type(self).model_fields[one].get_default()
            ]
            if about:
                raise ValueError(f"{about[0]!r} is about a model to run, and no 'model' is given")
            return self
        for one in self.guidance:
            self.sampling(one)
        return self

    def sampling(self, guidance: float) -> Sampling:
        """Return how images are drawn at a strength of guidance."""
        return Sampling(self.steps, guidance, self.negative_prompt, self.height, self.width)
