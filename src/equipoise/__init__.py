"""Audits of social bias in vision models and image data, with uncertainty."""

import typing as _typing

from equipoise import telemetry as _telemetry

if _typing.TYPE_CHECKING:
    from equipoise import audits as audits
    from equipoise import data as data
    from equipoise import metrics, models
    from equipoise import report as report
    from equipoise import stats as stats
    from equipoise.audits.quick import audit
    from equipoise.audits.runs import compare, load
    from equipoise.core import Estimate as Estimate
    from equipoise.core import Groups as Groups

_telemetry.switch_off()

__version__ = "0.1.0"
__all__ = ["audit", "compare", "load", "metrics", "models"]

_HOMES = {
    "Estimate": "core",
    "Groups": "core",
    "audit": "audits.quick",
    "compare": "audits.runs",
    "load": "audits.runs",
}
_ROOMS = {"audits", "core", "data", "metrics", "models", "report", "stats"}


def __getattr__(name: str) -> _typing.Any:
    """Load each public name on first use, so that the import is quick."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(f"equipoise.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return import_module(f"equipoise.{name}")
    raise AttributeError(f"module 'equipoise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
