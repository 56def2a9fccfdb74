"""What the schemas of models that make images have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, WrapValidator

from equipoise.audits.config_fields import (
    Device,
    Dtype,
    ExtractionConfig,
    Name,
    Section,
    model_name,
)

if TYPE_CHECKING:
    from equipoise.evidence.asking import RunOptions


def _generator(value: object) -> object:
    """Take a name, `prefix:rest`, or a loaded model, which says what it is."""
    if hasattr(value, "info") and hasattr(value, "generate"):
        return value
    example = "diffusers:stable-diffusion-v1-5/stable-diffusion-v1-5"
    return model_name(value, example, makes_images=True)


def _as_text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else f"(loaded) {value.info.name}"


def _unless_none(value: object, known: Callable[[object], object]) -> object:
    return None if value is None else known(value)


Generator = Annotated[Any, BeforeValidator(_generator), PlainSerializer(_as_text)]
"""Name of a model that makes images, or a model."""

OptionalGenerator = Annotated[Generator, WrapValidator(_unless_none)]
"""The same, or None where images were made elsewhere."""

Guidance = Annotated[float, Field(ge=0, le=1000, strict=False)]
"""Strength of guidance."""


class GeneratorSection(Section):
    """How a model that makes images is loaded and run.

    Attributes
    ----------
    model : str or model
        `diffusers:` and a hub id or folder, or `python:` and module:factory.
    revision, device, dtype, allow_pickle, trust_remote_code
        How it is loaded; device and dtype are those of `extraction` unless given.
    steps : int
        Denoising steps.
    negative_prompt : str, optional
        What guidance leads away from.
    height, width : int, optional
        Of the images; the model's own unless given.
    seed : int
        Of everything that is drawn.
    """

    model: OptionalGenerator = None
    revision: Name | None = None
    device: Device | None = None
    dtype: Dtype | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    negative_prompt: str | None = None
    height: int | None = None
    width: int | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0

    def options(self, every: ExtractionConfig) -> RunOptions:
        """Return how the model is loaded: as it says, else as the section `extraction` says."""
        from equipoise.evidence.asking import RunOptions

        return RunOptions(
            device=self.device or every.device,
            dtype=self.dtype or every.dtype,
            revision=self.revision,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def located(self, base: Path) -> Any:
        """Return the model's name, with a folder beside the config at `base` in full."""
        prefix, _, rest = self.model.partition(":") if isinstance(self.model, str) else ("",) * 3
        beside = base / rest
        return f"{prefix}:{beside}" if prefix == "diffusers" and beside.exists() else self.model

    @property
    def called(self) -> str:
        """How findings call the model."""
        return self.model if isinstance(self.model, str) else str(self.model.info.name)
