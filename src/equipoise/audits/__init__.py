"""From a configuration to findings: what is measured, corrected, judged and compared."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.audits.auditing import run
    from equipoise.audits.comparing import compare
    from equipoise.audits.config import Config, load_config, parse_config
    from equipoise.audits.demonstrating import demo
    from equipoise.audits.loading import load
    from equipoise.audits.planning import plan

_HOMES = {
    "Config": "config",
    "compare": "comparing",
    "demo": "demonstrating",
    "load": "loading",
    "load_config": "config",
    "parse_config": "config",
    "plan": "planning",
    "run": "auditing",
}

__all__ = ["Config", "compare", "demo", "load", "load_config", "parse_config", "plan", "run"]


def __getattr__(name: str) -> Any:
    """Load each part on first use: checking a configuration needs no metric."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.audits' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.audits.{_HOMES[name]}"), name)
