"""Run an audit of any kind: from a configuration to findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from equipoise.audits.audit import Audit, Inputs, runs_models
from equipoise.audits.findings import conclude
from equipoise.audits.kinds import Progress, audit_of, kind, prepares
from equipoise.audits.outputs import LiveModels
from equipoise.audits.provenance import manifest_of
from equipoise.audits.running.placed import placed
from equipoise.audits.running.prepared import Prepared
from equipoise.core.errors import DataError
from equipoise.core.result import AuditResult, Manifest

if TYPE_CHECKING:
    from equipoise.audits.config_sections import AuditConfig
    from equipoise.audits.running.live import Live


def prepare(
    config: AuditConfig, *, base: Path = Path(), progress: Progress | None = None
) -> Prepared | Inputs[Any, Any]:
    """Run the models that a config names, and load its data.

    What a model said is kept in the store (`extraction.store`) and read where it is there. Where
    images are left to do, every model is opened and the audit planned on stand-ins first: a word
    that fits nothing, or a model that cannot be loaded, is told before a model runs.

    Parameters
    ----------
    config : AuditConfig
    base : Path
        What relative paths are relative to.
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    Inputs
        What `load` and `run` take in place of the config.

    Raises
    ------
    ConfigError
        When a model is of a kind that cannot answer what is asked of it.
    DataError
        When a file or images cannot be used, or more than `extraction.max_failures` fail.
    ModelError
        When a model cannot be loaded or run.
    """
    audit = audit_of(config.audit)
    if audit is not None:
        return audit.prepare(config, base, progress)
    from equipoise.audits.running.live import Live

    live = Live(config, base, progress)
    _rehearse(config, base, live)
    return prepares(config.audit)(config, live)


def _rehearse(config: AuditConfig, base: Path, live: Live) -> None:
    """Raise what is wrong with an audit before a model runs over pictures."""
    from equipoise.audits.running.asked import to_run
    from equipoise.audits.running.rehearsal import Rehearsal

    if not to_run(getattr(config, "models", {})):
        return
    ready = prepares(config.audit)(config, Rehearsal(config, base, live))
    if any(run["to_do"] for run in ready.runs):
        planned = kind(config.audit).plan(ready.config, _loaded(ready, base))
        _check_groups([row for row in getattr(planned, "groups", ()) if "compared" in row])


def _check_groups(rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse groups of which fewer than two would be compared if no image failed."""
    for name in dict.fromkeys(row["groups"] for row in rows):
        here = [row for row in rows if row["groups"] == name]
        if sum(row["compared"] for row in here) < 2:
            sizes = ", ".join(
                f"{row['group']}: {row['rows'] if 'rows' in row else row['images']}" for row in here
            )
            raise DataError(
                f"groups {name}: fewer than two are large enough to be compared ({sizes})",
                expected="at least two groups of data.min_group_size",
                fix="choose other groups, or lower data.min_group_size",
            )


def load(
    config: AuditConfig | Inputs[Any, Any] | Prepared,
    *,
    base: Path = Path(),
    progress: Progress | None = None,
) -> Any:
    """Read what a configuration names.

    Parameters
    ----------
    config : AuditConfig or Inputs
        What `prepare` returned, or a configuration, which is prepared before.
    base : Path
        What relative paths are relative to.
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    object
        What the kind of audit measures, such as `PredictionData`; `run` takes it as `data`.

    Raises
    ------
    DataError
        When a file cannot be read or joined; it names the file, column and row.
    """
    ready = _ready(config, base, progress)
    return ready.data if isinstance(ready, Inputs) else _loaded(ready, base)


def _loaded(ready: Prepared, base: Path) -> Any:
    try:
        return kind(ready.config.audit).load(ready.config, base=base)
    except DataError as error:
        told = placed(error, ready.asked, ready.models)
        if told is None:
            raise
        raise told from error


def _ready(
    config: AuditConfig | Inputs[Any, Any] | Prepared, base: Path, progress: Progress | None
) -> Prepared | Inputs[Any, Any]:
    if isinstance(config, Prepared | Inputs):
        return config
    return prepare(config, base=base, progress=progress)


def run(
    config: AuditConfig | Inputs[Any, Any] | Prepared,
    *,
    base: Path = Path(),
    data: Any = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Run an audit.

    Parameters
    ----------
    config : AuditConfig or Inputs
        What `prepare` returned, or a configuration, which is prepared before.
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
    ready = _ready(config, base, progress) if data is None else _given(config, base, data)
    if isinstance(ready, Inputs):
        return _audit(ready.config).run(ready, base, progress, started)
    steps = kind(ready.config.audit)
    loaded = _loaded(ready, base) if data is None else data
    measured = steps.measure(ready.config, loaded, progress)
    findings = conclude(measured.drafts, ready.config.testing)
    seconds = perf_counter() - started
    notes = (*measured.notes, *ready.notes)
    manifest = manifest_of(ready.asked, loaded, base, seconds=seconds, notes=notes)
    tables = {"failures": ready.failures} if len(ready.failures) else {}
    return AuditResult(findings, _with_models(manifest, ready), {**measured.tables, **tables})


def _given(
    config: AuditConfig | Inputs[Any, Any] | Prepared, base: Path, data: Any
) -> Prepared | Inputs[Any, Any]:
    """Return data that were loaded before, with what is known of how."""
    if isinstance(config, Prepared | Inputs):
        return config
    if audit_of(config.audit) is None or runs_models(config):
        return prepare(config, base=base)
    return Inputs(config, data, LiveModels(config, base))


def _audit(config: AuditConfig) -> Audit[Any, Any, Any]:
    audit = audit_of(config.audit)
    assert audit is not None  # noqa: S101 - the caller has inputs of such a kind
    return audit


def _with_models(manifest: Manifest, ready: Prepared) -> Manifest:
    """Add what the models are, the files of evidence and annotations, and what became of them."""
    counts = {"prepared": ready.counts} if ready.counts else {}
    return replace(
        manifest,
        inputs={**ready.inputs, **manifest.inputs},
        counts={**manifest.counts, **counts},
        models=ready.models,
    )


def plan(config: AuditConfig, *, base: Path = Path()) -> Any:
    """Say what an audit would do and could find; nothing is measured, no model is loaded.

    Returns
    -------
    Plan

    Raises
    ------
    DataError
        When a file cannot be used.
    """
    audit = audit_of(config.audit)
    if audit is not None:
        return audit.plan(config, base)
    from equipoise.audits.running.rehearsal import Rehearsal, RunningPlan

    ready = prepares(config.audit)(config, Rehearsal(config, base))
    planned = kind(config.audit).plan(ready.config, load(ready, base=base))
    return RunningPlan.of(ready.runs, planned) if ready.runs else planned


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
        When there are fewer than two models, or two have no measure in common.
    """
    from equipoise.audits.comparison.results import compare_results

    first = next(iter(runs.values()))
    audit = audit_of(str(first.manifest.resolved.get("audit")))
    return compare_results(runs) if audit is None else audit.compare(runs, folders, progress)


def save(config: AuditConfig, folder: Path, data: Any) -> None:
    """Write into a run what `compare_runs` reads beside its findings."""
    audit = audit_of(config.audit)
    if audit is not None:
        audit.save(folder, data)
