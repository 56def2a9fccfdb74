"""OpenVINO: a part of a torch model converted, compiled for the CPU, and run."""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.core import Floats32
from equipoise.telemetry import without_reporters

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}


def library() -> ModuleType:
    """Return the module openvino, imported without the package that reports its use.

    That package sends an event when openvino is imported, unless a file in the home folder says no.
    OpenVINO does without it where it is not installed.
    """
    if "openvino" in sys.modules:
        return import_module("openvino")
    with without_reporters():
        return import_module("openvino")


def compiled(
    torch: ModuleType, module: "Module", example: "Tensor", dtype: str
) -> Callable[[Floats32], tuple[Floats32, ...]]:
    """Convert a module of torch and compile it for this CPU.

    Parameters
    ----------
    torch : module
        The library.
    module : torch.nn.Module
        From images, float32 (n, 3, height, width), to a tuple of tensors of n rows.
    example : torch.Tensor
        Images, several; n stays free.
    dtype : str
        ``float32`` or ``bfloat16``.

    Returns
    -------
    callable
        From images to float32 arrays. One call at a time: another waits.
    """
    core = _core()
    # By OpenVINO's frontend, past `convert_model`, which reports its use.
    frontend = import_module("openvino.frontend")
    decoders = import_module("openvino.frontend.pytorch.ts_decoder")
    traced = torch.jit.trace(module, example, check_trace=False, strict=False)
    decoder = decoders.TorchScriptPythonDecoder(traced, example_input=example)
    reader = frontend.FrontEndManager().load_by_framework("pytorch")
    graph = reader.convert(reader.load(decoder))
    graph.reshape([-1, *example.shape[1:]])
    program = core.compile_model(
        graph,
        "CPU",
        {
            # Said even for float32: it takes bfloat16 by itself where the CPU has it.
            "INFERENCE_PRECISION_HINT": PRECISIONS[dtype],
            "INFERENCE_NUM_THREADS": torch.get_num_threads(),
            "NUM_STREAMS": 1,
            # Two processes would be pinned to the same cores.
            "ENABLE_CPU_PINNING": False,
        },
    )
    request, alone = program.create_infer_request(), Lock()
    count = len(program.outputs)

    def run(images: Floats32) -> tuple[Floats32, ...]:
        with alone:
            results = request.infer([np.ascontiguousarray(images)], share_inputs=True)
            # Copied: the next call writes its results into the same memory.
            return tuple(np.array(results[place], dtype=np.float32) for place in range(count))

    return run


@cache
def _core() -> Any:
    """Return the OpenVINO core that the process shares.

    Each gives the thread that makes it a stack for signals, and takes that back where it is the
    last one's and in that thread. Of several that end in another order one leaves a stack that is
    gone: Ctrl-C is a segmentation fault then.
    """
    return library().Core()
