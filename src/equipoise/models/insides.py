"""The torch module inside a model, for what looks at its layers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.images import Images, as_rgb, pillow_images
from equipoise.models.preprocessing import Recipe, of_transformers
from equipoise.models.runtimes import Placement
from equipoise.models.runtimes import torch as imported_torch


@dataclass(frozen=True, eq=False)
class Insides:
    """A model's torch module, and how images become what it takes.

    Attributes
    ----------
    model : object
        As it was loaded.
    torch : module
        The library.
    module : torch.nn.Module
        The whole of it, all towers.
    recipe : Recipe or None
        How an image is resized and cut before the model sees it; None where that is not known.
    """

    model: Any
    torch: Any
    module: Any
    recipe: Recipe | None
    prepared: Callable[[Images], Mapping[str, Any]]

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return str(self.model.info.name)

    def inputs(self, images: Images) -> dict[str, Any]:
        """Return what the module takes for images, on its device."""
        given = self.prepared(as_rgb(images))
        weight = next(iter(self.module.parameters()))
        placement = Placement(str(weight.device), str(weight.dtype).partition(".")[2], self.torch)
        return placement.put(given)

    def layer(self, name: str) -> Any:
        """Return a layer by its name.

        Raises
        ------
        ModelError
            When there is none of that name; it names the nearest, else the last.
        """
        layers = dict(self.module.named_modules())
        if name and name in layers:
            return layers[name]
        near = get_close_matches(name, layers, n=6, cutoff=0.5) or [*layers][-6:]
        raise ModelError(
            f"{self.name} has no layer {name!r}. To do: name one of its {len(layers) - 1} layers, "
            f"such as {', '.join(map(repr, near))}."
        )


def insides(model: Any) -> Insides:
    """Return the torch module inside a model.

    Parameters
    ----------
    model : DualEncoder, Classifier, PairScorer or Answerer
        One of transformers, open_clip or timm; or any other whose `model`
        is a torch module and whose `prepare` makes tensors by name of images.

    Raises
    ------
    ModelError
        When there is none, as in a graph of ONNX.
    MissingExtraError
        When torch is not installed.
    """
    torch = imported_torch("hf")
    module = getattr(model, "model", None)
    if hasattr(module, "info"):  # a model that is loaded when it has to run
        return insides(module)
    prepare = getattr(model, "prepare", None)
    recipe = getattr(prepare, "recipe", None)
    processor = getattr(getattr(model, "processor", None), "image_processor", None)
    if prepare is None and processor is not None:
        settings = json.loads(processor.to_json_string())
        recipe = of_transformers(settings, getattr(processor, "backend", ""))

        def prepare(images: Images) -> Mapping[str, Any]:
            inputs: Mapping[str, Any] = processor(images=pillow_images(images), return_tensors="pt")
            return inputs

    if not isinstance(module, torch.nn.Module) or prepare is None:
        raise ModelError(
            f"{model.info.name} has no layers that can be looked into: it is no module of torch. "
            "To do: name a model of hf:, open_clip: or timm:, or a factory whose model has the "
            "module as `model` and a `prepare` that makes tensors of images."
        )
    return Insides(model, torch, module, recipe, prepare)
