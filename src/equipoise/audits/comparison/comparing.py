"""Compare models on the same rows: paired differences with intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from equipoise.audits.comparison.contrasts import compare_world
from equipoise.audits.comparison.differences import Compared, findings_of
from equipoise.audits.comparison.merge import Merged, Runs, merged
from equipoise.audits.comparison.rankings import comparison_tables
from equipoise.audits.comparison.worlds import World, worlds
from equipoise.audits.kinds import Progress, with_progress
from equipoise.audits.provenance import manifest_of
from equipoise.core.result import AuditResult, Manifest


def compare(runs: Runs, *, progress: Progress | None = None) -> AuditResult:
    """Compare the models of one run, or of several runs about the same images.

    Only images that every model answered are compared, so that each difference is paired:
    intervals resample rows (or units) for all models at once, tests exchange two models' answers
    on a row. Groups, metrics, seed and thresholds are those of the first run.

    Parameters
    ----------
    runs : mapping of str to (Config, PredictionData)
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    AuditResult
        One finding per metric, class, groups and pair of models: the second minus the first,
        with both values among its parameters. Tables `differences`, `ranking`, `disagreements`
        and `group_sizes`.

    Raises
    ------
    DataError
        When runs have no image in common or label one differently, there is one model only, or
        no image has an answer of every model.
    """
    started = perf_counter()
    found = merged(runs)
    every = [*worlds(found)]
    compared: list[Compared] = []
    for world in with_progress(every, progress, "comparing"):
        compared += compare_world(world, found.config)
    contrasts = [contrast for one in compared for contrast in one.contrasts]
    findings = findings_of(contrasts, found.config)
    judged = [*zip(contrasts, findings, strict=True)]
    manifest = _manifest(runs, found, every, perf_counter() - started)
    sizes = [world.joint.counts.groups for world in every if world.groups]
    return AuditResult(findings, manifest, comparison_tables(judged, compared, sizes))


def _manifest(runs: Runs, found: Merged, every: Sequence[World], seconds: float) -> Manifest:
    """Describe the comparison: settings of the first run, inputs of all."""
    notes = tuple(_notes(runs, found, every))
    manifest = manifest_of(found.config, found.data, Path(), seconds=seconds, notes=notes)
    if len(runs) == 1:
        return manifest
    inputs = {
        f"{run}: {file}": about
        for run, (_, data) in runs.items()
        for file, about in data.inputs.items()
    }
    counts = {run: data.counts for run, (_, data) in runs.items()}
    return replace(manifest, inputs=inputs, counts=counts)


def _notes(runs: Runs, found: Merged, every: Sequence[World]) -> Iterator[str]:
    used = int(found.answered.sum())
    yield f"Compared on the {used} images that have a label and an answer of every model."
    for run, (_, data) in runs.items():
        left = len(data.ids) - used
        if left:
            of = f"run {run}: " if len(runs) > 1 else ""
            yield f"{of}{left} of {len(data.ids)} labelled images are not compared."
    if len(runs) > 1:
        yield f"Groups, metrics, thresholds and seed are those of run {next(iter(runs))}."
    for world in every:
        if world.joint.counts.determines_target:
            yield (
                f"{world.groups}: the groups determine the target, so demographic parity follows "
                "from the base rates and is compared without a verdict."
            )
