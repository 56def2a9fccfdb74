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


def seen_by(layer: Any, call: Callable[[], Any]) -> tuple[Any, Any]:
    """Return what a call of a model returns, and what a layer is given in it: (n, dimension)."""
    seen: list[Any] = []
    hook = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    try:
        returned = call()
    finally:
        hook.remove()
    return returned, seen[-1].flatten(start_dim=1)


def no_features(name: str) -> ModelError:
    """Return the error of a model whose penultimate features were asked for and are none."""
    return ModelError(
        f"{name} ends in no linear layer, so it has no penultimate features. "
        "To do: wrap it in a factory with a features method (python:module:factory)."
    )
