"""Run an audit from a checked configuration, showing how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.cli.terminal import Steps

if TYPE_CHECKING:
    from equipoise.audits.config import Config
    from equipoise.core import AuditResult
    from equipoise.data import PredictionData


def measure(config: Config, base: Path) -> tuple[AuditResult, PredictionData]:
    """Return the result of an audit and the data it is about.

    Parameters
    ----------
    config : Config
    base : Path
        What paths in the configuration are relative to.
    """
    from equipoise import audits

    with Steps() as progress:
        data = audits.load(config, base=base)
        return audits.run(config, base=base, data=data, progress=progress), data
