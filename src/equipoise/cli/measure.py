"""Run an audit from a checked configuration, showing how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from equipoise.cli.terminal import Steps

if TYPE_CHECKING:
    from equipoise.audits.config import AuditConfig
    from equipoise.core import AuditResult


def measure(config: AuditConfig, base: Path) -> tuple[AuditResult, Any]:
    """Return the result of an audit and the data it is about.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        What paths in the configuration are relative to.
    """
    from equipoise import audits

    with Steps() as progress:
        ready = audits.prepare(config, base=base, progress=progress)
        data = audits.load(ready, base=base)
        return audits.run(ready, base=base, data=data, progress=progress), data
