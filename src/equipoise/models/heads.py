"""The last layer of a classifier, and what it sees."""

from collections.abc import Callable
from typing import Any

from equipoise.core.errors import ModelError


def last_linear(torch: Any, head: Any) -> Any:
    """Return the last linear layer of a classifier's head, None where there is none."""
    if head is None:
        return None
    layers = [layer for layer in head.modules() if isinstance(layer, torch.nn.Linear)]
    return layers[-1] if layers else None


def seen_by(layer: Any, call: Callable[[], object], name: str) -> Any:
    """Return what a layer is given while a model runs: (n, dimension).

    Parameters
    ----------
    layer : torch.nn.Module or None
        From `last_linear`.
    call : callable
        Runs the model once.
    name : str
        The model, for the message.

    Raises
    ------
    ModelError
        If the model has no such layer.
    """
    if layer is None:
        raise ModelError(
            f"{name} ends in no linear layer, so it has no penultimate features. "
            "To do: wrap it in a factory with a features method (python:module:factory)."
        )
    seen: list[Any] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        call()
    finally:
        hook.remove()
    return seen[-1].flatten(start_dim=1)
