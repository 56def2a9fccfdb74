"""Run an audit of any kind: from a config to findings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.audits.audit import Inputs, Plan, runs_models
from equipoise.audits.kinds import Progress, audit_of
from equipoise.audits.outputs import LiveModels
from equipoise.core.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig


def prepare(
    config: AuditConfig, *, base: Path = Path(), progress: Progress | None = None
) -> Inputs[Any, Any]:
    """Run the models that a config names, and load its data.

    Model outputs are kept in the store (`extraction.store`) and read from there. If images are
    left to do, every model is opened and the audit planned first, so that an audit that can't work
    is refused before a model runs.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        Relative paths are relative to this folder.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    Inputs
        For `load` and `run`, in place of the config.

    Raises
    ------
    ConfigError
        If a model can't do what the audit needs.
    DataError
        If a file or images can't be used, or more than `extraction.max_failures` fail.
    ModelError
        If a model can't be loaded or run.
    """
    return audit_of(config.audit).prepare(config, base, progress)


def load(
    config: AuditConfig | Inputs[Any, Any],
    *,
    base: Path = Path(),
    progress: Progress | None = None,
) -> Any:
    """Return the data of an audit, such as `PredictionData`; `run` takes it as `data`.

    Parameters and errors are those of `prepare`.
    """
    inputs = config if isinstance(config, Inputs) else prepare(config, base=base, progress=progress)
    return inputs.data


def run(
    config: AuditConfig | Inputs[Any, Any],
    *,
    base: Path = Path(),
    data: Any = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Run an audit.

    Parameters
    ----------
    config : AuditConfig or Inputs
        A config, or what `prepare` returned.
    base : Path
        Relative paths are relative to this folder.
    data : optional
        What `load` returned before.
    progress : callable, optional
        Called with the step, the number done and the total.

    Returns
    -------
    AuditResult
        The same findings, byte for byte, for the same data and config.

    Raises
    ------
    DataError
        If a file can't be used, or nothing is left to compare.
    """
    started = perf_counter()
    if isinstance(config, Inputs):
        inputs = config
    elif data is None or runs_models(config):
        inputs = prepare(config, base=base, progress=progress)
    else:
        inputs = Inputs(config, data, LiveModels(config, base))
    return audit_of(inputs.config.audit).run(inputs, base, progress, started)


def plan(config: AuditConfig, *, base: Path = Path()) -> Plan:
    """Return what an audit would do and could find; no model is loaded, nothing is measured.

    Raises
    ------
    DataError
        If a file can't be used.
    """
    return audit_of(config.audit).plan(config, base)


def compare_runs(
    runs: Mapping[str, AuditResult],
    folders: Mapping[str, Path],
    progress: Progress | None = None,
) -> AuditResult:
    """Compare the models of finished runs of one kind.

    Parameters
    ----------
    runs : mapping of str to AuditResult
        By name.
    folders : mapping of str to Path
        Where each run lies.
    progress : callable, optional
        Called with the step, the number done and the total.

    Raises
    ------
    DataError
        If there are fewer than two models, or two have no measure in common.
    """
    first = next(iter(runs.values()))
    audit = audit_of(str(first.manifest.resolved.get("audit")))
    return audit.compare(runs, folders, progress)


def save(config: AuditConfig, folder: Path, data: Any) -> None:
    """Write into a run what `compare_runs` reads beside its findings."""
    audit_of(config.audit).save(folder, data)
