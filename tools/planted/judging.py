"""Say what a generated scene shows, by means that share nothing with what generated it."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from equipoise.planted.scenes.render import FRAMES, RGB, SIDE_RANGE, Factors, render
from tools.planted.measures import load_cnn

CLASSIFIER = "null"
"""The convolutional network that names subjects: trained where nothing was planted."""

Images = NDArray[np.uint8]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Shown:
    """What images show, as positions in `SUBJECTS`, `HUES` and `FRAMES`; each of shape (n,)."""

    subject: Ints
    hue: Ints
    frame: Ints


def judge(images: Images) -> Shown:
    """Name the subject by a classifier of another world, hue and frame by the pixels.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
    """
    subject = load_cnn(CLASSIFIER).predict_proba(images).argmax(axis=1)
    return Shown(subject.astype(np.int64), hue_of(images), frame_of(images))


def hue_of(images: Images) -> Ints:
    """Return the hue whose colour is nearest to that of the most colourful pixels, shape (n,)."""
    pixels = images.reshape(len(images), -1, 3).astype(np.float64)
    colourful = pixels.max(axis=2) - pixels.min(axis=2)
    weight = np.where(colourful >= 0.7 * colourful.max(axis=1, keepdims=True), colourful, 0.0)
    mean = np.einsum("np,npc->nc", weight, pixels)
    return np.asarray((_chroma(mean) @ _chroma(RGB.astype(np.float64)).T).argmax(axis=1))


def frame_of(images: Images) -> Ints:
    """Return whether the places of level or of upright bars are darker, shape (n,)."""
    lightness = images.astype(np.float64).mean(axis=3).reshape(len(images), -1)
    return np.asarray((lightness @ _bars().T).argmin(axis=1))


@cache
def _bars() -> NDArray[np.float64]:
    """Where either frame alone is dark: weights that sum to 1, shape (frames, pixels)."""
    frames = np.arange(len(FRAMES))
    still = dict.fromkeys(("x", "y", "turn", "slope"), np.zeros(len(frames)))
    light = dict.fromkeys(("grey", "light"), np.ones(len(frames)))
    side = np.full(len(frames), SIDE_RANGE[0])
    pictures = render(
        Factors(subject=0 * frames, hue=0 * frames, frame=frames, side=side, **still, **light)
    )
    first, second = pictures.astype(np.float64).mean(axis=3).reshape(len(frames), -1)
    dark = np.stack([np.clip(second - first, 0.0, None), np.clip(first - second, 0.0, None)])
    return np.asarray(dark / dark.sum(axis=1, keepdims=True))


def _chroma(colours: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return colours less their grey, of length 1; grey stays 0."""
    deviations = colours - colours.mean(axis=-1, keepdims=True)
    length = np.linalg.norm(deviations, axis=-1, keepdims=True)
    return np.asarray(deviations / np.where(length > 0.0, length, 1.0))
