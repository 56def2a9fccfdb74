"""Train the autoencoder of the small Stable Diffusion."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.diffusion.checkpoints import Training, one_cycle, train_on
from equipoise.planted.scenes.diffusion.networks import build_vae
from equipoise.planted.scenes.render import render
from equipoise.planted.scenes.variants import NULL

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
    training = Training(asdict(recipe), vae, optimizer)
    path = folder / "vae.pt"
    training.resume(path)
    images = render(NULL.draw(recipe.images, seed=recipe.seed))

    def losses_of(generator: np.random.Generator) -> list[Callable[[], Any]]:
        rows = generator.integers(recipe.images, size=recipe.batch_size)
        return [lambda: vae_loss(vae, to_pixels(images[rows]), recipe.divergence, generator)]

    rate = one_cycle(recipe.learning_rate, recipe.steps, recipe.warm_up)
    train_on(training, losses_of, path=path, steps=recipe.steps, rate=rate)
    vae.eval()
    whiten(vae, images[:4096])
    return vae


def vae_loss(vae: Any, pixels: Any, divergence: float, generator: np.random.Generator) -> Any:
    """Errors of what is decoded from noisy latents, and how far these lie from pure noise."""
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = vae.encode(pixels).latent_dist
        mean, spread = found.mean.float(), found.logvar.float()
        noise = torch.from_numpy(generator.standard_normal(mean.shape, dtype=np.float32))
        decoded = vae.decode(mean + torch.exp(0.5 * spread) * noise).sample.float()
    wrong = decoded - pixels
    apart = 0.5 * (mean.square() + spread.exp() - 1.0 - spread)
    return wrong.abs().mean() + wrong.square().mean() + divergence * apart.mean()


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
    moved = torch.cat([-whitening @ centre, parts.sum(dim=1).log() - weights @ noise]).float()
    with torch.no_grad():
        before.weight[:] = torch.einsum("ij,jkxy->ikxy", matrix, before.weight)
        before.bias[:] = matrix @ before.bias + moved
        after.bias += after.weight[:, :, 0, 0] @ centre.float()
        back = (directions * spread).float()
        after.weight[:] = torch.einsum("ijxy,jk->ikxy", after.weight, back)
