"""Class activation maps: which places of an image a model's opinion rests on."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise.core import Floats, Floats32, InputError, MissingExtraError, ModelError, record
from equipoise.explain.scoring import Places, Scoring, Tensors, scoring
from equipoise.models.edits import Insides
from equipoise.models.images import Images, as_rgb
from equipoise.models.preprocessing import Recipe
from equipoise.models.protocols import Model

if TYPE_CHECKING:
    from torch import Tensor

# Tokens that stand before those of patches: a class token, registers.
_MOST_PREFIX = 16


@record
class Layer:
    """A layer with one output vector for each place of the image.

    Attributes
    ----------
    name : str
        Its name in the module.
    module : torch.nn.Module
    form : str
        "channels first" (n, d, h, w), "channels last" (n, h, w, d), "tokens" (n, t, d) or
        "tokens first" (t, n, d).
    grid : (int, int)
        h and w.
    start : int
        Which token is of the first place; from the end where it is below 0.
    """

    name: str
    module: Any
    form: str
    grid: tuple[int, int]
    start: int = 0

    def reshape(self, output: "Tensor") -> "Tensor":
        """Return the layer's output as (n, d, h, w)."""
        if self.form == "tokens first":
            output = output.transpose(0, 1)
        if self.form.startswith("tokens"):
            places = output[:, self.start :][:, : math.prod(self.grid)]
            output = places.reshape(len(output), *self.grid, -1)
        if self.form == "channels first":
            return output
        return output.permute(0, 3, 1, 2)


def find_layer(
    inside: Insides,
    run: Callable[[], "Tensor"],
    size: tuple[int, int],
    *,
    name: str | None = None,
    tower: str = "",
    places: Places | None = None,
) -> Layer:
    """Find the layer that a map is made of.

    Parameters
    ----------
    inside : Insides
        The model.
    run : callable
        Runs it on an image with gradients, and returns its score.
    size : (int, int)
        Height and width of what the model sees, in pixels.
    name : str, optional
        The layer. Default: of a convolutional network the last that still has several places; of a
        transformer the last block or normalisation on whose every patch the score depends: in one
        that reads a class token, the normalisation before the last attention.
    tower : str
        Name of the part to search.
    places : (int, int, int), optional
        Rows, columns and start of the image's places in a sequence of tokens.

    Raises
    ------
    ModelError
        When there is no such layer, it has no places, or runs several times for one image.
    """
    if name is not None:
        inside.layer(name)
    outputs, score = _outputs(inside, run)
    if name is not None:
        layer = _placed(name, inside.layer(name), outputs.get(name), size, places)
        if layer is None:
            raise ModelError(
                f"{inside.name}: layer {name!r} doesn't run once for an image, or its output "
                "doesn't cover the image. To do: name another layer."
            )
        return layer
    for place in reversed([name for name in outputs if name.startswith(tower)]):
        layer = _placed(place, inside.layer(place), outputs[place], size, places)
        if layer is None or not _is_usual(layer):
            continue
        (slope,) = inside.torch.autograd.grad(
            score.sum(), outputs[place], retain_graph=True, allow_unused=True
        )
        if slope is None:
            continue
        # Of most places: the score does not depend on those behind a dead unit.
        counts = layer.reshape(slope).abs().sum(dim=(0, 1)) > 0
        if counts.double().mean() > 0.5:
            return layer
    raise ModelError(
        f"{inside.name} has no layer with one vector for each place of an image. "
        "To do: name one as 'layer'."
    )


def _outputs(inside: Insides, run: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Return outputs in the order in which layers finish, None if one runs again; and the score."""
    outputs: dict[str, Any] = {}

    def keep(name: str, _module: Any, _inputs: Any, output: Any) -> None:
        again = name in outputs
        outputs.pop(name, None)
        outputs[name] = output
        if again:
            outputs[name] = None

    with ExitStack() as stack:
        for name, layer in inside.module.named_modules():
            if name:
                stack.callback(layer.register_forward_hook(partial(keep, name)).remove)
        return outputs, run()


def _placed(
    name: str, module: Any, output: Any, size: tuple[int, int], places: Places | None
) -> Layer | None:
    """Return a layer with an output for each place of the image, or None."""
    shape = tuple(getattr(output, "shape", ()))
    if len(shape) not in (3, 4) or not output.requires_grad:
        return None
    if places is not None:
        rows, columns, start = places
        last = start + rows * columns
        if start < 0:
            last = -start
        return Layer(name, module, "tokens", (rows, columns), start) if last <= shape[1] else None
    if len(shape) == 4:
        grid, form = shape[2:], "channels first"
        if shape[1] == shape[2] != shape[3]:
            grid, form = shape[1:3], "channels last"
        # Rows and columns are in the proportion of the image, within a cell.
        rows, columns = grid
        lies_over = min(grid) > 1 and abs(rows * size[1] / size[0] - columns) <= 1.0 + 1e-9
        return Layer(name, module, form, grid) if lies_over else None
    tokens, form = shape[1], "tokens"
    # The layer was found on one image, so an axis of length 1 is that of images.
    if shape[1] == 1 < shape[0]:
        tokens, form = shape[0], "tokens first"
    for prefix in range(min(_MOST_PREFIX, tokens) + 1):
        patches = _grid(tokens - prefix, size)
        if patches is not None:
            return Layer(name, module, form, patches, prefix)
    return None


def _grid(patches: int, size: tuple[int, int]) -> tuple[int, int] | None:
    """Return the rows and columns of square patches, or None if there are none."""
    if patches < 4:
        return None
    rows = round(math.sqrt(patches * size[0] / size[1]))
    columns = patches // max(rows, 1)
    square = rows > 1 and rows * columns == patches and rows * size[1] == columns * size[0]
    return (rows, columns) if square else None


def _is_usual(layer: Layer) -> bool:
    """Whether a layer is of a kind that maps are made of when none is named."""
    kind = type(layer.module).__name__.lower()
    if layer.form.startswith("tokens"):
        return "norm" in kind or any(layer.module.children())
    if any(word in kind for word in ("pool", "identity", "drop")):
        return False
    return not (layer.form == "channels last" and "linear" in kind)


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


@record
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
        """Return boxes of the images, in pixels, as shares of the model's view.

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
    """Return the model's view of an image: left, top, right, bottom, in pixels."""
    if recipe is None:
        return 0.0, 0.0, float(width), float(height)
    high, wide = recipe.resized(height, width)
    top, x = recipe.corner(high, wide)
    rows, columns = recipe.crop or (high, wide)
    down, across = height / high, width / wide
    return x * across, top * down, (x + columns) * across, (top + rows) * down


def framed(boxes: Floats, frames: Floats) -> Floats:
    """Return boxes in pixels of images as shares of the model's view, (n, 4)."""
    corner, size = frames[:, [0, 1, 0, 1]], frames[:, 2:] - frames[:, :2]
    return np.asarray((boxes - corner) / np.tile(size, 2))


def activation_maps(
    model: Model,
    images: Images,
    targets: str | Sequence[str],
    *,
    question: str = "",
    method: str = "gradcam",
    layer: str | None = None,
    batch: int = _AT_ONCE,
) -> ActivationMaps:
    """Map the regions of each image that a model's score rests on.

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
        `find_layer`.
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
    if isinstance(targets, str):
        targets = (targets,) * len(arrays)
    image_targets = tuple(targets)
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; expected one of {', '.join(METHODS)}")
    if not arrays:
        raise InputError("images: none; expected at least one")
    if len(image_targets) != len(arrays):
        raise InputError(
            f"targets: {len(image_targets)} for {len(arrays)} images; "
            "expected one each, or one for all"
        )
    scored = scoring(model, image_targets, question=question)
    step = 1 if scored.alone else batch
    with _pixels_alone(scored):
        inputs = _inputs(scored, arrays[:1])
        height, width = inputs["pixel_values"].requires_grad_(True).shape[-2:]
        target_layer = find_layer(
            scored.inside,
            lambda: scored.score(inputs, image_targets[:1]),
            (int(height), int(width)),
            name=layer or scored.layer,
            tower=scored.tower,
            places=None if scored.places is None else scored.places(inputs),
        )
        parts = []
        for start in range(0, len(arrays), step):
            batched = slice(start, start + step)
            maps = _batch(scored, target_layer, method, arrays[batched], image_targets[batched])
            parts.append(maps)
    recipe = scored.inside.recipe
    frames = np.array([frame_of(recipe, *array.shape[:2]) for array in arrays])
    return ActivationMaps(
        np.concatenate(parts), frames, image_targets, target_layer.name, method, recipe is not None
    )


@contextmanager
def _pixels_alone(scored: Scoring) -> Iterator[None]:
    """Have gradients of pixels and of what comes of them, and none of weights."""
    weights = [weight for weight in scored.inside.module.parameters() if weight.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)


def _inputs(scored: Scoring, images: Sequence[Any]) -> Tensors:
    inputs = scored.inputs(images)
    if scored.places is None and getattr(inputs.get("pixel_values"), "ndim", 0) != 4:
        raise ModelError(
            f"{scored.inside.name} takes images in pieces without a grid, so there is no map "
            "of them. To do: name a model that takes pixels."
        )
    return inputs


def _batch(
    scored: Scoring, layer: Layer, method: str, images: Sequence[Any], targets: Sequence[str]
) -> Floats32:
    """Run the grad-cam library over some images."""
    torch, inputs = scored.inside.torch, _inputs(scored, images)
    pixels = inputs["pixel_values"].requires_grad_(True)
    if scored.places is not None:
        # Images have as many places as their size has, and maps are all of one size.
        rows, columns, start = scored.places(inputs)
        layer = replace(layer, grid=(rows, columns), start=start)
        over = torch.zeros(1, 1, SIDE, SIDE, device=pixels.device)
    else:
        over = pixels

    class Opinion(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = scored.inside.module

        def forward(self, _over: Any) -> Any:
            return scored.score(inputs, targets)

    try:
        library = getattr(import_module("pytorch_grad_cam"), METHODS[method])
    except ImportError as error:
        raise MissingExtraError("grad-cam", "explain") from error
    with torch.enable_grad():
        cam = library(
            model=Opinion(), target_layers=[layer.module], reshape_transform=layer.reshape
        )
        try:
            maps = cam(over, targets=[lambda score: score] * len(images))
        finally:
            cam.activations_and_grads.release()
    return _coarse(np.asarray(maps, dtype=np.float32))


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
