"""Which library runs the part of a model that sees images; all of them but torch on a CPU."""

from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.models.options import Options
from equipoise.models.runtimes import Placement, has_bfloat16

# Smaller models answer before a larger one would be converted.
LEAST_BYTES = 20_000_000


def with_backend(placement: Placement, options: Options, weights: Iterable[Path]) -> Placement:
    """Choose what runs the image tower of a model.

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
        If the backend cannot compute with the data type on this CPU.
    """
    if options.backend in {"openvino", "onnxruntime"}:
        _refuse_dtype(options.backend, placement.dtype)
        if options.backend == "openvino" and find_spec("openvino") is None:
            raise MissingExtraError("openvino", "openvino")
        return replace(placement, backend=options.backend)
    worth = options.backend == "auto" and placement.device == "cpu"
    able = placement.dtype == "float32" or (placement.dtype == "bfloat16" and has_bfloat16())
    if worth and able and find_spec("openvino") is not None:
        size = sum(path.stat().st_size for path in weights)
        return replace(placement, backend="openvino" if size >= LEAST_BYTES else "torch")
    return placement


def _refuse_dtype(backend: str, dtype: str) -> None:
    if dtype == "float32" or (backend == "openvino" and dtype == "bfloat16" and has_bfloat16()):
        return
    why = (
        "this CPU has neither avx512_bf16 nor amx_bf16"
        if backend == "openvino" and dtype == "bfloat16"
        else "it has no such kernels for a CPU"
    )
    raise ModelError(
        f"The backend {backend} cannot compute with {dtype}: {why}. "
        "To do: dtype: float32, or backend: torch."
    )


def torch_only(options: Options, what: str) -> None:
    """Refuse another backend for a model that has no tower for images alone."""
    if options.backend not in {"auto", "torch"}:
        raise ModelError(
            f"{options.name} is {what}, which runs on torch only; backend {options.backend} was "
            "asked for. To do: backend: torch."
        )
