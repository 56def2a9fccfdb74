"""The prefix ``python:``: models that the user's own code makes."""

import importlib
from typing import Any

from equipoise.core.errors import EquipoiseError, ModelError
from equipoise.models.hub import without_revision
from equipoise.models.info import ModelInfo
from equipoise.models.options import Options
from equipoise.models.protocols import Answerer, Classifier, DualEncoder, PairScorer

KINDS = (DualEncoder, PairScorer, Classifier, Answerer)
OFFERS = {
    DualEncoder: "embed_images and embed_texts",
    PairScorer: "score",
    Classifier: "labels, predict_proba and features",
    Answerer: "answer",
}


def load(target: str, options: Options) -> Any:
    """Make a model by a factory of the user's.

    Parameters
    ----------
    target : str
        ``module:factory``, of a module that Python finds (an installed package, a file on
        PYTHONPATH). The factory is called with the device and the dtype by name.
    options : Options
        What was asked.

    Returns
    -------
    DualEncoder, PairScorer, Classifier or Answerer

    Raises
    ------
    ModelError
        If there is no such factory, it fails, or what it returns is none of the protocols.
    """
    return _checked(made(target, options), target)


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
        If there is no such factory, or it fails.
    """
    without_revision(target, options)
    if options.backend != "auto":
        raise ModelError(
            f"{options.name} is made by your own code, which chooses its backend itself; backend "
            f"{options.backend} was asked for. To do: leave it at auto."
        )
    module, colon, name = target.partition(":")
    if not colon or not module or not name:
        raise ModelError(f"{target!r} names no factory. To do: python:module:factory.")
    try:
        return getattr(importlib.import_module(module), name)(
            device=options.device, dtype=options.dtype
        )
    except EquipoiseError:
        raise
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise ModelError(f"{module} cannot be imported: {error}") from error
        raise ModelError(
            f"There is no module {module}. To do: install it, or add its folder to PYTHONPATH."
        ) from error
    except Exception as error:
        raise ModelError(f"{target} failed: {type(error).__name__}: {error}") from error


def _checked(found: Any, target: str) -> Any:
    if not any(isinstance(found, kind) for kind in KINDS):
        offers = "; ".join(f"{kind.__name__}: {what}" for kind, what in OFFERS.items())
        raise ModelError(
            f"{target} made a {type(found).__name__}, which is none of the models that can be "
            f"audited. Each has info and what its kind offers ({offers})."
        )
    check_info(found, target)
    return found


def check_info(found: Any, target: str) -> None:
    """Refuse a model that a factory made and that does not say what it is."""
    if not isinstance(found.info, ModelInfo):
        raise ModelError(
            f"{target} made a model whose info is a {type(found.info).__name__}, expected "
            "equipoise.models.ModelInfo."
        )
