"""The prefix ``python:``: models that the user's own code makes."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

from equipoise.core import EquipoiseError, ModelError
from equipoise.models.generators import ImageGenerator
from equipoise.models.info import ModelInfo
from equipoise.models.modules import as_model
from equipoise.models.protocols import PROTOCOLS, Model
from equipoise.models.registry import Options, adapter
from equipoise.models.source_files import source_digests


@adapter("python", runs_code=True)
def load(target: str, options: Options) -> Model:
    """Make a model by a factory of the user's.

    Parameters
    ----------
    target : str
        ``module:factory``, of a module that Python finds (an installed package, a file on
        PYTHONPATH), or ``file.py:factory``. The factory is called with the device and the dtype by
        name where it takes these, and may return a module of torch that has `classes`. Such a
        module may stand in place of the factory.
    options : Options
        What was asked. A `revision` is any word: it keys evidence, and is to change with whatever
        the source does not show, such as weights or installed packages.

    Returns
    -------
    DualEncoder, PairScorer, Classifier or Answerer

    Raises
    ------
    ModelError
        If there is no such factory, it fails, or what it returns is none of the protocols.
    """
    kinds = tuple(PROTOCOLS.values())
    expected = (
        "cannot be audited. Expected info and the methods of one protocol in equipoise.models: "
        f"{', '.join(kind.__name__ for kind in kinds)}"
    )
    model: Model = _call_factory(target, options, kinds, expected)
    return model


@adapter("python", runs_code=True, makes_images=True)
def load_generator(target: str, options: Options) -> ImageGenerator:
    """Make a model that makes images, as `load` does.

    Raises
    ------
    ModelError
        As in `load`.
    """
    expected = "makes no images. Expected info and generate(prompts, seeds, sampling)"
    model: ImageGenerator = _call_factory(target, options, (ImageGenerator,), expected)
    return model


def _import(module: str) -> ModuleType:
    """Import a module by its name, or by the path of its file.

    Raises
    ------
    ModelError
        When there is no such file, or another module has its name.
    """
    if not module.endswith(".py"):
        return importlib.import_module(module)
    file = Path(module).resolve()
    if not file.is_file():
        raise ModelError(f"{module}: no such file. To do: correct the path.")
    # Its folder stays on the path: the model's code may import files beside it later.
    if str(file.parent) not in sys.path:
        sys.path.insert(0, str(file.parent))
    loaded = importlib.import_module(file.stem)
    if Path(loaded.__file__ or "").resolve() != file:
        raise ModelError(
            f"{module}: another module is called {file.stem!r}. To do: rename the file."
        )
    return loaded


def _accepted(factory: Callable[..., object], options: Options) -> dict[str, str]:
    """Return the device and the dtype, as far as a factory takes them by name."""
    keywords = {"device": options.device, "dtype": options.dtype}
    try:
        parameters = signature(factory).parameters.values()
    except (TypeError, ValueError):
        return keywords
    # A class of a module passes what it doesn't know to torch, which takes neither.
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters)
    if takes_any and not isinstance(factory, type):
        return keywords
    names = {parameter.name for parameter in parameters}
    return {name: value for name, value in keywords.items() if name in names}


def _call_factory(target: str, options: Options, kinds: tuple[type, ...], expected: str) -> Any:
    """Return the model that a factory of the user's makes, keyed by its code.

    So that other code meets no old evidence, the SHA-256 of the source of the factory's module, of
    the module of the model's class, and of the local modules that these import are added to
    `info.files`, and the revision that was asked for to `info.preprocessing`.

    Parameters
    ----------
    target : str
        ``module:factory``.
    options : Options
    kinds : tuple of type
        Protocols, of which the model has one.
    expected : str
        End of the message about an object of another kind.

    Raises
    ------
    ModelError
        If there is no such factory, it cannot be called with a device and a dtype, it fails, or it
        makes something else, or a model whose info cannot be set.
    """
    if options.backend != "auto":
        raise ModelError(
            f"{options.name} is made by your own code, which chooses its backend itself. "
            f"To do: set backend: auto instead of {options.backend}."
        )
    module, _, name = target.rpartition(":")
    if not module or not name:
        raise ModelError(
            f"{target!r} names no factory. To do: python:module:factory, or python:FILE.py:factory."
        )
    try:
        loaded = _import(module)
        module, factory = loaded.__name__, getattr(loaded, name)
        is_model = hasattr(factory, "state_dict") and not isinstance(factory, type)
        model = factory if is_model else factory(**_accepted(factory, options))
        model = as_model(model)
    except EquipoiseError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{target} failed: {type(error).__name__}: {error}. To do: install the module, put "
            "its folder on PYTHONPATH, or name its file: python:FILE.py:factory."
        ) from error
    if not any(isinstance(model, kind) for kind in kinds):
        raise ModelError(f"{target} made a {type(model).__name__}, which {expected}.")
    modules = {module, getattr(factory, "__module__", module), type(model).__module__}
    if not isinstance(model.info, ModelInfo):
        raise ModelError(
            f"{target} made a model whose info is a {type(model.info).__name__}, expected "
            "equipoise.models.ModelInfo."
        )
    sources = {
        f"{source_module} (source)": digest
        for source_module, digest in source_digests(modules).items()
    }
    declared = {} if options.revision is None else {"declared_revision": options.revision}
    info = replace(
        model.info,
        files={**model.info.files, **sources},
        preprocessing={**model.info.preprocessing, **declared},
        revision=model.info.revision if options.revision is None else options.revision,
    )
    try:
        object.__setattr__(model, "info", info)
    except AttributeError as error:
        raise ModelError(
            f"{target} made a model whose info cannot be set, so it cannot say which code made "
            "it. To do: make info an attribute, not a property."
        ) from error
    return model
