"""What each unit of an image encoder gives on each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError, ModelError
from equipoise.models.edits import Insides, insides
from equipoise.models.protocols import Classifier, DualEncoder

Floats = npt.NDArray[np.float32]
Pool = Literal["mean", "max", "first"]
POOLS: tuple[Pool, ...] = ("mean", "max", "first")

# How activation functions are called.
_ACTIVATIONS = ("relu", "gelu", "silu", "swish", "elu", "mish")
_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Recording:
    """Activations of n images.

    Attributes
    ----------
    values : ndarray of float32, shape (n, units)
        Pooled over the places of an image.
    layers : tuple of str
        Names of the layers, in the order in which they ran.
    layer, unit : ndarray of int64, shape (units,)
        Which layer each column is of, and which unit there.
    axes : mapping of str to int
        Where units lie in what a layer gives: 1 (channels first) or -1.
    pool : str
        How places became one number.
    left_out : tuple of str
        Layers that ran several times for one image, which hooks cannot tell apart.
    """

    values: Floats = field(repr=False)
    layers: tuple[str, ...]
    layer: npt.NDArray[np.int64] = field(repr=False)
    unit: npt.NDArray[np.int64] = field(repr=False)
    axes: Mapping[str, int]
    pool: str
    left_out: tuple[str, ...] = ()

    def name(self, column: int) -> str:
        """Return what a unit is called: its layer and its place."""
        return f"{self.layers[self.layer[column]]}:{self.unit[column]}"


def record_units(
    model: Any,
    images: Sequence[Any],
    *,
    layers: Sequence[str] | None = None,
    pool: Pool = "mean",
) -> Recording:
    """Run a model over images and keep what its units give.

    Parameters
    ----------
    model : DualEncoder or Classifier
        That runs on torch.
    images : sequence of n images
    layers : sequence of str, optional
        Names in the module. Default: every activation function that runs once for an image.
    pool : "mean", "max" or "first"
        Over the places of an image; "first" takes a class token.

    Raises
    ------
    ModelError
        When the model cannot be hooked, has no such layer, or runs it several times for an image.
    InputError
        When there are no images, or there is no such pool.
    """
    if pool not in POOLS:
        raise InputError(f"there is no pool {pool!r}; expected one of {', '.join(POOLS)}")
    if not len(images):
        raise InputError("images: none; expected at least one")
    inside, run = insides(model), running(model)
    inside.need_torch("looking at units while it runs")
    named = _layers(inside, layers)
    taken: dict[str, list[Floats]] = {}
    axes: dict[str, int] = {}
    with ExitStack() as stack:
        for name in named:
            hook = _hook(name, pool, taken, axes)
            stack.callback(inside.layer(name).register_forward_hook(hook).remove)
        for start in range(0, len(images), _AT_ONCE):
            run(images[start : start + _AT_ONCE])
    return _recorded(inside, taken, axes, len(images), pool, named if layers else ())


def running(model: Any) -> Callable[[Sequence[Any]], Any]:
    """Return what runs a model over images.

    Raises
    ------
    ModelError
        When it is neither a dual encoder nor a classifier.
    """
    if isinstance(model, DualEncoder):
        return model.embed_images
    if isinstance(model, Classifier):
        return model.predict_proba
    raise ModelError(
        f"{model.info.name} neither embeds images nor classifies them. "
        "To do: name a dual encoder or a classifier."
    )


def _layers(inside: Insides, layers: Sequence[str] | None) -> tuple[str, ...]:
    if layers is not None:
        for name in layers:
            inside.layer(name)
        return tuple(dict.fromkeys(layers))
    found = tuple(
        name
        for name, layer in inside.module.named_modules()
        if name
        and not any(layer.children())
        and any(word in type(layer).__name__.lower() for word in _ACTIVATIONS)
    )
    if not found:
        raise ModelError(
            f"{inside.name} has no layer that is an activation function. To do: name layers."
        )
    return found


def _hook(
    name: str, pool: Pool, taken: dict[str, list[Floats]], axes: dict[str, int]
) -> Callable[..., None]:
    def hook(_module: Any, _inputs: Any, output: Any) -> None:
        shape = tuple(getattr(output, "shape", ()))
        if not 2 <= len(shape) <= 4:
            raise ModelError(
                f"the layer {name!r} gives no tensor of units. To do: name another layer"
            )
        last = len(shape) < 4 or (shape[1] == shape[2] != shape[3])
        axes[name] = -1 if last else 1
        places = output.movedim(axes[name], -1).reshape(shape[0], -1, shape[-1 if last else 1])
        pooled = {
            "mean": lambda: places.float().mean(dim=1),
            "max": lambda: places.float().amax(dim=1),
            "first": lambda: places.float()[:, 0],
        }[pool]()
        taken.setdefault(name, []).append(pooled.detach().cpu().numpy())

    return hook


def _recorded(
    inside: Insides,
    taken: Mapping[str, Sequence[Floats]],
    axes: Mapping[str, int],
    n: int,
    pool: str,
    required: Sequence[str],
) -> Recording:
    rows = {name: sum(len(part) for part in parts) for name, parts in taken.items()}
    for name in required:
        if rows.get(name) != n:
            how = "does not run" if name not in rows else "runs several times"
            raise ModelError(
                f"{inside.name} {how} its layer {name!r} for an image, so its units cannot be "
                "told apart. To do: name another layer."
            )
    kept = {name: np.concatenate(parts) for name, parts in taken.items() if rows[name] == n}
    if not kept:
        raise ModelError(
            f"{inside.name} runs every activation function several times for an image, so units "
            "cannot be told apart. To do: name layers."
        )
    widths = [part.shape[1] for part in kept.values()]
    return Recording(
        np.concatenate([*kept.values()], axis=1),
        tuple(kept),
        np.repeat(np.arange(len(kept)), widths),
        np.concatenate([np.arange(width) for width in widths]),
        {name: axes[name] for name in kept},
        pool,
        tuple(name for name in taken if name not in kept),
    )
