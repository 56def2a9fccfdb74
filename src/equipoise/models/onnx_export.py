"""ONNX Runtime: a part of a torch model exported in memory, and run."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

from equipoise.core.arrays import Floats32
from equipoise.models.onnx import open_session


def compiled(torch: Any, module: Any, example: Any) -> Callable[[Floats32], tuple[Floats32, ...]]:
    """Export a module of torch and load it into ONNX Runtime.

    Parameters
    ----------
    torch : module
        The library.
    module : torch.nn.Module
        From images, float32 (n, 3, height, width), to a tuple of tensors of n rows.
    example : torch.Tensor
        Images, several; n stays free.

    Returns
    -------
    callable
        From images to float32 arrays.
    """
    written = BytesIO()
    torch.onnx.export(
        module,
        (example,),
        written,
        input_names=["pixel_values"],
        dynamic_axes={"pixel_values": {0: "n"}},
        # The newer exporter needs onnx and onnxscript beside torch.
        dynamo=False,
    )
    session = open_session(written.getvalue(), torch.get_num_threads(), "what torch exported")
    return lambda images: tuple(session.run(None, {"pixel_values": images}))
