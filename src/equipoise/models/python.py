"""The prefix ``python:``: models that the user's own code makes."""

import importlib
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import ModuleType
from typing import Any, cast

from equipoise.core.errors import EquipoiseError, ModelError
from equipoise.models.generators import ImageGenerator
from equipoise.models.info import ModelInfo
from equipoise.models.options import Options
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, PairScorer
from equipoise.models.python_sources import source_digests
from equipoise.models.registry import adapter

KINDS = (DualEncoder, PairScorer, Classifier, Answerer)
OFFERS = {
    DualEncoder: "embed_images and embed_texts",
    PairScorer: "score",
    Classifier: "labels, predict_proba and features",
    Answerer: "answer",
}
_NONE = object()
_LISTED = 8


@adapter("python", runs_code=True)
def load(target: str, options: Options) -> Any:
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
    return _checked(made(target, options), target, options)


@adapter("python", runs_code=True, makes_images=True)
def load_generator(target: str, options: Options) -> ImageGenerator:
    """Make a model that makes images, as `load` does.

    Raises
    ------
    ModelError
        As in `load`.
    """
    model = made(target, options)
    if not isinstance(model, ImageGenerator):
        raise ModelError(
            f"{target} made a {type(model).__name__}, which makes no images. Expected info and "
            "generate(prompts, seeds, sampling)."
        )
    check_info(model, target)
    return cast("ImageGenerator", keyed(model, target, options))


def made(target: str, options: Options) -> Any:
    """Return what a factory of the user's makes, whatever that is.

    Parameters
    ----------
    target : str
        ``module:factory``.
    options : Options

    Raises
    ------
    ModelError
        If there is no such factory, it cannot be called with a device and a dtype, or it fails.
    """
    if options.backend != "auto":
        raise ModelError(
            f"{options.name} is made by your own code, which chooses its backend itself; backend "
            f"{options.backend} was asked for. To do: leave it at auto."
        )
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise ModelError(f"{target!r} names no factory. To do: python:module:factory.")
    try:
        factory = _named(importlib.import_module(module), name, target)
        _check_call(factory, target)
        return factory(device=options.device, dtype=options.dtype)
    except EquipoiseError:
        raise
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise ModelError(f"{module} cannot be imported: {error}") from error
        raise ModelError(
            f"There is no module {module}. To do: install it, or add its folder to PYTHONPATH."
        ) from error
    except (Exception, SystemExit) as error:
        raise ModelError(f"{target} failed: {type(error).__name__}: {error}") from error


def _named(module: ModuleType, name: str, target: str) -> Any:
    """Return what a module calls so; refuse a name that it does not have."""
    found = getattr(module, name, _NONE)
    if found is not _NONE:
        return found
    offered = {one: made for one, made in vars(module).items() if callable(made)}
    near = get_close_matches(name, offered, n=3)
    raise ModelError(
        f"{target}: the module {target.partition(':')[0]} has no {name!r}. "
        f"{f'Names near it: {_listed(near)}' if near else _own(module, offered)}. Expected: the "
        "name of a function that makes the model. To do: correct the name, or define it in "
        f"{getattr(module, '__file__', None) or module.__name__}."
    )


def _own(module: ModuleType, offered: Mapping[str, Any]) -> str:
    """Say what a module defines itself."""
    own = [
        name
        for name, made in offered.items()
        if getattr(made, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return f"It defines {_listed(own)}" if own else "It defines no function"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{', '.join(map(repr, names[:_LISTED]))}{more}"


def _check_call(factory: Any, target: str) -> None:
    """Refuse what cannot be called with a device and a dtype by name, before it is called."""
    what = f"is a {type(factory).__name__}, which cannot be called"
    if callable(factory):
        try:
            inspect.signature(factory).bind(device="cpu", dtype="auto")
        except ValueError:  # one of C that does not say what it takes
            return
        except TypeError as error:
            what = f"cannot be called with device and dtype by name ({error})"
        else:
            return
    raise ModelError(
        f"{target} {what}. To do: name a function such as def make(*, device, dtype) that returns "
        "the model."
    )


def _checked(found: Any, target: str, options: Options) -> Any:
    if not any(isinstance(found, kind) for kind in KINDS):
        offers = "; ".join(f"{kind.__name__}: {what}" for kind, what in OFFERS.items())
        raise ModelError(
            f"{target} made a {type(found).__name__}, which is none of the models that can be "
            f"audited. Each has info and what its kind offers ({offers})."
        )
    check_info(found, target)
    return keyed(found, target, options)


def keyed(found: Any, target: str, options: Options) -> Any:
    """Have what a model is say which code made it, so that other code meets no old evidence.

    The SHA-256 of the source of the factory's module, of the module of the model's class, and of
    the local modules that these import are added to `info.files`, and the revision that was asked
    for to `info.preprocessing`.

    Parameters
    ----------
    found : object
        With `info`.
    target : str
        ``module:factory``.
    options : Options

    Raises
    ------
    ModelError
        If `info` cannot be set.
    """
    module, _, name = target.partition(":")
    factory = getattr(importlib.import_module(module), name)
    modules = {module, getattr(factory, "__module__", module), type(found).__module__}
    sources = {f"{one} (source)": digest for one, digest in source_digests(modules).items()}
    declared = {} if options.revision is None else {"declared_revision": options.revision}
    info = replace(
        found.info,
        files={**found.info.files, **sources},
        preprocessing={**found.info.preprocessing, **declared},
        revision=found.info.revision if options.revision is None else options.revision,
    )
    try:
        object.__setattr__(found, "info", info)
    except AttributeError as error:
        raise ModelError(
            f"{target} made a model whose info cannot be set, so it cannot say which code made "
            "it. To do: make info an attribute, not a property."
        ) from error
    return found


def check_info(found: Any, target: str) -> None:
    """Refuse a model that a factory made and that does not say what it is."""
    if not isinstance(found.info, ModelInfo):
        raise ModelError(
            f"{target} made a model whose info is a {type(found.info).__name__}, expected "
            "equipoise.models.ModelInfo."
        )
