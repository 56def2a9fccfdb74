"""Activations of the components of a model: units, heads by residual decomposition, features."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.core import (
    AnyArray,
    DataError,
    Floats32,
    InputError,
    Integers,
    ModelError,
    record,
)
from equipoise.data.arrays import read_arrays
from equipoise.models.edits import Site, image_method, insides
from equipoise.models.images import Images
from equipoise.models.protocols import DualEncoder, Model, PairScorer

# Class names of activation functions contain one of these.
_ACTIVATIONS = ("relu", "gelu", "silu", "swish", "elu", "mish")
_IMAGES_AT_ONCE = 64
Items = Images | Sequence[str]
"""Images, or texts that a dual encoder embeds."""


@record
class Recording:
    """Activations of n images or texts.

    Attributes
    ----------
    values : ndarray of float32, shape (n, components)
        Means over the places of an image, or at the first place.
    sites : tuple of Site
        What was recorded, in the order in which layers ran.
    layer, unit : ndarray of int64, shape (components,)
        Site of each column, and its place there: the number of a unit or feature.
    """

    values: Floats32
    sites: tuple[Site, ...]
    layer: Integers
    unit: Integers

    @property
    def layers(self) -> tuple[str, ...]:
        """Name of the layer of each site."""
        return tuple(site.layer for site in self.sites)

    def name(self, column: int) -> str:
        """Return the name of a component."""
        site, unit = self.sites[self.layer[column]], int(self.unit[column])
        if site.name:
            has_directions = site.read is not None and len(site.read) > 1
            return f"{site.name}, direction {unit + 1}" if has_directions else site.name
        return f"{'unit' if site.read is None else 'feature'} {unit} of {site.layer}"


def join_recordings(values: Sequence[Floats32], sites: Sequence[Site]) -> Recording:
    """Join the activations of several sites."""
    layers, units = [], []
    for place, (part, site) in enumerate(zip(values, sites, strict=True)):
        width = part.shape[1]
        layers.append(np.full(width, place))
        numbered = site.read is not None or not site.units
        units.append(np.arange(width) if numbered else np.asarray(site.units))
    return Recording(
        np.concatenate([*values], axis=1),
        tuple(sites),
        np.concatenate(layers),
        np.concatenate(units),
    )


def record_units(
    model: Model, items: Items, *, layers: Sequence[str | Site] | None = None, text: str = ""
) -> Recording:
    """Run a model over images or texts and record the activations of its units.

    Parameters
    ----------
    model : DualEncoder, Classifier or PairScorer
        That runs on torch.
    items : sequence of n images or str
        Texts run through the text tower of a dual encoder, one at a time: padding takes no part.
    layers : sequence of str or Site, optional
        Names in the module, results of `read_dictionary`, or other sites. Default: every activation
        function that runs once for an item.
    text : str
        That a matching model holds against each image, so that its cross-modal layers run.

    Raises
    ------
    ModelError
        When the model cannot be hooked, has no such layer, or runs it several times for an item.
    InputError
        When there are no items.
    """
    if not len(items):
        raise InputError("images: none; expected at least one")
    inside = insides(model)
    run_model = _runner(model, items[0], text)
    inside.need_torch("looking at units while it runs")
    named = _activation_layers(inside.module) if layers is None else layers
    sites = [layer if isinstance(layer, Site) else Site(layer) for layer in named]
    batches: dict[int, list[Floats32]] = {}
    recorded_sites = dict(enumerate(sites))

    def record(place: int, tensor: Any) -> None:
        shape = tuple(getattr(tensor, "shape", ()))
        site = sites[place]
        if not 2 <= len(shape) <= 4:
            raise ModelError(
                f"the layer {site.layer!r} gives no tensor of units. To do: name another layer"
            )
        last = len(shape) < 4 or (shape[1] == shape[2] != shape[3])
        recorded_sites[place] = site = replace(site, axis=-1 if last else 1)
        batches.setdefault(place, []).append(site.pool(tensor).detach().cpu().numpy())

    at_once = 1 if isinstance(items[0], str) else _IMAGES_AT_ONCE
    with ExitStack() as stack:
        for place, site in enumerate(sites):
            handle = site.hook(inside.layer(site.layer), partial(record, place))
            stack.callback(handle.remove)
        for start in range(0, len(items), at_once):
            run_model([items[row] for row in range(start, min(start + at_once, len(items)))])
    values, complete_sites = [], []
    for place, parts in batches.items():
        activations = np.concatenate(parts)
        if len(activations) == len(items):
            values.append(activations)
            complete_sites.append(recorded_sites[place])
    if not values or (layers is not None and len(values) < len(sites)):
        names = [site.layer for site in complete_sites]
        raise ModelError(
            f"{inside.name} runs only {names} once for an image. To do: name other layers"
        )
    return join_recordings(values, complete_sites)


def _activation_layers(module: Any) -> list[str]:
    """Return the names of a module's activation functions."""
    names = []
    for name, layer in module.named_modules():
        kind = type(layer).__name__.lower()
        if name and not any(layer.children()) and any(word in kind for word in _ACTIVATIONS):
            names.append(name)
    return names


def _runner(model: Model, item: object, text: str) -> Callable[[Any], AnyArray]:
    if isinstance(item, str):
        if not isinstance(model, DualEncoder):
            raise ModelError(
                f"{model.info.name} embeds no texts alone. To do: name a dual encoder, or images"
            )
        return model.embed_texts
    if isinstance(model, PairScorer) and text:
        return lambda images: model.score(images, [text])
    return image_method(model)


def read_dictionary(path: Path, layer: str) -> Site:
    """Read the features of a sparse autoencoder.

    Parameters
    ----------
    path : Path
        A `safetensors` or `npz` file with ``W_enc`` (units, features), ``W_dec`` (features, units)
        and, optional, ``b_enc``, ``b_dec`` and ``threshold``.
    layer : str
        Name of the layer whose output the autoencoder was trained on.

    Returns
    -------
    Site
        A feature is ``relu((x - b_dec) @ W_enc + b_enc)``, or 0 up to its threshold.

    Raises
    ------
    ModelError
        When the file cannot be read, lacks a matrix, or shapes do not fit.
    """
    arrays = _read_arrays(path)
    if lacking := {"W_enc", "W_dec"} - {*arrays}:
        raise ModelError(
            f"{path} has no {min(lacking)}; it has {', '.join(sorted(arrays)) or 'nothing'}"
        )
    encoder, decoder = arrays["W_enc"], arrays["W_dec"]
    none = np.zeros(len(decoder), np.float32)
    thresholds, bias = arrays.get("threshold", none), arrays.get("b_enc", none)
    before = arrays.get("b_dec", np.zeros(len(encoder), np.float32))
    sizes = [bias.shape, thresholds.shape, before.shape]
    if encoder.shape[::-1] != decoder.shape or sizes != [(len(decoder),)] * 2 + [(len(encoder),)]:
        raise ModelError(
            f"{path}: W_enc {encoder.shape}, W_dec {decoder.shape}, b_enc, threshold and b_dec "
            f"{sizes}; expected (units, features), (features, units), twice features, units"
        )
    return Site(
        layer,
        read=np.ascontiguousarray(encoder.T),
        write=np.ascontiguousarray(decoder),
        bias=bias - before @ encoder,
        thresholds=thresholds,
    )


def _read_arrays(path: Path) -> dict[str, Floats32]:
    try:
        return {name: array.astype(np.float32) for name, array in read_arrays(path).items()}
    except (DataError, ValueError) as error:
        raise ModelError(
            f"{path} isn't a safetensors or npz file of a sparse autoencoder: {error}"
        ) from error
