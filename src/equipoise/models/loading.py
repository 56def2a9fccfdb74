"""Models by name: the prefix in ``prefix:rest`` names the library."""

from typing import Any

from equipoise.models.generators import ImageGenerator
from equipoise.models.registry import Options, find_adapter
from equipoise.models.service import Service


def load_model(
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    backend: str = "auto",
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    service: Service | None = None,
) -> Any:
    """Load a model that can be audited.

    Parameters
    ----------
    name : str
        ``hf:`` and a hub id or folder; ``open_clip:`` and architecture/tag, architecture/file,
        a folder or hf-hub:id; ``slip:``, ``laclip:``, ``alip:``, ``meter:`` and the file that its
        authors published; ``timm:`` and a name, name/file, a folder or hf-hub:id; ``onnx:``
        and a file or folder; ``served:`` and URL#model; ``python:`` and module:factory;
        ``equipoise:`` and a folder that a recipe of `equipoise.mitigate` wrote.
    device : str
        ``auto`` (cuda where there is one), ``cpu``, ``cuda`` or ``cuda:1``.
    dtype : str
        ``auto`` (float32 on a CPU; bfloat16 on a GPU that has it, else float16), ``float32``,
        ``bfloat16`` or ``float16``.
    backend : str
        What runs the part that sees images, of a dual encoder or a classifier: ``auto`` (OpenVINO
        on a CPU where it is installed and the weights are large enough to be worth converting,
        else torch), ``torch``, or ``openvino``.
    revision : str, optional
        Branch, tag or commit of a hub's repository; the commit found is in `info.revision`.
    allow_pickle : bool
        Read weights that are pickles, which can run any code. Only for files you trust.
    trust_remote_code : bool
        Run Python code that comes with a checkpoint. Only for code you trust.
    service : Service, optional
        How a served model is asked.

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

    Examples
    --------
    >>> from equipoise.models import load_model
    >>> from equipoise.planted import scenes
    >>> model = load_model(f"onnx:{scenes.WEIGHTS / 'cnn-null.onnx'}")
    >>> len(model.labels)
    24
    """
    options = Options(
        name, device, dtype, revision, allow_pickle, trust_remote_code, backend, service=service
    )
    adapter, target = find_adapter(name)
    return adapter.load(target, options)


def load_generator(
    name: str,
    *,
    device: str = "auto",
    dtype: str = "auto",
    revision: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    service: Service | None = None,
) -> ImageGenerator:
    """Load a model that makes images from texts.

    Parameters
    ----------
    name : str
        ``diffusers:`` and a hub id or a folder that `save_pretrained` wrote; ``python:`` and
        module:factory; ``equipoise:`` and a folder that a recipe of `equipoise.mitigate` wrote;
        ``edited:``, a file of `equipoise neurons`, ``#`` and one of these; ``served:`` and
        URL#model.
    device, dtype, revision, allow_pickle, trust_remote_code, service
        As in `load_model`.

    Returns
    -------
    ImageGenerator
        Of ``diffusers:`` also a `ControlledGenerator`; `check_control` says whether it can be
        controlled.

    Raises
    ------
    MissingExtraError
        If the library that the prefix needs is not installed.
    ModelError
        If there is no such model, or it cannot be loaded or placed.
    """
    options = Options(
        name, device, dtype, revision, allow_pickle, trust_remote_code, service=service
    )
    adapter, target = find_adapter(name, makes_images=True)
    model: ImageGenerator = adapter.load(target, options)
    return model
