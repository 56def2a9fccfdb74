"""The audit of concepts in its three steps."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from equipoise.audits.concepts import loading, planning
from equipoise.audits.concepts.designs import designs
from equipoise.audits.concepts.drafting import drafts_of
from equipoise.audits.concepts.effects import effects_of
from equipoise.audits.concepts.hits import hits_of
from equipoise.audits.concepts.measuring import measure_designs
from equipoise.audits.concepts.notes import notes_of
from equipoise.audits.concepts.tables import tables_of
from equipoise.audits.kinds import Measured, Progress

if TYPE_CHECKING:
    from equipoise.audits.concepts.config import Config
    from equipoise.audits.concepts.loading import ConceptData
    from equipoise.audits.concepts.planning import Plan


def load(config: Config, *, base: Path) -> ConceptData:
    """Read images, labels and every model's scores, see `loading.load`."""
    return loading.load(config, base=base)


def plan(config: Config, data: ConceptData) -> Plan:
    """Say what the audit would do and could find, see `planning.plan`.

    Raises
    ------
    DataError
        When the baseline has nothing to compare, or a version has no row.
    """
    return planning.plan(config, data, designs(config, data))


def measure(config: Config, data: ConceptData, progress: Progress | None) -> Measured:
    """Measure every model on every choice of groups, in every version of the choices.

    Raises
    ------
    DataError
        When the baseline has nothing to compare, or a version has no row.
    """
    every = designs(config, data)
    runs = measure_designs(config, data, every, progress)
    tables = tables_of(config, every, runs)
    told = effects_of(tables)
    drafts = (
        draft
        for run in runs
        for draft in drafts_of(
            run,
            told.get((run.design.model, run.design.name, run.against), {}),
            primary=config.primary,
            level=config.resampling.level,
        )
    )
    return Measured(
        (*drafts, *hits_of(config, data, every)), tables, notes_of(config, data, every, runs)
    )
