"""Mitigations of models, which resume after an interruption."""

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from equipoise.cli.runs import result_of, write
from equipoise.core import AuditResult, Progress
from equipoise.evidence import new_run
from equipoise.mitigate import loading, running
from equipoise.mitigate.config import Config
from equipoise.report import read


def mitigate(config: Config, base: Path, progress: Progress) -> AuditResult:
    """Fit the recipes of a configuration of one model, and write models and the report."""
    run, began = config.report(base), perf_counter()
    loaded = loading.load(config, base=base)
    assessment = running.run(config, base=base, loaded=loaded, progress=progress)
    result = result_of(
        assessment,
        config=config.model_dump(mode="json", exclude_unset=True),
        resolved=config.model_dump(mode="json"),
        inputs=loaded.inputs,
        counts=loaded.counts,
        seconds=perf_counter() - began,
    )
    with new_run(run) as folder:
        write(result, folder, run)
    return result


def unfinished(parts: Mapping[str, Config], base: Path) -> Mapping[str, Config]:
    """Return the models that have no report of their settings yet; all if each has one."""
    waiting = {name: part for name, part in parts.items() if not _is_finished(part, base)}
    return waiting or parts


def _is_finished(config: Config, base: Path) -> bool:
    run = config.report(base)
    if not (run / "manifest.json").is_file():
        return False
    return read(run).manifest.resolved == config.model_dump(mode="json")
