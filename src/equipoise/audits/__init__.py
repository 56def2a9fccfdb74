"""Kinds of audit: configuration, measurement, correction, verdicts, comparison."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.audits.comparison import compare_results, together
    from equipoise.audits.config import AuditConfig, load_config, parse_config
    from equipoise.audits.demonstrating import demo, demo_scenes
    from equipoise.audits.labels.predictions.comparison import compare
    from equipoise.audits.opening import prepare
    from equipoise.audits.planning import plan
    from equipoise.audits.running import run
    from equipoise.audits.runs import compare_runs
    from equipoise.audits.saving import save

_HOMES = {
    "AuditConfig": "config",
    "compare": "labels.predictions.comparison",
    "compare_results": "comparison",
    "compare_runs": "runs",
    "demo": "demonstrating",
    "demo_scenes": "demonstrating",
    "load_config": "config",
    "parse_config": "config",
    "plan": "planning",
    "prepare": "opening",
    "run": "running",
    "save": "saving",
    "together": "comparison",
}

__all__ = [
    "AuditConfig",
    "compare",
    "compare_results",
    "compare_runs",
    "demo",
    "demo_scenes",
    "load_config",
    "parse_config",
    "plan",
    "prepare",
    "run",
    "save",
    "together",
]


def __getattr__(name: str) -> Any:
    """Load each part on first use: checking a configuration needs no metric."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'equipoise.audits' has no attribute {name!r}")
    return getattr(import_module(f"equipoise.audits.{_HOMES[name]}"), name)
