"""Load the shipped Stable Diffusion of the scenes, and generate images with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.core import MissingExtraError
from equipoise.models.diffusers import check_lengths
from equipoise.planted.scenes.diffusion import WEIGHTS
from equipoise.stats.threads import each

STEPS = 25
"""Denoising steps of what was measured."""

_AT_ONCE = 96


def load_pipeline(folder: Path = WEIGHTS) -> Any:
    """Load a pipeline of the scenes, to run on the CPU in float32.

    Returns
    -------
    diffusers.StableDiffusionPipeline
        Without a progress bar.

    Raises
    ------
    MissingExtraError
        If torch, transformers or diffusers is not installed.
    """
    try:
        import torch
        from diffusers import StableDiffusionPipeline
    except ImportError as error:
        raise MissingExtraError("diffusers", "diffusers") from error
    pipeline = StableDiffusionPipeline.from_pretrained(
        folder, dtype=torch.float32, local_files_only=True
    )
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def ask(folder: Path, questions: Sequence[Callable[[Any], Any]]) -> list[Any]:
    """Call functions of a pipeline side by side, each with a pipeline of its own."""
    # Loaded before there are threads: those that import diffusers at once find it half imported.
    jobs = [(question, load_pipeline(folder)) for question in questions]
    return each(lambda job: job[0](job[1]), jobs)


def generate(
    pipeline: Any, prompts: Sequence[str], *, guidance: float, seed: int, steps: int = STEPS
) -> NDArray[np.uint8]:
    """Make one image for each prompt.

    Parameters
    ----------
    pipeline : StableDiffusionPipeline
        From `load_pipeline`.
    prompts : sequence of str
        n prompts.
    guidance : float
        How far to exaggerate what the prompt says; 1: not at all.
    seed : int
        Of the noise; that of an image depends on it and on the image's place alone.
    steps : int
        Denoising steps.

    Returns
    -------
    ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)

    Raises
    ------
    ModelError
        For the first prompt that is longer than the pipeline reads.
    """
    import torch

    check_lengths(pipeline, prompts, "the small Stable Diffusion of the scenes")
    batches = []
    for start in range(0, len(prompts), _AT_ONCE):
        part = list(prompts[start : start + _AT_ONCE])
        noise = [
            torch.Generator().manual_seed(1_000_003 * seed + start + place)
            for place in range(len(part))
        ]
        images = pipeline(
            part,
            guidance_scale=guidance,
            num_inference_steps=steps,
            generator=noise,
            output_type="np",
        ).images
        batches.append(np.rint(images * 255.0).astype(np.uint8))
    return np.concatenate(batches)
