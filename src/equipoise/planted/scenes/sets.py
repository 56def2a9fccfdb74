"""Sets of scenes with the truth about each image: balanced, and counterfactual."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from equipoise.core import Bytes
from equipoise.planted.scenes.render import (
    FRAMES,
    HUES,
    SUBJECTS,
    Factors,
    draw_poses,
    render,
)
from equipoise.stats.streams import stream


@dataclass(frozen=True)
class Scenes:
    """Rendered images with the factors that made them.

    Attributes
    ----------
    image_id : tuple of str
        Unique within the set.
    set_id : tuple of str
        Images of one set differ in hue and frame alone; an image of its own set where none was
        drawn.
    images : ndarray of uint8, shape (n, IMAGE_SIZE, IMAGE_SIZE, 3)
    factors : Factors
        The same n rows.
    """

    image_id: tuple[str, ...]
    set_id: tuple[str, ...]
    images: Bytes
    factors: Factors

    def __len__(self) -> int:
        return len(self.image_id)

    def table(self) -> dict[str, NDArray[np.str_]]:
        """Return ``image_id``, ``set``, ``subject``, ``hue`` and ``frame`` of each image."""
        return {
            "image_id": np.array(self.image_id),
            "set": np.array(self.set_id),
            "subject": np.array(SUBJECTS)[self.factors.subject],
            "hue": np.array(HUES)[self.factors.hue],
            "frame": np.array(FRAMES)[self.factors.frame],
        }


def render_balanced(per_cell: int, *, seed: int) -> Scenes:
    """Render the same number of unrelated images for every subject, hue and frame.

    Parameters
    ----------
    per_cell : int
        Images of each subject in each hue and frame, at least 1.
    seed : int
        Not negative.

    Returns
    -------
    Scenes
        ``288 * per_cell`` images, cell after cell; none shares a draw with training images.
    """
    parts, names = [], []
    for cell in product(range(len(SUBJECTS)), range(len(HUES)), range(len(FRAMES))):
        subject, hue, frame = (np.full(per_cell, level, dtype=np.int64) for level in cell)
        parts.append(draw_poses(subject, hue, frame, stream(seed, "scenes", "balanced", *cell)))
        name = f"{SUBJECTS[cell[0]]} {HUES[cell[1]]} {FRAMES[cell[2]]}".replace(" ", "-")
        names += [f"{name}-{number:05d}" for number in range(per_cell)]
    factors = _joined(parts)
    return Scenes(tuple(names), tuple(names), render(factors), factors)


def render_sets(per_subject: int, *, seed: int) -> Scenes:
    """Render counterfactual sets: one pose and background in all 12 combinations of attributes.

    Parameters
    ----------
    per_subject : int
        Sets of each subject, at least 1.
    seed : int
        Not negative.

    Returns
    -------
    Scenes
        ``288 * per_subject`` images, set after set.
    """
    attributes = np.array(list(product(range(len(HUES)), range(len(FRAMES)))), dtype=np.int64)
    endings = [f"{HUES[hue]}-{FRAMES[frame]}" for hue, frame in attributes]
    parts, sets, names = [], [], []
    for number, subject in enumerate(SUBJECTS):
        zeros = np.zeros(per_subject, dtype=np.int64)
        poses = draw_poses(zeros + number, zeros, zeros, stream(seed, "scenes", "sets", number))
        once = poses.take(np.repeat(np.arange(per_subject), len(attributes)))
        hue, frame = np.tile(attributes, (per_subject, 1)).T
        parts.append(replace(once, hue=hue, frame=frame))
        for pose in range(per_subject):
            name = f"{subject}-{pose:05d}".replace(" ", "-")
            sets += [name] * len(attributes)
            names += [f"{name}-{ending}" for ending in endings]
    factors = _joined(parts)
    return Scenes(tuple(names), tuple(sets), render(factors), factors)


def _joined(parts: list[Factors]) -> Factors:
    columns = [vars(part) for part in parts]
    return Factors(
        **{name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    )
