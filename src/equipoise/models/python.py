"""The prefix ``python:``: models that the user's own code makes."""

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from itertools import accumulate
from pathlib import Path
from typing import Any

from equipoise.core import EquipoiseError, ModelError
from equipoise.models.generators import ImageGenerator
from equipoise.models.info import ModelInfo, sha256_of
from equipoise.models.protocols import PROTOCOLS, Model
from equipoise.models.registry import Options, adapter

_INSTALLED = frozenset({"site-packages", "dist-packages"})


def source_digests(modules: Iterable[str]) -> dict[str, str]:
    """Return SHA-256 of modules' source files, and of local modules they import.

    An import is found in the source, wherever it stands, and no module is imported for it. A module
    is local when it belongs to a package of `modules`, or is not installed. Imports by a computed
    name are not found.

    Parameters
    ----------
    modules : iterable of str
        Names of imported modules.

    Returns
    -------
    mapping of str to str
        By the name of the module.
    """
    roots, digests = {*modules}, dict[str, str]()
    tops = {root.partition(".")[0] for root in roots} - {"equipoise"}
    pending, visited = [*roots], set[str]()
    while pending:
        name = pending.pop()
        if name in visited:
            continue
        visited.add(name)
        top = name.partition(".")[0]
        is_local = name in roots or top in tops
        if not is_local and (
            top in sys.stdlib_module_names or top == "equipoise" or _installed(top)
        ):
            continue
        path = _file(name)
        if path is not None and (is_local or not _installed(name)):
            digests[name] = sha256_of(path)
            pending += _imports(name, path)
    return dict(sorted(digests.items()))


def _installed(name: str) -> bool:
    path = _file(name)
    return path is not None and not _INSTALLED.isdisjoint(path.parts)


def _file(name: str) -> Path | None:
    """Return the file of a module, or None.

    It is found without importing the packages around it: their code may fail.
    """
    path = getattr(sys.modules.get(name), "__file__", None)
    if path is None:
        top, *inner = _package_chain(name)
        spec = None
        with suppress(ImportError, ValueError):
            spec = find_spec(top)
        for module in inner:
            within = spec.submodule_search_locations if spec else None
            spec = PathFinder.find_spec(module, [*within]) if within is not None else None
        path = spec.origin if spec else None
    return Path(path) if path and Path(path).is_file() else None


def _imports(name: str, path: Path) -> Iterator[str]:
    """Yield the modules that a module may import, and their packages."""
    yield from _package_chain(name)
    if path.suffix != ".py":
        return
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = resolve_name(base, package) if package or not node.level else base
            imported = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for module in imported:
            yield from _package_chain(module)


def _package_chain(name: str) -> list[str]:
    """Return the names of the packages around a module, outermost first, and its own."""
    return [*accumulate(name.split("."), "{}.{}".format)]


@adapter("python", runs_code=True)
def load(target: str, options: Options) -> Model:
    """Make a model by a factory of the user's.

    Parameters
    ----------
    target : str
        ``module:factory``, of a module that Python finds (an installed package, a file on
        PYTHONPATH). The factory is called with the device and the dtype by name.
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
    module, _, name = target.partition(":")
    if not module or not name:
        raise ModelError(f"{target!r} names no factory. To do: python:module:factory.")
    try:
        factory = getattr(importlib.import_module(module), name)
        model = factory(device=options.device, dtype=options.dtype)
    except EquipoiseError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(
            f"{target} failed: {type(error).__name__}: {error}. The module must be installed, or "
            "its folder on PYTHONPATH."
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
