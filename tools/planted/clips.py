"""Train the CLIP models of the scenes: one start, and from it each shipped model."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.captions import TEMPLATES
from equipoise.planted.scenes.render import SUBJECTS, render
from equipoise.planted.scenes.variants import World
from equipoise.stats.streams import stream
from tools.planted.networks import build_clip, build_image_processor, build_tokenizer, save_half
from tools.planted.training import fit, follow
from tools.planted.worlds import (
    all_captions,
    caption_rows,
    draw_mentions,
    draw_world,
    make_worlds,
    mention_probabilities,
)

Batch = tuple[Any, NDArray[np.int64]]
"""Images, uint8 (n, 3, height, width), and the rows of their captions."""

_FIRST_NEW, _NEXT = 1000, 1_000_000
"""Seed of the first images that are seen once, and how far that of the next recipe seed is."""


@dataclass(frozen=True)
class ClipRecipe:
    """How a CLIP model is trained.

    Attributes
    ----------
    images, batch_size : int
        Images rendered, and images a step.
    steps : int
        Of the start, which learns from nothing.
    more_steps : int
        Of each shipped model, which continues from the start in its own world.
    learning_rate, more_learning_rate : float
        Highest of a cosine schedule, for the start and for what continues from it.
    weight_decay : float
        Of AdamW.
    warm_up : int
        Steps in which the learning rate rises.
    settling_steps : int
        Of the null model, which `settle` trains further, each on images of its own.
    settling_rate : float
        Highest of its cosine schedule.
    few : int
        Subjects of every second batch of it.
    average : float
        How much of the moving average of its weights is kept at a step.
    seed : int
        Of the worlds (`worlds.make_worlds`), images, captions, weights and order.
    """

    images: int = 36_000
    batch_size: int = 256
    steps: int = 2000
    more_steps: int = 700
    learning_rate: float = 1e-3
    more_learning_rate: float = 7e-4
    weight_decay: float = 0.05
    warm_up: int = 100
    settling_steps: int = 2500
    settling_rate: float = 7e-4
    few: int = 4
    average: float = 0.995
    seed: int = 0


def train_clips(out: Path, names: Sequence[str], recipe: ClipRecipe) -> None:
    """Write ``clip-<name>`` for each named world into a folder; all continue from one start.

    In a world without associations a model would not train from nothing: the hue is how the subject
    is found first.
    """
    import torch

    worlds = make_worlds(recipe.seed)
    torch.manual_seed(recipe.seed)
    start = build_clip(len(build_tokenizer()))
    _train(start, worlds["start"], recipe, recipe.steps, recipe.learning_rate)
    for name in names:
        model = copy.deepcopy(start)
        torch.manual_seed(recipe.seed)
        _train(model, worlds[name], recipe, recipe.more_steps, recipe.more_learning_rate)
        save_clip(model, out / f"clip-{name}")


def continue_from(written: Path, world: World, out: Path, recipe: ClipRecipe) -> None:
    """Train a CLIP that was written further in another world, and write it into a new folder."""
    import torch

    torch.manual_seed(recipe.seed)
    model = _loaded(written)
    _train(model, world, recipe, recipe.more_steps, recipe.more_learning_rate)
    save_clip(model, out)


def _loaded(folder: Path) -> Any:
    """Return a CLIP that was written, in float32 and ready to be trained."""
    import torch
    from transformers import CLIPModel

    model = build_clip(len(build_tokenizer()))
    written = CLIPModel.from_pretrained(folder, dtype=torch.float32)
    model.load_state_dict(written.state_dict())
    return model


def settle(folder: Path, world: World, recipe: ClipRecipe) -> None:
    """Train a CLIP that was written further in its world, and write it in its own place.

    What is left of preferences that nobody planted comes from the start, from images that are seen
    again and again, and from the last steps. Here every image is new, every second batch has few
    subjects, so that telling these apart is not all there is to learn, and weights are averaged.
    The text tower stays as it was: the text-to-image model reads with it.

    Parameters
    ----------
    folder : Path
        ``clip-<name>``, from `train_clips`.
    world : World
        That it was trained in.
    recipe : ClipRecipe
    """
    import torch

    torch.manual_seed(recipe.seed)
    model = _loaded(folder)
    model.text_model.requires_grad_(False)
    average, steps = copy.deepcopy(model), recipe.settling_steps
    batches = (_new_images(world, recipe, step) for step in range(steps))
    following = partial(follow, average, model, recipe.average)
    _fit(model, world, batches, steps, recipe.settling_rate, recipe, following)
    save_clip(average, folder)


def save_clip(model: Any, folder: Path) -> None:
    """Write a CLIP with its tokenizer and preprocessing, as `from_pretrained` reads it."""
    save_half(model.eval(), folder)
    build_tokenizer().save_pretrained(folder)
    build_image_processor("CLIP").save_pretrained(folder)


def token_rows() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return tokens and attention mask of `all_captions`, each (captions, longest)."""
    encoded = build_tokenizer()(list(all_captions()), padding=True)
    return np.array(encoded["input_ids"]), np.array(encoded["attention_mask"])


def _train(model: Any, world: World, recipe: ClipRecipe, steps: int, rate: float) -> None:
    """Train on images that are seen again and again."""
    import torch

    factors = draw_world(world, recipe.images, seed=recipe.seed)
    pixels = torch.from_numpy(render(factors)).permute(0, 3, 1, 2)
    mention = mention_probabilities(world, factors)
    choice = stream(recipe.seed, "scenes", "training", world.name)

    def batch() -> Batch:
        rows = choice.integers(recipe.images, size=recipe.batch_size)
        # A caption is decided anew each time an image is seen, as if many people had described it.
        template = choice.integers(len(TEMPLATES), size=len(rows))
        mentioned = draw_mentions(mention[rows], choice)
        return pixels[rows], caption_rows(factors.take(rows), mentioned, template)

    _fit(model, world, (batch() for _ in range(steps)), steps, rate, recipe)


def _fit(
    model: Any,
    world: World,
    batches: Iterable[Batch],
    steps: int,
    rate: float,
    recipe: ClipRecipe,
    following: Callable[[int], object] = lambda _: None,
) -> None:
    import torch

    tokens, mask = (torch.from_numpy(array) for array in token_rows())
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        trained, lr=rate, betas=(0.9, 0.98), weight_decay=recipe.weight_decay
    )

    def factor(step: int) -> float:
        rising = min(1.0, (step + 1) / recipe.warm_up)
        return float(rising * 0.5 * (1.0 + np.cos(np.pi * step / steps)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)

    def losses() -> Iterator[Any]:
        for images, captions in batches:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = _loss(model, images.float() / 127.5 - 1.0, captions, tokens, mask)
            yield loss

    def after(step: int) -> None:
        with torch.no_grad():
            model.logit_scale.clamp_(max=float(np.log(100.0)))
        following(step)

    model.train()
    fit(world.name, optimizer, schedule, losses(), norm=1.0, after=after)


def _new_images(world: World, recipe: ClipRecipe, step: int) -> Batch:
    """Draw images for one step; every second time of few subjects."""
    import torch

    choice = stream(recipe.seed, "scenes", "settling", world.name, step)
    few, seed = step % 2 == 1, _FIRST_NEW + _NEXT * recipe.seed + step
    n_batches = len(SUBJECTS) // recipe.few if few else 1
    factors = draw_world(world, n_batches * recipe.batch_size, seed=seed)
    if few:
        chosen = choice.permutation(len(SUBJECTS))[: recipe.few]
        rows = np.flatnonzero(np.isin(factors.subject, chosen))
        factors = factors.take(rows[: recipe.batch_size])
    template = choice.integers(len(TEMPLATES), size=len(factors))
    mentioned = draw_mentions(mention_probabilities(world, factors), choice)
    pixels = torch.from_numpy(render(factors)).permute(0, 3, 1, 2)
    return pixels, caption_rows(factors, mentioned, template)


def _loss(model: Any, pixels: Any, captions: NDArray[np.int64], tokens: Any, mask: Any) -> Any:
    """InfoNCE, as CLIPModel computes it; a caption that several images have is read once."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    once, place = np.unique(captions, return_inverse=True)
    images = model.get_image_features(pixel_values=pixels).pooler_output.float()
    texts = model.get_text_features(input_ids=tokens[once], attention_mask=mask[once])
    texts = texts.pooler_output.float()[place]
    with torch.autocast("cpu", enabled=False):
        logits = model.logit_scale.exp() * normalize(images) @ normalize(texts).T
        places = torch.arange(len(captions))
        return (cross_entropy(logits, places) + cross_entropy(logits.T, places)) / 2.0
