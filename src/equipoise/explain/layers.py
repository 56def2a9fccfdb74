"""Which layer a map is made of, and how what it gives lies over the image."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from equipoise.core import ModelError
from equipoise.models.edits import Insides

# Tokens that stand before those of patches: a class token, registers.
_MOST_PREFIX = 16


@dataclass(frozen=True, eq=False)
class Layer:
    """A layer whose output has one vector for each place of the image.

    Attributes
    ----------
    name : str
        Its name in the module.
    module : torch.nn.Module
    form : str
        "channels first" (n, d, h, w), "channels last" (n, h, w, d), "tokens" (n, p + h·w, d) or
        "tokens first" (p + h·w, n, d).
    grid : (int, int)
        h and w.
    prefix : int
        p, tokens that are of no place.
    """

    name: str
    module: Any
    form: str
    grid: tuple[int, int]
    prefix: int = 0

    def reshape(self, output: Any) -> Any:
        """Return what the layer gives as (n, d, h, w)."""
        if self.form == "tokens first":
            output = output.transpose(0, 1)
        if self.form.startswith("tokens"):
            output = output[:, self.prefix :].reshape(len(output), *self.grid, -1)
        return output if self.form == "channels first" else output.permute(0, 3, 1, 2)


def find_layer(
    inside: Insides,
    run: Callable[[], Any],
    size: tuple[int, int],
    *,
    name: str | None = None,
    tower: str = "",
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

    Raises
    ------
    ModelError
        When there is no such layer, it has no places, or runs several times for one image.
    """
    if name is not None:
        inside.layer(name)
    outputs, score = _outputs(inside, run)
    if name is not None:
        layer = _placed(name, inside.layer(name), outputs.get(name), size)
        if layer is None:
            raise ModelError(
                f"{inside.name}: layer {name!r} doesn't run once for an image, or gives nothing "
                "that lies over the image. To do: name another layer."
            )
        return layer
    for place in reversed([one for one in outputs if one.startswith(tower)]):
        layer = _placed(place, inside.layer(place), outputs[place], size)
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
        outputs[name] = None if again else output

    with ExitStack() as stack:
        for name, layer in inside.module.named_modules():
            if name:
                stack.callback(layer.register_forward_hook(partial(keep, name)).remove)
        return outputs, run()


def _placed(name: str, module: Any, output: Any, size: tuple[int, int]) -> Layer | None:
    """Return a layer whose output lies over the image; None of any other."""
    shape = tuple(getattr(output, "shape", ()))
    if len(shape) not in (3, 4) or not output.requires_grad:
        return None
    if len(shape) == 4:
        last = shape[1] == shape[2] and shape[2] != shape[3]
        rows, columns = grid = shape[1:3] if last else shape[2:]
        form = "channels last" if last else "channels first"
        # Rows and columns are in the proportion of the image, within a cell.
        lies_over = min(grid) > 1 and abs(rows * size[1] / size[0] - columns) <= 1.0 + 1e-9
        return Layer(name, module, form, grid) if lies_over else None
    # The layer was found on one image, so an axis of length 1 is that of images.
    first = shape[1] == 1 < shape[0]
    tokens = shape[0] if first else shape[1]
    for prefix in range(min(_MOST_PREFIX, tokens) + 1):
        patches = _grid(tokens - prefix, size)
        if patches is not None:
            form = "tokens first" if first else "tokens"
            return Layer(name, module, form, patches, prefix)
    return None


def _grid(patches: int, size: tuple[int, int]) -> tuple[int, int] | None:
    """Rows and columns of patches that are as high as they are wide; None where there are none."""
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
