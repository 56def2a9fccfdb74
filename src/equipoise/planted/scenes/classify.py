"""Run the shipped classifiers over scenes."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from equipoise.models.onnx import OnnxClassifier, load_onnx_classifier
from equipoise.planted.scenes.embed import WEIGHTS
from equipoise.planted.scenes.render import SUBJECTS

if TYPE_CHECKING:
    from equipoise.models.protocols import Classifier

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


def load_vit(name: str, *, weights: Path = WEIGHTS) -> "Classifier":
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
