"""Class activation maps: which places of an image a model's opinion rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core import Floats, Floats32, InputError, MissingExtraError, ModelError
from equipoise.explain.layers import Layer, find_layer
from equipoise.explain.scoring import Scoring, scoring
from equipoise.models.images import as_rgb
from equipoise.models.preprocessing import Recipe

METHODS = {
    "gradcam": "GradCAM",
    "gradcam++": "GradCAMPlusPlus",
    "hirescam": "HiResCAM",
    "layercam": "LayerCAM",
    "xgradcam": "XGradCAM",
}
"""Ways to weigh activations by gradients, and the classes of the grad-cam library."""

SIDE = 32
"""Most rows and columns of a map: finer ones are averaged over squares."""

_AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class ActivationMaps:
    """Maps of n images.

    Attributes
    ----------
    maps : ndarray of float32, shape (n, rows, columns)
        0 or above, larger where more of the score rests; all 0 where nothing speaks for it.
    frames : ndarray of float64, shape (n, 4)
        Left, top, right and bottom of what the model saw of each image, in pixels of the image:
        the map lies over that.
    targets : tuple of n str
        What was asked for.
    layer, method : str
        The layer, and how its activations were weighed.
    exact : bool
        Whether `frames` follow from the model's own preparation; where that is not known, the
        whole image is taken.
    """

    maps: Floats32
    frames: Floats
    targets: tuple[str, ...]
    layer: str
    method: str
    exact: bool

    def boxes(self, boxes: npt.ArrayLike) -> Floats:
        """Return boxes of the images, in pixels, as shares of what the model saw.

        Parameters
        ----------
        boxes : array-like, shape (n, 4)
            Left, top, right, bottom.

        Returns
        -------
        ndarray of float64, shape (n, 4)
            From 0 to 1 inside what the model saw; NaN stays NaN.
        """
        return framed(np.asarray(boxes, dtype=np.float64), self.frames)


def frame_of(recipe: Recipe | None, height: int, width: int) -> tuple[float, float, float, float]:
    """Return what a model sees of an image: left, top, right, bottom, in the image's pixels."""
    if recipe is None:
        return 0.0, 0.0, float(width), float(height)
    high, wide = recipe.resized(height, width)
    top, left = recipe.corner(high, wide)
    rows, columns = recipe.crop or (high, wide)
    down, across = height / high, width / wide
    return left * across, top * down, (left + columns) * across, (top + rows) * down


def framed(boxes: Floats, frames: Floats) -> Floats:
    """Return boxes in pixels of images as shares of what was seen of them, (n, 4)."""
    corner, size = frames[:, [0, 1, 0, 1]], frames[:, 2:] - frames[:, :2]
    return np.asarray((boxes - corner) / np.tile(size, 2))


def activation_maps(
    model: Any,
    images: Sequence[Any],
    targets: str | Sequence[str],
    *,
    question: str = "",
    method: str = "gradcam",
    layer: str | None = None,
    batch: int = _AT_ONCE,
) -> ActivationMaps:
    """Map what a model's opinion of each image rests on.

    Parameters
    ----------
    model : Classifier, DualEncoder, PairScorer or Answerer
        Of hf:, open_clip: or timm:, or one with a torch module as `model`; in float32.
    images : sequence of n images
        See `equipoise.models.images.as_rgb`.
    targets : str or sequence of n str
        For each image, or for all: a label of a classifier; a text; an answer.
    question : str
        Of a model that answers questions.
    method : str
        One of `METHODS`.
    layer : str, optional
        Name of the layer, as the module's `named_modules` calls it. Default: see
        `equipoise.explain.layers.find_layer`.
    batch : int
        Images at once.

    Returns
    -------
    ActivationMaps
        The same whatever the batch, up to rounding.

    Raises
    ------
    InputError
        When there is no such method or label, or the lengths differ.
    ModelError
        When the model's insides cannot be reached, or there is no such layer.
    MissingExtraError
        When grad-cam is not installed.

    References
    ----------
    Selvaraju et al. 2017, "Grad-CAM"; Mandal 2024, chapters 4 and 5.
    """
    arrays = as_rgb(images)
    asked = (targets,) * len(arrays) if isinstance(targets, str) else tuple(targets)
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; expected one of {', '.join(METHODS)}")
    if not arrays:
        raise InputError("images: none; expected at least one")
    if len(asked) != len(arrays):
        raise InputError(
            f"targets: {len(asked)} for {len(arrays)} images; expected one each, or one for all"
        )
    scored = scoring(model, asked, question=question)
    with _pixels_alone(scored):
        inputs = _inputs(scored, arrays[:1])
        height, width = inputs["pixel_values"].requires_grad_(True).shape[-2:]
        found = find_layer(
            scored.inside,
            lambda: scored.score(inputs, asked[:1]),
            (int(height), int(width)),
            name=layer,
            tower=scored.tower,
        )
        parts = [
            _batch(scored, found, method, arrays[start : start + batch],
                   asked[start : start + batch])
            for start in range(0, len(arrays), batch)
        ]  # fmt: skip
    recipe = scored.inside.recipe
    frames = np.array([frame_of(recipe, *array.shape[:2]) for array in arrays])
    return ActivationMaps(
        np.concatenate(parts), frames, asked, found.name, method, recipe is not None
    )


@contextmanager
def _pixels_alone(scored: Scoring) -> Iterator[None]:
    """Have gradients of pixels and of what comes of them, and none of weights."""
    weights = [one for one in scored.inside.module.parameters() if one.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


def _inputs(scored: Scoring, images: Sequence[Any]) -> dict[str, Any]:
    inputs = scored.inside.inputs(images)
    if getattr(inputs.get("pixel_values"), "ndim", 0) != 4:
        raise ModelError(
            f"{scored.inside.name} takes images in pieces that lie on no grid, so there is no map "
            "of them. To do: name a model that takes pixels."
        )
    return inputs


def _batch(
    scored: Scoring, layer: Layer, method: str, images: Sequence[Any], targets: Sequence[str]
) -> Floats32:
    """Run the grad-cam library over some images."""
    torch, inputs = scored.inside.torch, _inputs(scored, images)
    others = {name: value for name, value in inputs.items() if name != "pixel_values"}

    class Opinion(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = scored.inside.module

        def forward(self, pixels: Any) -> Any:
            return scored.score({**others, "pixel_values": pixels}, targets)

    try:
        library = getattr(import_module("pytorch_grad_cam"), METHODS[method])
    except ImportError as error:
        raise MissingExtraError("grad-cam", "explain") from error
    with torch.enable_grad():
        cam = library(
            model=Opinion(), target_layers=[layer.module], reshape_transform=layer.reshape
        )
        try:
            pixels = inputs["pixel_values"].requires_grad_(True)
            found = cam(pixels, targets=[lambda score: score] * len(images))
        finally:
            cam.activations_and_grads.release()
    return _coarse(np.asarray(found, dtype=np.float32))


def _coarse(maps: Floats32) -> Floats32:
    """Average maps over squares until no side has more than `SIDE` cells."""
    n, rows, columns = maps.shape
    step = -(-max(rows, columns) // SIDE)
    if step == 1:
        return maps
    high, wide = -(-rows // step) * step, -(-columns // step) * step
    # Cells beyond the edge repeat it, so that an average is one of values there are.
    filled = np.pad(maps, ((0, 0), (0, high - rows), (0, wide - columns)), mode="edge")
    blocks = filled.reshape(n, high // step, step, wide // step, step)
    return np.asarray(blocks.mean(axis=(2, 4), dtype=np.float64), dtype=np.float32)
