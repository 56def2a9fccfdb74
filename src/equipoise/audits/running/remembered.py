"""What models are, kept in the store: a run that finds all evidence loads no weights."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from equipoise import __version__
from equipoise.audits.running.capability import Offer
from equipoise.audits.running.opened import deferred, offer_of
from equipoise.core.errors import EquipoiseError
from equipoise.evidence.asking import RunOptions
from equipoise.models import ModelInfo
from equipoise.models.options import Options

_FORM = 1
_LIBRARIES = (
    "torch", "torchvision", "transformers", "tokenizers", "pillow", "onnxruntime", "openvino",
    "optimum-intel", "simplejpeg", "timm", "open_clip_torch",
)  # fmt: skip


@dataclass(frozen=True)
class Remembered:
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
    path = _place(name, options, store)
    known = None if path is None else _read(path)
    if path is not None and known is not None:
        forget = partial(path.unlink, missing_ok=True)
        info = replace(known.info, name=name)
        return deferred(known.offer, info, known.labels, lambda: options.load(name), forget)
    model = options.load(name)
    offer = offer_of(model)
    if path is not None and offer is not None:
        _write(path, Remembered(offer, tuple(getattr(model, "labels", ())), model.info))
    return model


def known_by_files(name: str, options: RunOptions, store: Path) -> tuple[bool, Remembered | None]:
    """Return whether a name's files tell what the model is, and what it is if it was loaded before.

    Nothing is loaded or fetched: files that are here are hashed, see `open_model`.
    """
    path = _place(name, options, store, fetch=False)
    return path is not None, None if path is None else _read(path)


def recalled(name: str, store: Path) -> Remembered | None:
    """Return what a model of this name was when it was first loaded last, whatever its files."""
    folder = store / "models"
    every = sorted(folder.glob("*.json"), key=_written) if folder.is_dir() else []
    found = [one for path in every if (one := _read(path)) is not None and one.info.name == name]
    return found[-1] if found else None


def _written(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


def _place(name: str, options: RunOptions, store: Path, *, fetch: bool = True) -> Path | None:
    """Return the file of what a model is, None where only loading it tells."""
    prefix, _, target = name.partition(":")
    tell = _FACTS.get(prefix)
    if tell is None:
        return None
    try:
        facts = tell(_asked(name, options, fetch), target)
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


def _of_library(library: str, found: _Found, options: Options) -> dict[str, Any]:
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


class _Found(Protocol):
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


def _asked(name: str, options: RunOptions, fetch: bool) -> Options:
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


def _read(path: Path) -> Remembered | None:
    """Return what a file says, None where it is not there or not whole."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Remembered(told["offer"], tuple(told["labels"]), ModelInfo(**told["info"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _write(path: Path, known: Remembered) -> None:
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
