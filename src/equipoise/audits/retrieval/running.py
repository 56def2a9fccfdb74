"""What is run before an audit of retrieval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from equipoise.audits.running.prepared import Prepared

if TYPE_CHECKING:
    from equipoise.audits.retrieval.config import Config
    from equipoise.audits.running.runner import Runner


def prepare(config: Config, runner: Runner) -> Prepared:  # noqa: ARG001 - the form of the step
    """Return the configuration: it names no model to run."""
    return Prepared.nothing(config)
