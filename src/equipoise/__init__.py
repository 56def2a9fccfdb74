"""equipoise: audits of social bias in vision models and image data, with their certainty."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise import audits, data, metrics, report, stats
    from equipoise.core import Estimate, Groups

__version__ = "0.1.0"
__all__ = [
    "Estimate",
    "Groups",
    "__version__",
    "audits",
    "data",
    "metrics",
    "report",
    "stats",
]


def __getattr__(name: str) -> Any:
    """Load the public rooms, `Estimate` and `Groups` on first use, so the import is quick."""
    from importlib import import_module

    if name in ("audits", "data", "metrics", "report", "stats"):
        return import_module(f"equipoise.{name}")
    if name in ("Estimate", "Groups"):
        return getattr(import_module("equipoise.core"), name)
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
