"""A small dual encoder in which one unit carries a group, and images of both groups.

An image is 8 x 8 squares of random grey; the square in its middle is lighter in one group. Every
unit of the tower but one mixes the other squares; the planted one sees that square alone. The
concept "doctor" lies towards what the planted unit writes, "nurse" away from it: all that ties the
group to either runs through this one unit.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.stats.streams import stream
from tools.planted.modules import ModuleEncoder, module_encoder

SQUARES, SQUARE = 8, 4
"""Squares a side, and pixels a side of one."""

MARKED = SQUARES * SQUARES // 2 + SQUARES // 2
"""The square that differs between the groups."""

UNITS, PLANTED = 64, 37
"""Units of the layer, and which of them carries the group."""

LAYER = "act"
"""Name of the layer."""

CONCEPTS = {"doctor": ("a doctor",), "nurse": ("a nurse",)}
_DIMENSION = 48
_OBJECTS = 12
_LIGHTER = 0.35


@dataclass(frozen=True, eq=False)
class Marked:
    """Images of two groups.

    Attributes
    ----------
    images : ndarray of uint8, shape (n, 32, 32, 3)
    group : ndarray of str, shape (n,)
        "men", whose middle is lighter, and "women".
    caption : tuple of n str
        What else an image shows: "object 0" to "object 11".
    """

    images: NDArray[np.uint8]
    group: NDArray[np.object_]
    caption: tuple[str, ...]


def draw_marked(n: int, *, seed: int = 0) -> Marked:
    """Draw n images: of both groups in turn, each with one of twelve patterns, as often of each."""
    generator = stream(seed, "units", "images")
    men = np.arange(n) % 2
    pattern_index = np.arange(n) // 2 % _OBJECTS
    grey = 0.6 * _patterns()[pattern_index] + 0.15 * generator.random((n, SQUARES**2))
    grey[:, MARKED] = 0.25 + _LIGHTER * men + 0.3 * generator.random(n)
    squares = np.rint(255.0 * np.clip(grey, 0.0, 1.0)).reshape(n, SQUARES, SQUARES)
    images = np.kron(squares, np.ones((1, SQUARE, SQUARE))).astype(np.uint8)
    group = np.array(["women", "men"], dtype=object)[men]
    caption = tuple(f"object {index}" for index in pattern_index.tolist())
    return Marked(np.repeat(images[..., None], 3, axis=3), group, caption)


def planted_unit(*, seed: int = 0, strength: float = 3.0) -> ModuleEncoder:
    """Build the encoder: nothing is trained.

    Parameters
    ----------
    seed : int
        Of what the other units mix.
    strength : float
        How strongly the planted unit writes.

    Returns
    -------
    ModuleEncoder
        Its layer `LAYER` has `UNITS` units. It embeds "a doctor", "a nurse" and "object 0" to
        "object 11".
    """
    reading, writing = _weights(seed, strength)
    tower = _tower(reading, writing)
    hidden = np.maximum(_patterns() * 0.6 @ reading.T, 0.0)
    hidden[:, PLANTED] = 0.0
    vectors = {f"object {index}": row for index, row in enumerate(hidden @ writing.T)}
    direction = writing[:, PLANTED] / np.linalg.norm(writing[:, PLANTED])
    vectors |= {"a doctor": direction, "a nurse": -direction}

    def texts(prompts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[text] for text in prompts]).astype(np.float32)

    return module_encoder(tower, texts, name="one planted unit", dimension=_DIMENSION, scale=10.0)


def _patterns() -> NDArray[np.float64]:
    patterns = stream(0, "units", "patterns").integers(2, size=(_OBJECTS, SQUARES**2)).astype(float)
    patterns[:, MARKED] = 0.0
    return patterns


def _weights(seed: int, strength: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of what units read of the squares, and of what they write."""
    generator = stream(seed, "units", "weights")
    reading = generator.standard_normal((UNITS, SQUARES**2)) / SQUARES
    reading[:, MARKED] = 0.0
    reading[PLANTED] = 0.0
    reading[PLANTED, MARKED] = 2.0
    writing = generator.standard_normal((_DIMENSION, UNITS)) / np.sqrt(_DIMENSION)
    # The others write across the planted unit's direction, not along it.
    along = writing[:, PLANTED] / np.linalg.norm(writing[:, PLANTED])
    writing -= np.outer(along, along @ writing)
    writing[:, PLANTED] = strength * along
    return reading, writing


def _tower(reading: NDArray[np.float64], writing: NDArray[np.float64]) -> torch.nn.Module:
    read = torch.nn.Linear(SQUARES**2, UNITS, bias=False)
    write = torch.nn.Linear(UNITS, _DIMENSION, bias=False)
    with torch.no_grad():
        read.weight.copy_(torch.from_numpy(reading))
        write.weight.copy_(torch.from_numpy(writing))
    # Colours and the pixels of a square are averaged.
    squares = torch.nn.AvgPool3d((3, SQUARE, SQUARE))
    layers = {"squares": squares, "flat": torch.nn.Flatten(), "read": read}
    return torch.nn.Sequential(OrderedDict(layers | {LAYER: torch.nn.ReLU(), "write": write}))
