"""equipoise: audits of social bias in vision models and image data, with their certainty."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise import audits, data, metrics, report, stats
    from equipoise.audits.quick import audit
    from equipoise.core import Estimate, Groups
    from equipoise.report import read as load

__version__ = "0.1.0"
__all__ = [
    "Estimate",
    "Groups",
    "__version__",
    "audit",
    "audits",
    "data",
    "load",
    "metrics",
    "report",
    "stats",
]

_HOMES = {
    "Estimate": ("core", "Estimate"),
    "Groups": ("core", "Groups"),
    "audit": ("audits.quick", "audit"),
    "load": ("report", "read"),
}


def __getattr__(name: str) -> Any:
    """Load each public name on first use, so that the import is quick."""
    from importlib import import_module

    if name in _HOMES:
        room, own = _HOMES[name]
        return getattr(import_module(f"equipoise.{room}"), own)
    if name in __all__:
        return import_module(f"equipoise.{name}")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")
