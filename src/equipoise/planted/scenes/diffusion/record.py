"""Measure a trained pipeline of the scenes, and write what it is beside its weights."""

import hashlib
import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.planted.scenes.diffusion.measure import (
    GUIDANCE,
    NeutralFound,
    neutral_hues,
    told_rates,
)
from equipoise.planted.scenes.diffusion.pipeline import STEPS, load_pipeline
from equipoise.planted.scenes.diffusion.train_unet import UnetRecipe
from equipoise.planted.scenes.diffusion.train_vae import VaeRecipe
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.variants import World

FILE = "record.json"
_LIBRARIES = ("torch", "transformers", "diffusers", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True)
class Measured:
    """How much is measured.

    Attributes
    ----------
    per_cell : int
        Images of each of the 288 attributed prompts.
    per_subject : int
        Images of each subject's neutral prompts, at either guidance.
    seed : int
        Of the noise.
    steps : int
        Denoising steps.
    """

    per_cell: int = 2
    per_subject: int = 48
    seed: int = 1
    steps: int = STEPS


def write_record(
    folder: Path, world: World, vae: VaeRecipe, unet: UnetRecipe, measured: Measured
) -> None:
    """Measure the pipeline in a folder and write `FILE` there.

    Parameters
    ----------
    folder : Path
        With the weights.
    world : World
        That it was trained in.
    vae, unet : VaeRecipe, UnetRecipe
        How it was trained.
    measured : Measured
        How much to measure.
    """
    pipeline = load_pipeline(folder)
    neutral = {
        f"{guidance:g}": _neutral(
            neutral_hues(
                pipeline,
                world,
                per_subject=measured.per_subject,
                guidance=guidance,
                seed=measured.seed,
                steps=measured.steps,
            )
        )
        for guidance in (1.0, GUIDANCE)
    }
    told = told_rates(
        pipeline, per_cell=measured.per_cell, seed=measured.seed, steps=measured.steps
    )
    record = {
        "world": world.name,
        "recipes": {"vae": asdict(vae), "unet": asdict(unet)},
        "versions": {name: version(name) for name in _LIBRARIES}
        | {"python": platform.python_version()},
        "test": asdict(measured) | {"guidance": GUIDANCE},
        "told": {name: round(value, 4) for name, value in told.items()},
        "neutral_by_guidance": neutral,
        "sha256": digests(folder),
    }
    text = json.dumps(record, indent=2, allow_nan=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of weights in a folder, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.safetensors"))
    }


def _neutral(found: NeutralFound) -> dict[str, Any]:
    return {
        "spearman_planted_generated": round(found.rank_correlation, 4),
        "mean_share_of_favourite": round(float(found.favourite.mean()), 4),
        "mean_share_planted": round(float(found.planted.mean()), 4),
        "subjects": {
            subject: {"planted": round(float(planted), 4), "generated": round(float(share), 4)}
            for subject, planted, share in zip(
                SUBJECTS, found.planted, found.favourite, strict=True
            )
        },
    }
