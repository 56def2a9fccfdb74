"""What the schemas of models that make images have in common."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from equipoise.audits.config_fields import (
    FilePath,
    ItemsConfig,
    LoadConfig,
    Name,
    model_as_text,
    model_check,
)

_EXAMPLE = "diffusers:stable-diffusion-v1-5/stable-diffusion-v1-5"
Generator = Annotated[
    Any, BeforeValidator(model_check(_EXAMPLE, makes_images=True)), PlainSerializer(model_as_text)
]
"""Name of a model that makes images, or a model."""

Guidance = Annotated[float, Field(ge=0, le=1000, strict=False)]
"""Strength of guidance."""


class ImageTable(ItemsConfig):
    """A table of images that were made before.

    Attributes
    ----------
    path : str, optional
        Column of the image's file, where a model is to look at it.
    root : path, optional
        Folder that files are relative to; that of the configuration unless given.
    """

    id: Name = "image_id"
    path: Name | None = None
    root: FilePath | None = None


class GeneratorSection(LoadConfig):
    """How a model that makes images is loaded and run.

    Attributes
    ----------
    model : str or model
        `diffusers:` and a hub id or folder, or `python:` and module:factory. None where images
        were made elsewhere.
    steps : int
        Denoising steps.
    negative_prompt : str, optional
        What guidance leads away from.
    height, width : int, optional
        Of the images; the model's own unless given.
    seed : int
        Of everything that is drawn.
    """

    model: Generator | None = None
    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
