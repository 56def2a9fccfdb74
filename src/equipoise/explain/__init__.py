"""Where a model looks: class activation maps, over images and inside regions."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.explain.maps import METHODS, ActivationMaps, activation_maps

_HOMES = {"METHODS": "maps", "ActivationMaps": "maps", "activation_maps": "maps"}

__all__ = ["METHODS", "ActivationMaps", "activation_maps"]


def __getattr__(name: str) -> Any:
    """Load each part on first use: only maps need a model."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.explain' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.explain.{_HOMES[name]}"), name)
