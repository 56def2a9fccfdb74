"""From a configuration to findings: what is measured, corrected, judged and compared."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equipoise.audits.auditing import compare_runs, load, plan, prepare, run, save
    from equipoise.audits.comparison.images import compare
    from equipoise.audits.comparison.subjects import compare_results, together
    from equipoise.audits.config import load_config, parse_config
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.demonstrating import demo
    from equipoise.audits.demonstrating_scenes import demo_scenes

_HOMES = {
    "AuditConfig": "config_sections",
    "compare": "comparison.images",
    "compare_results": "comparison.subjects",
    "compare_runs": "auditing",
    "demo": "demonstrating",
    "demo_scenes": "demonstrating_scenes",
    "load": "auditing",
    "load_config": "config",
    "parse_config": "config",
    "plan": "auditing",
    "prepare": "auditing",
    "run": "auditing",
    "save": "auditing",
    "together": "comparison.subjects",
}

__all__ = [
    "AuditConfig",
    "compare",
    "compare_results",
    "compare_runs",
    "demo",
    "demo_scenes",
    "load",
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
