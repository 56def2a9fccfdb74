"""Train the small Stable Diffusion of the scenes and record what it draws.

Run as ``python -m tools.planted.diffusion --out DIR --state DIR``; needs the extra
``diffusers``. Stopped and started again with the same folders, it goes on.
"""

import argparse
import copy
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from equipoise.planted.scenes.embed import CLIPS, load_clip
from equipoise.planted.scenes.render import SUBJECTS
from equipoise.planted.scenes.variants import BIASED, World
from tools.planted.denoising import DRAWS, SHARES, UnetRecipe, VaeRecipe, train_unet, train_vae
from tools.planted.diffusion_measures import (
    GUIDANCE,
    Neutral,
    Told,
    distance_from_parity,
    find_associations,
    leave_open,
    planted_shares,
    spearman,
    tell,
)
from tools.planted.networks import build_scheduler, load_text
from tools.planted.pipeline import STEPS, ask
from tools.planted.training import need, versions, write_record

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


def measure(
    folder: Path, world: World, vae: VaeRecipe, unet: Sequence[UnetRecipe], measured: Measured
) -> None:
    """Measure the pipeline in a folder and write its record there.

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
    same = {"seed": measured.seed, "steps": measured.steps}
    sizes = {1.0: measured.per_subject}
    sizes |= dict.fromkeys(measured.guidances, measured.per_subject_guided)
    questions: list[Callable[[Any], Any]] = [
        partial(tell, per_cell=measured.per_cell, **same),
        *(
            partial(leave_open, per_subject=n, guidance=guidance, **same)
            for guidance, n in sizes.items()
        ),
    ]
    named, *neutral_images = ask(folder, questions)
    neutral = dict(zip(sizes, neutral_images, strict=True))
    record = {
        "world": world.name,
        "recipes": {"vae": asdict(vae), "unet": [asdict(unet_recipe) for unet_recipe in unet]},
        "versions": versions(*_LIBRARIES),
        "test": asdict(measured) | {"guidance": GUIDANCE},
        "told": {name: round(value, 4) for name, value in named.rates.items()},
        "neutral_by_guidance": {
            f"{guidance:g}": _neutral(images, world) for guidance, images in neutral.items()
        },
        "associations_by_encoder": {
            f"clip-{name}": _associations(name, neutral[1.0], named, world) for name in CLIPS
        },
        "sha256": digests(folder),
    }
    write_record(folder, record)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file of weights in a folder, by its path in the folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.safetensors"))
    }


def _neutral(images: Neutral, world: World) -> dict[str, Any]:
    planted, generated = planted_shares(world), images.favourites(world)
    return {
        "spearman_planted_generated": _rounded(spearman(planted, generated)),
        "spearman_planted_mad": _rounded(spearman(planted, distance_from_parity(images))),
        "mean_share_of_favourite": _rounded(generated.mean()),
        "mean_share_planted": _rounded(planted.mean()),
        "subject_shown": _rounded((images.shown.subject == images.asked).mean()),
        "subjects": {
            subject: {"planted": _rounded(share), "generated": _rounded(shown_share)}
            for subject, share, shown_share in zip(SUBJECTS, planted, generated, strict=True)
        },
    }


def _associations(encoder: str, neutral: Neutral, named: Told, world: World) -> dict[str, Any]:
    """Spearman's correlations of an encoder's association scores with the strength planted."""
    scores = find_associations(load_clip(encoder), neutral, named, world)
    return {
        name: _rounded(spearman(world.hue_strength, association))
        for name, association in scores.items()
    }


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


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
    need("diffusers", "torch", "transformers", "diffusers")
    autoencoder = train_vae(state, vae)
    save_pipeline(autoencoder, train_unet(state, autoencoder, BIASED, unet), out)
    measure(out, BIASED, vae, unet, measured)


def main() -> None:
    """Read the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights")
    parser.add_argument("--state", type=Path, required=True, help="folder to go on from")
    arguments = parser.parse_args()
    train(arguments.out, arguments.state, VaeRecipe(), (DRAWS, SHARES), Measured())


if __name__ == "__main__":
    main()
