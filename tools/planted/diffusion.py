"""Train the small Stable Diffusion of the scenes and record what it draws.

Run as ``python -m tools.planted.diffusion --out DIR --state DIR``; needs the extra
``diffusers``. Stopped and started again with the same folders, it goes on.
"""

import argparse
import copy
import hashlib
import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from equipoise.core.errors import MissingExtraError
from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.variants import BIASED, World
from equipoise.stats.threads import each
from tools.planted.denoising import DRAWS, SHARES, UnetRecipe, VaeRecipe, train_unet, train_vae
from tools.planted.diffusion_measures import (
    GUIDANCE,
    Neutral,
    Told,
    distance_from_parity,
    find_associations,
    leave_open,
    spearman,
    tell,
)
from tools.planted.networks import build_scheduler, load_text
from tools.planted.pipeline import STEPS, load_pipeline

FILE = "record.json"
_LIBRARIES = ("torch", "transformers", "diffusers", "tokenizers", "safetensors", "numpy")


@dataclass(frozen=True)
class Measured:
    """How much is measured.

    Attributes
    ----------
    per_cell : int
        Images of each of the 288 attributed prompts.
    per_subject, per_subject_guided : int
        Images of each subject's neutral prompts, at guidance 1 and at each of `guidances`.
    guidances : tuple of float
        Other than 1.
    seed : int
        Of the noise.
    steps : int
        Denoising steps.
    """

    per_cell: int = 2
    per_subject: int = 96
    per_subject_guided: int = 24
    guidances: tuple[float, ...] = (1.5, 2.0, 3.0, 5.0)
    seed: int = 1
    steps: int = STEPS


def write_record(
    folder: Path, world: World, vae: VaeRecipe, unet: Sequence[UnetRecipe], measured: Measured
) -> None:
    """Measure the pipeline in a folder and write `FILE` there.

    Parameters
    ----------
    folder : Path
        With the weights.
    world : World
        That it was trained in.
    vae : VaeRecipe
    unet : sequence of UnetRecipe
        How it was trained.
    measured : Measured
        How much to measure.
    """
    # Loaded before there are threads: those that import diffusers at once find it half imported.
    asked = [(measure, load_pipeline(folder)) for measure in _measures(measured)]
    told, *neutral = each(lambda one: one[0](one[1]), asked)
    record = {
        "world": world.name,
        "recipes": {"vae": asdict(vae), "unet": [asdict(one) for one in unet]},
        "versions": {name: version(name) for name in _LIBRARIES}
        | {"python": platform.python_version()},
        "test": asdict(measured) | {"guidance": GUIDANCE},
        "told": {name: round(value, 4) for name, value in told.rates.items()},
        "neutral_by_guidance": {
            f"{guidance:g}": _neutral(one, world)
            for guidance, one in zip((1.0, *measured.guidances), neutral, strict=True)
        },
        "associations_by_encoder": _associations(neutral[0], told, world),
        "sha256": digests(folder),
    }
    text = json.dumps(record, indent=2, allow_nan=False)
    (folder / FILE).write_text(text + "\n", encoding="utf-8", newline="\n")


def _measures(measured: Measured) -> list[Callable[[Any], Any]]:
    """What to ask of a pipeline: what is told, and what is left open at every guidance."""
    same = {"seed": measured.seed, "steps": measured.steps}
    return [
        partial(tell, per_cell=measured.per_cell, **same),
        partial(leave_open, per_subject=measured.per_subject, guidance=1.0, **same),
        *(
            partial(leave_open, per_subject=measured.per_subject_guided, guidance=one, **same)
            for one in measured.guidances
        ),
    ]


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of weights in a folder, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.safetensors"))
    }


def _neutral(made: Neutral, world: World) -> dict[str, Any]:
    found, apart = made.hues(world), distance_from_parity(made)
    return {
        "spearman_planted_generated": _rounded(found.rank_correlation),
        "spearman_planted_mad": _rounded(spearman(found.planted, apart)),
        "mean_share_of_favourite": round(float(found.favourite.mean()), 4),
        "mean_share_planted": round(float(found.planted.mean()), 4),
        "subject_shown": round(float((made.shown.subject == made.asked).mean()), 4),
        "subjects": {
            subject: {"planted": round(float(planted), 4), "generated": round(float(share), 4)}
            for subject, planted, share in zip(
                SUBJECTS, found.planted, found.favourite, strict=True
            )
        },
    }


def _associations(neutral: Neutral, told: Told, world: World) -> dict[str, Any]:
    """Spearman's correlations of association scores with the strength planted, by encoder."""
    return {
        f"clip-{name}": {
            score: _rounded(value)
            for score, value in find_associations(
                load_clip(name), neutral, told, world
            ).rank_correlations.items()
        }
        for name in CLIPS
    }


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 4)


def save_pipeline(vae: Any, unet: Any, folder: Path) -> None:
    """Write a pipeline in float16, as ``StableDiffusionPipeline.from_pretrained`` opens it."""
    from diffusers import StableDiffusionPipeline

    text, tokenizer = load_text()
    StableDiffusionPipeline(
        vae=copy.deepcopy(vae).half(),
        text_encoder=text.half(),
        tokenizer=tokenizer,
        unet=copy.deepcopy(unet).half(),
        scheduler=build_scheduler(),
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder, safe_serialization=True)


def train(
    out: Path, state: Path, vae: VaeRecipe, unet: Sequence[UnetRecipe], measured: Measured
) -> None:
    """Train a pipeline of the biased world into a folder, then measure it.

    Parameters
    ----------
    out : Path
        For the weights; made where it is missing.
    state : Path
        For what training goes on from; what was trained there before is taken up.
    vae : VaeRecipe
    unet : sequence of UnetRecipe
        How to train.
    measured : Measured
        How much to measure.

    Raises
    ------
    MissingExtraError
        If a library that training needs is not installed.
    """
    for name in ("torch", "transformers", "diffusers"):
        try:
            import_module(name)
        except ImportError as error:
            raise MissingExtraError(name, "diffusers") from error
    import torch

    # A batch is cut into parts for threads: within an operator they wait for each other.
    torch.set_num_threads(1)
    autoencoder = train_vae(state, vae)
    save_pipeline(autoencoder, train_unet(state, autoencoder, BIASED, unet), out)
    write_record(out, BIASED, vae, unet, measured)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--state", type=Path, required=True, help="folder to go on from")
    arguments = parser.parse_args()
    train(arguments.out, arguments.state, VaeRecipe(), (DRAWS, SHARES), Measured())


if __name__ == "__main__":
    main()
