"""Models of a run: facts are cached in the store, weights load on first use."""

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache, cached_property, partial
from inspect import isfunction
from pathlib import Path
from typing import Any, cast

from equipoise.audits.findings import versions_of
from equipoise.core import EquipoiseError, ModelError, RunError, record
from equipoise.core.files import read_json_file
from equipoise.core.writing import remove, sweep, write
from equipoise.evidence.working import RunOptions
from equipoise.models import ModelInfo
from equipoise.models.protocols import (
    PROTOCOLS,
    ConcurrentAnswerer,
    Model,
    Offer,
    ScoringAnswerer,
    offer_of,
)
from equipoise.models.registry import Options, Preview, find_adapter


@record
class Deferred:
    """A model that was loaded before and is loaded again when it has to run.

    Attributes
    ----------
    info : ModelInfo
        What it is: its files are those that it was loaded from.
    labels : tuple of str
        Names of the classes of a classifier.
    load : callable
        Loads it.
    forget : callable
        Called where it is another model now.
    """

    info: ModelInfo
    labels: tuple[str, ...]
    load: Callable[[], Model]
    forget: Callable[[], None] = lambda: None

    @cached_property
    def model(self) -> Model:
        """The model, loaded.

        Raises
        ------
        ModelError
            When it is another than it was, though its files are the same.
        """
        loaded = self.load()
        if loaded.info.key == self.info.key:
            return loaded
        self.forget()
        raise ModelError(
            f"{self.info.name} has other settings here than in the first run, though its files "
            "are the same. To do: run the same command again, which runs this model from the start"
        )

    def open(self) -> None:
        """Load the model before it runs, so that its errors don't blame an image."""
        _ = self.model


def _forward(method: str) -> Callable[..., Any]:
    """Return a method that loads the model and calls its method of that name."""

    def call(self: Deferred, *arguments: Any, **settings: Any) -> Any:
        return getattr(self.model, method)(*arguments, **settings)

    return call


def _methods(protocol: type) -> list[str]:
    """Return the names of a protocol's methods."""
    return [
        name
        for name, attribute in vars(protocol).items()
        if isfunction(attribute) and not name.startswith("_")
    ]


def _optional_methods(model: Model) -> tuple[str, ...]:
    """Return the methods of a model that only some answerers have."""
    protocols = (ScoringAnswerer, ConcurrentAnswerer)
    return tuple(
        name for protocol in protocols if isinstance(model, protocol) for name in _methods(protocol)
    )


@cache
def deferred_type(offer: Offer, optional: tuple[str, ...]) -> type[Any]:
    """Return a stand-in with the methods of a protocol, and optional ones of the model."""
    protocol = PROTOCOLS[offer]
    methods = {name: _forward(name) for name in (*_methods(protocol), *optional)}
    return type(f"Deferred{protocol.__name__}", (Deferred,), methods)


def rested(model: Model, load: Callable[[], Model]) -> Model:
    """Return a model without its weights in memory, which `load` gives when it has to run."""
    if isinstance(model, Deferred):
        vars(model).pop("model", None)
        return model
    offer = offer_of(model)
    if offer is None:
        return model
    stand_in = deferred_type(offer, _optional_methods(model))
    return cast("Model", stand_in(model.info, labels_of(model), load))


def labels_of(model: Model) -> tuple[str, ...]:
    """Return the names of a classifier's classes; none of other models."""
    return tuple(getattr(model, "labels", ()))


_FORM = 1
_LIBRARIES = (
    "torch", "torchvision", "transformers", "tokenizers", "pillow", "onnxruntime", "openvino",
    "optimum-intel", "simplejpeg", "timm", "open_clip_torch",
)  # fmt: skip


def open_model(name: str, options: RunOptions, store: Path) -> Model:
    """Return a model that loads its weights when it first runs, or a loaded one.

    What a model is depends on its files, the libraries that load it and where it runs. For a name
    of which that can be told without loading it (all but `python:`), a model that was loaded before
    is known by the SHA-256 of its files. Others are loaded.

    Parameters
    ----------
    name : str
        As `load_model` takes it.
    options : RunOptions
    store : Path
        Folder of the evidence; what models are is in `models/` there.
    """
    path, cached = _recall(name, options, store)
    if cached is not None:
        return cached
    model: Model = options.load(name)
    offer = offer_of(model)
    if path is not None and offer is not None:
        entry = {
            "offer": offer, "optional_methods": _optional_methods(model),
            "labels": labels_of(model), "info": asdict(model.info),
        }  # fmt: skip
        # Where it can't be kept, the next run loads the model again.
        with suppress(RunError):
            sweep(path.parent)
            write(path, json.dumps(entry, indent=1).encode())
    return model


def look_up(name: str, options: RunOptions, store: Path) -> tuple[str | None, Preview]:
    """Return a model's key and preview without loading or fetching anything.

    Files that are here are hashed, see `open_model`. The key is "" of a model that was never
    loaded, and None where only loading it tells.
    """
    path, cached = _recall(name, options, store, fetch=False)
    if cached is not None:
        return preview_of(cached)
    try:
        adapter, target = find_adapter(name)
    except ModelError:
        return None, Preview()
    preview = adapter.preview(target)
    if options.service is not None:
        offer: Offer = "answerer" if options.service.interface == "chat" else "encoder"
        preview = replace(preview, offer=offer)
    return None if path is None else "", preview


def preview_of(model: Model) -> tuple[str, Preview]:
    """Return the key and preview of a loaded model."""
    return str(model.info.key), Preview(offer_of(model), labels_of(model), model.info.dimension)


def _recall(
    name: str, options: RunOptions, store: Path, *, fetch: bool = True
) -> tuple[Path | None, Model | None]:
    """Return a model's cache file, and a stand-in where the file is valid.

    There is no file where only loading the model tells.
    """
    path = _entry_path(name, options, store, fetch)
    if path is None:
        return None, None
    try:
        entry = read_json_file(path)
        info = ModelInfo(**entry["info"] | {"name": name})
        stand_in = deferred_type(entry["offer"], tuple(entry["optional_methods"]))
        forget = partial(remove, path)
        return path, stand_in(info, tuple(entry["labels"]), partial(options.load, name), forget)
    except (OSError, ValueError, TypeError, KeyError):
        return path, None


def _entry_path(name: str, options: RunOptions, store: Path, fetch: bool) -> Path | None:
    """Return a model's cache file, or None if only loading gives its facts."""
    try:
        adapter, target = find_adapter(name)
        if adapter.identify is None:
            return None
        settings = dict(vars(options))
        del settings["backend"]
        facts = adapter.identify(target, Options(name, **settings, fetch=fetch))
    except EquipoiseError:
        # Loading it says what is wrong, in the adapter's words.
        return None
    if facts is None:
        return None
    identity = {
        "form": _FORM,
        "prefix": adapter.prefix,
        "asked": asdict(options) | {"service": options.service and options.service.identity},
        "facts": facts,
        "by": versions_of(_LIBRARIES),
    }
    key = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return store / "models" / f"{key[:32]}.json"
