"""Run the shipped CLIP models over scenes and captions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from equipoise.core import Bytes, Floats32
from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.render import SUBJECTS

if TYPE_CHECKING:
    from equipoise.models.protocols import DualEncoder


WEIGHTS = Path(__file__).parent / "weights"
CLIPS = ("biased", "null")
"""Names of the shipped CLIP models, and of the worlds they were trained in."""


def load_clip(name: str, *, weights: Path = WEIGHTS) -> DualEncoder:
    """Load one shipped CLIP, to run on the CPU in float32.

    Parameters
    ----------
    name : str
        One of `CLIPS`.
    weights : Path
        Folder of the weights.

    Raises
    ------
    MissingExtraError
        If torch or transformers is not installed.
    """
    from equipoise.models.loading import load_model

    folder = weights / f"clip-{name}"
    return cast("DualEncoder", load_model(f"hf:{folder}", device="cpu", dtype="float32"))


def embed_images(clip: DualEncoder, images: Bytes) -> Floats32:
    """Return vectors of images, shape (n, dimension), of length 1."""
    return _unit(clip.embed_images(images))


def embed_groups(clip: DualEncoder, prompts: Sequence[Sequence[str]]) -> Floats32:
    """Return one vector for each group of prompts: the mean of their unit vectors, of length 1."""
    vectors = _unit(clip.embed_texts([*chain.from_iterable(prompts)]))
    ends = np.cumsum([*map(len, prompts)])[:-1]
    return _unit(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def neutral_queries(clip: DualEncoder) -> Floats32:
    """Return one query for each of `render.SUBJECTS`: its neutral prompts together."""
    return embed_groups(clip, [neutral_prompts(subject) for subject in SUBJECTS])


def _unit(vectors: Floats32) -> Floats32:
    unit: Floats32 = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit
