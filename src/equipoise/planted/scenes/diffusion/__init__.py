"""A small Stable Diffusion of the scenes, whose neutral prompts have planted hues and frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equipoise.models.diffusers import DiffusersGenerator

WEIGHTS = Path(__file__).parent / "weights"

NAME = "python:equipoise.planted.scenes.diffusion:load_generator"
"""The model in a config."""


def load_generator(
    device: str = "auto", dtype: str = "auto", folder: Path = WEIGHTS
) -> DiffusersGenerator:
    """Load the shipped pipeline as a model that makes images, with or without control.

    Parameters
    ----------
    device, dtype : str
        As in `equipoise.models.load_model`.
    folder : Path
        Of the weights.

    Returns
    -------
    DiffusersGenerator
        Of images of 32 × 32 pixels; made for 25 steps, and guidance 1 to 3.
    """
    from equipoise.models import diffusers
    from equipoise.models.registry import Options

    return diffusers.load(str(folder), Options(NAME, device=device, dtype=dtype))
