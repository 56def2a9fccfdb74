"""Run an audit: from a configuration to findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from equipoise.audits.designs import Design, designs
from equipoise.audits.findings import Draft, conclude
from equipoise.audits.loading import load
from equipoise.audits.notes import notes_of
from equipoise.audits.predictions import Measured, measure_accuracy, measure_design
from equipoise.audits.provenance import manifest_of
from equipoise.audits.repeats import same_numbers_once
from equipoise.audits.tables import tables_of
from equipoise.core.errors import DataError
from equipoise.core.result import AuditResult

if TYPE_CHECKING:
    from equipoise.audits.config import Config
    from equipoise.data import PredictionData

# Groups that an error lists.
_LISTED = 10

Progress = Callable[[str, int, int | None], None]


def run(
    config: Config,
    *,
    base: Path = Path(),
    data: PredictionData | None = None,
    progress: Progress | None = None,
) -> AuditResult:
    """Audit predictions.

    Parameters
    ----------
    config : Config
    base : Path
        What relative paths in the configuration are relative to.
    data : PredictionData, optional
        When it was loaded before; read as the configuration says otherwise.
    progress : callable, optional
        Told the step, what is done and what there is to do.

    Returns
    -------
    AuditResult
        The same findings, byte for byte, for the same data and configuration.

    Raises
    ------
    DataError
        When a table cannot be used, or nothing is left to compare.
    """
    started = perf_counter()
    loaded = load(config, base=base) if data is None else data
    every = [*designs(config, loaded)]
    _check(every, loaded)
    drafts, measured = _measure(every, config, progress)
    return AuditResult(
        findings=conclude(same_numbers_once(drafts), config.testing),
        manifest=manifest_of(
            config, loaded, base, seconds=perf_counter() - started, notes=notes_of(every, loaded)
        ),
        tables=tables_of(config, loaded, measured),
    )


def _measure(
    every: Sequence[Design], config: Config, progress: Progress | None
) -> tuple[list[Draft], list[Measured]]:
    drafts: list[Draft] = []
    measured: list[Measured] = []
    tests = sum(tests_of(design) for design in every)
    seen: set[tuple[str, str]] = set()
    for done, design in enumerate(every):
        if progress is not None:
            progress("measuring", done, len(every))
        if config.metrics.accuracy is not None and (design.model, design.version) not in seen:
            seen.add((design.model, design.version))
            drafts.append(measure_accuracy(design, config))
        one = measure_design(design, config, tests)
        drafts += one.drafts
        measured.append(one)
    return drafts, measured


def tests_of(design: Design) -> int:
    """Return about how many tests a design makes, those told once only not counted."""
    classes = len(design.data.classes)
    if design.counts.determines_target:
        return (1 if classes == 2 else classes) + 2
    return (10 if classes == 2 else 9 * classes) + 7


def _check(every: Sequence[Design], data: PredictionData) -> None:
    """Refuse groups of which fewer than two can be compared."""
    for design in every:
        if design.groups.usable.sum() < 2:
            sized = [*zip(design.groups.names, design.groups.counts, strict=True)]
            sizes = ", ".join(f"{name}: {n}" for name, n in sized[:_LISTED])
            sizes += ", …" if len(sized) > _LISTED else ""
            raise DataError(
                f"groups {design.groups.name}: fewer than two groups have "
                f"{design.groups.min_size} rows ({sizes or 'none has any'})",
                file=next(iter(data.inputs)),
                expected="at least two groups of that size",
                fix="choose other groups, or lower data.min_group_size",
            )
