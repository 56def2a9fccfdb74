"""The image tower of a model, run by torch or another backend."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from equipoise.core import Floats32, MissingExtraError, ModelError
from equipoise.models import openvino
from equipoise.models.images import Images
from equipoise.models.info import ModelInfo, one_digest
from equipoise.models.preprocessing import Preparation
from equipoise.models.registry import Options
from equipoise.models.runtimes import Batches, Placement, has_bfloat16

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Linear, Module

Outputs = tuple[Any, ...]
Call = Callable[[Any, Mapping[str, Any]], Outputs]
"""From a model and its inputs by name to tensors of one row an image."""

# Beside torch in float32, on random levels: a converted tower that is another one is far off.
MIN_COSINE = {"float32": 0.999999, "bfloat16": 0.999}


# Smaller models answer before a larger one would be converted.
MIN_BYTES = 20_000_000


def with_backend(placement: Placement, options: Options, weights: Iterable[Path]) -> Placement:
    """Choose the backend of a model's image tower.

    Parameters
    ----------
    placement : Placement
        Where it runs.
    options : Options
        What was asked.
    weights : iterable of Path
        The files of weights.

    Returns
    -------
    Placement
        With its backend.

    Raises
    ------
    MissingExtraError
        If OpenVINO was asked for and is not installed.
    ModelError
        If OpenVINO cannot compute with the data type on this CPU.
    """
    able = placement.dtype == "float32" or (placement.dtype == "bfloat16" and has_bfloat16())
    installed = find_spec("openvino") is not None
    if options.backend == "openvino":
        if not able:
            raise ModelError(
                f"openvino cannot compute with {placement.dtype} on this CPU; bfloat16 needs "
                "avx512_bf16 or amx_bf16. To do: dtype: float32, or backend: torch."
            )
        if not installed:
            raise MissingExtraError("openvino", "openvino")
    elif (
        options.backend == "torch"
        or placement.device != "cpu"
        or not (able and installed)
        or sum(path.stat().st_size for path in weights) < MIN_BYTES
    ):
        return placement
    return replace(placement, backend="openvino")


def torch_only(options: Options, kind: str) -> None:
    """Refuse another backend for a model that has no tower for images alone."""
    if options.backend not in {"auto", "torch"}:
        raise ModelError(
            f"{options.name} is {kind}, which runs on torch only, not on "
            f"{options.backend}. To do: set backend: torch."
        )


def last_linear(torch: ModuleType, head: "Module | None") -> "Linear | None":
    """Return the last linear layer of a classifier's head, or None."""
    if head is None:
        return None
    layers = [layer for layer in head.modules() if isinstance(layer, torch.nn.Linear)]
    return layers[-1] if layers else None


Returned = TypeVar("Returned")


def call_with_input(layer: "Module", call: Callable[[], Returned]) -> tuple[Returned, "Tensor"]:
    """Return a call's result, and the input of a layer during it: (n, dimension)."""
    layer_inputs: list[Any] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: layer_inputs.append(inputs[0]))
    try:
        returned = call()
    finally:
        hook.remove()
    return returned, layer_inputs[-1].flatten(start_dim=1)


@dataclass(frozen=True)
class Tower:
    """A function from prepared images to float32 tensors on the CPU, a row an image.

    Attributes
    ----------
    placement : Placement
        What runs it, where, and with which numbers.
    prepare : Preparation
        How images become inputs.
    call : callable
        Runs it on torch, with gradients.
    run : callable
        From inputs by name to tensors.
    """

    placement: Placement
    prepare: Preparation
    call: Call
    run: Callable[[Mapping[str, Any]], Outputs]


def build_tower(
    placement: Placement,
    options: Options,
    model: "Module",
    call: Call,
    prepare: Preparation,
) -> Tower:
    """Make the tower of a model on the backend that was chosen for it.

    Parameters
    ----------
    placement : Placement
        With the backend, from `with_backend`.
    options : Options
        What was asked.
    model : torch.nn.Module
        The whole model, in what `placement` computes with.
    call : callable
        Runs the tower on torch.
    prepare : Preparation
        How images become inputs.

    Returns
    -------
    Tower
        Converted, and compared with torch on a few images; where that fails and no backend was
        asked for, on torch, with a warning.

    Raises
    ------
    ModelError
        If a backend was asked for that cannot run it.
    """
    if placement.backend != "torch":
        try:
            return _converted(placement, model, call, prepare)
        except Exception as error:
            reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
            text = f"{options.name} cannot be run by {placement.backend} ({reason})"
            if options.backend != "auto":
                raise ModelError(f"{text}. To do: backend: torch.") from error
        warnings.warn(f"{text}, so torch runs it.", stacklevel=2)
        placement = replace(placement, backend="torch")
        model = model.to(placement.torch_dtype)

    def run(inputs: Mapping[str, Any]) -> Outputs:
        with placement.torch.inference_mode():
            outputs = call(model, placement.put(inputs))
            return tuple(tensor.float().cpu() for tensor in outputs)

    return Tower(placement, prepare, call, run)


def _converted(placement: Placement, model: Any, call: Call, prepare: Preparation) -> Tower:
    torch = placement.torch
    examples = np.random.default_rng(5).integers(0, 256, (3, 240, 320, 3), dtype=np.uint8)
    inputs = dict(prepare([*examples]))
    if inputs.keys() != {"pixel_values"}:
        raise ModelError(f"it takes {', '.join(inputs)}, not pixels alone")
    pixels = inputs["pixel_values"].float()

    class Images(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixel_values: Any) -> Outputs:
            return call(self.model, {"pixel_values": pixel_values})

    module = Images().eval()
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one fused kernel, which no backend knows
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # Tracing tells what it cannot follow; what came of it is compared below.
            warnings.simplefilter("ignore")
            run = openvino.compiled(torch, module, pixels, placement.dtype)
            for batch in (pixels, pixels[:1]):
                _compare(module(batch), run(batch.numpy()), MIN_COSINE[placement.dtype])
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)

    def outputs(inputs: Mapping[str, Any]) -> Outputs:
        arrays = run(inputs["pixel_values"].float().numpy())
        return tuple(torch.from_numpy(array) for array in arrays)

    return Tower(placement, prepare, call, outputs)


def _compare(expected: Outputs, actual: Outputs, min_cosine: float) -> None:
    for tensor, array in zip(expected, actual, strict=True):
        if tensor.shape != array.shape:
            raise ModelError(f"its vectors have the shape {array.shape}, not {tensor.shape}")
        a = np.asarray(tensor, np.float64).reshape(len(array), -1)
        b = np.asarray(array, np.float64).reshape(len(array), -1)
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosine = ((a * b).sum(axis=1) / np.maximum(norms, np.finfo(np.float64).tiny)).min()
        if not cosine >= min_cosine:
            raise ModelError(f"its vectors have cosine {cosine:.6f} with torch's")


def tower_info(
    options: Options,
    family: str,
    files: Mapping[str, str],
    weights: Mapping[str, str],
    placement: Placement,
    library: ModuleType,
    **facts: Any,
) -> ModelInfo:
    """Gather the facts about a model of a torch library.

    Parameters
    ----------
    options, placement
        As it was loaded; of a model with a tower for images, the placement of the tower.
    family : str
    files, weights : mapping of str to str
        SHA-256 of every file that was read, and of the weights alone.
    library : module
        The library.
    facts
        Other fields of `ModelInfo`.
    """
    modules = (placement.torch, library)
    versions = {module.__name__: str(module.__version__) for module in modules}
    if placement.backend != "torch":
        versions[placement.backend] = version(placement.backend)
    return ModelInfo(
        name=options.name,
        family=family,
        weights_sha256=one_digest(weights),
        files=dict(files),
        dtype=placement.dtype,
        device=placement.device,
        backend=placement.backend,
        versions=versions,
        **facts,
    )


def logit_line(model: "Module") -> dict[str, float]:
    """Return the line from cosines to logits: `scale` and `bias` of `ModelInfo`."""
    bias = getattr(model, "logit_bias", None)
    scale = math.exp(model.logit_scale.item())
    return {"scale": scale, "bias": 0.0 if bias is None else bias.item()}


@dataclass(frozen=True)
class TowerModel:
    """A library's model with a `Tower` for images; made by `load_model`."""

    info: ModelInfo
    model: Any
    tower: Tower

    @property
    def placement(self) -> Placement:
        """Placement of the tower."""
        return self.tower.placement

    @property
    def prepare(self) -> Preparation:
        """How images become inputs."""
        return self.tower.prepare

    @cached_property
    def batches(self) -> Batches:
        """Images that pass through the tower together."""
        return self.placement.batches()

    def over_images(
        self, function: Callable[[Outputs], "Tensor"], images: Images, width: int | None
    ) -> Floats32:
        """Apply a function to the tower's outputs for images; return (n, width)."""
        parts = self.batches.map(
            lambda batch: function(self.tower.run(self.prepare(batch))), images
        )
        return _stack(width, parts)


@dataclass(frozen=True)
class TowerEncoder(TowerModel, ABC):
    """A dual encoder with a tower for images."""

    tokenizer: Any

    @cached_property
    def text_batches(self) -> Batches:
        """Texts that are embedded together."""
        return self.placement.batches()

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> "Tensor":
        """Return a tensor of vectors of texts, (n, dimension)."""

    @abstractmethod
    def count_long(self, texts: Sequence[str]) -> tuple[int, int]:
        """Return how many texts are too long, and how many tokens the model reads."""

    def embed_images(self, images: Images) -> Floats32:
        """Return projected vectors of n images, (n, dimension), not normalised.

        See `equipoise.models.images.as_rgb` for what an image is. A vector is NaN where the model
        gives NaN.
        """
        return self.over_images(itemgetter(0), images, self.info.dimension)

    def embed_texts(self, texts: Sequence[str]) -> Floats32:
        """Return projected vectors of n texts, (n, dimension), not normalised.

        A text that is longer than the model reads is cut, with a warning that counts them.
        """
        n_long, limit = self.count_long(texts) if texts else (0, 0)
        if n_long:
            warnings.warn(
                f"{self.info.name}: {n_long} of {len(texts)} texts are longer than the {limit} "
                "tokens that the model reads; the rest of them was cut off.",
                stacklevel=2,
            )
        with self.placement.torch.inference_mode():
            parts = self.text_batches.map(lambda batch: self.encode(batch).float().cpu(), texts)
        return _stack(self.info.dimension, parts)


@dataclass(frozen=True)
class TowerClassifier(TowerModel):
    """An image classifier.

    The tower gives logits, and what the last layer sees where there is a linear layer.
    """

    labels: tuple[str, ...]
    multi_label: bool = False

    def predict_proba(self, images: Images) -> Floats32:
        """Return class probabilities of n images, (n, classes).

        Rows sum to 1, unless the model was trained for several labels an image; NaN where the model
        gives NaN.
        """
        return self.over_images(self._probabilities, images, len(self.labels))

    def features(self, images: Images) -> Floats32:
        """Return the inputs of the last layer for n images, (n, dimension)."""
        return self.over_images(self._features, images, self.info.dimension)

    def _probabilities(self, outputs: Outputs) -> Any:
        logits = outputs[0]
        return logits.sigmoid() if self.multi_label else logits.softmax(dim=-1)

    def _features(self, outputs: Outputs) -> Any:
        if len(outputs) == 1:
            raise ModelError(
                f"{self.info.name} ends in no linear layer, so it has no penultimate features. "
                "To do: wrap it in a factory with a features method (python:module:factory)."
            )
        return outputs[1].flatten(start_dim=1)


def _stack(width: int | None, parts: list[Any]) -> Floats32:
    return np.concatenate(
        [np.empty((0, width or 0), np.float32), *(part.numpy() for part in parts)]
    )
