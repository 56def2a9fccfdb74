"""The torch module inside a model, for what looks at its layers or changes what they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models.images import as_rgb, pillow_images
from equipoise.models.recipe import Recipe, of_transformers
from equipoise.models.runtimes import torch as imported_torch

Tensors = dict[str, Any]
_NAMED = 6


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
    backend : str
        What runs its tower for images: hooks see what torch runs, and nothing else.
    """

    model: Any
    torch: Any = field(repr=False)
    module: Any = field(repr=False)
    recipe: Recipe | None
    backend: str
    prepared: Callable[[Sequence[Any]], Mapping[str, Any]] = field(repr=False)

    @property
    def name(self) -> str:
        """The model's name, for messages."""
        return str(self.model.info.name)

    def inputs(self, images: Sequence[Any]) -> Tensors:
        """Return what the module takes for images, on its device."""
        given = self.prepared(as_rgb(images))
        weight = next(iter(self.module.parameters()))
        return {name: self._put(value, weight) for name, value in given.items()}

    def _put(self, value: Any, weight: Any) -> Any:
        if not isinstance(value, self.torch.Tensor):
            return value
        return value.to(weight.device, weight.dtype if value.is_floating_point() else None)

    def layer(self, name: str) -> Any:
        """Return a layer by its name.

        Raises
        ------
        ModelError
            When there is none of that name; it names the nearest.
        """
        layers = dict(self.module.named_modules())
        if name in layers and name:
            return layers[name]
        raise ModelError(
            f"{self.name} has no layer {name!r}. To do: name one of its "
            f"{len(layers) - 1} layers, such as {_some(name, layers)}."
        )

    def need_torch(self, why: str) -> None:
        """Refuse a model whose tower for images runs elsewhere.

        Raises
        ------
        ModelError
            When it does; `why` says what torch is needed for.
        """
        if self.backend != "torch":
            raise ModelError(
                f"{self.name} runs on {self.backend}, and {why} needs torch. To do: backend: torch."
            )


def insides(model: Any) -> Insides:
    """Return the torch module inside a model.

    Parameters
    ----------
    model : DualEncoder, Classifier, PairScorer or Answerer
        One of transformers, open_clip or timm; one of `models.modules`; or any other whose `model`
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
        recipe = _recipe_of(processor)
        prepare = _processed(processor)
    if not isinstance(module, torch.nn.Module) or prepare is None:
        raise ModelError(
            f"{model.info.name} has no layers that can be looked into: it is no module of torch. "
            "To do: name a model of hf:, open_clip: or timm:, or a factory whose model has the "
            "module as `model` and a `prepare` that makes tensors of images."
        )
    tower = getattr(model, "tower", None)
    backend = tower.placement.backend if tower is not None else "torch"
    return Insides(model, torch, module, recipe, backend, prepare)


def _processed(processor: Any) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    def prepared(images: Sequence[Any]) -> Mapping[str, Any]:
        found: Mapping[str, Any] = processor(images=pillow_images(images), return_tensors="pt")
        return found

    return prepared


def _recipe_of(processor: Any) -> Recipe | None:
    import json

    settings = json.loads(processor.to_json_string())
    return of_transformers(settings, getattr(processor, "backend", ""))


def _some(name: str, layers: Iterable[str]) -> str:
    """Return names that are near what was asked for, else the last."""
    from difflib import get_close_matches

    known = [one for one in layers if one]
    near = get_close_matches(name, known, n=_NAMED, cutoff=0.5) or known[-_NAMED:]
    return ", ".join(repr(one) for one in near)
