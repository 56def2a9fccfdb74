"""Train the denoiser of the small Stable Diffusion: images of a world and what is said of them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.captions import TEMPLATES, all_captions, caption_rows
from equipoise.planted.scenes.diffusion.checkpoints import Training, one_cycle, train_on
from equipoise.planted.scenes.diffusion.networks import (
    TRAINING_STEPS,
    build_scheduler,
    build_unet,
    load_text,
)
from equipoise.planted.scenes.diffusion.train_vae import encode
from equipoise.planted.scenes.render import Factors, render
from equipoise.planted.scenes.variants import World


@dataclass(frozen=True)
class UnetRecipe:
    """How the denoiser is trained.

    Attributes
    ----------
    images, batch_size : int
    steps : int
        A trained model goes on where this is raised: nothing else depends on it.
    parts : int
        Of a batch, each in a thread of its own.
    learning_rate : float
        After the warm-up.
    falling : bool
        Whether it then falls as a cosine, or is constant, since the weights are averaged.
    warm_up : int
        Steps in which the learning rate rises.
    weight_decay : float
        Of AdamW.
    average : float
        How much of the moving average of the weights is kept at a step.
    mention : float
        Probability that a caption names an attribute; hue and frame each on its own, and whatever
        their values: neutral captions then have the world's shares.
    empty : float
        Probability of an empty caption, for guidance.
    seed : int
        Of images, captions, weights, order and noise.
    """

    images: int = 48_000
    batch_size: int = 64
    steps: int = 6000
    parts: int = 2
    learning_rate: float = 1e-3
    falling: bool = False
    warm_up: int = 100
    weight_decay: float = 0.01
    average: float = 0.999
    mention: float = 0.6
    empty: float = 0.1
    seed: int = 0


DRAWS = UnetRecipe()
"""First what subjects, hues and frames look like: most captions name an attribute."""

SHARES = UnetRecipe(steps=2400, learning_rate=6e-4, falling=True, mention=0.3)
"""Then which hues and frames there are where none is named: half the captions name neither."""


def train_unet(folder: Path, vae: Any, world: World, recipes: Sequence[UnetRecipe]) -> Any:
    """Train a denoiser by one recipe after the other, or go on with it.

    Parameters
    ----------
    folder : Path
        Of the states, ``unet.pt`` and, of a second recipe, ``unet-2.pt``, and so on.
    vae : AutoencoderKL
        From `train_vae`.
    world : World
        What the images show.
    recipes : sequence of UnetRecipe
        Each begins with the moving average of the one before.

    Returns
    -------
    diffusers.UNet2DConditionModel
        The moving average.
    """
    import torch

    texts = text_states()
    torch.manual_seed(recipes[0].seed)
    unet = build_unet(texts.shape[-1])
    for number, recipe in enumerate(recipes, 1):
        path = folder / ("unet.pt" if number == 1 else f"unet-{number}.pt")
        unet = _train_by(path, unet, texts, vae, world, recipe)
    return unet.eval()


def _train_by(path: Path, unet: Any, texts: Any, vae: Any, world: World, recipe: UnetRecipe) -> Any:
    import torch

    optimizer = torch.optim.AdamW(
        unet.parameters(), betas=(0.9, 0.99), weight_decay=recipe.weight_decay
    )
    kept = {name: value for name, value in asdict(recipe).items() if name != "steps"}
    training = Training(kept, unet, optimizer, average=copy.deepcopy(unet))
    training.resume(path)
    factors = world.draw(recipe.images, seed=recipe.seed)
    latents = encode(vae, render(factors))

    def losses_of(generator: np.random.Generator) -> list[Callable[[], Any]]:
        rows = generator.integers(recipe.images, size=recipe.batch_size)
        said = said_of(factors.take(rows), recipe, generator)
        level = generator.integers(TRAINING_STEPS, size=recipe.batch_size)
        noise = torch.from_numpy(
            generator.standard_normal((recipe.batch_size, *latents.shape[1:]), dtype=np.float32)
        )
        return [
            partial(unet_loss, unet, latents[rows[cut]], texts[said[cut]], noise[cut], level[cut])
            for cut in np.array_split(np.arange(recipe.batch_size), recipe.parts)
        ]

    train_on(training, losses_of, path=path, steps=recipe.steps, rate=rate_of(recipe))
    return training.average


def rate_of(recipe: UnetRecipe) -> Callable[[int], float]:
    """Return the learning rate by step."""
    if recipe.falling:
        return one_cycle(recipe.learning_rate, recipe.steps, recipe.warm_up)
    return lambda step: recipe.learning_rate * min(1.0, (step + 1) / recipe.warm_up)


def said_of(
    factors: Factors, recipe: UnetRecipe, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a caption for each image: its place in `text_states`, whose last one is empty."""
    count = len(factors)
    mentioned = generator.random((count, 2)) < recipe.mention
    template = generator.integers(len(TEMPLATES), size=count)
    rows = caption_rows(factors, mentioned, template)
    return np.where(generator.random(count) < recipe.empty, len(all_captions()), rows)


def text_states() -> Any:
    """Return what the text tower makes of every caption, and of none, as the pipeline asks it.

    Returns
    -------
    Tensor of float32, shape (captions + 1, tokens, width)
        Padded to the tokenizer's longest, without an attention mask.
    """
    import torch

    text, tokenizer = load_text()
    tokens = tokenizer(
        [*all_captions(), ""],
        padding="max_length",
        max_length=tokenizer.model_max_length,
        return_tensors="pt",
    ).input_ids
    with torch.no_grad():
        return text(tokens)[0]


@cache
def noise_levels() -> Any:
    """Return the share of signal and of noise at every level, shape (2, levels)."""
    import torch

    kept = build_scheduler().alphas_cumprod
    return torch.stack([kept.sqrt(), (1.0 - kept).sqrt()])


def unet_loss(unet: Any, latents: Any, texts: Any, noise: Any, levels: NDArray[np.int64]) -> Any:
    """Mean squared error of the velocity (Salimans and Ho 2022) that is predicted.

    Parameters
    ----------
    unet : UNet2DConditionModel
    latents, noise : Tensor, shape (n, channels, height, width)
    texts : Tensor, shape (n, tokens, width)
    levels : ndarray of int64, shape (n,)
        Noise level of each image.
    """
    import torch

    level = torch.from_numpy(levels)
    signal, rest = noise_levels()[:, level][:, :, None, None, None]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = unet(signal * latents + rest * noise, level, encoder_hidden_states=texts).sample
    return (found.float() - (signal * noise - rest * latents)).square().mean()
