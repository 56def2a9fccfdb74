"""Train the autoencoder and the denoiser of the small Stable Diffusion; training can resume."""

import copy
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.captions import TEMPLATES
from equipoise.planted.scenes.render import Factors, render
from equipoise.planted.scenes.variants import World
from equipoise.stats.streams import stream
from equipoise.stats.threads import each
from tools.planted.networks import TRAINING_STEPS, build_scheduler, build_unet, build_vae, load_text
from tools.planted.training import follow
from tools.planted.worlds import NULL, all_captions, caption_rows, draw_world


def train_on(
    path: Path,
    recipe: dict[str, Any],
    parts: dict[str, Any],
    losses_of: Callable[[np.random.Generator], Sequence[Callable[[], Any]]],
    *,
    steps: int,
    rate: Callable[[int], float],
    interval: int = 100,
) -> None:
    """Train to a number of steps, from the state in a file, and write the state on the way.

    Parameters
    ----------
    path : Path
        File of the state. It is written whole: a process that is killed meanwhile leaves the one
        before.
    recipe : dict of str to int or float
        Of which the state is a part: another recipe does not go on from it.
    parts : dict of str to torch.nn.Module or torch.optim.Optimizer
        What changes in place: "network", "optimizer" and, where one is kept, "average", the moving
        average of the network's weights.
    losses_of : callable
        Draws a batch from the generator and gives the losses of its equal parts, not yet computed:
        each part is in a thread of its own. The generator depends on the recipe's seed, the name of
        the file and the step alone, so what is stopped and taken up ends in the same weights.
    steps : int
        Steps to have done in the end.
    rate : callable
        Learning rate of a step.
    interval : int
        Steps between two writings of the state.

    Raises
    ------
    ValueError
        If the file has the state of another recipe, or more steps have been done.
    """
    import torch

    network, optimizer = parts["network"], parts["optimizer"]
    done = _resumed(path, recipe, parts)
    if done > steps:
        raise ValueError(f"{path.name} has {done} steps, more than the {steps} asked for")
    network.train()
    for step in range(done, steps):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        losses = losses_of(stream(recipe["seed"], "scenes", "diffusion", path.stem, step))
        loss = _gradients(network, losses)
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        if "average" in parts:
            follow(parts["average"], network, recipe["average"], step + 1)
        if (step + 1) % interval == 0 or step + 1 == steps:
            state = {name: part.state_dict() for name, part in parts.items()}
            path.parent.mkdir(parents=True, exist_ok=True)
            written = path.with_suffix(".partial")
            torch.save({"recipe": recipe, "step": step + 1} | state, written)
            written.replace(path)
            sys.stderr.write(f"{path.stem}: step {step + 1}, loss {loss:.4f}\n")


def _resumed(path: Path, recipe: dict[str, Any], parts: dict[str, Any]) -> int:
    """Take up the state in a file; return the steps that were done, 0 where there is none."""
    import torch

    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True)
    if state["recipe"] != recipe:
        raise ValueError(
            f"{path.name} is a state of another recipe, {state['recipe']}; "
            "delete it, or train into another folder"
        )
    for name, part in parts.items():
        part.load_state_dict(state[name])
    return int(state["step"])


def one_cycle(highest: float, steps: int, warm_up: int) -> Callable[[int], float]:
    """Return the learning rate by step: rising evenly, then falling as a cosine to a hundredth."""

    def rate(step: int) -> float:
        if step < warm_up:
            return highest * (step + 1) / warm_up
        through = (step - warm_up) / max(1, steps - warm_up)
        return float(highest * (0.505 + 0.495 * np.cos(np.pi * through)))

    return rate


def _gradients(network: Any, losses: Sequence[Callable[[], Any]]) -> float:
    """Give every weight the mean gradient of the parts of a batch, summed in their order."""
    import torch

    weights = [*network.parameters()]

    def differentiated(loss_of: Callable[[], Any]) -> tuple[float, Sequence[Any]]:
        loss = loss_of()
        return float(loss.detach()), torch.autograd.grad(loss, weights)

    results = each(differentiated, losses)
    for place, weight in enumerate(weights):
        total = results[0][1][place]
        for _, more in results[1:]:
            total = total + more[place]
        weight.grad = total / len(results)
    return sum(loss for loss, _ in results) / len(results)


_scheduler = cache(build_scheduler)
_ENCODED_AT_ONCE = 256
_RIDGE = 0.03


@dataclass(frozen=True)
class VaeRecipe:
    """How the autoencoder is trained: on images of the world without associations.

    Attributes
    ----------
    images, batch_size, steps : int
    learning_rate : float
        Highest of a cosine schedule.
    warm_up : int
        Steps in which the learning rate rises.
    divergence : float
        Weight of the Kullback-Leibler divergence, a mean over latents in nats, beside the mean
        absolute and the mean squared error of pixels in [-1, 1].
    seed : int
        Of images, weights, order and noise.
    """

    images: int = 24_000
    batch_size: int = 32
    steps: int = 3000
    learning_rate: float = 2e-3
    warm_up: int = 50
    divergence: float = 1e-4
    seed: int = 0


def train_vae(folder: Path, recipe: VaeRecipe) -> Any:
    """Train an autoencoder, or go on with it, and whiten its latents.

    Parameters
    ----------
    folder : Path
        Of the state, ``vae.pt``.
    recipe : VaeRecipe

    Returns
    -------
    diffusers.AutoencoderKL
        See `whiten`.
    """
    import torch

    torch.manual_seed(recipe.seed)
    vae = build_vae()
    optimizer = torch.optim.AdamW(vae.parameters(), betas=(0.9, 0.99), weight_decay=0.01)
    images = render(draw_world(NULL, recipe.images, seed=recipe.seed))

    def losses_of(generator: np.random.Generator) -> list[Callable[[], Any]]:
        rows = generator.integers(recipe.images, size=recipe.batch_size)
        return [lambda: vae_loss(vae, to_pixels(images[rows]), recipe.divergence, generator)]

    rate = one_cycle(recipe.learning_rate, recipe.steps, recipe.warm_up)
    parts = {"network": vae, "optimizer": optimizer}
    train_on(folder / "vae.pt", asdict(recipe), parts, losses_of, steps=recipe.steps, rate=rate)
    vae.eval()
    whiten(vae, images[:4096])
    return vae


def vae_loss(vae: Any, pixels: Any, divergence: float, generator: np.random.Generator) -> Any:
    """Errors of what is decoded from noisy latents, and how far these lie from pure noise."""
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        latent_distribution = vae.encode(pixels).latent_dist
        mean, spread = latent_distribution.mean.float(), latent_distribution.logvar.float()
        noise = torch.from_numpy(generator.standard_normal(mean.shape, dtype=np.float32))
        decoded = vae.decode(mean + torch.exp(0.5 * spread) * noise).sample.float()
    wrong = decoded - pixels
    divergences = 0.5 * (mean.square() + spread.exp() - 1.0 - spread)
    return wrong.abs().mean() + wrong.square().mean() + divergence * divergences.mean()


def to_pixels(images: NDArray[np.uint8]) -> Any:
    """Return images as a float tensor (n, 3, height, width) in [-1, 1]."""
    import torch

    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 127.5 - 1.0


def encode(vae: Any, images: NDArray[np.uint8]) -> Any:
    """Return the means of the latents of images, shape (n, channels, height, width), float32."""
    return _latents(vae, images)[0]


def _latents(vae: Any, images: NDArray[np.uint8]) -> tuple[Any, Any]:
    """Means of latents, and the logarithms of the variances of their noise."""
    import torch

    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        parts = [
            vae.encode(to_pixels(images[start : start + _ENCODED_AT_ONCE])).latent_dist
            for start in range(0, len(images), _ENCODED_AT_ONCE)
        ]
        means, logarithms = (
            torch.cat([getattr(part, name).float() for part in parts])
            for name in ("mean", "logvar")
        )
    # Copies made outside: tensors of inference mode cannot be trained on.
    return means.clone(), logarithms.clone()


def whiten(vae: Any, images: NDArray[np.uint8]) -> None:
    """Fold centre and spread of latents into the convolutions beside them.

    Channels that go up and down together hide what tells them apart until noise is nearly gone.
    Afterwards they are uncorrelated over the images, with mean 0 and standard deviations near 1,
    but for directions of next to no variance, which are mostly noise.

    Parameters
    ----------
    vae : AutoencoderKL
        Changed in place: what it decodes from the means of what it encodes stays the same. The
        noise of latents, which depended on their channels alone, is right to first order.
    images : ndarray of uint8, shape (n, height, width, 3)
    """
    import torch

    latents, logarithms = _latents(vae, images)
    flat = latents.transpose(0, 1).flatten(1).double()
    centre = flat.mean(dim=1)
    variances, directions = torch.linalg.eigh(torch.cov(flat))
    spread = (variances + _RIDGE * variances.mean()).sqrt()
    whitening = directions.T / spread[:, None]
    noise = logarithms.double().mean(dim=(0, 2, 3))
    parts = whitening.square() * noise.exp()
    weights = parts / parts.sum(dim=1, keepdim=True)
    before, after = vae.quant_conv, vae.post_quant_conv
    matrix = torch.block_diag(whitening, weights).float()
    shift = torch.cat([-whitening @ centre, parts.sum(dim=1).log() - weights @ noise]).float()
    with torch.no_grad():
        before.weight[:] = torch.einsum("ij,jkxy->ikxy", matrix, before.weight)
        before.bias[:] = matrix @ before.bias + shift
        after.bias += after.weight[:, :, 0, 0] @ centre.float()
        back = (directions * spread).float()
        after.weight[:] = torch.einsum("ijxy,jk->ikxy", after.weight, back)


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
    parts = {"network": unet, "optimizer": optimizer, "average": copy.deepcopy(unet)}
    settings = asdict(recipe)
    del settings["steps"]
    factors = draw_world(world, recipe.images, seed=recipe.seed)
    latents = encode(vae, render(factors))

    def losses_of(generator: np.random.Generator) -> list[Callable[[], Any]]:
        rows = generator.integers(recipe.images, size=recipe.batch_size)
        captions = said_of(factors.take(rows), recipe, generator)
        level = generator.integers(TRAINING_STEPS, size=recipe.batch_size)
        noise = torch.from_numpy(
            generator.standard_normal((recipe.batch_size, *latents.shape[1:]), dtype=np.float32)
        )
        return [
            partial(
                unet_loss, unet, latents[rows[cut]], texts[captions[cut]], noise[cut], level[cut]
            )
            for cut in np.array_split(np.arange(recipe.batch_size), recipe.parts)
        ]

    rate = one_cycle(recipe.learning_rate, recipe.steps, recipe.warm_up)
    if not recipe.falling:

        def rate(step: int) -> float:
            return recipe.learning_rate * min(1.0, (step + 1) / recipe.warm_up)

    train_on(path, settings, parts, losses_of, steps=recipe.steps, rate=rate)
    return parts["average"]


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

    level, scheduler = torch.from_numpy(levels), _scheduler()
    noisy = scheduler.add_noise(latents, noise, level)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        velocity = unet(noisy, level, encoder_hidden_states=texts).sample
    return (velocity.float() - scheduler.get_velocity(latents, noise, level)).square().mean()
