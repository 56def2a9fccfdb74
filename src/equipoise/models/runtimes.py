"""The libraries that run models, imported with the first model."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from equipoise.core import Bytes, MissingExtraError, ModelError
from equipoise.core.writing import translated

if TYPE_CHECKING:
    from torch import Tensor
    from torch import dtype as TorchDtype  # noqa: N812

Items = TypeVar("Items", bound=Sequence[Any] | Bytes)
Result = TypeVar("Result")

DTYPES = ("auto", "float32", "bfloat16", "float16")
BACKENDS = ("auto", "torch", "openvino")
CPU = Path("/proc/cpuinfo")
CPU_BATCH, CUDA_BATCH = 32, 256
EXHAUSTED = ("out of memory", "can't allocate memory", "bad_alloc", "bad allocation")


def torch(extra: str) -> ModuleType:
    """Return the module torch, or say which extra installs it."""
    return imported("torch", extra)


def gpus() -> int:
    """Return how many GPUs torch finds."""
    library = torch("hf")
    return int(library.cuda.device_count()) if library.cuda.is_available() else 0


def imported(name: str, extra: str, *needed: str) -> ModuleType:
    """Return a module, or say which extra installs it and the modules that it needs."""
    try:
        for module in ("torch", *needed):
            import_module(module)
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(error.name or name, extra) from error


def transformers() -> ModuleType:
    """Return the module transformers."""
    return imported("transformers", "hf", "PIL.Image")


def diffusers() -> ModuleType:
    """Return the module diffusers."""
    return imported("diffusers", "diffusers", "transformers")


def open_clip() -> ModuleType:
    """Return the module open_clip."""
    return imported("open_clip", "open_clip")


def timm() -> ModuleType:
    """Return the module timm."""
    return imported("timm", "timm")


@dataclass
class Batches:
    """A batch size that fits into memory, found by trying.

    Attributes
    ----------
    size : int
        Items in a batch. It is halved, for good, each time a batch does not fit into memory. It
        never depends on the time that something took, so a machine makes the same batches again.
    exhausted : callable
        Whether an exception says that the memory was not enough; any other is passed on.
    free : callable
        Called before the next try, to hand memory back.
    """

    size: int
    exhausted: Callable[[Exception], bool]
    free: Callable[[], object] = lambda: None

    def map(self, function: Callable[[Items], Result], items: Items) -> list[Result]:
        """Call a function on batches of the items, in order.

        Parameters
        ----------
        function : callable
            From some of the items to one result.
        items : sequence
            All items.

        Returns
        -------
        list
            One result a batch; none where there are no items.

        Raises
        ------
        ModelError
            If even one item does not fit into memory.
        """
        results: list[Result] = []
        start = 0
        while start < len(items):
            batch = cast("Items", items[start : start + self.size])
            try:
                results.append(function(batch))
            except Exception as error:
                if not self.exhausted(error):
                    raise
                if self.size == 1:
                    first_line = str(error).partition("\n")[0]
                    raise ModelError(
                        f"The memory does not hold a batch of one: {first_line} "
                        "To do: choose device: cpu, a smaller model, or dtype: float16."
                    ) from error
                self.size //= 2
            else:
                start += len(batch)
                continue
            # Outside the handler: the exception keeps the frames of the model, and their tensors.
            self.free()
        return results


@dataclass(frozen=True)
class Placement:
    """The device, data type and backend of a model.

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
    def torch_dtype(self) -> "TorchDtype":
        """Data type in torch; float32 if another backend converts the model."""
        name = self.dtype if self.backend == "torch" else "float32"
        torch_dtype: TorchDtype = getattr(self.torch, name)
        return torch_dtype

    @property
    def identity(self) -> dict[str, str]:
        """Facts for a model's key: the kind of device, without its number, and dtype."""
        return {"device": self.device.partition(":")[0], "dtype": self.dtype}

    def put(self, inputs: Mapping[str, "Tensor"]) -> dict[str, "Tensor"]:
        """Return tensors by name on the device, floats in the model's data type."""
        return {
            # Some processors add lists of sizes.
            name: value.to(self.device, self.torch_dtype if value.is_floating_point() else None)
            if isinstance(value, self.torch.Tensor)
            else value
            for name, value in inputs.items()
        }

    def batches(self, max_size: int | None = None) -> Batches:
        """Return batches of a size for the device, halved when its memory is exhausted."""
        size = CPU_BATCH if self.device == "cpu" else CUDA_BATCH
        return Batches(min(size, max_size or size), self._exhausted, self.torch.cuda.empty_cache)

    def _exhausted(self, error: Exception) -> bool:
        return isinstance(error, self.torch.OutOfMemoryError | MemoryError) or (
            isinstance(error, RuntimeError) and any(text in str(error) for text in EXHAUSTED)
        )


def place(device: str, dtype: str, extra: str, backend: str = "auto") -> Placement:
    """Choose the device and data type of a model.

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
    for setting, name, allowed in (("dtype", dtype, DTYPES), ("backend", backend, BACKENDS)):
        if name not in allowed:
            raise ModelError(f"There is no {setting} {name!r}. There are {', '.join(allowed)}.")
    if backend not in {"auto", "torch"}:
        if device.startswith("cuda"):
            raise ModelError(
                f"The backend {backend} runs on the CPU only, and the config has device: {device}. "
                "To do: backend: torch, or device: cpu."
            )
        device = "cpu" if device == "auto" else device
    cuda = library.cuda.is_available()
    if device == "auto":
        device = "cuda" if cuda else "cpu"
    kind, _, index = device.partition(":")
    if kind not in {"cpu", "cuda"} or (index and not index.isdigit()):
        raise ModelError(f"There is no device {device!r}. There are auto, cpu, cuda and cuda:1.")
    if kind == "cuda" and int(index or 0) >= gpus():
        raise ModelError(
            f"The config has device: {device}, and torch finds {gpus()} GPUs. "
            "To do: device: cpu, or a torch that is built for this GPU's driver."
        )
    if dtype == "auto":
        half = "bfloat16" if cuda and library.cuda.is_bf16_supported() else "float16"
        dtype = half if kind == "cuda" else "float32"
    return Placement(device, dtype, library)


@cache
def has_bfloat16() -> bool:
    """Whether this machine's CPU computes with bfloat16 by itself; only Linux tells."""
    try:
        return bool(re.search(rb"\b(avx512_bf16|amx_bf16)\b", CPU.read_bytes()))
    except OSError:
        return False


@contextmanager
def quiet(library: ModuleType) -> Iterator[None]:
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


@contextmanager
def saving(folder: Path) -> Iterator[None]:
    """Say what to do where a library cannot write weights into a folder.

    Raises
    ------
    RunError
        In place of an OSError, and of what safetensors makes of one.
    """
    from safetensors import SafetensorError

    with translated(folder):
        try:
            yield
        except SafetensorError as error:
            match = re.search(r"os error (\d+)", str(error))
            if match is None:
                raise
            number = int(match[1])
            raise OSError(number, os.strerror(number), str(folder)) from error
