"""Models of a run: what they are is kept in the store, and weights are loaded when one runs."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from equipoise import __version__
from equipoise.audits.capability import Offer
from equipoise.core.errors import EquipoiseError, ModelError
from equipoise.core.files import read_regular
from equipoise.evidence.asking import RunOptions
from equipoise.models import Answerer, Classifier, DualEncoder, ModelInfo, PairScorer
from equipoise.models.options import Options

Floats = npt.NDArray[np.float32]

PROTOCOLS: Mapping[Offer, type] = MappingProxyType(
    {
        "encoder": DualEncoder,
        "scorer": PairScorer,
        "classifier": Classifier,
        "answerer": Answerer,
    }
)


def offer_of(model: Any) -> Offer | None:
    """Return what a model offers, None of an object that is no model."""
    return next((name for name, kind in PROTOCOLS.items() if isinstance(model, kind)), None)


@dataclass(frozen=True, eq=False)
class Deferred:
    """A model that was loaded before and is loaded again when it has to run.

    Attributes
    ----------
    info : ModelInfo
        What it is: its files are those that it was loaded from.
    load : callable
        Loads it.
    forget : callable
        Called where it is another model now.
    """

    info: ModelInfo
    load: Callable[[], Any] = field(repr=False)
    forget: Callable[[], None] = field(repr=False)

    @cached_property
    def model(self) -> Any:
        """The model, loaded.

        Raises
        ------
        ModelError
            When it is another than it was, though its files are the same.
        """
        found = self.load()
        if found.info.key == self.info.key:
            return found
        self.forget()
        raise ModelError(
            f"{self.info.name} runs otherwise here than where it was run before, though its files "
            "are the same. To do: run the same command again, which starts anew with it"
        )

    def open(self) -> None:
        """Load the model before it runs: what is wrong with it is no fault of an image."""
        _ = self.model

    def release(self) -> None:
        """Let go of the weights; they are loaded again when the model has to run."""
        vars(self).pop("model", None)


class DeferredEncoder(Deferred):
    """A dual encoder."""

    def embed_images(self, images: Sequence[Any]) -> Floats:
        """Return vectors of images, (n, dimension)."""
        return self.model.embed_images(images)  # type: ignore[no-any-return]

    def embed_texts(self, texts: Sequence[str]) -> Floats:
        """Return vectors of texts, (n, dimension)."""
        return self.model.embed_texts(texts)  # type: ignore[no-any-return]


class DeferredScorer(Deferred):
    """A model that scores pairs."""

    def score(self, images: Sequence[Any], texts: Sequence[str]) -> Floats:
        """Return how well images match texts, (n, m)."""
        return self.model.score(images, texts)  # type: ignore[no-any-return]


@dataclass(frozen=True, eq=False)
class DeferredClassifier(Deferred):
    """A classifier.

    Attributes
    ----------
    labels : tuple of str
        Names of its classes.
    """

    labels: tuple[str, ...] = ()

    def predict_proba(self, images: Sequence[Any]) -> Floats:
        """Return probabilities of classes, (n, classes)."""
        return self.model.predict_proba(images)  # type: ignore[no-any-return]

    def features(self, images: Sequence[Any]) -> Floats:
        """Return what the last layer sees, (n, dimension)."""
        return self.model.features(images)  # type: ignore[no-any-return]


class DeferredAnswerer(Deferred):
    """A model that answers questions."""

    def answer(self, images: Sequence[Any], question: str) -> list[str]:
        """Return one answer for each image."""
        return self.model.answer(images, question)  # type: ignore[no-any-return]


def rested(model: Any, load: Callable[[], Any]) -> Any:
    """Return a model without its weights in memory, which `load` gives when it has to run."""
    if isinstance(model, Deferred):
        model.release()
        return model
    offer = offer_of(model)
    if offer is None:
        return model
    return deferred(offer, model.info, tuple(getattr(model, "labels", ())), load, _nothing)


def _nothing() -> None:
    """Forget nothing: nothing was written down."""


def deferred(
    offer: Offer,
    info: ModelInfo,
    labels: tuple[str, ...],
    load: Callable[[], Any],
    forget: Callable[[], None],
) -> Deferred:
    """Return a model that is loaded when it has to run."""
    if offer == "classifier":
        return DeferredClassifier(info, load, forget, labels)
    kinds = {"encoder": DeferredEncoder, "scorer": DeferredScorer, "answerer": DeferredAnswerer}
    return kinds[offer](info, load, forget)


_FORM = 1
_LIBRARIES = (
    "torch", "torchvision", "transformers", "tokenizers", "pillow", "onnxruntime", "openvino",
    "optimum-intel", "simplejpeg", "timm", "open_clip_torch",
)  # fmt: skip


@dataclass(frozen=True)
class CacheEntry:
    """What a model was when it was loaded.

    Attributes
    ----------
    offer : str
    labels : tuple of str
        Classes of a classifier.
    info : ModelInfo
    """

    offer: Offer
    labels: tuple[str, ...]
    info: ModelInfo


def open_model(name: str, options: RunOptions, store: Path) -> Any:
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
    path = _entry_path(name, options, store)
    known = None if path is None else _read_entry(path)
    if path is not None and known is not None:
        forget = partial(path.unlink, missing_ok=True)
        info = replace(known.info, name=name)
        return deferred(known.offer, info, known.labels, lambda: options.load(name), forget)
    model = options.load(name)
    offer = offer_of(model)
    if path is not None and offer is not None:
        _write_entry(path, CacheEntry(offer, tuple(getattr(model, "labels", ())), model.info))
    return model


def known_by_files(name: str, options: RunOptions, store: Path) -> tuple[bool, CacheEntry | None]:
    """Return whether a name's files tell what the model is, and what it is if it was loaded before.

    Nothing is loaded or fetched: files that are here are hashed, see `open_model`.
    """
    path = _entry_path(name, options, store, fetch=False)
    return path is not None, None if path is None else _read_entry(path)


def recalled(name: str, store: Path) -> CacheEntry | None:
    """Return what a model of this name was when it was first loaded last, whatever its files."""
    folder = store / "models"
    every = sorted(folder.glob("*.json"), key=_written) if folder.is_dir() else []
    found = [
        one for path in every if (one := _read_entry(path)) is not None and one.info.name == name
    ]
    return found[-1] if found else None


def _written(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


def _entry_path(name: str, options: RunOptions, store: Path, *, fetch: bool = True) -> Path | None:
    """Return the file of what a model is, None where only loading it tells."""
    prefix, _, target = name.partition(":")
    tell = _FACTS.get(prefix)
    if tell is None:
        return None
    try:
        facts = tell(_load_options(name, options, fetch), target)
    except EquipoiseError:
        # Loading it says what is wrong, in the adapter's words.
        return None
    if facts is None:
        return None
    asked = asdict(options)
    told = {"form": _FORM, "prefix": prefix, "asked": asked, "facts": facts, "by": _libraries()}
    key = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return store / "models" / f"{key[:32]}.json"


def _hf(options: Options, target: str) -> dict[str, Any]:
    from equipoise.models.hf import find_checkpoint
    from equipoise.models.runtimes import place

    placed = place(options.device, options.dtype, "hf")
    found = find_checkpoint(target, options)
    files, _ = found.digests(options.trust_remote_code)
    # A name of a device such as cuda:1 is no part of a model's key.
    device = placed.device.partition(":")[0]
    return {"files": files, "device": device, "dtype": placed.dtype, "revision": found.revision}


def _onnx(_: Options, target: str) -> dict[str, Any] | None:
    from equipoise.models.info import digests
    from equipoise.models.onnx import files_of, labels_path

    path = Path(target)
    if not path.is_file() or not labels_path(path).is_file():
        return None
    return {"files": digests((*files_of(path), labels_path(path)), path.parent)}


def _timm(options: Options, target: str) -> dict[str, Any]:
    from equipoise.models.runtimes import timm
    from equipoise.models.timm import find

    return _of_library("timm", find(timm(), target, options), options)


def _open_clip(options: Options, target: str) -> dict[str, Any] | None:
    from equipoise.models.open_clip import find, has_own_tokenizer
    from equipoise.models.runtimes import open_clip

    found = find(open_clip(), target, options)
    # An architecture can be one that the user added.
    config = None if found.settings else open_clip().get_model_config(found.architecture)
    if config is not None and has_own_tokenizer(found.architecture, config):
        return None  # its tokenizer lies elsewhere
    return _of_library("open_clip", found, options) | {"config": config}


def _of_library(library: str, found: _Weights, options: Options) -> dict[str, Any]:
    """Return what decides a model of a library that has its own names: its files, and the name."""
    from equipoise.models.info import digests
    from equipoise.models.runtimes import place

    placed = place(options.device, options.dtype, library)
    return {
        "files": digests([found.weights]) | found.beside,
        "architecture": found.architecture if found.settings is None else "",
        "device": placed.device.partition(":")[0],
        "dtype": placed.dtype,
        "revision": found.revision,
    }


class _Weights(Protocol):
    """What the adapters of timm and open_clip find."""

    @property
    def architecture(self) -> str: ...

    @property
    def weights(self) -> Path: ...

    @property
    def settings(self) -> Path | None: ...

    @property
    def revision(self) -> str | None: ...

    @property
    def beside(self) -> dict[str, str]: ...


_FACTS: dict[str, Callable[[Options, str], dict[str, Any] | None]] = {
    "hf": _hf,
    "onnx": _onnx,
    "timm": _timm,
    "open_clip": _open_clip,
}


def _load_options(name: str, options: RunOptions, fetch: bool) -> Options:
    return Options(
        name,
        device=options.device,
        dtype=options.dtype,
        revision=options.revision,
        allow_pickle=options.allow_pickle,
        trust_remote_code=options.trust_remote_code,
        fetch=fetch,
    )


def _libraries() -> dict[str, str]:
    return {"equipoise": __version__, **dict(_installed())}


def _installed() -> Iterator[tuple[str, str]]:
    for library in _LIBRARIES:
        try:
            yield library, version(library)
        except PackageNotFoundError:
            continue


def _read_entry(path: Path) -> CacheEntry | None:
    """Return what a file says, None where it is not there or not whole."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return CacheEntry(told["offer"], tuple(told["labels"]), ModelInfo(**told["info"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write_entry(path: Path, known: CacheEntry) -> None:
    """Keep what a model is; where that fails the next run loads it again."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    told = {"offer": known.offer, "labels": known.labels, "info": asdict(known.info)}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):  # also where a part of the path is no folder
            unfinished.unlink(missing_ok=True)


@dataclass(frozen=True)
class ModelSignature:
    """What is known of a model that was not loaded.

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


def signature_of(model: Any, store: Path) -> ModelSignature:
    """Return what is known of a model: nothing is loaded, nothing is fetched.

    Parameters
    ----------
    model : str or model
        A name, folders in full; or a loaded model.
    store : Path
        Folder of the evidence, where what models are is kept.
    """
    if not isinstance(model, str):
        return ModelSignature(
            offer_of(model), tuple(getattr(model, "labels", ())), model.info.dimension
        )
    known = recalled(model, store)
    if known is not None:
        return ModelSignature(known.offer, known.labels, known.info.dimension)
    prefix, _, target = model.partition(":")
    if prefix == "hf":
        return _of_checkpoint(_settings(target))
    if prefix == "onnx":
        return ModelSignature("classifier", _lines(Path(target).with_suffix(".labels.txt")))
    return ModelSignature({"open_clip": "encoder", "timm": "classifier"}.get(prefix))  # type: ignore[arg-type]


def _settings(target: str) -> Mapping[str, Any]:
    """Return config.json of a folder, or of a repository in the local cache; {} without."""
    from equipoise.models.hub import cached

    here = Path(target).expanduser() / "config.json"
    path = here if here.is_file() else cached(target, "config.json")
    if path is None:
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _of_checkpoint(settings: Mapping[str, Any]) -> ModelSignature:
    from equipoise.models.hf import ANSWERERS, ENCODERS, SCORERS

    architecture = next(iter(settings.get("architectures") or []), "")
    if architecture in ENCODERS:
        return ModelSignature("encoder", dimension=settings.get("projection_dim"))
    if architecture in SCORERS:
        return ModelSignature("scorer")
    if architecture in ANSWERERS:
        return ModelSignature("answerer")
    if architecture.endswith("ForImageClassification"):
        names = settings.get("id2label") or {}
        labels = tuple(str(names[number]) for number in sorted(names, key=int))
        return ModelSignature("classifier", labels, settings.get("hidden_size"))
    return ModelSignature()


def _lines(path: Path) -> tuple[str, ...]:
    try:
        every = read_regular(path).decode("utf-8").splitlines()
    except (OSError, ValueError):
        return ()
    return tuple(name for line in every if (name := line.strip()))


def not_looked_up(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the note on models that need a library to be looked up."""
    from equipoise.models.hub import is_installed

    models = dict.fromkeys(one["runs"] for one in runs if one["runs"].startswith("hf:"))
    if models and not is_installed():
        yield (
            f"huggingface_hub is not installed, so {', '.join(models)} was not looked up in the "
            "hub's local cache, and an audit cannot run it. To do: pip install 'equipoise[hf]'."
        )
