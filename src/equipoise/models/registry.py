"""Adapters of model libraries, registered by the prefix of a model's name."""

import os
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from equipoise.core import ModelError
from equipoise.core.types import Json
from equipoise.discovery import Registry, calling_module, guarded
from equipoise.models.info import ModelInfo
from equipoise.models.protocols import Offer
from equipoise.models.service import Service


@dataclass(frozen=True)
class Options:
    """How to load a model.

    Attributes
    ----------
    name : str
        The whole name, with its prefix.
    device, dtype, backend : str
        As in `load_model`.
    revision : str or None
        Branch, tag or commit of a checkpoint on a hub.
    allow_pickle, trust_remote_code : bool
        Whether files may be read that can run code.
    fetch : bool
        Whether a hub may be asked for files that the local cache does not hold.
    outer : tuple of str
        Names of the models whose files led to this one, the first outermost.
    service : Service or None
        How a served model is asked.
    """

    name: str
    device: str = "auto"
    dtype: str = "auto"
    revision: str | None = None
    allow_pickle: bool = False
    trust_remote_code: bool = False
    backend: str = "auto"
    fetch: bool = True
    outer: tuple[str, ...] = ()
    service: Service | None = None


INNER = "#"
"""What separates a file from the name of the model that it is about."""

MOST_NESTED = 16
"""Files of which each names the next, up to a model that stands alone."""

Load = Callable[[str, Options], Any]
Identify = Callable[[str, Options], Mapping[str, Json] | None]
LoadT = TypeVar("LoadT", bound=Load)


@dataclass(frozen=True)
class Preview:
    """Facts of a model before it is loaded.

    Attributes
    ----------
    offer : str or None
    labels : tuple of str
        Classes of a classifier; () where they are not known.
    dimension : int or None
        Length of a vector.
    """

    offer: Offer | None = None
    labels: tuple[str, ...] = ()
    dimension: int | None = None


@dataclass(frozen=True)
class Adapter:
    """The functions that load the models of a library.

    Attributes
    ----------
    prefix : str
        What names of its models start with.
    load : callable
        From the rest of a name and `Options` to a model, see `equipoise.models.protocols`.
    preview : callable
        From the rest of a name to a `Preview`; nothing is loaded or fetched. A path to nothing is
        a `ModelError`.
    identify : callable or None
        From the rest of a name and `Options` to facts that decide which model it is, such as the
        SHA-256 of its files; None where only loading it tells. Nothing is loaded.
    backends : bool
        Whether `backend` chooses what runs its models.
    runs_code : bool
        Whether a name is Python code of the user's rather than a file or a folder.
    """

    prefix: str
    load: Load
    preview: Callable[[str], Preview] = lambda _: Preview()
    identify: Identify | None = None
    backends: bool = False
    runs_code: bool = False


def _registry(noun: str) -> Registry[Adapter]:
    return Registry(noun, "equipoise.models", "equipoise.models", Path(__file__).parent)


_MODELS, _GENERATORS = _registry("model adapter"), _registry("adapter of image generators")


def adapter(
    prefix: str,
    *,
    makes_images: bool = False,
    preview: Callable[[str], Preview] = lambda _: Preview(),
    identify: Identify | None = None,
    backends: bool = False,
    runs_code: bool = False,
) -> Callable[[LoadT], LoadT]:
    """Register the function that loads models of a library.

    With `makes_images`, its models make images, see `equipoise.models.generators`. See `Adapter`
    for the other parameters.

    Raises
    ------
    PluginError
        When the prefix is taken.

    Examples
    --------
    >>> @adapter("mylibrary")  # doctest: +SKIP
    ... def load(target: str, options: Options) -> Any:
    ...     return MyModel(target, options.device)
    """

    def register(load: LoadT) -> LoadT:
        module, registry = calling_module(), adapters(makes_images=makes_images)
        place, fix = registry.place(prefix, module), "mend the adapter, or use another model"
        registered = Adapter(
            prefix,
            guarded(load, place, fix, _not_model),
            guarded(preview, place, fix, _not_preview),
            identify and guarded(identify, place, fix),
            backends,
            runs_code,
        )
        registry.add(prefix, registered, module, getattr(load, "__qualname__", ""))
        return load

    return register


def _not_model(value: object) -> str:
    """Return the problem with a loaded model, "" without any."""
    if isinstance(getattr(value, "info", None), ModelInfo):
        return ""
    return f"returned {reprlib.repr(value)}; expected a model whose `info` is a ModelInfo"


def _not_preview(value: object) -> str:
    """Return the problem with a preview, "" without any."""
    return "" if isinstance(value, Preview) else f"returned {value!r}; expected a Preview"


def adapters(*, makes_images: bool = False) -> Registry[Adapter]:
    """Return adapters of models to audit, or of models that make images, by prefix."""
    return _GENERATORS if makes_images else _MODELS


def find_adapter(name: str, *, makes_images: bool = False) -> tuple[Adapter, str]:
    """Return the adapter of a model's name, and the rest of the name.

    Raises
    ------
    ModelError
        When the name has no known prefix.
    PluginError
        When the plugin of this prefix can't be used.
    """
    prefix, _, target = name.partition(":")
    by_prefix = adapters(makes_images=makes_images)
    try:
        adapter = by_prefix.find(prefix)
    except KeyError:
        adapter = None
    if not target or adapter is None:
        kind = "model that makes images" if makes_images else "model"
        likely_name = with_prefix(name, makes_images=makes_images)
        raise ModelError(
            f"{name!r}: the name of a {kind} starts with the prefix of its library, one of "
            f"{', '.join(f'{known_prefix}:' for known_prefix in sorted(by_prefix))}"
            f"{by_prefix.left_out}. To do: write {likely_name!r}, for example."
        )
    return adapter, target


_PREFIXES = {".onnx": "onnx:{}", ".py": "python:{}:FACTORY"}
"""Name of a model in a file of each ending."""


def with_prefix(name: str, *, makes_images: bool = False) -> str:
    """Return a name without a prefix as the user may mean it."""
    form = "diffusers:{}" if makes_images else _PREFIXES.get(Path(name).suffix, "hf:{}")
    return form.format(name.rpartition(":")[2] or "ID")


def load_nested(name: str, options: Options, *, makes_images: bool = False, **changes: Any) -> Any:
    """Load the model that a file names, for the model that the file describes.

    Raises
    ------
    ModelError
        When the inner model is Python code and `options` do not trust it, cannot be loaded, or
        files name each other in a circle.
    """
    outer = (*options.outer, _real(options.name))
    if _real(name) in outer or len(outer) == MOST_NESTED:
        raise ModelError(
            f"{options.name}: the file names {name} as its model, and files that name each other "
            f"lead back here or to more than {MOST_NESTED}. Expected: a model that stands alone in "
            "the end. To do: name the model that was changed in the file, or make the file again."
        )
    inner, target = find_adapter(name, makes_images=makes_images)
    if inner.runs_code and not options.trust_remote_code:
        raise ModelError(
            f"{options.name} runs {name}, which is Python code. To do: if you trust where the "
            "file comes from, set trust_remote_code: true."
        )
    return inner.load(target, replace(options, name=name, outer=outer, **changes))


def _real(name: str) -> str:
    """Return a model's name with the real path of its folder or file."""
    prefix, _, path = name.partition(":")
    return f"{prefix}:{os.path.realpath(Path(path).expanduser())}"


def relative(name: str, folder: Path) -> str:
    """Return the name of a model with its folder or file relative to another folder."""
    prefix, _, location = name.partition(":")
    path = Path(location).expanduser()
    if is_code(prefix) or not location:
        return name
    if not path.exists():
        return _change_parts(name, partial(relative, folder=folder))
    return f"{prefix}:{Path(os.path.relpath(path, folder)).as_posix()}"


def absolute(name: str, folder: Path) -> str:
    """Return a model's name with the full path of its folder or file."""
    prefix, _, location = name.partition(":")
    if is_code(prefix) or not location:
        return name
    if INNER in location and not (folder / location).exists():
        return _change_parts(name, partial(absolute, folder=folder))
    if not location.startswith("../") and not (folder / location).exists():
        return name
    return f"{prefix}:{os.path.normpath(folder / location)}"


def located_name(name: str, folder: Path) -> str:
    """Return a model's name with each path that is in a folder resolved."""
    prefix, _, location = name.partition(":")
    if is_code(prefix) or not location:
        return name
    path = folder / location
    if path.exists():
        return f"{prefix}:{path}"
    return _change_parts(name, partial(located_name, folder=folder))


def _change_parts(name: str, change: Callable[[str], str]) -> str:
    """Return a name with a file and a model inside it changed; another one as it is."""
    file, mark, model = name.partition(INNER)
    return f"{change(file)}{mark}{change(model)}" if mark else name


def is_code(prefix: str) -> bool:
    """Return whether names with a prefix are Python code."""
    registration = _MODELS.get(prefix)
    return registration is not None and registration.runs_code
