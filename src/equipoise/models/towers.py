"""The part of a model that sees images, run by torch or by what was chosen in its place."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from equipoise.core.errors import ModelError
from equipoise.models import onnx_export, openvino
from equipoise.models.options import Options
from equipoise.models.preprocessing import Preparation
from equipoise.models.runtimes import Placement

Call = Callable[[Any, Mapping[str, Any]], tuple[Any, ...]]
"""From a model and its inputs by name to tensors of one row an image."""

# Beside torch in float32, on random levels: a converted tower that is another one is far off.
LEAST_COSINE = {"float32": 0.999999, "bfloat16": 0.999}


@dataclass(frozen=True)
class Tower:
    """From what a preparation returns to tensors of float32 on the CPU, one row an image.

    Attributes
    ----------
    placement : Placement
        What runs it, where, and with which numbers.
    run : callable
        From inputs by name to tensors.
    """

    placement: Placement
    run: Callable[[Mapping[str, Any]], tuple[Any, ...]]

    @property
    def versions(self) -> dict[str, str]:
        """The version of what runs it beside torch."""
        backend = self.placement.backend
        return {} if backend == "torch" else {backend: version(backend)}

    def __call__(self, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the tensors of one batch."""
        return self.run(inputs)


def build_tower(
    placement: Placement, options: Options, model: Any, call: Call, prepare: Preparation
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
    if placement.backend == "torch":
        return _on_torch(placement, model, call)
    try:
        return _converted(placement, model, call, prepare)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        if options.backend != "auto":
            raise ModelError(
                f"{options.name} cannot be run by {placement.backend} ({reason}). "
                "To do: backend: torch."
            ) from error
    warnings.warn(
        f"{options.name} cannot be run by {placement.backend}, so torch runs it ({reason}).",
        stacklevel=2,
    )
    placement = replace(placement, backend="torch")
    return _on_torch(placement, model.to(placement.torch_dtype), call)


def _on_torch(placement: Placement, model: Any, call: Call) -> Tower:
    def run(inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        with placement.torch.inference_mode():
            found = call(model, placement.put(inputs))
            return tuple(tensor.float().cpu() for tensor in found)

    return Tower(placement, run)


def _converted(placement: Placement, model: Any, call: Call, prepare: Preparation) -> Tower:
    torch = placement.torch
    inputs = dict(prepare(_examples()))
    if inputs.keys() != {"pixel_values"}:
        raise ModelError(f"it takes {', '.join(inputs)}, not pixels alone")
    pixels = inputs["pixel_values"].float()
    module = _module(torch, model, call)
    fast_path = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # one fused kernel, which no backend knows
    try:
        with warnings.catch_warnings(), torch.no_grad():
            # Tracing tells what it cannot follow; what came of it is compared below.
            warnings.simplefilter("ignore")
            run = (
                openvino.compiled(torch, module, pixels, placement.dtype)
                if placement.backend == "openvino"
                else onnx_export.compiled(torch, module, pixels)
            )
            for some in (pixels, pixels[:1]):
                _compare(module(some), run(some.numpy()), LEAST_COSINE[placement.dtype])
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_path)

    def outputs(inputs: Mapping[str, Any]) -> tuple[Any, ...]:
        found = run(inputs["pixel_values"].float().numpy())
        return tuple(torch.from_numpy(array) for array in found)

    return Tower(placement, outputs)


def _examples() -> list[Any]:
    generator = np.random.default_rng(5)
    return list(generator.integers(0, 256, (3, 240, 320, 3), dtype=np.uint8))


def _module(torch: Any, model: Any, call: Call) -> Any:
    class Tower(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, pixel_values: Any) -> tuple[Any, ...]:
            return call(self.model, {"pixel_values": pixel_values})

    return Tower().eval()


def _compare(expected: tuple[Any, ...], found: tuple[Any, ...], least: float) -> None:
    for tensor, array in zip(expected, found, strict=True):
        a = np.asarray(tensor.numpy(), dtype=np.float64).reshape(len(array), -1)
        b = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
        norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cosine = ((a * b).sum(axis=1) / np.maximum(norms, np.finfo(np.float64).tiny)).min()
        if a.shape != b.shape or not cosine >= least:
            raise ModelError(f"its vectors have cosine {cosine:.6f} with torch's")
