"""Models made of a torch module of one's own: a classifier, or a dual encoder's image tower."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from safetensors.torch import save

from equipoise.core import Floats32
from equipoise.models import ModelInfo
from equipoise.models.preprocessing import Preparation, stack_images
from equipoise.models.registry import Options
from equipoise.models.runtimes import place
from equipoise.models.towers import (
    Tower,
    TowerClassifier,
    TowerEncoder,
    build_tower,
    call_with_input,
    last_linear,
)


@dataclass(frozen=True)
class ModuleEncoder(TowerEncoder):
    """A dual encoder whose image tower is a torch module; made by `module_encoder`.

    Its `tokenizer` goes from n texts to their vectors.
    """

    def encode(self, texts: Sequence[str]) -> Any:
        """Return a tensor of vectors of texts, (n, dimension)."""
        return self.placement.torch.from_numpy(self.tokenizer(texts))

    def count_long(self, texts: Sequence[str]) -> tuple[int, int]:  # noqa: ARG002
        """Return that no text is too long."""
        return 0, 0


def module_classifier(
    module: Any, labels: Sequence[str], *, name: str, mean: float = 0.0
) -> TowerClassifier:
    """Make a classifier of a torch module.

    Parameters
    ----------
    module : torch.nn.Module
        From float images (n, 3, height, width) to logits (n, labels).
    labels : sequence of str
    name : str
        What it is called in results.
    mean : float
        Subtracted from grey levels in [0, 1].
    """
    tower = _tower(module, name, mean)
    layer = last_linear(tower.placement.torch, module)
    info = _info(module, name, mean, dimension=layer and layer.in_features)
    return TowerClassifier(info, module, tower, tuple(labels))


def module_encoder(
    module: Any,
    texts: Callable[[Sequence[str]], Floats32],
    *,
    name: str,
    dimension: int,
    scale: float,
) -> ModuleEncoder:
    """Make a dual encoder of a torch module for images and a function for texts.

    Parameters
    ----------
    module : torch.nn.Module
        From float images (n, 3, height, width) to vectors (n, dimension).
    texts : callable
        From n texts to vectors (n, dimension).
    name : str
        What it is called in results.
    dimension : int
    scale : float
        What makes a logit of a cosine.
    """
    info = _info(module, name, 0.0, dimension=dimension, scale=scale, bias=0.0)
    return ModuleEncoder(info, module, _tower(module, name, mean=0.0), texts)


def _tower(module: Any, name: str, mean: float) -> Tower:
    placement = place("cpu", "float32", "hf")
    torch = placement.torch
    layer = last_linear(torch, module.eval())

    def pixels(image: Any) -> Any:
        levels = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255.0 - mean
        return torch.from_numpy(levels)

    def call(model: Any, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        if layer is None:
            return (model(inputs["pixel_values"]),)
        return call_with_input(layer, lambda: model(inputs["pixel_values"]))

    prepare = Preparation(name, stack_images(pixels, torch))
    return build_tower(placement, Options(name), module, call, prepare)


def _info(module: Any, name: str, mean: float, **facts: Any) -> ModelInfo:
    return ModelInfo(
        name=name,
        family="module",
        weights_sha256=hashlib.sha256(save(module.state_dict())).hexdigest(),
        preprocessing={"mean": mean, "module": str(module)},
        **facts,
    )
