"""The small Stable Diffusion of the scenes as a model that makes images."""

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.planted.scenes.diffusion.pipeline import WEIGHTS

if TYPE_CHECKING:
    from equipoise.models.diffusers import DiffusersGenerator

NAME = "python:equipoise.planted.scenes.diffusion:load_generator"
"""What names it in a config."""


def load_generator(
    device: str = "auto", dtype: str = "auto", folder: Path = WEIGHTS
) -> "DiffusersGenerator":
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

    Raises
    ------
    MissingExtraError
        If diffusers is not installed.
    ModelError
        If it cannot be placed there.
    """
    from equipoise.models import diffusers
    from equipoise.models.options import Options

    return diffusers.load(str(folder), Options(NAME, device=device, dtype=dtype))
