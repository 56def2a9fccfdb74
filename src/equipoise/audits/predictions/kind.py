"""The audit of predictions in its three steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.audits.drawing import tests_by_model
from equipoise.audits.findings import Draft
from equipoise.audits.kinds import Measured, Progress, told
from equipoise.audits.predictions import loading, planning
from equipoise.audits.predictions.designs import Design, designs, tests_of
from equipoise.audits.predictions.measuring import (
    MeasuredDesign,
    measure_accuracy,
    measure_design,
)
from equipoise.audits.predictions.notes import notes_of
from equipoise.audits.predictions.repeats import same_numbers_once
from equipoise.audits.predictions.tables import tables_of

if TYPE_CHECKING:
    from equipoise.audits.predictions.config import Config
    from equipoise.audits.predictions.planning import Plan
    from equipoise.data import PredictionData


def load(config: Config, *, base: Path) -> PredictionData:
    """Read and join the labels and every model's predictions, see `loading.load`."""
    return loading.load(config, base=base)


def plan(config: Config, data: PredictionData) -> Plan:
    """Say what the audit would do and could find, see `planning.plan`.

    Raises
    ------
    DataError
        When nothing would be left to compare.
    """
    return planning.plan(config, data, designs(config, data))


def measure(config: Config, data: PredictionData, progress: Progress | None) -> Measured:
    """Measure every model on every choice of groups.

    Raises
    ------
    DataError
        When nothing is left to compare.
    """
    every = designs(config, data)
    drafts, measured = _measure(every, config, progress)
    return Measured(
        drafts=(*same_numbers_once(drafts),),
        tables=tables_of(config, data, measured),
        notes=notes_of(every, data, config.data),
    )


def _measure(
    every: Sequence[Design], config: Config, progress: Progress | None
) -> tuple[list[Draft], list[MeasuredDesign]]:
    drafts: list[Draft] = []
    measured: list[MeasuredDesign] = []
    tests = tests_by_model((design.model, tests_of(design)) for design in every)
    seen: set[tuple[str, str]] = set()
    for design in told(every, progress, "measuring"):
        if config.metrics.accuracy is not None and (design.model, design.version) not in seen:
            seen.add((design.model, design.version))
            drafts.append(measure_accuracy(design, config))
        one = measure_design(design, config, tests[design.model])
        drafts += one.drafts
        measured.append(one)
    return drafts, measured
