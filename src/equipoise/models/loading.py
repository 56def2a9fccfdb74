"""Models by name: ``prefix:rest``, where the prefix says which library loads the rest."""

from collections.abc import Callable
from typing import Any

from equipoise.core.errors import ModelError
from equipoise.models import edits, hf, onnx, open_clip, python, timm, wrapped
from equipoise.models.options import Options

LOADERS: dict[str, Callable[[str, Options], Any]] = {
    "hf": hf.load,
    "open_clip": open_clip.load,
    "timm": timm.load,
    "onnx": onnx.load,
    "python": python.load,
    "edited": edits.load,
    "equipoise": wrapped.load,
}


def load_model(
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    backend: str = "auto",
    preprocessing: str = "auto",
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Any:
    """Load a model that can be audited.

    Parameters
    ----------
    name : str
        ``hf:`` and a hub id or folder; ``open_clip:`` and architecture/tag, architecture/file,
        a folder or hf-hub:id; ``timm:`` and a name, name/file, a folder or hf-hub:id; ``onnx:``
        and a file; ``python:`` and module:factory; ``equipoise:`` and a folder that a recipe of
        `equipoise.mitigate` wrote.
    device : str
        ``auto`` (cuda where there is one), ``cpu``, ``cuda`` or ``cuda:1``.
    dtype : str
        ``auto`` (float32 on a CPU; bfloat16 on a GPU that has it, else float16), ``float32``,
        ``bfloat16`` or ``float16``.
    backend : str
        What runs the part that sees images, of a dual encoder or a classifier: ``auto`` (OpenVINO
        on a CPU where it is installed and the weights are large enough to be worth converting,
        else torch), ``torch``, ``openvino`` or ``onnxruntime``.
    preprocessing : str
        ``auto`` (resized by torch's kernel for 8 bits, where that was found to give what the
        library's own call gives within one grey level, else by the library) or ``library``.
    revision : str, optional
        Branch, tag or commit of a hub's repository; the commit found is in `info.revision`.
    allow_pickle : bool
        Read weights that are pickles, which can run any code. Only for files you trust.
    trust_remote_code : bool
        Run Python code that comes with a checkpoint. Only for code you trust.

    Returns
    -------
    DualEncoder, PairScorer, Classifier or Answerer
        See `equipoise.models.protocols`; `info` says what was loaded.

    Raises
    ------
    MissingExtraError
        If the library that the prefix needs is not installed.
    ModelError
        If there is no such model, or it cannot be loaded or placed, or run by that backend.
    """
    prefix, colon, rest = name.partition(":")
    if not colon or not rest or prefix not in LOADERS:
        raise ModelError(
            f"{name!r} names no model. A name is a prefix and what it loads: "
            f"{', '.join(f'{known}:…' for known in LOADERS)}."
        )
    options = Options(
        name, device, dtype, revision, allow_pickle, trust_remote_code, backend, preprocessing
    )
    return LOADERS[prefix](rest, options)
