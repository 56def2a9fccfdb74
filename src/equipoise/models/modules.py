"""Modules of torch as classifiers: a module that has `classes` needs no adapter."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from equipoise.core import Floats32, ModelError
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo
from equipoise.models.runtimes import imported
from equipoise.models.source_files import source_digests
from equipoise.models.towers import call_with_input, last_linear

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage
    from torch import Tensor
    from torch.nn import Module

T = TypeVar("T")
_AT_ONCE = 64


def as_model(model: T) -> T | ModuleClassifier:
    """Return a module of torch with `classes` as a classifier, and others unchanged.

    Raises
    ------
    ModelError
        When a module has no `classes`.
    """
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(model, torch.nn.Module) or hasattr(model, "info"):
        return model
    classes = getattr(model, "classes", None)
    if not classes:
        raise ModelError(
            f"{type(model).__name__} is a module of torch without `classes`. To do: set "
            "model.classes to the names of its outputs, in their order."
        )
    return ModuleClassifier(model, tuple(map(str, classes)), getattr(model, "transform", None))


class ModuleClassifier:
    """A module of torch that gives each image a logit per class.

    Parameters
    ----------
    module : torch.nn.Module
        From images (n, 3, height, width) to logits (n, classes).
    labels : tuple of str
        Names of the classes, in the order of the logits.
    transform : callable, optional
        From a PIL image to what the module takes of it; values from 0 to 1 unless given.

    Attributes
    ----------
    has_hidden_state : bool
        Attributes, hooks and the transform change outputs, and no digest shows them.
    """

    has_hidden_state = True

    def __init__(
        self,
        module: Module,
        labels: tuple[str, ...],
        transform: Callable[[PillowImage], Tensor] | None = None,
    ) -> None:
        self._torch = imported("torch", "hf")
        self._module, self.labels, self._transform = module, labels, transform
        self._head = last_linear(self._torch, module)
        name = type(module).__name__
        self.info = ModelInfo(
            name=name,
            family="torch module",
            weights_sha256=_digest(module),
            files=source_digests([type(module).__module__]),
            preprocessing={"transform": _text(transform), "classes": [*labels],
                           "probabilities": "softmax"},
        )  # fmt: skip

    def predict_proba(self, images: Images) -> Floats32:
        """Return class probabilities of n images, shape (n, classes)."""
        parts = [logits.softmax(dim=1).numpy() for logits, _ in self._outputs(images)]
        return np.concatenate(parts)

    def features(self, images: Images) -> Floats32:
        """Return the inputs of the last linear layer, or the logits, shape (n, dimension)."""
        return np.concatenate([features.numpy() for _, features in self._outputs(images)])

    def _outputs(self, images: Images) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and features of images, some at once."""
        torch, module = self._torch, self._module
        device = next((weights.device for weights in module.parameters()), "cpu")
        was_training = module.training
        module.eval()
        try:
            with torch.inference_mode():
                for start in range(0, len(images), _AT_ONCE):
                    inputs = self._inputs(images[start : start + _AT_ONCE]).to(device)
                    logits, features = self._call(inputs)
                    if logits.shape[1:] != (len(self.labels),):
                        raise ModelError(
                            f"{self.info.name} gives outputs of shape {tuple(logits.shape[1:])} "
                            f"for each image, and has {len(self.labels)} classes. To do: name as "
                            "many in model.classes."
                        )
                    yield logits.float().cpu(), features.float().cpu()
        finally:
            module.train(was_training)

    def _call(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits, and the inputs of the last linear layer if there is one."""
        if self._head is None:
            logits: Tensor = self._module(inputs)
            return logits, logits
        return call_with_input(self._head, lambda: self._module(inputs))

    def _inputs(self, images: Images) -> Tensor:
        from PIL import Image

        torch = self._torch
        if self._transform is not None:
            return torch.stack([self._transform(Image.fromarray(image)) for image in images])
        if len({image.shape for image in images}) > 1:
            raise ModelError(
                f"{self.info.name}: images have several sizes. To do: set model.transform to a "
                "function from a PIL image to a tensor, such as a transform of torchvision."
            )
        stacked = torch.from_numpy(np.stack([*images]))
        return stacked.permute(0, 3, 1, 2).float().div(255)


def _text(transform: Callable[[PillowImage], Tensor] | None) -> str:
    """Return a transform as text, or its name if the text has an address in memory."""
    name = getattr(transform, "__qualname__", type(transform).__qualname__)
    text = str(transform)
    return name if " at 0x" in text else text


def _digest(module: Module) -> str:
    """Return the SHA-256 of the layers and weights of a module."""
    digest = hashlib.sha256(str(module).encode())
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().float().numpy().tobytes())
    return digest.hexdigest()
