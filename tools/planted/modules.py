"""Models made of a torch module of one's own: a classifier, or a dual encoder's image tower."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise.core.errors import InputError
from equipoise.models.images import as_rgb
from equipoise.models.info import ModelInfo
from equipoise.models.runtimes import torch as imported_torch
from equipoise.models.towers import last_linear, no_features, seen_by

Floats = npt.NDArray[np.float32]
_AT_ONCE = 256


@dataclass(frozen=True)
class Scaled:
    """From images of one size to tensors: grey levels as (level / 255 - mean) / std."""

    mean: float = 0.0
    std: float = 1.0
    recipe: None = None

    @property
    def facts(self) -> dict[str, Any]:
        """What stands in the model's key."""
        return {"image_processor": "scaled", "mean": self.mean, "std": self.std}

    def __call__(self, images: Sequence[Any]) -> Mapping[str, Any]:
        """Return the pixels of images, (n, 3, height, width).

        Raises
        ------
        InputError
            When they are not of one size.
        """
        arrays = as_rgb(images)
        if len({array.shape for array in arrays}) > 1:
            raise InputError("images of several sizes; a module takes images of one size")
        stacked = np.stack(arrays).astype(np.float32).transpose(0, 3, 1, 2)
        scaled = np.ascontiguousarray((stacked / 255.0 - self.mean) / self.std, dtype=np.float32)
        return {"pixel_values": imported_torch("hf").from_numpy(scaled)}


@dataclass(frozen=True, eq=False)
class ModuleClassifier:
    """A classifier made of a torch module; made by `module_classifier`."""

    info: ModelInfo
    labels: tuple[str, ...]
    model: Any = field(repr=False)
    prepare: Scaled

    def predict_proba(self, images: Sequence[Any]) -> Floats:
        """Return class probabilities of n images, (n, classes); rows sum to 1."""
        return self._mapped(images, lambda x: self.model(x).softmax(dim=-1), len(self.labels))

    def features(self, images: Sequence[Any]) -> Floats:
        """Return what the last linear layer sees of n images, (n, dimension)."""
        layer = last_linear(imported_torch("hf"), self.model)
        if layer is None:
            raise no_features(self.info.name)
        seen = lambda x: seen_by(layer, lambda: self.model(x))[1]  # noqa: E731
        return self._mapped(images, seen, self.info.dimension or 0)

    def _mapped(self, images: Sequence[Any], call: Callable[[Any], Any], width: int) -> Floats:
        return _mapped(self.prepare, images, call, width)


@dataclass(frozen=True, eq=False)
class ModuleEncoder:
    """A dual encoder whose image tower is a torch module; made by `module_encoder`."""

    info: ModelInfo
    model: Any = field(repr=False)
    texts: Callable[[Sequence[str]], Floats] = field(repr=False)
    prepare: Scaled

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return vectors of n images, (n, dimension), as the module gives them."""
        return _mapped(self.prepare, images, self.model, self.info.dimension or 0)

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return vectors of n texts, (n, dimension)."""
        return np.asarray(self.texts(texts), dtype=np.float32)


def module_classifier(
    module: Any, labels: Sequence[str], *, name: str, prepare: Scaled = Scaled()
) -> ModuleClassifier:
    """Make a classifier of a torch module.

    Parameters
    ----------
    module : torch.nn.Module
        From float images (n, 3, height, width) to logits (n, labels).
    labels : sequence of str
    name : str
        What it is called in results.
    prepare : Scaled
        How grey levels become what it takes.
    """
    layer = last_linear(imported_torch("hf"), module)
    dimension = None if layer is None else int(layer.in_features)
    info = _info(module.eval(), "module", name, prepare, dimension)
    return ModuleClassifier(info, tuple(labels), module, prepare)


def module_encoder(
    module: Any,
    texts: Callable[[Sequence[str]], Floats],
    *,
    name: str,
    dimension: int,
    scale: float = 1.0,
    prepare: Scaled = Scaled(),
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
    prepare : Scaled
        How grey levels become what the module takes.
    """
    info = _info(module.eval(), "module", name, prepare, dimension, scale)
    return ModuleEncoder(info, module, texts, prepare)


def _info(
    module: Any,
    family: str,
    name: str,
    prepare: Scaled,
    dimension: int | None,
    scale: float | None = None,
) -> ModelInfo:
    torch = imported_torch("hf")
    weight = next(iter(module.parameters()))
    return ModelInfo(
        name=name,
        family=family,
        weights_sha256=weights_digest(module),
        dimension=dimension,
        scale=scale,
        bias=None if scale is None else 0.0,
        dtype=str(weight.dtype).removeprefix("torch."),
        device=str(weight.device),
        preprocessing=prepare.facts | {"module": str(module)},
        versions={"torch": str(torch.__version__)},
    )


def weights_digest(module: Any) -> str:
    """Return the SHA-256 of the names, shapes and numbers of a module's weights and buffers."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        array = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {tuple(array.shape)} {array.dtype}\n".encode())
        digest.update(array.reshape(-1).view(imported_torch("hf").uint8).numpy().tobytes())
    return digest.hexdigest()


def _mapped(
    prepare: Scaled, images: Sequence[Any], call: Callable[[Any], Any], width: int
) -> Floats:
    torch = imported_torch("hf")
    parts = [np.empty((0, width), dtype=np.float32)]
    with torch.inference_mode():
        for start in range(0, len(images), _AT_ONCE):
            pixels = prepare(images[start : start + _AT_ONCE])["pixel_values"]
            parts.append(np.asarray(call(pixels).float().cpu().numpy(), dtype=np.float32))
    return np.concatenate(parts)
