"""Run the shipped CLIP models and classifiers over scenes and captions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from equipoise.models.onnx import OnnxClassifier, load_onnx_classifier
from equipoise.planted.scenes.captions import neutral_prompts
from equipoise.planted.scenes.render import SUBJECTS

if TYPE_CHECKING:
    from equipoise.models.protocols import Classifier, DualEncoder


WEIGHTS = Path(__file__).parent / "weights"
CLIPS = ("biased", "null")
"""Names of the shipped CLIP models, and of the worlds they were trained in."""

Vectors = NDArray[np.float32]


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
    ValueError
        If there is no such model.
    MissingExtraError
        If torch or transformers is not installed.
    """
    from equipoise.models.loading import load_model

    if name not in CLIPS:
        raise ValueError(f"there is no model {name!r}; there are {', '.join(CLIPS)}")
    folder = weights / f"clip-{name}"
    return cast("DualEncoder", load_model(f"hf:{folder}", device="cpu", dtype="float32"))


def embed_images(clip: DualEncoder, images: NDArray[np.uint8]) -> Vectors:
    """Return vectors of images, shape (n, dimension), of length 1."""
    return _unit(clip.embed_images(images))


def embed_groups(clip: DualEncoder, prompts: Sequence[Sequence[str]]) -> Vectors:
    """Return one vector for each group of prompts: the mean of their unit vectors, of length 1."""
    vectors = _unit(clip.embed_texts([text for group in prompts for text in group]))
    ends = np.cumsum([len(group) for group in prompts])[:-1]
    return _unit(np.stack([part.mean(axis=0) for part in np.split(vectors, ends)]))


def neutral_queries(clip: DualEncoder) -> Vectors:
    """Return one query for each of `render.SUBJECTS`: its neutral prompts together."""
    return embed_groups(clip, [neutral_prompts(subject) for subject in SUBJECTS])


def _unit(vectors: Vectors) -> Vectors:
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


CNNS = ("biased", "null")
"""Worlds in which a convolutional network was trained."""

VITS = ("biased",)
"""Worlds in which a ViT was trained."""


def load_cnn(name: str, *, weights: Path = WEIGHTS, threads: int = 1) -> OnnxClassifier:
    """Load a shipped convolutional network.

    Parameters
    ----------
    name : str
        One of `CNNS`.
    weights : Path
        Folder of the weights.
    threads : int
        Threads for one operator.

    Returns
    -------
    OnnxClassifier
        Its labels are `render.SUBJECTS`.

    Raises
    ------
    ValueError
        If there is no such network.
    """
    if name not in CNNS:
        raise ValueError(f"there is no network {name!r}; there are {', '.join(CNNS)}")
    return load_onnx_classifier(weights / f"cnn-{name}.onnx", SUBJECTS, threads=threads)


def load_vit(name: str, *, weights: Path = WEIGHTS) -> Classifier:
    """Load a shipped ViT, to run on the CPU in float32.

    Parameters
    ----------
    name : str
        One of `VITS`.
    weights : Path
        Folder of the weights.

    Returns
    -------
    Classifier
        Its labels are `render.SUBJECTS`.

    Raises
    ------
    ValueError
        If there is no such model.
    MissingExtraError
        If torch or transformers is not installed.
    """
    from equipoise.models.loading import load_model

    if name not in VITS:
        raise ValueError(f"there is no ViT {name!r}; there are {', '.join(VITS)}")
    folder = weights / f"vit-{name}"
    return cast("Classifier", load_model(f"hf:{folder}", device="cpu", dtype="float32"))
