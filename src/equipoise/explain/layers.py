"""Which layer a map is made of, and how what it gives lies over the image."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from equipoise.core.errors import ModelError
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


class _Seen(NamedTuple):
    """The output of a layer, and how often it ran."""

    output: Any
    times: int


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
    seen, score = _outputs(inside, run)
    if name is not None:
        return _named(inside, name, seen, size)
    torch = inside.torch
    for place in reversed([one for one in seen if one.startswith(tower)]):
        layer = _placed(place, inside.layer(place), seen[place], size)
        if layer is None or not _is_usual(layer):
            continue
        (slope,) = torch.autograd.grad(
            score.sum(), seen[place].output, retain_graph=True, allow_unused=True
        )
        if slope is not None and _every_place_counts(layer.reshape(slope)):
            return layer
    raise ModelError(
        f"{inside.name} has no layer with one vector for each place of an image. "
        "To do: name one as 'layer'."
    )


def _outputs(inside: Insides, run: Callable[[], Any]) -> tuple[dict[str, _Seen], Any]:
    """Return what every layer gave, in the order in which they finished."""
    seen: dict[str, _Seen] = {}

    def keep(name: str, _module: Any, _inputs: Any, output: Any) -> None:
        times = seen.pop(name).times if name in seen else 0
        seen[name] = _Seen(output, times + 1)

    with ExitStack() as stack:
        for name, layer in inside.module.named_modules():
            if name:
                stack.callback(layer.register_forward_hook(partial(keep, name)).remove)
        return seen, run()


def _named(inside: Insides, name: str, seen: Mapping[str, _Seen], size: tuple[int, int]) -> Layer:
    if name not in seen or seen[name].times > 1:
        raise ModelError(
            f"{inside.name} doesn't run its layer {name!r} once for an image. To do: name another "
            "layer."
        )
    layer = _placed(name, inside.layer(name), seen[name], size)
    if layer is None:
        raise ModelError(
            f"{inside.name}: what the layer {name!r} gives has no places of the image. "
            "To do: name an earlier layer."
        )
    return layer


def _placed(name: str, module: Any, seen: _Seen, size: tuple[int, int]) -> Layer | None:
    """Return a layer whose output lies over the image; None of any other."""
    shape = tuple(getattr(seen.output, "shape", ()))
    if seen.times > 1 or not getattr(seen.output, "requires_grad", False):
        return None
    if len(shape) == 4:
        last = shape[1] == shape[2] and shape[2] != shape[3]
        grid = shape[1:3] if last else shape[2:]
        form = "channels last" if last else "channels first"
        return Layer(name, module, form, grid) if _lies_over(grid, size) else None
    if len(shape) != 3:
        return None
    # The layer was found on one image, so an axis of length 1 is that of images.
    first = shape[1] == 1 < shape[0]
    tokens = shape[0] if first else shape[1]
    for prefix in range(min(_MOST_PREFIX, tokens) + 1):
        patches = _grid(tokens - prefix, size)
        if patches is not None:
            form = "tokens first" if first else "tokens"
            return Layer(name, module, form, patches, prefix)
    return None


def _lies_over(grid: tuple[int, int], size: tuple[int, int]) -> bool:
    """Whether rows and columns are in the proportion of the image, within a cell."""
    rows, columns = grid
    wide = rows * size[1] / size[0]
    return min(grid) > 1 and abs(wide - columns) <= 1.0 + 1e-9


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


def _every_place_counts(slope: Any) -> bool:
    """Whether the score depends on most places: of those behind a dead unit it does not."""
    return bool((slope.abs().sum(dim=(0, 1)) > 0).double().mean() > 0.5)
