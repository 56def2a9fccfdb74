"""Images that a component of a model is most active on, made from noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.core import Bytes, Floats, InputError
from equipoise.explain.scoring import scoring
from equipoise.models.edits import Site
from equipoise.models.images import Image
from equipoise.models.protocols import Classifier, Model
from equipoise.stats.streams import stream

_RATE, _START = 0.05, 0.1
# How much the colours of natural photos vary together, a row for each of red, green and blue.
_COLOURS = ((0.56, 0.19, 0.04), (0.58, 0.0, -0.11), (0.58, -0.19, 0.06))


def visualise(
    model: Model,
    site: Site,
    image: Image,
    *,
    text: str = "",
    seeds: int = 3,
    steps: int = 64,
    seed: int = 0,
) -> tuple[Bytes, Floats]:
    """Make images that a component is active on, by gradient ascent from noise.

    The image is a spectrum whose low frequencies move fastest, with the colours of photos; it is
    shifted by some pixels before each step, so that no pattern depends on its exact place.

    Parameters
    ----------
    model : DualEncoder, Classifier or PairScorer
        That runs on torch with 32 bits.
    site : Site
        With one component.
    image : ndarray of uint8, shape (height, width, 3)
        Images are made in the size that the model sees this one in.
    text : str
        That a matching model holds against the image.
    seeds : int
        Images, each from noise of its own.
    steps : int
    seed : int

    Returns
    -------
    images : ndarray of uint8, shape (seeds, height, width, 3)
    active : ndarray of float64, shape (seeds,)
        How active the component is on each.

    Raises
    ------
    ModelError
        When the model's insides cannot be reached, or it computes with fewer than 32 bits.
    InputError
        When there are no steps or seeds.

    References
    ----------
    Olah, Mordvintsev & Schubert 2017, "Feature Visualization".
    """
    if min(seeds, steps) < 1:
        raise InputError(f"seeds={seeds}, steps={steps}: expected 1 or more")
    target = model.labels[0] if isinstance(model, Classifier) else text or "a photo"
    scored = scoring(model, [target])
    inside, torch = scored.inside, scored.inside.torch
    inputs = inside.inputs([image] * seeds)
    black, white = (
        inside.inputs([np.full_like(image, level)])["pixel_values"] for level in (0, 255)
    )
    height, width = black.shape[-2:]
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    frequency = np.maximum(np.hypot(rows, columns), 1.0 / max(height, width))
    scale = black.new_tensor(np.sqrt(height * width) / 4.0 / frequency)
    colours = black.new_tensor(_COLOURS)
    draws = [stream(seed, "visualise", number) for number in range(seeds)]
    noise = np.stack([draw.standard_normal((3, *scale.shape, 2)) for draw in draws])
    spectrum = black.new_tensor(_START * noise).requires_grad_()
    optimizer = torch.optim.Adam([spectrum], _RATE)
    jitter = stream(seed, "jitter")
    max_shift = max(height // 16, 1)
    captured: list[Any] = []

    def drawn(shift: Sequence[int]) -> tuple[Any, Any]:
        waves = torch.fft.irfft2(torch.view_as_complex(spectrum) * scale, s=(height, width))
        levels = torch.einsum("rc,nchw->nrhw", colours, waves).sigmoid()
        pixels = black + (white - black) * levels.roll([*shift], (2, 3))
        scored.score({**inputs, "pixel_values": pixels}, [target] * seeds)
        return levels, site.pool(captured.pop())[:, 0]

    handle = site.hook(inside.layer(site.layer), captured.append)
    try:
        for shift in jitter.integers(-max_shift, max_shift + 1, (steps, 2)).tolist():
            optimizer.zero_grad()
            (-drawn(shift)[1].sum()).backward()
            optimizer.step()
        levels, active = drawn((0, 0))
    finally:
        handle.remove()
    images = (255.0 * levels).round().to(torch.uint8).permute(0, 2, 3, 1)
    return images.cpu().numpy(), active.detach().cpu().double().numpy()
