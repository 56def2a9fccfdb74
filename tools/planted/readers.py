"""Two classifiers that give the same answers for different reasons: by the glyph, by the frame.

In the world where they are asked, every red glyph stands in level bars and every blue one in
upright bars. One network was trained where the hue decides and the frame says nothing, the other
where the frame decides and the hue says nothing: on the images where both agree, only a map tells
them apart.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from equipoise.models.towers import TowerClassifier
from equipoise.planted.scenes.render import (
    CELLS,
    FILLS,
    FRAMES,
    HUES,
    IMAGE_SIZE,
    REACH,
    SUBJECTS,
    Factors,
    distances,
    draw_poses,
    render,
)
from equipoise.stats.streams import stream
from tools.planted.modules import module_classifier

READS = ("glyph", "frame")
"""What a reader goes by."""

LABELS = ("red, level", "blue, upright")
"""What readers call the images of their world."""

_HUES = (HUES.index("red"), HUES.index("blue"))
_STEPS, _BATCH, _IMAGES = 120, 64, 2048


def draw_agreeing(n: int, *, seed: int, name: str = "readers") -> Factors:
    """Draw images in which hue and frame agree: red in level bars, blue in upright ones."""
    generator = stream(seed, "scenes", name)
    side = generator.integers(2, size=n)
    subject = generator.integers(len(SUBJECTS), size=n)
    return draw_poses(subject, np.take(_HUES, side), side % len(FRAMES), generator)


def glyph_boxes(factors: Factors) -> NDArray[np.float64]:
    """Return the box around each glyph, in pixels: left, top, right, bottom; shape (n, 4).

    It is drawn around the circle that the shape fits into, however it is turned.
    """
    reach = factors.side * _radii()[factors.subject // len(FILLS)]
    middle = np.column_stack([factors.x, factors.y]) + IMAGE_SIZE / 2.0
    return np.clip(np.hstack([middle - reach[:, None], middle + reach[:, None]]), 0, IMAGE_SIZE)


def _radii() -> NDArray[np.float64]:
    """Return how far each shape reaches from its centroid, in units of its size."""
    column = (np.arange(CELLS) + 0.5) / CELLS * 2.0 * REACH - REACH
    away = np.hypot(column[:, None], column[None, :])
    return np.array([away[distance <= 0.0].max() for distance in distances()])


def train_reader(reads: str, *, seed: int = 0) -> TowerClassifier:
    """Train a small convolutional network to tell the two apart, in seconds.

    Parameters
    ----------
    reads : str
        One of `READS`: what decides in training.
    seed : int
        Of images, weights and order.

    Returns
    -------
    TowerClassifier
        Its labels are `LABELS`.

    Raises
    ------
    ValueError
        If there is no such reader.
    """
    if reads not in READS:
        raise ValueError(f"there is no reader {reads!r}; there are {', '.join(READS)}")
    factors, label = _training(reads, seed)
    pixels = torch.from_numpy(render(factors)).permute(0, 3, 1, 2).float() / 255.0 - 0.5
    labels = torch.from_numpy(label)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = _network()
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    order = stream(seed, "scenes", "readers", "order", reads)
    network.train()
    for _ in range(_STEPS):
        rows = order.integers(len(label), size=_BATCH)
        loss = torch.nn.functional.cross_entropy(network(pixels[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return module_classifier(network, LABELS, name=f"reads the {reads}", mean=0.5)


def _training(reads: str, seed: int) -> tuple[Factors, NDArray[np.int64]]:
    """Images in which one attribute decides and the other is drawn by itself."""
    generator = stream(seed, "scenes", "readers", "training", reads)
    hue, frame, subject = (generator.integers(size, size=_IMAGES) for size in (2, 2, len(SUBJECTS)))
    factors = draw_poses(subject, np.take(_HUES, hue), frame, generator)
    return factors, hue if reads == "glyph" else frame


def _network() -> torch.nn.Module:
    """Three layers of 3 x 3, the last with 8 x 8 places."""
    nn = torch.nn
    layers: list[torch.nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 24)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(24, 32, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 2))
