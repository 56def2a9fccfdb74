"""Run an audit of any kind: from a configuration to findings."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.audits.findings import conclude
from equipoise.audits.kinds import Progress, kind
from equipoise.audits.provenance import manifest_of
from equipoise.core.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig


def load(config: AuditConfig, *, base: Path = Path()) -> Any:
    """Read what a configuration names.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        What relative paths are relative to.

    Returns
    -------
    object
        What the kind of audit measures, such as `PredictionData`; `run` takes it as `data`.

    Raises
    ------
    DataError
        When a file cannot be read or joined; it names the file, column and row.
    """
    return kind(config.audit).load(config, base=base)


def run(
    config: AuditConfig,
    *,
    base: Path = Path(),
    data: Any = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Run an audit.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        What relative paths in the configuration are relative to.
    data : optional
        What `load` returned before; read as the configuration says otherwise.
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    AuditResult
        The same findings, byte for byte, for the same data and configuration.

    Raises
    ------
    DataError
        When a file cannot be used, or nothing is left to compare.
    """
    started = perf_counter()
    steps = kind(config.audit)
    loaded = steps.load(config, base=base) if data is None else data
    measured = steps.measure(config, loaded, progress)
    findings = conclude(measured.drafts, config.testing)
    seconds = perf_counter() - started
    manifest = manifest_of(config, loaded, base, seconds=seconds, notes=measured.notes)
    return AuditResult(findings, manifest, measured.tables)


def plan(config: AuditConfig, *, base: Path = Path()) -> Any:
    """Say what an audit would do and could find; nothing is measured, no model is loaded.

    Returns
    -------
    dataclass
        Counts, sizes and a rough time, by kind of audit.

    Raises
    ------
    DataError
        When a file cannot be used.
    """
    return kind(config.audit).plan(config, load(config, base=base))
