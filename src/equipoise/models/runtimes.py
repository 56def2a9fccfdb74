"""The libraries that run models: imported when the first model is loaded, and not before."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from equipoise.core.errors import MissingExtraError, ModelError
from equipoise.models.batching import Batches

DTYPES = ("auto", "float32", "bfloat16", "float16")
BACKENDS = ("auto", "torch", "openvino", "onnxruntime")
CPU = Path("/proc/cpuinfo")
CPU_BATCH, CUDA_BATCH = 32, 256
EXHAUSTED = ("out of memory", "can't allocate memory", "bad_alloc", "bad allocation")


def torch(extra: str) -> Any:
    """Return the module torch, or say which extra installs it."""
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("torch", extra) from error
    return torch


def gpus() -> int:
    """Return how many GPUs torch finds."""
    library = torch("hf")
    return int(library.cuda.device_count()) if library.cuda.is_available() else 0


def transformers() -> Any:
    """Return the module transformers."""
    torch("hf")
    try:
        import PIL.Image  # noqa: F401
        import transformers
    except ImportError as error:
        raise MissingExtraError(error.name or "transformers", "hf") from error
    return transformers


def diffusers() -> Any:
    """Return the module diffusers."""
    try:
        import diffusers
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "diffusers", "diffusers") from error
    return diffusers


def open_clip() -> Any:
    """Return the module open_clip."""
    torch("open_clip")
    try:
        import open_clip
    except ImportError as error:
        raise MissingExtraError("open_clip", "open_clip") from error
    return open_clip


def timm() -> Any:
    """Return the module timm."""
    torch("timm")
    try:
        import timm
    except ImportError as error:
        raise MissingExtraError("timm", "timm") from error
    return timm


@dataclass(frozen=True)
class Placement:
    """Where a model runs and what it computes with.

    Attributes
    ----------
    device : str
        ``cpu``, ``cuda`` or ``cuda:1``.
    dtype : str
        ``float32``, ``bfloat16`` or ``float16``.
    torch : module
        The library.
    backend : str
        What runs the tower for images; the rest of a model runs on torch.
    """

    device: str
    dtype: str
    torch: Any
    backend: str = "torch"

    @property
    def torch_dtype(self) -> Any:
        """What torch computes with: another backend is given float32, and makes its own of it."""
        return getattr(self.torch, self.dtype if self.backend == "torch" else "float32")

    @property
    def identity(self) -> dict[str, str]:
        """What of it is part of a model's key: not the number of a device such as cuda:1."""
        return {"device": self.device.partition(":")[0], "dtype": self.dtype}

    def put(self, inputs: Any) -> dict[str, Any]:
        """Return tensors by name on the device, floats in the model's data type."""
        return {name: self._put(value) for name, value in inputs.items()}

    def _put(self, value: Any) -> Any:
        if not isinstance(value, self.torch.Tensor):
            return value  # some processors add lists of sizes
        return value.to(self.device, self.torch_dtype if value.is_floating_point() else None)

    def batches(self, most: int | None = None) -> Batches:
        """Return batches of a size for the device, halved when its memory is exhausted."""
        size = CPU_BATCH if self.device == "cpu" else CUDA_BATCH
        return Batches(min(size, most or size), self._exhausted, self._free)

    def _exhausted(self, error: Exception) -> bool:
        text = str(error)
        return isinstance(error, self.torch.OutOfMemoryError | MemoryError) or (
            isinstance(error, RuntimeError) and any(said in text for said in EXHAUSTED)
        )

    def _free(self) -> None:
        if self.device != "cpu":
            self.torch.cuda.empty_cache()


def place(device: str, dtype: str, extra: str, backend: str = "auto") -> Placement:
    """Decide where a model runs.

    Parameters
    ----------
    device : str
        ``auto`` (cuda where there is one), ``cpu``, ``cuda`` or ``cuda:1``.
    dtype : str
        ``auto`` (float32 on a CPU; bfloat16 on a GPU that has it, else float16), ``float32``,
        ``bfloat16`` or ``float16``.
    extra : str
        The extra that installs torch for this adapter.
    backend : str
        As in `load_model`; all but torch run on the CPU.

    Returns
    -------
    Placement
        With torch as its backend; `equipoise.models.backends` chooses another.

    Raises
    ------
    ModelError
        If there is no such device, data type or backend, or the backend is not for the device.
    """
    library = torch(extra)
    if dtype not in DTYPES:
        raise ModelError(f"There is no dtype {dtype!r}. There are {', '.join(DTYPES)}.")
    if backend not in BACKENDS:
        raise ModelError(f"There is no backend {backend!r}. There are {', '.join(BACKENDS)}.")
    if backend not in {"auto", "torch"}:
        if device.startswith("cuda"):
            raise ModelError(
                f"The backend {backend} runs on the CPU, and device {device} was asked for. "
                "To do: backend: torch, or device: cpu."
            )
        device = "cpu" if device == "auto" else device
    cuda = library.cuda.is_available()
    if device == "auto":
        device = "cuda" if cuda else "cpu"
    kind, _, index = device.partition(":")
    if kind not in {"cpu", "cuda"} or (index and not index.isdigit()):
        raise ModelError(f"There is no device {device!r}. There are auto, cpu, cuda and cuda:1.")
    if kind == "cuda" and (not cuda or int(index or 0) >= library.cuda.device_count()):
        found = library.cuda.device_count() if cuda else 0
        raise ModelError(
            f"The device {device} was asked for, and torch finds {found} GPUs. "
            "To do: device: cpu, or a torch that is built for this GPU's driver."
        )
    if dtype == "auto":
        dtype = _own_dtype(library) if kind == "cuda" else "float32"
    return Placement(device, dtype, library)


@cache
def has_bfloat16() -> bool:
    """Whether this machine's CPU computes with bfloat16 by itself; only Linux tells."""
    try:
        told = CPU.read_text(encoding="utf-8")
    except OSError:
        return False
    return bool(re.search(r"\b(avx512_bf16|amx_bf16)\b", told))


def _own_dtype(library: Any) -> str:
    return "bfloat16" if library.cuda.is_bf16_supported() else "float16"


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """Keep the library's own progress bars and reports away; ours speak for it."""
    logging = library.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
